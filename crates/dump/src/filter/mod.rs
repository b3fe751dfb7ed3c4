//! Which records of a run are kept: `scope`, `list`, `data_mode` and `tensor_list`, as a machine that is told what
//! happens in the order it happens and answers what to record. It runs at every call while collecting, so an event
//! allocates nothing, except where a module that `list` names begins.
//!
//! A scope opens when its first record begins and closes at its last one:
//!
//! | last record | closes | kept of it |
//! |---|---|---|
//! | forward call of an API | when it begins | input and output; what happens in between is outside |
//! | backward call of an API | with it | all |
//! | module, either direction | when it ends | all |
//!
//! The first record is kept whole too, even where the scope has closed before it ends (a module around the last
//! record). A first record that begins again opens the scope again; only a beginning does.
//!
//! With `list`, a record is kept if its name contains an element, or begins with one whose family (`distributed`,
//! `tensor.add`) is written in another case. At level mix, so is all that happens between beginning and end of a
//! module whose name does.

mod seen;
#[cfg(test)]
mod tests;

use self::seen::Seen;
pub use self::seen::Unmatched;

use crate::config::{Config, DataModes, Level, Scope};
use crate::names::Direction;

/// What to record at an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// Scope and list want the record, whatever `data_mode` wants of it.
    pub selected: bool,
    /// Its inputs are recorded now.
    pub input: bool,
    /// Its outputs are recorded now.
    pub output: bool,
}

impl Decision {
    /// Whether there is anything to record now.
    pub fn any(self) -> bool {
        self.input || self.output
    }
}

/// The filters of a run, and where in the run they are.
#[derive(Debug, Clone)]
pub struct Filter {
    scope: Gate,
    list: Vec<Box<str>>,
    /// Begun modules that `list` names; `None` at levels where they do not matter.
    expanded: Option<Vec<Box<str>>>,
    data_mode: DataModes,
    tensor_list: Vec<Box<str>>,
    /// `None` where every record is kept.
    seen: Option<Seen>,
}

impl Filter {
    /// The filters of a configuration, before anything has happened.
    pub fn new(config: &Config) -> Filter {
        let boxed = |names: &[String]| names.iter().map(|name| name.as_str().into()).collect();
        let list: Vec<Box<str>> = boxed(&config.list);
        let first = match &config.scope {
            Scope::Range { first, .. } => Some(first.as_str()),
            Scope::Everything | Scope::Names(_) => None,
        };
        let tensor_list: Vec<Box<str>> = boxed(config.tensor_list.as_deref().unwrap_or_default());
        let has_any = first.is_some() || !list.is_empty() || !tensor_list.is_empty();
        Filter {
            scope: Gate::new(&config.scope),
            seen: has_any.then(|| Seen::new(first, &list, &tensor_list)),
            list,
            expanded: (config.level == Level::Mix && !config.list.is_empty()).then(Vec::new),
            data_mode: config.data_mode.clone(),
            tensor_list,
        }
    }

    /// A forward call of an API begins: its inputs are at hand.
    pub fn api_begin(&mut self, name: &str) -> Decision {
        let in_scope = self.scope.api_begin(name);
        self.note(name, in_scope);
        let selected = in_scope && self.is_listed(name);
        Decision { selected, input: selected && self.data_mode.input(Direction::Forward), output: false }
    }

    /// A forward call of an API has ended: its outputs are at hand. For asynchronous calls, when they are complete.
    pub fn api_end(&mut self, name: &str) -> Decision {
        let in_scope = self.scope.api_end(name);
        let selected = in_scope && self.is_listed(name);
        Decision { selected, input: false, output: selected && self.data_mode.output(Direction::Forward) }
    }

    /// The backward pass of an API call, with both sides at hand.
    pub fn api_backward(&mut self, name: &str) -> Decision {
        let in_scope = self.scope.api_backward(name);
        self.note(name, in_scope);
        self.decide(name, in_scope, Direction::Backward)
    }

    /// A module's forward or backward pass begins. Its record is taken when it ends.
    pub fn module_begin(&mut self, name: &str) {
        self.scope.begin(name);
        if let Some(expanded) = &mut self.expanded
            && contains_any(name, &self.list)
            && !expanded.iter().any(|begun| **begun == *name)
        {
            expanded.push(name.into());
        }
    }

    /// A module's pass has begun: whether its record, taken when it ends, may want what is at hand now. Inputs of a
    /// call can be had when it ends as well, gradients cannot; and until then a scope may open.
    pub fn module_running(&self, name: &str, direction: Direction) -> Decision {
        let may_open = direction == Direction::Backward && self.scope.may_open_inside(name);
        self.decide(name, may_open || self.scope.is_open(name), direction)
    }

    /// A module's pass has ended, with both sides at hand.
    pub fn module_end(&mut self, name: &str, direction: Direction) -> Decision {
        let in_scope = self.scope.module_end(name);
        self.note(name, in_scope);
        let decision = self.decide(name, in_scope, direction);
        if let Some(expanded) = &mut self.expanded {
            expanded.retain(|begun| **begun != *name);
        }
        decision
    }

