//! The straight answer of a comparison: whether two runs agree, and if not, which operation made the difference.
//!
//! Records of both runs are paired ([`align`]), the values of each pair are measured as a share of their size
//! ([`errors`]), and the first call is looked for whose inputs agree and whose outputs do not ([`origin`]).
//!
//! The pairs are not those of the tables. A table pairs single values by name, shape and dtype, as the reference does,
//! and has no partner for anything that follows one call more on one side; an answer needs whole records, wherever they
//! stand. Pairs the user asked for by a mapping are taken as they are. The numbers are those of the tables: statistics
//! and checksums as they were recorded, and metrics as the table has them; what it did not pair is measured in its way.

mod align;
mod answer;
mod asides;
mod culprit;
mod details;
mod errors;
mod evidence;
mod functions;
mod gaps;
mod inside;
mod limits;
mod not_comparable;
mod origin;
mod parameters;
mod parents;
mod records;
mod scale;
mod sequence;
#[cfg(test)]
mod tests;
mod text;
mod tolerance;
mod update;

use std::collections::HashMap;

use rayon::prelude::*;

pub use self::answer::DifferingRecord;
pub use self::asides::{AsideKind, Asides};
pub use self::culprit::{Culprit, Evidence, Finding, whole_digits};
pub use self::details::{GoldenOnly, RowDetail, RowOrigin};
pub use self::errors::DifferenceKind;
pub use self::gaps::{Allowed, Gap, GapKind, Gaps};
pub use self::inside::Inside;
pub use self::limits::{Limit, LimitOrigin, NOISE_FACTOR};
pub use self::tolerance::{Precision, Tolerances};
pub use msprobe_report::answer::Status;

use self::culprit::make_culprit;
use self::limits::{Limits, Noise};
use self::origin::{Cause, Origin, find_origin};
use self::parents::parents;
use self::records::{Dumps, Judged, JudgedRecords, RowPairs, RowResults, judge_records, rows_of_pair};
use crate::Mode;
use crate::metrics::TensorComparison;
use crate::pairing::{MatchMethod, RowPair};
use crate::side::{Construct, Role, Side, Stacks};

/// The answer for one pair of dumps.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// How the runs compare.
    pub status: Status,
    /// What is compared.
    pub mode: Mode,
    /// The operation to look at; none where nothing differs, and where no single one makes the error.
    pub culprit: Option<Culprit>,
    /// Records of the target, of the golden run, and pairs of them.
    pub counts: Counts,
    /// What was tolerated where nothing else says so.
    pub tolerances: Tolerances,
    /// Runs that showed what is noise.
    pub noise_runs: usize,
    /// Tolerances that would have let everything pass that differs by an amount, for dtypes of which anything differs.
    pub needed_tolerances: Vec<(Precision, f64)>,
    /// What could not be compared.
    pub gaps: Gaps,
    /// What differs without being an error.
    pub asides: Asides,
    /// Whether all numbers that could be compared are the same.
    pub is_equal: bool,
    /// The first records that differ.
    pub first_differing: Vec<DifferingRecord>,
    /// Where no single record makes the error: those that amplify it most beyond what is tolerated of them, most first.
    pub amplifying: Vec<DifferingRecord>,
}

impl Verdict {
    /// Nothing to compare.
    pub fn failed(mode: Mode, tolerances: Tolerances) -> Verdict {
        Verdict {
            status: Status::Failed,
            mode,
            culprit: None,
            counts: Counts::default(),
            tolerances,
            noise_runs: 0,
            needed_tolerances: Vec::new(),
            gaps: Gaps::default(),
            asides: Asides::default(),
            is_equal: false,
            first_differing: Vec::new(),
            amplifying: Vec::new(),
        }
    }
}

/// How much was compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Pairs of records.
    pub paired: usize,
    /// Of those, found by their place in the sequence of calls.
    pub aligned: usize,
    /// Records only the target has.
    pub only_target: usize,
    /// Records only the golden run has.
    pub only_golden: usize,
    /// Pairs of records with a value beyond tolerance.
    pub differing: usize,
    /// Pairs of values.
    pub values: usize,
}

