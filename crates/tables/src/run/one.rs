//! One pair of dumps.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use msprobe_compare::Mode;
use msprobe_compare::metrics::{TensorComparison, compare_tensors, compare_tensors_widened};
use msprobe_compare::pairing::{MatchMethod, RowPair};
use msprobe_compare::side::{Construct, FileKind, Side, Stacks, read_construct};
use msprobe_compare::verdict::{self, Asked, Judgement, NoiseRun, Verdict};
use msprobe_report::console::Console;
use msprobe_report::error::CompareError;
use msprobe_report::paths::{make_directory, publish_stamped, timestamp};

use super::outcome::{Part, scope_of};
use super::reports::{Report, write_reports};
use super::setup::{check_records, check_tensors, passed_over, read_both, read_noise, read_stacks};
use super::{DataMapping, Form, MappingChoice, Options};
use crate::advisor::advice;
use crate::highlight::Highlights;
use crate::mapping::{self, MappingSource};
use crate::matching::{Keys, match_by_key, match_by_key_and_shape, match_fuzzily};
use crate::newest::{NewestOptions, NewestTable};
use crate::table::{Table, compare_tensor_files, warn_of_rows_not_judged};

/// Compares two dump files and writes their tables. The failures are tensors that could not be read.
pub fn compare_files(
    target: &Path,
    golden: &Path,
    suffix: &str,
    options: &Options,
    console: &dyn Console,
) -> Result<(Part, Vec<String>), CompareError> {
    let (mut target, mut golden, mode) =
        read_both(target, golden, console).map_err(CompareError::in_setup)?;
    let stacks = read_stacks(&target, options, console).map_err(CompareError::in_setup)?;
    make_directory(&options.output).map_err(CompareError::in_setup)?;
    check_tensors(&target, &golden, mode).map_err(CompareError::in_setup)?;
    check_records(&mut target, &mut golden, console)?;
    if target.rows.is_empty() {
        console.warning(match options.form {
            Form::Old => "Can`t match any op. No compare result file generated.",
            Form::Newest => "No valid data found. No compare result file generated. Please check input json.",
        });
        let verdict = Verdict::failed(mode, options.tolerances);
        return Ok((Part::new((&target.path, &golden.path), verdict, Vec::new()), Vec::new()));
    }
    let keys = resolve_keys(&target, &golden, options, console)?;
    let noise = read_noise(&golden, mode, options, console).map_err(CompareError::in_setup)?;
    let comparison = Comparison {
        target: &target,
        golden: &golden,
        noise: &noise,
        mode,
        stacks: stacks.as_ref(),
        keys,
        options,
    };
    match options.form {
        Form::Old => comparison.old_form(suffix, console),
        Form::Newest => comparison.newest_form(suffix, console),
    }
}

/// Which names are looked for on the golden side. A layer mapping leaves a file with the names it found.
pub(super) fn resolve_keys(
    target: &Side,
    golden: &Side,
    options: &Options,
    console: &dyn Console,
) -> Result<Keys, CompareError> {
    let mappings = &options.mappings;
    let mut names = match &mappings.data {
        None => HashMap::new(),
        Some(DataMapping::Names(names)) => names.clone(),
        Some(DataMapping::File(path)) => mapping::data_mapping(path)?,
    };
    if let Some(choice) = &mappings.layer {
        let found = mapping::layer_mapping(target, golden, source(choice), console)?;
        let path = options.output.join(format!("data_mapping_{}.yaml", timestamp()));
        publish_stamped(&path, |file| std::io::Write::write_all(file, found.to_yaml().as_bytes()))?;
        names = found.into_mapping();
    }
    if let Some(choice) = &mappings.api {
        return mapping::api_keys(target, golden, source(choice), console).map(Keys::PerRow);
    }
    if let Some(choice) = &mappings.cell {
        return mapping::cell_keys(target, source(choice), console).map(Keys::PerRow);
    }
    let mapped = mappings.data.is_some() && !names.is_empty() || mappings.layer.is_some();
    Ok(if mapped { Keys::Mapping(names) } else { Keys::OwnName })
}

