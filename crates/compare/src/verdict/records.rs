//! The records of both runs as they are judged: errors of what goes into each call and of what comes out of it.

use std::collections::{HashMap, HashSet};

use super::align::{Alignment, CallName, RecordPair, Way};
use super::errors::{self, Kind, RowError};
use super::tolerance::{Precision, Tolerances};
use crate::matching::MatchMethod;
use crate::side::{Construct, Leaf, Role, Scalar, Side};
use crate::table::Mode;
use crate::tensor_pair::TensorComparison;
use msprobe_dump::hash::FastMap;

/// The row that is furthest apart of those that were looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Worst {
    /// Error as a share of the size of the values.
    pub(super) error: f64,
    /// Error in multiples of what is tolerated.
    pub(super) excess: f64,
    /// The rows, if any differ.
    pub(super) rows: Option<(usize, usize)>,
}

impl Worst {
    fn take(&mut self, error: f64, tolerance: f64, rows: (usize, usize)) {
        let excess = if error == 0.0 { 0.0 } else { error / tolerance };
        if excess > self.excess {
            *self = Worst { error, excess, rows: Some(rows) };
        }
    }

    /// Whether it is beyond tolerance.
    pub(super) fn differs(&self) -> bool {
        self.excess > 1.0
    }

    pub(super) fn or_worse(self, other: Worst) -> Worst {
        if other.excess > self.excess { other } else { self }
    }
}

/// A pair of records and how far apart they are.
#[derive(Debug, Clone)]
pub(super) struct Judged {
    pub(super) pair: RecordPair,
    pub(super) way: Way,
    pub(super) input: Worst,
    pub(super) parameters: Worst,
    pub(super) output: Worst,
    /// An argument that is no tensor and differs.
    pub(super) argument: Option<(usize, usize)>,
    /// A tensor of floats that has another float type on the other side.
    pub(super) dtype: Option<(usize, usize)>,
    /// Whether nothing differs at all, not even within tolerance.
    pub(super) equal: bool,
    /// Whether it is judged with the backward call of its module.
    pub(super) attached: bool,
}

impl Judged {
    /// What went in, parameters included.
    pub(super) fn incoming(&self) -> Worst {
        self.input.or_worse(self.parameters)
    }

    /// Whether the error that comes out did not come in: by a factor, because rounding grows a little everywhere.
    pub(super) fn introduces(&self) -> bool {
        let incoming = self.incoming();
        !self.attached
            && self.output.differs()
            && !incoming.differs()
            && self.output.error > 3.0 * incoming.error
    }
}

impl Judged {
    /// Whether it was called with another argument, and gives something else for it.
    pub(super) fn introduces_a_little(&self) -> bool {
        self.argument.is_some() && self.output.excess > 0.1 && self.output.error > 3.0 * self.incoming().error
    }
}

/// Golden row, error and tolerance of each row of the target that could be measured.
pub(super) type RowErrors = Vec<Option<(usize, RowError, f64)>>;

/// Rows of a pair of records that belong together.
pub(super) type RowPairs = Vec<(usize, usize)>;

/// What judging needs to know of two dumps.
pub(super) struct Dumps<'a> {
    pub(super) target: &'a Side,
    pub(super) golden: &'a Side,
    pub(super) mode: Mode,
    pub(super) real: &'a HashMap<(usize, usize), TensorComparison>,
    pub(super) tolerances: &'a Tolerances,
}

/// Rows of a record pair that belong together: those with the same name behind the record's.
pub(super) fn rows_of_pair(target: &Side, golden: &Side, pair: RecordPair) -> RowPairs {
    let (record, other) = (&target.records[pair.target], &golden.records[pair.golden]);
    let own = |row: usize| target.rows[row].suffix(record);
    let partner = |row: usize| golden.rows[row].suffix(other);
    let side_by_side = || record.rows.clone().zip(other.rows.clone());
    if record.rows.len() == other.rows.len()
        && side_by_side().all(|(row, partner_row)| own(row) == partner(partner_row))
    {
        return side_by_side().collect();
    }
    let by_suffix: FastMap<&str, usize> = other.rows.clone().map(|row| (partner(row), row)).collect();
    record.rows.clone().filter_map(|row| Some((row, *by_suffix.get(own(row))?))).collect()
}

/// Judges every pair, in the order of the target. Gradients of parameters count as results of the backward call of
/// their module.
pub(super) fn judge_records(
    dumps: &Dumps<'_>,
    alignment: &Alignment,
    rows: &[RowPairs],
) -> (Vec<Judged>, RowErrors) {
    let mut scale = Scale {
        gradient_floor: gradient_floor(dumps.golden),
        coarsest: Precision::Exact,
        other_precision: runs_have_other_precision(dumps, rows),
    };
    let mut errors = vec![None; dumps.target.rows.len()];
    let mut judged: Vec<Judged> = alignment
        .pairs
        .iter()
        .zip(rows)
        .map(|(&pair, rows)| judge(dumps, pair, rows, &mut scale, &mut errors))
        .collect();
    attach_parameter_gradients(dumps, &mut judged);
    (judged, errors)
}

