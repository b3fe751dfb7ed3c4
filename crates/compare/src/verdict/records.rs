//! The records of both runs as they are judged: errors of what goes into each call and of what comes out of it.

use std::collections::{HashMap, HashSet, VecDeque};

use msprobe_dump::hash::FastMap;
use msprobe_dump::names::RecordName;

use super::align::{Alignment, CallName, Pass, RecordPair};
use super::asides::{AsideKind, Asides};
use super::errors::{self, Measure, RowError, Weights};
use super::functions::{chooses, is_uninitialised, tells_of_the_machine};
use super::gaps::{Gap, GapKind, Gaps};
use super::limits::{Conditioning, Limit, LimitOrigin, Limits};
use super::not_comparable::{is_made_in_another_way, tell_what_is_made_in_another_way};
use super::parameters::{SummedGradients, attach_parameter_gradients, natural_size_of_sum, terms_of_sum};
use super::scale::{Scale, other_float};
use super::tolerance::Precision;
use super::update::Update;
use crate::Mode;
use crate::metrics::TensorComparison;
use crate::pairing::MatchMethod;
use crate::side::{Leaf, Role, Side, Which};

/// The row that is furthest apart of those that were looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Worst {
    /// Error as a share of the size of the values.
    pub(super) error: f64,
    /// How much of it counts, on one scale for all statistics.
    pub(super) counted: f64,
    /// Error in multiples of what is tolerated.
    pub(super) times_tolerated: f64,
    /// The rows, if any differ.
    pub(super) rows: Option<RowsSeen>,
}

/// A row of the target and one of the golden run, or one of them alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RowsSeen {
    pub(super) target: Option<usize>,
    pub(super) golden: Option<usize>,
}

impl RowsSeen {
    pub(super) fn both((target, golden): (usize, usize)) -> RowsSeen {
        RowsSeen { target: Some(target), golden: Some(golden) }
    }

    fn one(which: Which, row: usize) -> RowsSeen {
        match which {
            Which::Target => RowsSeen { target: Some(row), golden: None },
            Which::Golden => RowsSeen { target: None, golden: Some(row) },
        }
    }
}

impl Worst {
    fn take(&mut self, RowError { error, weight, .. }: RowError, tolerated: f64, rows: RowsSeen) {
        let times_tolerated = if error == 0.0 { 0.0 } else { error / tolerated };
        if times_tolerated > self.times_tolerated {
            *self = Worst { error, counted: error * weight, times_tolerated, rows: Some(rows) };
        }
    }

    /// Whether it is beyond tolerance.
    pub(super) fn differs(&self) -> bool {
        self.times_tolerated > 1.0
    }

    pub(super) fn or_worse(self, other: Worst) -> Worst {
        if other.times_tolerated > self.times_tolerated { other } else { self }
    }
}

/// A pair of records and how far apart they are.
#[derive(Debug, Clone)]
pub(super) struct Judged {
    pub(super) pair: RecordPair,
    pub(super) pass: Pass,
    pub(super) input: Worst,
    pub(super) parameters: Worst,
    pub(super) output: Worst,
    /// An argument that is no tensor and differs.
    pub(super) argument: Option<(usize, usize)>,
    /// A tensor of floats that has another float type on the other side.
    pub(super) dtype: Option<(usize, usize)>,
    /// Values that were put side by side.
    pub(super) values: usize,
    /// Whether nothing differs at all, not even within tolerance.
    pub(super) equal: bool,
    /// Whether it is judged with the backward call of its module.
    pub(super) attached: bool,
    /// Whether both sides make it in ways that cannot be put side by side.
    pub(super) is_not_comparable: bool,
    /// Whether it divides by values that are nothing but rounding.
    divides_by_residue: bool,
    /// Noise that is in all values by now, as far as results before it show; 0 where float types are fine.
    pub(super) ambient: f64,
}

impl Judged {
    /// What went in, parameters included.
    pub(super) fn incoming(&self) -> Worst {
        self.input.or_worse(self.parameters)
    }

    /// Whether the error that comes out did not come in.
    pub(super) fn introduces(&self) -> bool {
        let incoming = self.incoming();
        !self.attached
            && self.output.differs()
            && !incoming.differs()
            && errors::is_introduced(self.output.counted, incoming.counted.max(self.ambient))
    }
}

impl Judged {
    /// Whether it was called with another argument, and gives something else for it, however little.
    pub(super) fn argument_has_an_effect(&self) -> bool {
        let incoming = self.incoming();
        self.argument.is_some() && !incoming.differs() && self.output.counted > incoming.counted
    }
}

