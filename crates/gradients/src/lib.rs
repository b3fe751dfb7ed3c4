//! Directions of gradients of two runs: how similar they are step by step, and at which step they part.
//!
//! ```text
//! rank*/step*/PARAMETER.npy --find--> pairs --measure--> agreements --verdict--> curves, findings
//! rank*/step*/sketches.json -/                               |
//!                                                            \--table, pictures, page--> files
//! ```
//!
//! A file that is missing or cannot be compared costs its own cell and is reported. An error ends the comparison only
//! where there is nothing at all to compare.

mod agreement;
mod find;
mod measure;
mod names;
mod noise;
mod outcome;
mod page;
mod pictures;
mod sketches;
mod table;
mod verdict;

use std::path::{Path, PathBuf};
use std::str::FromStr;

use msprobe_dump::names::numbered_dir;
use msprobe_report::console::{Console, Silent};
use msprobe_report::error::{Code, CompareError};
use msprobe_report::paths::check_directory;
use msprobe_report::paths::{make_directory, make_directory_in, publish};

pub use self::agreement::{Agreement, Cosine, Count};
pub use self::measure::Similarities;
pub use self::names::file_stem;
pub use self::outcome::{Outcome, RankOutcome};
pub use self::sketches::StepCosines;
pub use self::verdict::{Curve, Finding, RankVerdict, Reason, Thresholds};
pub use msprobe_report::answer::Status;

use self::find::{common_directories, has_numbered, parameters};
use self::noise::Noise;

/// Which parameters get a picture of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pictures {
    /// Every one.
    #[default]
    All,
    /// The worst ones, so many.
    Worst(usize),
    /// None, and no summary either.
    None,
}

impl FromStr for Pictures {
    type Err = String;

    /// `all`, `worst:10`, `none`.
    fn from_str(text: &str) -> Result<Pictures, String> {
        match text {
            "all" => Ok(Pictures::All),
            "none" => Ok(Pictures::None),
            _ => text
                .strip_prefix("worst:")
                .and_then(|count| count.parse().ok())
                .map(Pictures::Worst)
                .ok_or_else(|| format!("give all, worst:N or none, not {text:?}")),
        }
    }
}

/// What is asked of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Directory for results; made if it is not there.
    pub output: PathBuf,
    /// What counts as suspicious.
    pub thresholds: Thresholds,
    /// Further runs of the second side, of the same kind of path: how far they are from it is noise.
    pub noise: Vec<PathBuf>,
    /// Which pictures are drawn.
    pub pictures: Pictures,
    /// Whether a page for a browser is written.
    pub html: bool,
}

impl Options {
    /// What is done unless something else is asked for.
    pub fn new(output: impl Into<PathBuf>) -> Options {
        Options {
            output: output.into(),
            thresholds: Thresholds::default(),
            noise: Vec::new(),
            pictures: Pictures::default(),
            html: true,
        }
    }
}

/// What was noticed on the way: warnings for the log, failures for the log and the verdict.
struct Notes<'a> {
    console: &'a dyn Console,
    failures: Vec<String>,
    /// Rows of tables that are not the same on both sides.
    differing_rows: Vec<String>,
    /// Whether anything but missing files failed.
    broken: bool,
    /// Whether one run has sketches where the other has signs.
    is_mixed: bool,
}

impl<'a> Notes<'a> {
    /// Failures that are shown one by one; verdict.json has all of them.
    const SHOWN: usize = 100;