impl std::iter::Sum for Counts {
    fn sum<I: Iterator<Item = Counts>>(parts: I) -> Counts {
        parts.fold(Counts::default(), |all, part| Counts {
            paired: all.paired + part.paired,
            aligned: all.aligned + part.aligned,
            only_target: all.only_target + part.only_target,
            only_golden: all.only_golden + part.only_golden,
            differing: all.differing + part.differing,
            values: all.values + part.values,
        })
    }
}

/// Measures real data of pairs of rows, target and golden.
pub type Measure<'a> = dyn Fn(&[(usize, usize)]) -> Vec<TensorComparison> + 'a;

/// A further run of the golden side. How far it is from the golden run is noise.
pub struct NoiseRun<'a> {
    /// The run.
    pub side: &'a Side,
    /// Module calls in which its records were made.
    pub construct: &'a Construct,
    /// Measures real data of its rows and those of the golden run.
    pub measure: &'a Measure<'a>,
}

/// Pairs that were asked for. Records nothing is said of are paired by name then.
#[derive(Debug, Clone, Copy)]
pub enum Asked<'a> {
    /// None: records are paired here, by whatever tells that they are the same call.
    Nothing,
    /// Values, one by one.
    Values(&'a [RowPair]),
    /// Whole records of the target; their values are paired by place.
    Records(&'a AskedRecords),
}

/// For records of the target their partners and how those were found, or that they have none.
pub type AskedRecords = HashMap<usize, Option<(usize, MatchMethod)>>;

/// What a verdict is made of.
pub struct Input<'a> {
    /// The run in question.
    pub target: &'a Side,
    /// The run it is measured against.
    pub golden: &'a Side,
    /// What is compared.
    pub mode: Mode,
    /// Pairs that were asked for.
    pub asked: Asked<'a>,
    /// Real data of pairs of rows.
    pub real: HashMap<(usize, usize), TensorComparison>,
    /// Measures real data of pairs of rows that are not in `real`.
    pub measure: &'a Measure<'a>,
    /// Module calls in which records of the target and of the golden run were made.
    pub constructs: (&'a Construct, &'a Construct),
    /// Call stacks of the target.
    pub stacks: Option<&'a Stacks>,
    /// What is tolerated.
    pub tolerances: Tolerances,
    /// Runs that show what is noise.
    pub noise: &'a [NoiseRun<'a>],
    /// What may be left out of the comparison.
    pub allowed: Allowed,
}

/// The verdict, and what can be said about each row.
pub struct Judgement {
    /// The answer.
    pub verdict: Verdict,
    /// What is known about the rows of the target, where they could be measured.
    pub rows: Vec<Option<RowDetail>>,
    /// Values only the golden run has.
    pub golden_only: Vec<GoldenOnly>,
}