fn source(choice: &MappingChoice) -> MappingSource<'_> {
    match choice {
        MappingChoice::BuiltIn => MappingSource::BuiltIn,
        MappingChoice::File(path) => MappingSource::File(path),
    }
}

/// Two dumps that were read, and what is asked.
struct Comparison<'a> {
    target: &'a Side,
    golden: &'a Side,
    /// Further runs of the golden side.
    noise: &'a [Side],
    mode: Mode,
    stacks: Option<&'a Stacks>,
    keys: Keys,
    options: &'a Options,
}

impl Comparison<'_> {
    fn old_form(&self, suffix: &str, console: &dyn Console) -> Result<(Part, Vec<String>), CompareError> {
        // The verdict pairs records by itself, unless pairs were asked for or real data has to be measured first.
        let by_itself = self.mode != Mode::All && !self.pairs_were_asked_for();
        let ((table, failures), judgement) = if by_itself {
            rayon::join(|| self.old_table(console), || self.judge(&[], HashMap::new(), console))
        } else {
            let (table, failures) = self.old_table(console);
            let real = table.pairs.iter().zip(&table.tensors);
            let real = real
                .filter_map(|(pair, real)| Some(((pair.target, pair.golden.ok()?), real.clone())))
                .collect();
            let judgement = self.judge(&table.pairs, real, console);
            ((table, failures), judgement)
        };
        let report = Report {
            target: self.target,
            golden: self.golden,
            rows: &table,
            workbook_rows: &table,
            form: Form::Old,
            stacks: self.stacks,
            headers: table.headers(),
            pairs: &table.pairs,
            judgement: &judgement,
            scope: scope_of(&self.target.path, &self.golden.path),
        };
        let mut files = write_reports(&report, &self.stem("compare_result", suffix), self.options)?;
        if self.options.advisor {
            let path = self.options.output.join(format!("advisor{suffix}_{}.txt", timestamp()));
            let text = advice(&table, console);
            console.info("The summary of the expert advice is as follows: ");
            text.lines().for_each(|line| console.info(line));
            let path = publish_stamped(&path, |file| std::io::Write::write_all(file, text.as_bytes()))?;
            console.info(&format!("The advisor summary is saved in: {}", path.display()));
            files.push(path);
        }
        Ok((Part::new((&self.target.path, &self.golden.path), judgement.verdict, files), failures))
    }

    fn old_table(&self, console: &dyn Console) -> (Table<'_>, Vec<String>) {
        let pairs = self.pair(console);
        let (tensors, failures) = match self.mode {
            Mode::All => {
                let sides = (self.target, self.golden);
                let log_rows = self.options.log_rows;
                let measured = compare_tensor_files(compare_tensors, sides, &pairs, log_rows, console);
                warn_of_rows_not_judged(&measured.0, console);
                measured
            }
            _ => (Vec::new(), Vec::new()),
        };
        let highlights = match self.target.kind {
            FileKind::Dump => Highlights::of(self.target, self.golden, self.mode, &pairs, &tensors),
            FileKind::Debug => Highlights::default(),
        };
        let table = Table {
            target: self.target,
            golden: self.golden,
            mode: self.mode,
            pairs,
            tensors,
            stacks: self.stacks,
            highlights,
            fuzzy: self.options.fuzzy && !matches!(self.keys, Keys::Mapping(_)),
        };
        (table, failures)
    }

    fn pairs_were_asked_for(&self) -> bool {
        self.options.fuzzy || !matches!(self.keys, Keys::OwnName)
    }

    fn newest_form(&self, suffix: &str, console: &dyn Console) -> Result<(Part, Vec<String>), CompareError> {
        let options = NewestOptions {
            fuzzy: self.options.fuzzy,
            across_frameworks: self.target.is_of_other_framework_than(self.golden),
            keys: self.keys.clone(),
            log_tensors: self.options.log_rows,
        };
        let table = NewestTable::compare(self.target, self.golden, self.mode, self.stacks, &options, console);
        let judgement = self.judge(table.pairs(), table.tensor_pairs(), console);
        let report = Report {
            target: self.target,
            golden: self.golden,
            rows: &table,
            workbook_rows: &table.workbook(),
            form: Form::Newest,
            stacks: self.stacks,
            headers: table.headers(),
            pairs: table.pairs(),
            judgement: &judgement,
            scope: scope_of(&self.target.path, &self.golden.path),
        };
        let files = write_reports(&report, &self.stem("compare_result", suffix), self.options)?;
        Ok((
            Part::new((&self.target.path, &self.golden.path), judgement.verdict, files),
            table.failures().to_vec(),
        ))
    }

    fn stem(&self, name: &str, suffix: &str) -> PathBuf {
        let debug = if self.target.kind == FileKind::Debug { "debug_" } else { "" };
        self.options.output.join(format!("{debug}{name}{suffix}_{}", timestamp()))
    }

    fn pair(&self, console: &dyn Console) -> Vec<RowPair> {
        let across = self.target.is_of_other_framework_than(self.golden);
        match &self.keys {
            Keys::Mapping(_) => match_by_key(self.target, self.golden, &self.keys),
            Keys::OwnName if self.options.fuzzy => match_fuzzily(self.target, self.golden, across, console),
            keys => match_by_key_and_shape(self.target, self.golden, keys, across),
        }
    }

    fn judge(
        &self,
        pairs: &[RowPair],
        real: HashMap<(usize, usize), TensorComparison>,
        console: &dyn Console,
    ) -> Judgement {
        let constructs = (construct_beside(self.target, console), construct_beside(self.golden, console));
        let measure = |rows: &[(usize, usize)]| self.measure(self.target, rows, console);
        let noise: Vec<(&Side, Construct)> =
            self.noise.iter().map(|side| (side, construct_beside(side, console))).collect();
        let measures: Vec<_> = self
            .noise
            .iter()
            .map(|side| move |rows: &[(usize, usize)]| self.measure(side, rows, console))
            .collect();
        let noise: Vec<NoiseRun<'_>> = noise
            .iter()
            .zip(&measures)
            .map(|((side, construct), measure)| NoiseRun { side, construct, measure })
            .collect();
        verdict::judge(verdict::Input {
            target: self.target,
            golden: self.golden,
            mode: self.mode,
            asked: if self.pairs_were_asked_for() { Asked::Values(pairs) } else { Asked::Nothing },
            real,
            measure: &measure,
            constructs: (&constructs.0, &constructs.1),
            stacks: self.stacks,
            tolerances: self.options.tolerances,
            noise: &noise,
            allowed: self.options.allowed,
        })
    }

    /// Pairs the table does not have are measured as those it has.
    fn measure(
        &self,
        target: &Side,
        rows: &[(usize, usize)],
        console: &dyn Console,
    ) -> Vec<TensorComparison> {
        let pair = |&(target, golden)| RowPair { target, golden: Ok(golden), method: MatchMethod::Aligned };
        let pairs: Vec<RowPair> = rows.iter().map(pair).collect();
        let is_old = self.options.form == Form::Old;
        let compare = if is_old { compare_tensors } else { compare_tensors_widened };
        let (measured, _) = compare_tensor_files(compare, (target, self.golden), &pairs, false, console);
        if is_old {
            warn_of_rows_not_judged(&measured, console);
        }
        measured
    }
}

fn construct_beside(side: &Side, console: &dyn Console) -> Construct {
    let path = side.directory().join("construct.json");
    if path.symlink_metadata().is_err() {
        return Construct::default();
    }
    read_construct(&path).unwrap_or_else(|error| {
        passed_over(&path, &error, console);
        Construct::default()
    })
}
