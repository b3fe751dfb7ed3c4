//! The module call each record was made in.

use msprobe_dump::hash::FastMap;
use msprobe_dump::names::{RecordName, enclosing_paths};

use super::align::{CallName, Pass};
use crate::side::{Construct, Side};

/// The module call each record was made in, by index; from construct.json, or from the names of modules.
pub(super) fn parents(side: &Side, construct: &Construct) -> Vec<Option<usize>> {
    let by_name = side.records_by_name();
    if !construct.is_empty() {
        let parent = |name: &str| by_name.get(construct.parent(name)?).copied();
        return side.records.iter().map(|record| parent(&record.name)).collect();
    }
    // `Module.a.b.Linear.forward.0` was called in `Module.a.….forward.0`, whatever the class of that.
    let calls: Vec<Option<(Pass, &str)>> = side
        .records
        .iter()
        .map(|record| {
            let module = RecordName::parse(&record.name).module()?;
            Some((CallName::of(&record.name).pass, module.path()))
        })
        .collect();
    let modules: FastMap<(Pass, &str), usize> =
        calls.iter().enumerate().filter_map(|(index, call)| Some(((*call)?, index))).collect();
    let parent = |(pass, path): (Pass, &str)| {
        enclosing_paths(path).find_map(|outer| modules.get(&(pass, outer)).copied())
    };
    calls.into_iter().map(|call| call.and_then(parent)).collect()
}
