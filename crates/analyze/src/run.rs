//! From a path to an answer: which directories there are, reading all ranks, and the files that are left.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use msprobe_dump::model::{Construct, Dir, RunDir};
use msprobe_dump::names::Rank;
use msprobe_report::console::{Console, Level};
use msprobe_report::output::{make_directory, publish_numbered};
use rayon::prelude::*;

use crate::elements::refine;
use crate::findings::findings_of;
use crate::left_out;
use crate::links::Links;
use crate::origins::{MOST_TOLD, Picture};
use crate::outcome::{Outcome, RankSummary, Spread, Status, Warned};
use crate::page::write_page;
use crate::phases;
use crate::range::{RangeFindings, RangeOptions, RangeWatch};
use crate::rank::{RankDir, RankDump, rank_dirs};
use crate::rules::{Rule, Rules};

/// What is wanted.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Directory for results; none: no files.
    pub output: Option<PathBuf>,
    /// What means no harm.
    pub rules: Rules,
    /// What is close to the end of its range.
    pub range: RangeOptions,
    /// No page.
    pub no_html: bool,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct AnalyzeError {
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

impl AnalyzeError {
    fn new(message: impl Into<String>, hint: impl Into<String>) -> AnalyzeError {
        AnalyzeError { message: message.into(), hint: hint.into() }
    }
}

/// Analyses a step's directory (with `rank0`, `rank1`, …), the directory of one rank (with `dump.json`), or a dump path (with
/// `step0`, `step1`, …): then the first step that is not finite, or else the first that is not complete, or the last.
pub fn analyze(input: &Path, options: &Options, console: &dyn Console) -> Result<Outcome, AnalyzeError> {
    let (mut clean, mut incomplete) = (Vec::new(), Vec::new());
    let mut told: Option<Outcome> = None;
    let mut refused = None;
    let Steps { in_order, empty, others } = step_dirs(input)?;
    for (path, ranks) in in_order {
        let outcome = match analyze_step(&path, ranks, options, console) {
            Ok(outcome) => outcome,
            // A step of which nothing can be read leaves the others.
            Err(error) => {
                console.warning(&error.message);
                incomplete.push(path);
                refused = refused.or(Some(error));
                continue;
            }
        };
        let (before, status) = (told.as_ref().map(Outcome::status), outcome.status());
        let is_first_of_its_kind = status != Status::Incomplete || before != Some(Status::Incomplete);
        let other = if is_first_of_its_kind && before.is_none_or(|before| status >= before) {
            told.replace(outcome)
        } else {
            Some(outcome)
        };
        if let Some(other) = other {
            let kept = if other.status() == Status::Incomplete { &mut incomplete } else { &mut clean };
            kept.push(other.step);
        }
        if status == Status::Anomaly {
            break;
        }
    }
    let Some(mut outcome) = told else { return Err(refused.unwrap_or_else(|| nothing_in(input))) };
    outcome.clean_steps = clean;
    outcome.incomplete_steps = incomplete;
    for path in empty {
        outcome.problems.push(format!("there is no rank in {}", path.display()));
        outcome.left_out.push(path.display().to_string());
    }
    for path in others {
        outcome.problems.push(format!("{path} is left out: it holds a dump, but is not named like a step"));
        outcome.left_out.push(path);
    }
    if let Some(output) = &options.output {
        let written = write(&mut outcome, output, options, console);
        written.map_err(|error| cannot_write(output, &error))?;
    }
    Ok(outcome)
}

/// The steps of a dump.
struct Steps {
    /// Each with its ranks, in order.
    in_order: Vec<(PathBuf, Vec<RankDir>)>,
    /// Those without a rank.
    empty: Vec<PathBuf>,
    /// Directories beside them that hold a dump.
    others: Vec<String>,
}

impl Steps {
    fn one(path: &Path, ranks: Vec<RankDir>) -> Steps {
        Steps { in_order: vec![(path.to_owned(), ranks)], empty: Vec::new(), others: Vec::new() }
    }
}

/// The steps to look at.
fn step_dirs(input: &Path) -> Result<Steps, AnalyzeError> {
    let cannot_read = |error: io::Error| {
        AnalyzeError::new(
            format!("cannot read {}: {error}", input.display()),
            "give the directory of a step, e.g. dump_path/step0, with rank0, rank1, … in it",
        )
    };
    if input.join("dump.json").is_file() {
        let name = input.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let rank = Rank::of_dir(name).map_or(0, Rank::number);
        let dir = RankDir { rank, path: input.to_owned() };
        return Ok(Steps::one(input, vec![dir]));
    }
    let found = RunDir::read(input).map_err(cannot_read)?;
    if !found.ranks.is_empty() {
        return Ok(Steps::one(input, found.ranks.into_iter().map(RankDir::from).collect()));
    }
    let mut steps =
        Steps { in_order: Vec::new(), empty: Vec::new(), others: left_out::with_dump(&found.others) };
    for Dir { path, .. } in found.steps {
        let ranks = rank_dirs(&path).map_err(cannot_read)?;
        if ranks.is_empty() {
            steps.empty.push(path);
        } else {
            steps.in_order.push((path, ranks));
        }
    }
    if steps.in_order.is_empty() {
        return Err(nothing_in(input));
    }
    steps.empty.sort();
    Ok(steps)
}

fn nothing_in(input: &Path) -> AnalyzeError {
    AnalyzeError::new(
        format!("there is no dump in {}", input.display()),
        "give the directory of a step, e.g. dump_path/step0: it holds rank0, rank1, … (or rank), each with a dump.json",
    )
}

fn analyze_step(
    path: &Path,
    dirs: Vec<RankDir>,
    options: &Options,
    console: &dyn Console,
) -> Result<Outcome, AnalyzeError> {
    let as_dtype = options.range.as_dtype.map(|dtype| dtype.to_string());
    let mut outcome = Outcome { step: path.to_owned(), as_dtype, ..Outcome::default() };
    let gaps = rank_gaps(path, &dirs);
    outcome.left_out = left_out::beside_ranks(path, &dirs);
    let (ranks, ranges) = read_all(dirs, options, console, &mut outcome);
    if ranks.is_empty() {
        return Err(AnalyzeError::new(
            format!("no rank of {} can be read: {}", path.display(), outcome.problems.join("; ")),
            "collect again, or give a directory whose ranks have a dump.json",
        ));
    }
    let is_known = |framework: &str| matches!(framework, "" | "pytorch" | "mindspore" | "mindtorch");
    if let Some(other) = ranks.iter().find(|dump| !is_known(&dump.framework)) {
        return Err(AnalyzeError::new(
            format!("rank {} is a dump of {}, not of pytorch or mindspore", other.dir.rank, other.framework),
            "this analysis knows the records of PyTorch and MindSpore dumps",
        ));
    }
    let constructs: Vec<Construct> = ranks.par_iter().map(read_construct).collect();
    for (dump, construct) in ranks.iter().zip(&constructs) {
        if let Some(problem) = construct.problem() {
            outcome.problems.push(format!("rank {}: {problem}: modules are not known", dump.dir.rank));
        }
    }
    let links = Links::find(&ranks);
    let unreadable: Vec<i64> = outcome.unreadable.iter().map(|rank| i64::from(*rank)).collect();
    outcome.missing_ranks = links.missing_ranks().iter().copied().chain(gaps).collect();
    outcome.missing_ranks.sort_unstable();
    outcome.missing_ranks.dedup();
    outcome.missing_ranks.retain(|rank| !unreadable.contains(rank));
    outcome.problems.extend(missing_ranks(&outcome.missing_ranks));
    outcome.problems.extend(outcome.left_out.iter().map(|path| format!("{path} is left out")));
    let (picture, phases) =
        rayon::join(|| Picture::find(&ranks, &links, &constructs, &options.rules), || phases::find(&ranks));
    for note in &phases.notes {
        console.log(Level::Debug, note);
    }
    outcome.phases = phases;
    let shown = picture.origins.len().min(MOST_TOLD);
    outcome.origins =
        findings_of(&picture.origins[..shown], &picture, &ranks, &constructs, &mut outcome.problems);
    outcome.spread = picture.arrivals.iter().filter_map(|arrival| Spread::of(arrival, &ranks)).collect();
    outcome.warnings = warned(&ranks, ranges, &options.rules);
    outcome.ranks = ranks
        .iter()
        .enumerate()
        .map(|(index, dump)| {
            RankSummary::of(dump, &picture.polluted(index as u32).collect::<Vec<u32>>(), &options.rules)
        })
        .collect();
    (outcome.dumps, outcome.picture, outcome.links) = (ranks, picture, links);
    Ok(outcome)
}

/// Ranks are numbered from 0: those that are not there, up to the highest that is. One rank may be looked at by itself.
fn rank_gaps(step: &Path, dirs: &[RankDir]) -> Vec<i64> {
    let is_itself = dirs.iter().all(|dir| dir.path == step);
    let highest = dirs.iter().map(|dir| dir.rank).max().filter(|_| !is_itself);
    // A number that is no rank of any job would name millions.
    let range = 0..highest.filter(|highest| *highest <= MOST_RANKS).unwrap_or(0);
    range.filter(|rank| dirs.iter().all(|dir| dir.rank != *rank)).map(i64::from).collect()
}

/// No job has more ranks.
const MOST_RANKS: u32 = 1 << 20;

fn missing_ranks(missing: &[i64]) -> Option<String> {
    const NAMED: usize = 16;
    let mut names: Vec<String> = missing.iter().take(NAMED).map(i64::to_string).collect();
    if missing.len() > NAMED {
        names.push(format!("… ({} in all)", missing.len()));
    }
    (!names.is_empty()).then(|| format!("there is no dump of rank {}", names.join(", ")))
}

fn read_construct(dump: &RankDump) -> Construct {
    // Where everything is finite nobody asks for modules.
    if dump.records.iter().all(|record| record.bad.is_empty()) {
        return Construct::default();
    }
    Construct::read(&dump.dir.path).unwrap_or_else(Construct::unreadable)
}

fn read_all(
    dirs: Vec<RankDir>,
    options: &Options,
    console: &dyn Console,
    outcome: &mut Outcome,
) -> (Vec<RankDump>, Vec<RangeFindings>) {
    let size = |dir: &RankDir| fs::metadata(dir.path.join("dump.json")).map_or(0, |metadata| metadata.len());
    console.begin("reading dumps", dirs.iter().map(size).sum());
    let read: Vec<_> = dirs
        .into_par_iter()
        .map(|dir| {
            let rank = dir.rank;
            let mut watch = RangeWatch::new(options.range);
            let dump = RankDump::read(dir, &mut watch, &|bytes| console.advance(bytes));
            dump.map(|mut dump| {
                dump.check_files();
                (dump, watch.finish())
            })
            .map_err(|error| (rank, error))
        })
        .collect();
    console.end();
    let mut ranks = Vec::new();
    let mut ranges = Vec::new();
    for result in read {
        match result {
            Ok((dump, mut range)) => {
                let notes = dump.problems.iter().map(|problem| format!("rank {}: {problem}", dump.dir.rank));
                outcome.problems.extend(notes);
                if dump.records.is_empty() {
                    console.warning(&format!("Rank {} has no dump data!", dump.dir.rank));
                }
                if let Some(dir) = &dump.tensor_dir {
                    outcome.problems.extend(refine(&mut range, dir));
                }
                ranks.push(dump);
                ranges.push(range);
            }
            Err((rank, error)) => {
                outcome.unreadable.push(rank);
                outcome.problems.push(format!("rank {rank} is left out: {error}"));
            }
        }
    }
    for problem in &outcome.problems {
        console.warning(problem);
    }
    (ranks, ranges)
}

fn warned(ranks: &[RankDump], ranges: Vec<RangeFindings>, rules: &Rules) -> Vec<Warned> {
    ranks
        .iter()
        .zip(ranges)
        .map(|(dump, mut range)| {
            // The record a damaged file ends in was seen, but is not there.
            range.warnings.retain(|warning| (warning.record as usize) < dump.records.len());
            let filled = if rules.has(Rule::Mask) { range.set_fills_aside() } else { 0 };
            let sentences = range
                .warnings
                .iter()
                .map(|warning| {
                    let name = dump.records.get(warning.record as usize).map_or("", |record| &*record.name);
                    (name.to_owned(), warning.sentence(name))
                })
                .collect();
            Warned { rank: dump.dir.rank, range, sentences, filled }
        })
        .collect()
}

/// Leaves the reference's file if it would, and our report if there is anything in it.
fn write(outcome: &mut Outcome, output: &Path, options: &Options, console: &dyn Console) -> io::Result<()> {
    let time_ns = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
    if outcome.phases.anomalies.is_empty() {
        console.info("Cannot find any anomaly node, no need to generate analyze file.");
    } else {
        let path = phases::write(&outcome.phases, &outcome.dumps, output, time_ns, console)?;
        console.info(&format!("The analyze result is saved in: {}", path.display()));
        outcome.files.push(path);
    }
    if outcome.status() == Status::Clean {
        return Ok(());
    }
    make_directory(output)?;
    if !options.no_html {
        let path = output.join(format!("overflow_report_{time_ns}.html"));
        let path = publish_numbered(&path, |file| write_page(outcome, file))?;
        outcome.files.push(path);
    }
    let path = output.join(format!("overflow_report_{time_ns}.json"));
    // It names itself too.
    outcome.files.push(path.clone());
    let path = publish_numbered(&path, |file| file.write_all(outcome.json().as_bytes()))?;
    outcome.files.pop();
    outcome.files.push(path);
    Ok(())
}

fn cannot_write(output: &Path, error: &io::Error) -> AnalyzeError {
    AnalyzeError::new(
        format!("cannot write to {}: {error}", output.display()),
        "choose an output directory you can write to, with enough free space",
    )
}