/// Judges two dumps.
pub fn judge(input: Input<'_>) -> Judgement {
    let noise = (!input.noise.is_empty()).then(|| measure_noise(&input));
    let noise_runs = input.noise.len();
    let Input {
        target, golden, mode, asked, mut real, measure, constructs, stacks, tolerances, allowed, ..
    } = input;
    let asked_records = match asked {
        Asked::Nothing => &AskedRecords::new(),
        Asked::Values(pairs) => &mapped_records(target, golden, pairs),
        Asked::Records(records) => records,
    };
    let alignment = align::align(target, golden, constructs, asked_records);
    let rows: Vec<RowPairs> = match asked {
        Asked::Values(pairs) if !pairs.is_empty() => {
            let mut rows = rows_as_mapped(target, pairs, target.records.len());
            alignment.pairs.iter().map(|pair| std::mem::take(&mut rows[pair.target])).collect()
        }
        _ => alignment.pairs.par_iter().map(|&pair| rows_of_pair(target, golden, pair)).collect(),
    };
    if mode == Mode::All {
        let missing: Vec<(usize, usize)> =
            rows.iter().flatten().copied().filter(|rows| !real.contains_key(rows)).collect();
        let measured = measure(&missing);
        real.extend(missing.into_iter().zip(measured));
    }
    let limits = Limits::new(&tolerances, noise.as_ref());
    let dumps = Dumps { target, golden, mode, real: &real, limits };
    let JudgedRecords { judged, rows, gaps, asides } = judge_records(&dumps, &alignment, &rows);
    let parents = parents(target, constructs.0);
    let counts = Counts {
        paired: alignment.pairs.len(),
        aligned: alignment.pairs.iter().filter(|pair| pair.method == MatchMethod::Aligned).count(),
        only_target: alignment.only_target.len(),
        only_golden: alignment.only_golden.len(),
        differing: judged.iter().filter(|one| one.output.differs() || one.incoming().differs()).count(),
        values: judged.iter().map(|one| one.values).sum(),
    };
    let origin = find_origin(&dumps, &alignment, &judged, &parents);
    let is_equal = judged.iter().all(|one| one.output.error == 0.0 && one.incoming().error == 0.0)
        && asides.count(AsideKind::NotJudged) + asides.count(AsideKind::OtherBackward) == 0;
    let status = match origin {
        None if counts.paired == 0 => Status::Failed,
        None if gaps.is_blocked(allowed) => Status::Incomplete,
        None if gaps.is_empty() && judged.iter().all(|one| one.equal) => Status::Identical,
        None => Status::WithinTolerance,
        Some(Origin { cause: Cause::Dtype(_), .. }) => Status::Diverged,
        // Nothing came of another argument.
        Some(Origin { cause: Cause::Argument(_), .. }) if counts.differing == 0 => Status::DiffersAtInput,
        Some(Origin { cause: Cause::Input(index), .. }) if origin::is_fed_in(&dumps, &judged, index) => {
            Status::DiffersAtInput
        }
        Some(Origin { cause: Cause::Parameters(_), .. }) => {
            let differing = judged.iter().filter(|one| one.parameters.differs()).count();
            let modules = judged.iter().filter(|one| has_parameters(target, one.pair.target)).count();
            if differing * 2 > modules.max(2) { Status::DiffersAtInput } else { Status::Diverged }
        }
        Some(_) => Status::Diverged,
    };
    let culprit = origin.and_then(|origin| make_culprit(&dumps, (&judged, &rows), origin, &parents, stacks));
    let amplifying = match origin {
        Some(Origin { cause: Cause::Gradual(first), .. }) => {
            amplifying_records(target, &judged, &parents, first)
        }
        _ => Vec::new(),
    };
    let first_differing = first_differing_records(target, &judged);
    let needed_tolerances = needed_tolerances(&rows);
    let golden_only = details::golden_only(golden, &alignment, &rows);
    let rows = details::row_details(&dumps, &alignment, &judged, &rows);
    let verdict = Verdict {
        status,
        mode,
        culprit,
        counts,
        tolerances,
        noise_runs,
        needed_tolerances,
        gaps,
        asides,
        is_equal,
        first_differing,
        amplifying,
    };
    Judgement { verdict, rows, golden_only }
}

/// How far the runs that should agree are from the golden one.
fn measure_noise(input: &Input<'_>) -> Noise {
    let (golden, mode) = (input.golden, input.mode);
    let of_run = |run: &NoiseRun<'_>| -> RowResults {
        let constructs = (run.construct, input.constructs.1);
        let alignment = align::align(run.side, golden, constructs, &AskedRecords::new());
        let rows: Vec<RowPairs> =
            alignment.pairs.par_iter().map(|&pair| rows_of_pair(run.side, golden, pair)).collect();
        let mut real = HashMap::new();
        if mode == Mode::All {
            let pairs: Vec<(usize, usize)> = rows.iter().flatten().copied().collect();
            let measured = (run.measure)(&pairs);
            real.extend(pairs.into_iter().zip(measured));
        }
        let limits = Limits::new(&input.tolerances, None);
        let dumps = Dumps { target: run.side, golden, mode, real: &real, limits };
        judge_records(&dumps, &alignment, &rows).rows
    };
    let runs: Vec<RowResults> = input.noise.iter().map(of_run).collect();
    Noise::measured(golden, &runs)
}