/// What came of a row of the target that has a partner.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RowResult {
    pub(super) golden: usize,
    /// By which tolerance it is judged.
    pub(super) precision: Precision,
    /// How far apart they are, and how far they may be; none if nobody can tell.
    pub(super) error: Option<(RowError, Limit)>,
    /// Why they could not be compared, or not fully.
    pub(super) gap: Option<GapKind>,
    /// Whether all that was recorded of them is the same.
    pub(super) same: bool,
    /// Whether they differ in elements that nobody computed, or that tell of the machine.
    pub(super) is_not_judged: bool,
}

/// What came of each row of the target.
pub(super) type RowResults = Vec<Option<RowResult>>;

/// Everything that was found out about two runs.
pub(super) struct JudgedRecords {
    /// Pairs of records, in the order of the target.
    pub(super) judged: Vec<Judged>,
    pub(super) rows: RowResults,
    pub(super) gaps: Gaps,
    pub(super) asides: Asides,
}

/// Rows of a pair of records that belong together.
pub(super) type RowPairs = Vec<(usize, usize)>;

/// What judging needs to know of two dumps.
pub(super) struct Dumps<'a> {
    pub(super) target: &'a Side,
    pub(super) golden: &'a Side,
    pub(super) mode: Mode,
    pub(super) real: &'a HashMap<(usize, usize), TensorComparison>,
    pub(super) limits: Limits<'a>,
}

impl Dumps<'_> {
    pub(super) fn side(&self, which: Which) -> &Side {
        match which {
            Which::Target => self.target,
            Which::Golden => self.golden,
        }
    }
}

/// Rows of a record pair that belong together: those at the same place. Several at one place pair in order.
pub(super) fn rows_of_pair(target: &Side, golden: &Side, pair: RecordPair) -> RowPairs {
    let (record, other) = (&target.records[pair.target], &golden.records[pair.golden]);
    let own = |row: usize| &target.rows[row].place;
    let partner = |row: usize| &golden.rows[row].place;
    let side_by_side = || record.rows.clone().zip(other.rows.clone());
    if record.rows.len() == other.rows.len()
        && side_by_side().all(|(row, partner_row)| own(row) == partner(partner_row))
    {
        return side_by_side().collect();
    }
    let mut at_place: FastMap<&str, VecDeque<usize>> = FastMap::default();
    for row in other.rows.clone() {
        at_place.entry(partner(row)).or_default().push_back(row);
    }
    record.rows.clone().filter_map(|row| Some((row, at_place.get_mut(&**own(row))?.pop_front()?))).collect()
}

/// Judges every pair, in the order of the target. Gradients of parameters count as results of the backward call of
/// their module.
pub(super) fn judge_records(dumps: &Dumps<'_>, alignment: &Alignment, rows: &[RowPairs]) -> JudgedRecords {
    let mut judge = Judge {
        dumps,
        scale: Scale::new(dumps, rows),
        sums: SummedGradients::of(dumps.golden),
        update: Update::of(dumps.golden),
        after_jump: false,
        rows: vec![None; dumps.target.rows.len()],
        gaps: Gaps::default(),
        asides: Asides::default(),
    };
    for (which, records) in [(Which::Target, &alignment.only_target), (Which::Golden, &alignment.only_golden)]
    {
        for &record in records {
            let name = &dumps.side(which).records[record].name;
            judge.gaps.add(GapKind::Unpaired, || Gap::only_on(which, GapKind::Unpaired, name));
        }
    }
    let mut judged: Vec<Option<Judged>> = vec![None; alignment.pairs.len()];
    // Gradients of parameters stand where their module began, and come last.
    for gradients in [false, true] {
        for ((judged, &pair), rows) in judged.iter_mut().zip(&alignment.pairs).zip(rows) {
            let name = &dumps.target.records[pair.target].name;
            if (CallName::of(name).pass == Pass::ParametersGrad) == gradients {
                *judged = Some(judge.pair(pair, rows));
            }
        }
    }
    let mut judged: Vec<Judged> = judged.into_iter().flatten().collect();
    let Judge { rows, mut gaps, mut asides, .. } = judge;
    attach_parameter_gradients(dumps, &mut judged);
    tell_what_is_made_in_another_way(dumps, &judged, &mut gaps, &mut asides);
    note_ambient_noise(&rows, &mut judged);
    JudgedRecords { judged, rows, gaps, asides }
}

/// Goes through the pairs and gathers what it finds.
struct Judge<'a> {
    dumps: &'a Dumps<'a>,
    scale: Scale,
    sums: SummedGradients<'a>,
    update: Update<'a>,
    /// Whether elements of gradients went the other way at a threshold.
    after_jump: bool,
    rows: RowResults,
    gaps: Gaps,
    asides: Asides,
}