    /// The gradient of a parameter is at hand; `name` is that of its module's `parameters_grad` record.
    pub fn parameters_grad(&self, name: &str) -> bool {
        self.data_mode.parameters_grad() && self.scope.is_open(name) && self.is_listed(name)
    }

    /// Whether `tensor_list` wants the tensors of a record saved.
    pub fn saves_tensors(&self, name: &str) -> bool {
        contains_any(name, &self.tensor_list)
    }

    /// What of `list`, `tensor_list` and `scope` nothing in the step so far is named by; each part once in a run.
    pub fn take_unmatched(&mut self) -> Vec<Unmatched> {
        self.seen.as_mut().map(Seen::take_unmatched).unwrap_or_default()
    }

    /// Forgets what has happened: no scope is open, no module has begun. The reference never does; without it, a
    /// scope whose last record did not come stays open in the next step.
    pub fn reset(&mut self) {
        self.scope.reset();
        if let Some(expanded) = &mut self.expanded {
            expanded.clear();
        }
        if let Some(seen) = &mut self.seen {
            seen.reset();
        }
    }

    fn note(&mut self, name: &str, in_scope: bool) {
        if let Some(seen) = &mut self.seen {
            seen.note(name, in_scope, |element| is_meant(name, element));
        }
    }

    fn decide(&self, name: &str, in_scope: bool, direction: Direction) -> Decision {
        let selected = in_scope && self.is_listed(name);
        Decision {
            selected,
            input: selected && self.data_mode.input(direction),
            output: selected && self.data_mode.output(direction),
        }
    }

    fn is_listed(&self, name: &str) -> bool {
        self.list.is_empty()
            || self.expanded.as_ref().is_some_and(|begun| !begun.is_empty())
            || contains_any(name, &self.list)
    }
}

fn contains_any(name: &str, parts: &[Box<str>]) -> bool {
    parts.iter().any(|part| is_meant(name, part))
}

/// Whether an element of a list means a name: as a part of it, or as its beginning with the family in any case.
fn is_meant(name: &str, element: &str) -> bool {
    name.contains(element) || begins_with_family(name, element)
}

fn begins_with_family(name: &str, element: &str) -> bool {
    let (family, rest) = element.split_once('.').unwrap_or((element, ""));
    let Some((own, own_rest)) = name.split_once('.') else { return false };
    own.eq_ignore_ascii_case(family) && own_rest.starts_with(rest)
}

/// `scope`, open or closed.
#[derive(Debug, Clone)]
enum Gate {
    Everything,
    Names(Vec<Box<str>>),
    Range {
        first: Box<str>,
        last: Box<str>,
        open: bool,
        /// The last record is an API call, and has begun inside: its output belongs to it.
        closing: bool,
    },
}

impl Gate {
    fn new(scope: &Scope) -> Gate {
        match scope {
            Scope::Everything => Gate::Everything,
            Scope::Names(names) => Gate::Names(names.iter().map(|name| name.as_str().into()).collect()),
            Scope::Range { first, last } => Gate::Range {
                first: first.as_str().into(),
                last: last.as_str().into(),
                open: false,
                closing: false,
            },
        }
    }

    /// Something begins: opens the scope if it is its first record.
    fn begin(&mut self, name: &str) {
        if let Gate::Range { first, open, .. } = self {
            *open |= **first == *name;
        }
    }

    fn is_open(&self, name: &str) -> bool {
        match self {
            Gate::Everything => true,
            Gate::Names(names) => names.iter().any(|wanted| **wanted == *name),
            Gate::Range { open, .. } => *open,
        }
    }

    /// Whether the scope can open during the backward pass of a module.
    fn may_open_inside(&self, name: &str) -> bool {
        let Gate::Range { first, .. } = self else { return false };
        // `Module.path.Class.backward.0`
        let path = name.rsplitn(4, '.').nth(3).unwrap_or_default();
        let is_inside = |rest: &str| rest.starts_with('.');
        first.contains(".backward")
            && (!first.starts_with("Module.") || first.strip_prefix(path).is_some_and(is_inside))
    }

    fn api_begin(&mut self, name: &str) -> bool {
        self.begin(name);
        let inside = self.is_open(name);
        if let Gate::Range { last, open, closing, .. } = self
            && **last == *name
        {
            (*open, *closing) = (false, inside);
        }
        inside
    }

    /// Outputs of one call may come more than once (`batch_isend_irecv`), so the answer stays the same.
    fn api_end(&self, name: &str) -> bool {
        match self {
            Gate::Range { first, last, open, closing } => {
                *open || **first == *name || (*closing && **last == *name)
            }
            _ => self.is_open(name),
        }
    }

    fn api_backward(&mut self, name: &str) -> bool {
        self.begin(name);
        self.close_after(name)
    }

    fn module_end(&mut self, name: &str) -> bool {
        self.close_after(name)
    }

    /// Whether a record that is complete now is inside; closes the scope behind its last one.
    fn close_after(&mut self, name: &str) -> bool {
        let inside = self.is_open(name);
        let Gate::Range { first, last, open, .. } = self else {
            return inside;
        };
        *open &= **last != *name;
        inside || **first == *name
    }

    fn reset(&mut self) {
        if let Gate::Range { open, closing, .. } = self {
            (*open, *closing) = (false, false);
        }
    }
}