/// For each precision the tolerance that would have let pass what differs by an amount.
fn needed_tolerances(rows: &RowResults) -> Vec<(Precision, f64)> {
    let needed = |precision: Precision| {
        let of_precision = rows.iter().flatten().filter(|result| result.precision == precision);
        let counted = of_precision.filter_map(|result| Some(result.error?.0.counted()));
        counted.filter(|counted| counted.is_finite()).fold(0.0, f64::max)
    };
    let all = Precision::ALL.into_iter().map(|precision| (precision, needed(precision)));
    all.filter(|(_, needed)| *needed > 0.0).collect()
}

fn has_parameters(side: &Side, record: usize) -> bool {
    side.rows_of(record).iter().any(|row| row.role == Role::Parameters)
}

/// The golden record most rows of a target record were mapped to, and how.
fn mapped_records(target: &Side, golden: &Side, mapped: &[RowPair]) -> AskedRecords {
    let mut votes: HashMap<usize, HashMap<usize, (usize, MatchMethod)>> = HashMap::new();
    for pair in mapped {
        if let Ok(other) = pair.golden {
            let record = target.rows[pair.target].record as usize;
            let partner = golden.rows[other].record as usize;
            let (count, method) =
                votes.entry(record).or_default().entry(partner).or_insert((0, MatchMethod::Exact));
            *count += 1;
            if pair.method != MatchMethod::Exact {
                *method = pair.method;
            }
        }
    }
    let most = |votes: HashMap<usize, (usize, MatchMethod)>| {
        let best = |&(record, (count, _)): &(usize, (usize, MatchMethod))| (count, std::cmp::Reverse(record));
        votes.into_iter().max_by_key(best).map(|(record, (_, method))| (record, method))
    };
    votes.into_iter().map(|(record, votes)| (record, most(votes))).collect()
}

/// Rows of a pair of records as they were mapped one by one.
fn rows_as_mapped(target: &Side, mapped: &[RowPair], records: usize) -> Vec<RowPairs> {
    let mut rows = vec![RowPairs::new(); records];
    for pair in mapped {
        if let (Ok(other), Some(rows)) = (pair.golden, rows.get_mut(target.rows[pair.target].record as usize))
        {
            rows.push((pair.target, other));
        }
    }
    rows
}

/// So many records that differ are listed.
const LISTED: usize = 10;

fn first_differing_records(target: &Side, judged: &[Judged]) -> Vec<DifferingRecord> {
    let mut differing: Vec<&Judged> =
        judged.iter().filter(|one| one.output.differs() || one.incoming().differs()).collect();
    // In the order of execution: gradients of parameters stand where their module began, and are known last.
    differing.sort_by_key(|one| one.pass);
    differing.into_iter().take(LISTED).map(|one| listed(target, one)).collect()
}

fn listed(target: &Side, one: &Judged) -> DifferingRecord {
    DifferingRecord {
        name: target.records[one.pair.target].name.to_string(),
        error_in: one.incoming().error,
        error_out: one.output.error,
        times_tolerated: one.output.times_tolerated,
        is_introduced: one.introduces(),
    }
}

/// So many records that add to an error are listed.
const AMPLIFYING: usize = 5;

/// Records, innermost ones only, that give the largest multiple of the error they got, and more than is tolerated.
/// `first` is the first record far beyond tolerance: it is listed if none stands out.
fn amplifying_records(
    target: &Side,
    judged: &[Judged],
    parents: &[Option<usize>],
    first: usize,
) -> Vec<DifferingRecord> {
    /// What goes in counts as so much of what is tolerated at least: beside it nothing would seem large.
    const LEAST: f64 = 0.1;
    let is_whole: std::collections::HashSet<usize> = parents.iter().flatten().copied().collect();
    let gain = |one: &Judged| one.output.times_tolerated / one.incoming().times_tolerated.max(LEAST);
    let mut amplifying: Vec<&Judged> = judged
        .iter()
        .filter(|one| one.output.differs() && !one.attached && !is_whole.contains(&one.pair.target))
        .filter(|one| gain(one) > 1.0)
        .collect();
    amplifying.sort_by(|one, other| gain(other).total_cmp(&gain(one)));
    if amplifying.is_empty() {
        amplifying.push(&judged[first]);
    }
    amplifying.into_iter().take(AMPLIFYING).map(|one| listed(target, one)).collect()
}