impl Judge<'_> {
    fn pair(&mut self, pair: RecordPair, rows: &[(usize, usize)]) -> Judged {
        let dumps = self.dumps;
        let (record, partner) = (&dumps.target.records[pair.target], &dumps.golden.records[pair.golden]);
        let mut judged = Judged {
            pair,
            pass: CallName::of(&record.name).pass,
            input: Worst::default(),
            parameters: Worst::default(),
            output: Worst::default(),
            argument: None,
            dtype: None,
            values: rows.len(),
            equal: record.rest == partner.rest,
            attached: false,
            is_not_comparable: is_made_in_another_way(dumps, pair, rows),
            divides_by_residue: self.update.divides_by_residue(
                pair.golden,
                &partner.name,
                dumps.golden.rows_of(pair.golden),
            ),
            ambient: 0.0,
        };
        if !judged.equal && record.rows.len() == rows.len() && partner.rows.len() == rows.len() {
            self.asides.add(AsideKind::Fields, || record.name.to_string());
        }
        if !record.earlier.is_same(partner.earlier) {
            judged.equal = false;
            self.gaps.add(GapKind::Unpaired, || Gap {
                kind: GapKind::Unpaired,
                name: record.name.to_string(),
                only: None,
                reason:
                    "its name stands more than once in a dump, and only the last record of a name is compared"
                        .to_owned(),
            });
        }
        if judged.is_not_comparable {
            judged.equal = false;
            for &(row, golden) in rows {
                let precision = Precision::of(&dumps.golden.rows[golden]);
                self.rows[row] = Some(RowResult {
                    golden,
                    precision,
                    error: None,
                    gap: None,
                    same: false,
                    is_not_judged: true,
                });
            }
            return judged;
        }
        let operation = RecordName::parse(&record.name).operation();
        let incoming_size = incoming_size(dumps, rows);
        for &rows in rows {
            self.row(&mut judged, rows, operation, incoming_size);
        }
        self.unpaired_rows(&mut judged, rows);
        judged
    }

    fn row(
        &mut self,
        judged: &mut Judged,
        (row, other): (usize, usize),
        operation: &str,
        incoming_size: f64,
    ) {
        let dumps = self.dumps;
        let (target, golden) = (&dumps.target.rows[row], &dumps.golden.rows[other]);
        let name = &dumps.target.records[judged.pair.target].name;
        let golden_name = &dumps.golden.records[judged.pair.golden].name;
        let mut same = target.digest == golden.digest;
        if judged.argument.is_none()
            && errors::arguments_differ(target, golden, dumps.limits.tolerances.of(Precision::Single))
        {
            judged.argument = Some((row, other));
        }
        // A saved variable is a result of whatever came before.
        let is_result =
            judged.pass == Pass::Other || matches!(target.role, Role::Output | Role::ParametersGrad);
        let floor = match (judged.pass, target.role) {
            (Pass::ParametersGrad, _) => self.scale.gradient_floor.max(self.sums.natural_size(name, golden)),
            (Pass::Backward, Role::Output) => {
                let incoming = dumps.golden.rows_of(judged.pair.golden);
                (1e-3 * incoming_size).max(natural_size_of_sum(incoming, golden))
            }
            // Beside what else goes in: a bias can be nothing but the rounding of its gradients.
            (_, Role::Input | Role::Parameters) => 1e-2 * incoming_size,
            _ => 0.0,
        };
        let floor = floor.max(self.update.floor(judged.pair.golden, golden_name, golden));
        let precision = match self.scale.precision(target, golden) {
            // Numbers of things that floats decide: a tie may go the other way.
            Precision::Exact if target.role == Role::Output && chooses(operation) => self.scale.coarsest,
            precision => precision,
        };
        // The optimizer works on gradients.
        let pass =
            if self.update.has(judged.pair.golden, golden_name) { Pass::Backward } else { judged.pass };
        let conditioning = Conditioning::of(pass, operation, target.role, self.after_jump);
        let terms = match (judged.pass, target.role) {
            (Pass::ParametersGrad, _) => self.sums.terms(golden_name, golden),
            (_, Role::Output) => terms_of_sum(dumps.golden.rows_of(judged.pair.golden), golden),
            _ => 1.0,
        };
        let limit = dumps.limits.of(other, precision, conditioning, terms);
        let compared = errors::compare_values(
            target,
            golden,
            Measure {
                mode: dumps.mode,
                real: dumps.real.get(&(row, other)),
                floor,
                is_result,
                weights: match limit.origin {
                    // What the user says holds for each statistic.
                    LimitOrigin::Asked => Weights::EQUAL,
                    LimitOrigin::Rounding | LimitOrigin::Noise => conditioning.weights(precision, golden),
                },
            },
        );
        // What `empty` and its like return was never computed, and what tells of the machine was not either.
        let counts = target.role != Role::Output
            || !(is_uninitialised(operation) || tells_of_the_machine(operation) || judged.divides_by_residue);
        let elements_differ = compared.error.is_some_and(|error| error.error != 0.0);
        same &= !elements_differ;
        let error = compared.error.filter(|_| counts).map(|error| {
            let tolerated = if error.weight > 0.0 { limit.tolerated / error.weight } else { limit.tolerated };
            (error, Limit { tolerated, ..limit })
        });
        if let Some((error, limit)) = error {
            self.after_jump |= judged.pass == Pass::Backward
                && conditioning == Conditioning::Jumps
                && error.counted() > dumps.limits.tolerances.of(precision);
            let worst = match target.role {
                _ if judged.pass == Pass::Other => &mut judged.output,
                Role::Input => &mut judged.input,
                Role::Parameters => &mut judged.parameters,
                Role::Output | Role::ParametersGrad => &mut judged.output,
            };
            worst.take(error, limit.tolerated, RowsSeen::both((row, other)));
            if judged.dtype.is_none() && !self.scale.other_precision && other_float(target, golden) {
                judged.dtype = Some((row, other));
            }
        }
        if let Some((kind, reason)) = &compared.gap {
            self.gaps.add(*kind, || Gap {
                kind: *kind,
                name: target.name.to_string(),
                only: None,
                reason: reason.clone(),
            });
        } else if !same && error.is_none_or(|(error, _)| error.error == 0.0) {
            // An error that does not count is told here.
            let kind = if elements_differ { AsideKind::NotJudged } else { AsideKind::of(target, golden) };
            self.asides.add(kind, || target.name.to_string());
        }
        let gap = compared.gap.map(|(kind, _)| kind);
        same &= gap.is_none();
        judged.equal &= same;
        self.rows[row] = Some(RowResult {
            golden: other,
            precision,
            error,
            gap,
            same,
            is_not_judged: elements_differ && error.is_none(),
        });
    }

    /// Values only one side has. A result that is missing where there are others was not computed.
    fn unpaired_rows(&mut self, judged: &mut Judged, rows: &[(usize, usize)]) {
        let dumps = self.dumps;
        let pair = judged.pair;
        let all = |side: &Side, record: usize| side.records[record].rows.clone();
        let (own, other) = (all(dumps.target, pair.target), all(dumps.golden, pair.golden));
        if rows.len() == own.len() && rows.len() == other.len() {
            return;
        }
        judged.equal = false;
        let paired_targets: HashSet<usize> = rows.iter().map(|(row, _)| *row).collect();
        let paired_goldens: HashSet<usize> = rows.iter().map(|(_, row)| *row).collect();
        let is_result = |leaf: &Leaf| leaf.role == Role::Output && leaf.is_tensor();
        // Nothing at all on one side is a difference of what was collected, not of what was computed; and a mapping
        // may leave results out on purpose.
        let counts = pair.method != MatchMethod::Mapped
            && !is_uninitialised(RecordName::parse(&dumps.target.records[pair.target].name).operation())
            && dumps.target.rows_of(pair.target).iter().any(is_result)
            && dumps.golden.rows_of(pair.golden).iter().any(is_result);
        for (which, rows, paired) in
            [(Which::Target, own, paired_targets), (Which::Golden, other, paired_goldens)]
        {
            for row in rows.filter(|row| !paired.contains(row)) {
                let leaf = &dumps.side(which).rows[row];
                self.gaps.add(GapKind::Unpaired, || Gap::only_on(which, GapKind::Unpaired, &leaf.name));
                if counts && is_result(leaf) {
                    judged.output.take(RowError::MISSING, 1.0, RowsSeen::one(which, row));
                }
            }
        }
    }
}

/// What went before tells how much noise is in everything: the statistics of what goes into a call may agree by chance
/// where its elements do not. Fine float types have none worth telling.
fn note_ambient_noise(rows: &RowResults, judged: &mut [Judged]) {
    let mut ambient: f64 = 0.0;
    for one in judged.iter_mut().filter(|one| !one.attached) {
        one.ambient = ambient;
        let result = one.output.rows.and_then(|seen| rows[seen.target?]);
        let is_coarse = result.is_some_and(|result| result.precision.is_coarse());
        if is_coarse && !one.output.differs() {
            ambient = ambient.max(one.output.counted);
        }
    }
}

/// Largest magnitude of what goes into a call.
fn incoming_size(dumps: &Dumps<'_>, rows: &[(usize, usize)]) -> f64 {
    rows.iter()
        .flat_map(|&(row, other)| [&dumps.target.rows[row], &dumps.golden.rows[other]])
        .filter(|leaf| matches!(leaf.role, Role::Input | Role::Parameters))
        .filter(|leaf| Precision::of(leaf) != Precision::Exact)
        .filter_map(errors::size_of)
        .fold(0.0, f64::max)
}
