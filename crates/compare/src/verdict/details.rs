//! What can be said about each row beyond its table: how it was matched, and whether its error came with its inputs.

use super::align::Alignment;
use super::errors::{DifferenceKind, RowError, is_introduced};
use super::gaps::GapKind;
use super::limits::{Limit, LimitOrigin};
use super::records::{Dumps, Judged, RowResult, RowResults, Worst};
use crate::pairing::MatchMethod;
use crate::side::{Role, Side};

/// Where the error of a row comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowOrigin {
    /// There is none.
    Equal,
    /// It is within tolerance.
    Tolerated,
    /// The call made it: what went in has less of it.
    Introduced,
    /// It came in.
    Inherited,
    /// The numbers agree, something else does not.
    Aside,
    /// They differ, and mean nothing: memory nobody wrote to.
    NotJudged,
    /// It could not be compared, or not fully.
    NotCompared,
}

impl RowOrigin {
    /// The word in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            RowOrigin::Equal => "equal",
            RowOrigin::Tolerated => "within tolerance",
            RowOrigin::Introduced => "introduced",
            RowOrigin::Inherited => "inherited",
            RowOrigin::Aside => "equal in numbers",
            RowOrigin::NotJudged => "not judged",
            RowOrigin::NotCompared => "not compared",
        }
    }
}

/// What can be said about a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowDetail {
    /// Its partner on the golden side.
    pub golden: usize,
    /// How the partner was found.
    pub method: MatchMethod,
    /// Error as a share of the size of the values; 0 where nothing was measured.
    pub error: f64,
    /// What is different.
    pub kind: DifferenceKind,
    /// What is tolerated.
    pub limit: Limit,
    /// Why it could not be compared, or not fully.
    pub gap: Option<GapKind>,
    /// Largest error that came in.
    pub inherited: f64,
    /// Where the error comes from.
    pub origin: RowOrigin,
}

impl RowDetail {
    /// The part of the error that did not come in.
    pub fn introduced(&self) -> f64 {
        if self.error.is_infinite() && self.inherited.is_infinite() {
            0.0
        } else {
            (self.error - self.inherited).max(0.0)
        }
    }
}

/// A value only the golden run has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GoldenOnly {
    /// Its row on the golden side.
    pub row: usize,
    /// The record of the target its own was paired with; none if only the golden run made the call.
    pub paired_with: Option<usize>,
}

pub(super) fn row_details(
    dumps: &Dumps<'_>,
    alignment: &Alignment,
    judged: &[Judged],
    results: &RowResults,
) -> Vec<Option<RowDetail>> {
    let mut incoming = vec![Worst::default(); dumps.target.records.len()];
    for one in judged {
        incoming[one.pair.target] = one.incoming();
    }
    let mut methods = vec![MatchMethod::Exact; dumps.target.records.len()];
    for pair in &alignment.pairs {
        methods[pair.target] = pair.method;
    }
    let detail = |(row, result): (usize, &Option<RowResult>)| {
        let result = (*result)?;
        let leaf = &dumps.target.rows[row];
        let record = leaf.record as usize;
        let is_result = matches!(leaf.role, Role::Output | Role::ParametersGrad);
        let nothing = (RowError::default(), Limit { tolerated: 0.0, origin: LimitOrigin::Rounding });
        let (row_error, limit) = result.error.unwrap_or(nothing);
        let RowError { error, kind, .. } = row_error;
        let inherited = if is_result { incoming[record].error } else { error };
        let origin = if error > limit.tolerated {
            let is_introduced = is_result && is_introduced(row_error.counted(), incoming[record].counted);
            if is_introduced { RowOrigin::Introduced } else { RowOrigin::Inherited }
        } else if result.gap.is_some() {
            RowOrigin::NotCompared
        } else if error > 0.0 {
            RowOrigin::Tolerated
        } else if result.is_not_judged {
            RowOrigin::NotJudged
        } else if result.same {
            RowOrigin::Equal
        } else {
            RowOrigin::Aside
        };
        let (method, gap, golden) = (methods[record], result.gap, result.golden);
        Some(RowDetail { golden, method, error, kind, limit, gap, inherited, origin })
    };
    results.iter().enumerate().map(detail).collect()
}

/// Values that no row of the target was compared with, in the order of the golden run.
pub(super) fn golden_only(golden: &Side, alignment: &Alignment, results: &RowResults) -> Vec<GoldenOnly> {
    let mut partners = vec![None; golden.records.len()];
    for pair in &alignment.pairs {
        partners[pair.golden] = Some(pair.target);
    }
    let mut is_paired = vec![false; golden.rows.len()];
    for result in results.iter().flatten() {
        is_paired[result.golden] = true;
    }
    let only = |row: usize| GoldenOnly { row, paired_with: partners[golden.rows[row].record as usize] };
    (0..golden.rows.len()).filter(|&row| !is_paired[row]).map(only).collect()
}