    fn new(console: &'a dyn Console) -> Notes<'a> {
        Notes { console, failures: Vec::new(), differing_rows: Vec::new(), broken: false, is_mixed: false }
    }

    fn warning(&mut self, text: &str) {
        self.console.warning(text);
    }

    /// Something that is there and is compared with nothing.
    fn left_out(&mut self, text: String) {
        self.failures.push(text);
    }

    /// Something that cannot be compared because it is not there.
    fn missing(&mut self, text: String) {
        if self.failures.len() < Self::SHOWN {
            self.console.error(&text);
        }
        self.failures.push(text);
    }

    /// Something that cannot be compared.
    fn failure(&mut self, text: String) {
        self.broken = true;
        self.missing(text);
    }

    fn finish(&mut self) -> Vec<String> {
        let more = self.failures.len().saturating_sub(Self::SHOWN);
        if more > 0 {
            self.console.error(&format!("{more} more items could not be compared, verdict.json lists them"));
        }
        std::mem::take(&mut self.failures)
    }
}

/// What came of a comparison, or why there was none.
pub type Compared = Result<Outcome, CompareError>;

/// Compares two dump paths with all their ranks, or two rank directories, whichever they are.
pub fn compare_either(sides: [&Path; 2], options: &Options, console: &dyn Console) -> Compared {
    sides.into_iter().try_for_each(check_directory)?;
    let are_ranks = sides.iter().all(|side| has_numbered(side, "step"));
    let compare = if are_ranks { compare_rank } else { compare_ranks };
    compare(sides, options, console)
}

/// Compares every rank that two dump paths have in common, each into a directory of its own.
pub fn compare_ranks(sides: [&Path; 2], options: &Options, console: &dyn Console) -> Compared {
    sides.into_iter().try_for_each(check_directory)?;
    let mut notes = Notes::new(console);
    let ranks = common_directories(sides, "rank", &mut notes)?;
    let numbers: Vec<String> = ranks.iter().map(|rank| rank.number.to_string()).collect();
    console.info(&format!("the following ranks will be compared: [{}]", numbers.join(", ")));
    let mut outcomes = Vec::new();
    let mut refused = None;
    for rank in &ranks {
        console.info(&format!("now comparing rank {}:", rank.number));
        let [target, golden] = sides.map(|side| side.join(&rank.name));
        let noise = options.noise.iter().map(|run| run.join(&rank.name));
        let measured = one_rank([&target, &golden], Some(rank.number), &mut notes)
            .and_then(|outcome| Ok((outcome, measure_noise(noise, &golden, console)?)));
        match measured {
            Ok((outcome, noise)) => outcomes.push((outcome, noise, options.output.join(&rank.name))),
            Err(error) if ranks.len() == 1 => return Err(error),
            Err(error) => {
                notes.failure(format!("rank {}: {error}", rank.number));
                refused = refused.or(Some(error));
            }
        }
    }
    if let (true, Some(error)) = (outcomes.is_empty(), refused) {
        return Err(error);
    }
    leave(outcomes, sides, options, notes)
}

/// Compares two rank directories.
pub fn compare_rank(sides: [&Path; 2], options: &Options, console: &dyn Console) -> Compared {
    sides.into_iter().try_for_each(check_directory)?;
    let mut notes = Notes::new(console);
    let name = sides[0].file_name().unwrap_or_default().to_string_lossy();
    let rank = numbered_dir(&name, "rank");
    let similarities = one_rank(sides, rank, &mut notes)?;
    let noise = measure_noise(options.noise.iter().cloned(), sides[1], console)?;
    leave(vec![(similarities, noise, options.output.clone())], sides, options, notes)
}

/// How far further runs of a rank are from it. What they lack, and the other has, says nothing about noise.
fn measure_noise(
    runs: impl Iterator<Item = PathBuf>,
    golden: &Path,
    console: &dyn Console,
) -> Result<Noise, CompareError> {
    let mut noise = Noise::default();
    for run in runs {
        console.info(&format!("now measuring noise: {}", run.display()));
        check_directory(&run)?;
        let (_, similarities) = one_rank([&run, golden], None, &mut Notes::new(&Silent))?;
        noise.add(&similarities);
    }
    Ok(noise)
}

fn one_rank(
    sides: [&Path; 2],
    rank: Option<u64>,
    notes: &mut Notes<'_>,
) -> Result<(Option<u64>, Similarities), CompareError> {
    let steps = common_directories(sides, "step", notes)?;
    notes.console.info(&format!("{} steps will be compared", steps.len()));
    let parameters = parameters(sides, &steps, notes)?;
    let before = notes.failures.len();
    let was_broken = std::mem::take(&mut notes.broken);
    let similarities = measure::measure(sides, &steps, parameters, notes);
    let broken = notes.broken;
    notes.broken |= was_broken;
    let compared = similarities.agreements.iter().flatten().any(Option::is_some);
    if !compared && !similarities.parameters.is_empty() {
        // The first fault says most; files that are not there are said in words scripts know.
        let message = match notes.failures.get(before) {
            Some(first) if broken => first.clone(),
            _ => "no matched grad_file for comparison, please dump data in same configuration".to_owned(),
        };
        let hint = if notes.is_mixed {
            "collect both runs with the same grad_probe.sketch: true, or false for signs"
        } else {
            "directions are collected with grad_level L1 or L2; L0 has none"
        };
        return Err(CompareError::new(Code::InvalidCompareMode, message).with_hint(hint));
    }
    Ok((rank, similarities))
}

type Measured = ((Option<u64>, Similarities), Noise, PathBuf);

/// Judges what was measured and leaves all files.
fn leave(measured: Vec<Measured>, sides: [&Path; 2], options: &Options, mut notes: Notes<'_>) -> Compared {
    let console = notes.console;
    let (mut ranks, mut files) = (Vec::new(), Vec::new());
    for ((rank, similarities), noise, output) in measured {
        let verdict = RankVerdict::judge(&similarities, options.thresholds, &noise);
        let relative = output.strip_prefix(&options.output).unwrap_or(Path::new(""));
        make_directory_in(&options.output, relative)?;
        let path = output.join("similarities.csv");
        publish(&path, console, |file| table::write_similarities(&similarities, file))?;
        files.push(path);
        if let Some(runs) = &similarities.step_cosines {
            let path = output.join("cosines.csv");
            publish(&path, console, |file| table::write_cosines(&similarities, file))?;
            files.push(path);
            let path = output.join("step_cosines.csv");
            publish(&path, console, |file| table::write_step_cosines(&similarities, runs, file))?;
            files.push(path);
        }
        // Pictures are for looking at; the numbers stand without them.
        if let Err(error) = pictures::draw(&similarities, &verdict, options, &output, console) {
            notes.failure(error.message);
        }
        ranks.push(RankOutcome { rank, similarities, verdict });
    }
    let mut outcome = Outcome {
        ranks,
        failures: notes.finish(),
        differing_rows: std::mem::take(&mut notes.differing_rows),
        thresholds: options.thresholds,
        noise_runs: options.noise.len(),
        output: options.output.clone(),
        files,
    };
    make_directory(&options.output)?;
    if options.html {
        let path = options.output.join("similarities.html");
        publish(&path, console, |file| page::write_page(&outcome, sides, file))?;
        outcome.files.push(path);
    }
    let path = options.output.join("verdict.json");
    // It names itself too.
    outcome.files.push(path.clone());
    let text = format!("{:#}\n", outcome.to_json());
    publish(&path, console, |file| std::io::Write::write_all(file, text.as_bytes()))?;
    Ok(outcome)
}