/// By what rows are judged, as it is known up to a record.
struct Scale {
    gradient_floor: f64,
    /// Coarsest float type the golden run has used so far: its rounding is in everything that follows.
    coarsest: Precision,
    /// Whether one run as a whole has another float type, which then is no finding.
    other_precision: bool,
}

impl Scale {
    fn precision(&mut self, target: &Leaf, golden: &Leaf) -> Precision {
        let (own, other) = (Precision::of(&golden.dtype), Precision::of(&target.dtype));
        if own == Precision::Exact {
            return own;
        }
        self.coarsest = self.coarsest.max(own);
        if self.other_precision { self.coarsest.max(other) } else { self.coarsest }
    }
}

fn other_float(target: &Leaf, golden: &Leaf) -> bool {
    let (own, other) = (Precision::of(&golden.dtype), Precision::of(&target.dtype));
    own != other && own != Precision::Exact && other != Precision::Exact
}

fn runs_have_other_precision(dumps: &Dumps<'_>, rows: &[RowPairs]) -> bool {
    let (mut floats, mut other) = (0_usize, 0_usize);
    for &(row, partner) in rows.iter().flatten() {
        let (target, golden) = (&dumps.target.rows[row], &dumps.golden.rows[partner]);
        if target.is_tensor() && Precision::of(&golden.dtype) != Precision::Exact {
            floats += 1;
            other += usize::from(target.dtype != golden.dtype && other_float(target, golden));
        }
    }
    other * 4 > floats
}

/// Gradients below this are what is left of larger ones that cancel: their digits mean nothing.
fn gradient_floor(golden: &Side) -> f64 {
    let gradients = golden.rows.iter().filter(|row| row.role == Role::ParametersGrad);
    1e-4 * gradients.filter_map(errors::size_of).fold(0.0, f64::max)
}

fn judge(
    dumps: &Dumps<'_>,
    pair: RecordPair,
    rows: &[(usize, usize)],
    scale: &mut Scale,
    errors: &mut RowErrors,
) -> Judged {
    let name = &dumps.target.records[pair.target].name;
    let mut judged = Judged {
        pair,
        way: CallName::of(name).way,
        input: Worst::default(),
        parameters: Worst::default(),
        output: Worst::default(),
        argument: None,
        dtype: None,
        equal: true,
        attached: false,
    };
    // What `empty` and its like return was never computed.
    let uninitialised = is_uninitialised(name);
    let incoming_size = rows
        .iter()
        .map(|&(_, other)| &dumps.golden.rows[other])
        .filter(|leaf| matches!(leaf.role, Role::Input | Role::Parameters))
        .filter(|leaf| Precision::of(&leaf.dtype) != Precision::Exact)
        .filter_map(errors::size_of)
        .fold(0.0, f64::max);
    for &(row, other) in rows {
        let (target, golden) = (&dumps.target.rows[row], &dumps.golden.rows[other]);
        if judged.argument.is_none() && errors::arguments_differ(target, golden) {
            judged.argument = Some((row, other));
            judged.equal = false;
        }
        let floor = match (judged.way, target.role) {
            (Way::ParametersGrad, _) => scale.gradient_floor,
            (Way::Backward, Role::Output) => 1e-3 * incoming_size,
            // Beside what else goes in: a bias can be nothing but the rounding of its gradients.
            (_, Role::Input | Role::Parameters) => 1e-2 * incoming_size,
            _ => 0.0,
        };
        let real = dumps.real.get(&(row, other));
        let Some(error) = errors::row_error(dumps.mode, target, golden, real, floor) else { continue };
        let tolerance = dumps.tolerances.of(scale.precision(target, golden));
        if target.role == Role::Output && uninitialised {
            continue;
        }
        errors[row] = Some((other, error, tolerance));
        match target.role {
            // A saved variable is a result of whatever came before.
            _ if judged.way == Way::Other => judged.output.take(error.error, tolerance, (row, other)),
            Role::Input => judged.input.take(error.error, tolerance, (row, other)),
            Role::Parameters => judged.parameters.take(error.error, tolerance, (row, other)),
            Role::Output | Role::ParametersGrad => judged.output.take(error.error, tolerance, (row, other)),
        }
        judged.equal &= error.error == 0.0;
        if judged.dtype.is_none() && !scale.other_precision && other_float(target, golden) {
            judged.dtype = Some((row, other));
        }
    }
    // A mapping may leave results out on purpose.
    let complete = pair.method != MatchMethod::Mapped;
    if complete
        && !uninitialised
        && let Some(row) = missing_result(dumps, pair, rows)
    {
        judged.output.take(f64::INFINITY, 1.0, (row, usize::MAX));
        judged.equal = false;
    }
    judged
}

