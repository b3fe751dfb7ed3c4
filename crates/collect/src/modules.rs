//! Which modules are running: per thread a stack of begun passes, from which parents are told.

use std::collections::HashMap;
use std::thread::ThreadId;

use msprobe_dump::names::{Direction, ModuleName, ModulePass};

/// A module of the model, by the order in which modules were made known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ModuleId(pub usize);

/// One pass through a module: the call and its direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pass {
    /// The module.
    pub module: ModuleId,
    /// The number of the forward call.
    pub index: u64,
    /// Forward or backward.
    pub direction: Direction,
}

/// Names and counters of all modules.
#[derive(Debug, Default)]
pub(crate) struct Modules {
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    /// `Module.fc1.Linear`
    stem: String,
    calls: u64,
}

impl Modules {
    pub(crate) fn add(&mut self, stem: String) -> ModuleId {
        self.entries.push(Entry { stem, calls: 0 });
        ModuleId(self.entries.len() - 1)
    }

    /// The number of the call that begins now.
    pub(crate) fn count(&mut self, module: ModuleId) -> u64 {
        match self.entries.get_mut(module.0) {
            Some(entry) => {
                entry.calls += 1;
                entry.calls - 1
            }
            None => 0,
        }
    }

    pub(crate) fn reset_counters(&mut self) {
        for entry in &mut self.entries {
            entry.calls = 0;
        }
    }

    pub(crate) fn stem(&self, module: ModuleId) -> &str {
        self.entries.get(module.0).map_or("", |entry| &entry.stem)
    }

    pub(crate) fn name(&self, pass: Pass) -> String {
        ModuleName::new(self.stem(pass.module), ModulePass::of(pass.direction, pass.index)).to_string()
    }

    /// The name of the record of a module's gradients.
    pub(crate) fn gradients_name(&self, module: ModuleId) -> String {
        ModuleName::new(self.stem(module), ModulePass::ParametersGrad(None)).to_string()
    }
}

/// The passes that have begun and not ended.
#[derive(Debug, Default)]
pub(crate) struct Running {
    stacks: HashMap<ThreadId, Vec<Pass>>,
    /// All threads, in order of beginning.
    unfinished: Vec<Pass>,
}

impl Running {
    /// A pass begins in this thread. Returns its parent: the innermost pass running in the thread or, where none
    /// is (autograd threads), the latest unfinished one that contains it by name.
    pub(crate) fn begin(&mut self, thread: ThreadId, pass: Pass, modules: &Modules) -> Option<Pass> {
        let stack = self.stacks.entry(thread).or_default();
        let parent = match stack.last() {
            Some(&parent) => Some(parent),
            None => container_of(pass, &self.unfinished, modules),
        };
        stack.push(pass);
        self.unfinished.push(pass);
        parent
    }

    /// A pass ends. One that never began here is ignored; those begun inside it and not ended go with it.
    pub(crate) fn end(&mut self, thread: ThreadId, pass: Pass) {
        remove_last(&mut self.unfinished, pass);
        if let Some(stack) = self.stacks.get_mut(&thread) {
            remove_last(stack, pass);
            if stack.is_empty() {
                self.stacks.remove(&thread);
            }
        }
    }

    pub(crate) fn innermost(&self, thread: ThreadId) -> Option<Pass> {
        self.stacks.get(&thread).and_then(|stack| stack.last()).copied()
    }

    pub(crate) fn clear(&mut self) {
        self.stacks.clear();
        self.unfinished.clear();
    }
}

fn remove_last(passes: &mut Vec<Pass>, pass: Pass) {
    if let Some(at) = passes.iter().rposition(|begun| *begun == pass) {
        passes.remove(at);
    }
}

/// The latest pass whose module's path is that of `pass` without its last part.
fn container_of(pass: Pass, unfinished: &[Pass], modules: &Modules) -> Option<Pass> {
    let without = |text: &'_ str, parts: usize| -> Option<String> {
        let mut rest = text;
        for _ in 0..parts {
            rest = rest.rsplit_once('.')?.0;
        }
        Some(rest.to_owned())
    };
    // The class is the last part of a stem; the path is before it.
    let wanted = without(modules.stem(pass.module), 2)?;
    unfinished
        .iter()
        .rev()
        .find(|begun| without(modules.stem(begun.module), 1).as_deref() == Some(wanted.as_str()))
        .copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass(module: ModuleId, direction: Direction) -> Pass {
        Pass { module, index: 0, direction }
    }

    #[test]
    fn parents_come_from_the_thread_or_from_the_name() {
        let mut modules = Modules::default();
        let block = modules.add("Module.layers.0.Block".to_owned());
        let inner = modules.add("Module.layers.0.fc.Linear".to_owned());
        let other = modules.add("Module.head.Linear".to_owned());
        let here = std::thread::current().id();
        let there = std::thread::spawn(|| {}).thread().id();
        let mut running = Running::default();
        let outer = pass(block, Direction::Forward);
        assert_eq!(running.begin(here, outer, &modules), None);
        assert_eq!(running.begin(here, pass(other, Direction::Forward), &modules), Some(outer));
        assert_eq!(running.begin(there, pass(inner, Direction::Forward), &modules), Some(outer));
        running.end(here, pass(other, Direction::Forward));
        assert_eq!(running.innermost(here), Some(outer));
        running.end(here, outer);
        assert_eq!(running.innermost(here), None);
        assert_eq!(running.innermost(there), Some(pass(inner, Direction::Forward)));
    }

    #[test]
    fn calls_are_counted_from_zero() {
        let mut modules = Modules::default();
        let module = modules.add("Module.a.Linear".to_owned());
        assert_eq!((modules.count(module), modules.count(module)), (0, 1));
        modules.reset_counters();
        assert_eq!(modules.count(module), 0);
        assert_eq!(modules.name(pass(module, Direction::Backward)), "Module.a.Linear.backward.0");
    }
}