/// A result of the target that is a tensor and has nothing on the other side.
fn missing_result(dumps: &Dumps<'_>, pair: RecordPair, rows: &[(usize, usize)]) -> Option<usize> {
    let record = &dumps.target.records[pair.target];
    if rows.len() == record.rows.len() {
        return None;
    }
    let is_result = |leaf: &Leaf| leaf.role == Role::Output && leaf.is_tensor();
    // Nothing at all on one side is a difference of what was collected, not of what was computed.
    if !dumps.golden.rows_of(pair.golden).iter().any(is_result) {
        return None;
    }
    let is_paired = |row: usize| rows.iter().any(|&(paired, _)| paired == row);
    record.rows.clone().find(|&row| is_result(&dumps.target.rows[row]) && !is_paired(row))
}

fn is_uninitialised(name: &str) -> bool {
    const NAMES: [&str; 6] =
        ["empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_with_format"];
    let api = CallName::of(name).base.rsplit('.').next().unwrap_or_default();
    NAMES.contains(&api)
}

/// Gradients of parameters are known when the last call that uses them has run backward: they are results of that.
fn attach_parameter_gradients(dumps: &Dumps<'_>, judged: &mut [Judged]) {
    let base = |one: &Judged| CallName::of(&dumps.target.records[one.pair.target].name).base;
    let mut backward: FastMap<&str, usize> = FastMap::default();
    for (index, one) in judged.iter().enumerate().filter(|(_, one)| one.way == Way::Backward) {
        backward.insert(base(one), index);
    }
    let gradients: Vec<usize> =
        (0..judged.len()).filter(|&index| judged[index].way == Way::ParametersGrad).collect();
    // A parameter of several modules has one gradient, the sum over all of them.
    let mut last_user: FastMap<Figures<'_>, usize> = FastMap::default();
    let figures_of = |index: usize| {
        let record: usize = judged[index].pair.golden;
        dumps.golden.rows_of(record).iter().map(figures)
    };
    for &index in &gradients {
        if let Some(&owner) = backward.get(base(&judged[index])) {
            for figures in figures_of(index) {
                let last = last_user.entry(figures).or_insert(owner);
                *last = (*last).max(owner);
            }
        }
    }
    let mut owners = Vec::new();
    for &index in &gradients {
        let last = figures_of(index).filter_map(|figures| last_user.get(&figures)).max();
        if let Some(&owner) = last {
            owners.push((index, owner));
        }
    }
    for &(index, owner) in &owners {
        let (output, equal) = (judged[index].output, judged[index].equal);
        judged[owner].output = judged[owner].output.or_worse(output);
        judged[owner].equal &= equal;
        // What came into the owner came into the gradient.
        let incoming = judged[owner].incoming();
        judged[index].input = judged[index].input.or_worse(incoming);
    }
    let gone: HashSet<usize> = owners.into_iter().map(|(index, _)| index).collect();
    for index in gone {
        judged[index].attached = true;
    }
}

/// What a value is recognised by: shape, statistics, checksum.
pub(super) type Figures<'a> = (&'a str, [u64; 4], Option<&'a str>);

/// The figures of a value.
pub(super) fn figures(leaf: &Leaf) -> Figures<'_> {
    let bits = leaf.statistics.each_ref().map(|scalar| match scalar {
        Scalar::Bool(value) => u64::from(*value),
        other => other.number().map_or(u64::MAX, f64::to_bits),
    });
    (&leaf.shape, bits, leaf.md5.as_deref())
}

/// The module call each record was made in, by index; from construct.json, or from the names of modules.
pub(super) fn parents(side: &Side, construct: &Construct) -> Vec<Option<usize>> {
    let by_name = side.records_by_name();
    if !construct.is_empty() {
        let parent = |name: &str| by_name.get(&**construct.parent(name)?).copied();
        return side.records.iter().map(|record| parent(&record.name)).collect();
    }
    // `Module.a.b.Linear.forward.0` was called in `Module.a.….forward.0`, whatever the class of that.
    let calls: Vec<Option<(Way, &str)>> = side
        .records
        .iter()
        .map(|record| {
            let call = CallName::of(&record.name);
            let is_module = record.name.starts_with("Module.") || record.name.starts_with("Cell.");
            Some((call.way, call.base.rsplit_once('.').filter(|_| is_module)?.0))
        })
        .collect();
    let modules: FastMap<(Way, &str), usize> =
        calls.iter().enumerate().filter_map(|(index, call)| Some(((*call)?, index))).collect();
    let parent = |(way, path): (Way, &str)| {
        let mut path = path;
        while let Some((outer, _)) = path.rsplit_once('.') {
            if let Some(&index) = modules.get(&(way, outer)) {
                return Some(index);
            }
            path = outer;
        }
        None
    };
    calls.into_iter().map(|call| call.and_then(parent)).collect()
}

/// A word for what is different about a row.
pub(super) fn kind_word(kind: Kind) -> &'static str {
    match kind {
        Kind::Values => "values",
        Kind::NotFinite => "nan or inf",
        Kind::Shape => "shape",
        Kind::Checksum => "checksum",
    }
}
