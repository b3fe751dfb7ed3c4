//! Backward passes of modules between their beginning and their record.
//!
//! Gradients arrive one by one, and the last one is known before everything inside the module has run: gradients
//! of its parameters may still need operations of their own. Autograd runs nodes newest first, so the module is
//! over when a node older than the module's call is reached, or when autograd is through. Until then a complete pass
//! waits here.

use std::thread::ThreadId;

use crate::encoder::Encoded;
use crate::fragment::{Fragment, list};
use crate::health::Findings;
use crate::modules::Pass;
use crate::notices::GivenHealth;

/// A backward pass that begins.
#[derive(Debug, Clone, Copy)]
pub struct BackwardBegin {
    /// The module's call.
    pub pass: Pass,
    /// The run of autograd it belongs to.
    pub task: i64,
    /// Calls of modules are numbered as they begin: one inside another has the larger number.
    pub serial: u64,
    /// The number the first autograd node of the call would have got.
    pub begin_sequence: u64,
    /// How many outputs have gradients.
    pub outputs: usize,
    /// How many inputs do.
    pub inputs: usize,
    /// Whether the window is open.
    pub recording: bool,
}

/// Where autograd is: complete passes of calls made since then are over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Since {
    /// The call began at this autograd node or later.
    pub sequence: u64,
    /// And it is this call of a module or a later one.
    pub serial: u64,
}

impl Since {
    /// A node runs: calls that began after it are over.
    pub fn node(sequence: u64) -> Since {
        Since { sequence: sequence.saturating_add(1), serial: 0 }
    }

    fn includes(self, open: &OpenPass) -> bool {
        open.begin.begin_sequence >= self.sequence && open.begin.serial >= self.serial
    }
}

/// Which gradients of a pass can matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Those of the module's outputs.
    pub(crate) outputs: bool,
    /// Those of its inputs.
    pub(crate) inputs: bool,
}

#[derive(Debug, Default)]
pub(crate) struct BackwardPasses {
    open: Vec<OpenPass>,
}

#[derive(Debug)]
struct OpenPass {
    thread: ThreadId,
    begin: BackwardBegin,
    wanted: Wanted,
    outputs: Vec<Option<Encoded>>,
    inputs: Vec<Option<Encoded>>,
    /// Once complete: whether the window was open then, and before.
    complete: Option<bool>,
}

/// A pass whose record can be written.
#[derive(Debug)]
pub(crate) struct FinishedPass {
    pub(crate) thread: ThreadId,
    pub(crate) pass: Pass,
    pub(crate) recording: bool,
    outputs: Vec<Option<Encoded>>,
    inputs: Vec<Option<Encoded>>,
}

impl BackwardPasses {
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// A pass begins. There is no other of the same call.
    pub(crate) fn begin(&mut self, thread: ThreadId, begin: BackwardBegin, wanted: Wanted) {
        self.open.push(OpenPass {
            thread,
            begin,
            wanted,
            outputs: vec![None; begin.outputs],
            inputs: vec![None; begin.inputs],
            complete: None,
        });
    }

    /// Which gradients of a pass can matter.
    pub(crate) fn wanted(&self, pass: Pass) -> Option<Wanted> {
        self.get(pass).map(|open| open.wanted)
    }

    /// A gradient of an output or an input of the module.
    pub(crate) fn put(&mut self, pass: Pass, of_output: bool, position: usize, gradient: Encoded) {
        if let Some(open) = self.get_mut(pass) {
            let side = if of_output { &mut open.outputs } else { &mut open.inputs };
            if let Some(slot) = side.get_mut(position) {
                *slot = Some(gradient);
            }
        }
    }

    /// All gradients are there.
    pub(crate) fn complete(&mut self, pass: Pass, recording: bool) {
        if let Some(open) = self.get_mut(pass) {
            open.complete = Some(recording && open.begin.recording);
        }
    }

    /// Whether a pass has no gradients of inputs, so that nothing inside it leads to its end.
    pub(crate) fn has_no_inputs(&self, pass: Pass) -> bool {
        self.open.iter().rev().find(|open| open.begin.pass == pass).is_some_and(|open| open.inputs.is_empty())
    }

    /// The complete passes of a thread that are over, innermost first.
    pub(crate) fn take_over(&mut self, thread: ThreadId, since: Since) -> Vec<FinishedPass> {
        self.take(|open| open.complete.is_some() && open.thread == thread && since.includes(open))
    }

    /// All passes of a thread, where autograd does not run. Those that are not complete never will be.
    pub(crate) fn take_thread(&mut self, thread: ThreadId) -> Vec<FinishedPass> {
        self.take(|open| open.thread == thread)
    }

    /// All passes of a run of autograd that is through.
    pub(crate) fn take_task(&mut self, task: i64) -> Vec<FinishedPass> {
        self.take(|open| open.begin.task == task)
    }

    /// The complete passes of all threads.
    pub(crate) fn take_complete(&mut self) -> Vec<FinishedPass> {
        self.take(|open| open.complete.is_some())
    }

    /// One pass, complete or not.
    pub(crate) fn take_one(&mut self, pass: Pass) -> Vec<FinishedPass> {
        self.take(|open| open.begin.pass == pass)
    }

    fn get(&self, pass: Pass) -> Option<&OpenPass> {
        self.open.iter().find(|open| open.begin.pass == pass)
    }

    fn get_mut(&mut self, pass: Pass) -> Option<&mut OpenPass> {
        self.open.iter_mut().find(|open| open.begin.pass == pass)
    }

    fn take(&mut self, is_over: impl Fn(&OpenPass) -> bool) -> Vec<FinishedPass> {
        if self.open.is_empty() {
            return Vec::new();
        }
        let mut over: Vec<OpenPass> = self.open.extract_if(.., |open| is_over(open)).collect();
        over.sort_by_key(|open| std::cmp::Reverse(open.begin.serial));
        over.into_iter()
            .map(|open| FinishedPass {
                thread: open.thread,
                pass: open.begin.pass,
                recording: open.complete.unwrap_or(false),
                outputs: open.outputs,
                inputs: open.inputs,
            })
            .collect()
    }

    pub(crate) fn clear(&mut self) {
        self.open.clear();
    }
}

impl FinishedPass {
    pub(crate) fn overflows(&self) -> bool {
        self.outputs.iter().chain(&self.inputs).flatten().any(Encoded::overflows)
    }

    /// How the gradients that came in are.
    pub(crate) fn given(&self) -> GivenHealth {
        let all = self.outputs.iter().flatten().map(|gradient| gradient.findings);
        all.reduce(Findings::and).map_or(GivenHealth::Unknown, Findings::given)
    }

    /// The gradients that are recorded: those of outputs, those of inputs.
    pub(crate) fn gradients(&self, of_outputs: bool, of_inputs: bool) -> impl Iterator<Item = &Encoded> {
        let outputs = self.outputs.iter().filter(move |_| of_outputs);
        outputs.chain(self.inputs.iter().filter(move |_| of_inputs)).flatten()
    }

    /// The record's `input` (gradients of the module's outputs) and `output` (of its inputs).
    pub(crate) fn sides(self) -> (Fragment, Fragment) {
        let fragments = |side: Vec<Option<Encoded>>| {
            list(side.into_iter().map(|slot| slot.map(|gradient| gradient.fragment)))
        };
        (fragments(self.outputs), fragments(self.inputs))
    }
}

#[cfg(test)]
mod tests {
    use msprobe_dump::names::Direction;

    use super::*;
    use crate::modules::ModuleId;

    fn pass(module: usize) -> Pass {
        Pass { module: ModuleId(module), index: 0, direction: Direction::Backward }
    }

    /// A call of module `serial`, which began at node `begin_sequence`.
    fn begin(serial: usize, begin_sequence: u64, task: i64) -> BackwardBegin {
        BackwardBegin {
            pass: pass(serial),
            task,
            serial: serial as u64,
            begin_sequence,
            outputs: 1,
            inputs: 1,
            recording: true,
        }
    }

    fn passes(thread: ThreadId, begun: &[(usize, u64, i64)]) -> BackwardPasses {
        let mut passes = BackwardPasses::default();
        for (serial, begin_sequence, task) in begun {
            let wanted = Wanted { outputs: true, inputs: true };
            passes.begin(thread, begin(*serial, *begin_sequence, *task), wanted);
            passes.complete(pass(*serial), true);
        }
        passes
    }

    fn modules(finished: &[FinishedPass]) -> Vec<usize> {
        finished.iter().map(|finished| finished.pass.module.0).collect()
    }

    #[test]
    fn a_pass_is_over_when_an_older_node_is_reached() {
        let here = std::thread::current().id();
        let there = std::thread::spawn(|| {}).thread().id();
        // Module 0 calls 1 before anything else; 2 comes later.
        let mut passes = passes(here, &[(2, 7, 1), (0, 0, 1), (1, 0, 1)]);
        assert!(passes.take_over(here, Since::node(7)).is_empty());
        assert!(passes.take_over(there, Since::node(0)).is_empty());
        assert_eq!(modules(&passes.take_over(here, Since::node(0))), [2]);
        // Where module 1 ends, that around it goes on.
        assert_eq!(modules(&passes.take_over(here, Since { sequence: 0, serial: 1 })), [1]);
        assert_eq!(modules(&passes.take_complete()), [0]);
        assert!(passes.is_empty());
    }

    #[test]
    fn nothing_is_left_of_a_run_that_is_through() {
        let here = std::thread::current().id();
        let mut passes = passes(here, &[(0, 0, 1), (1, 4, 1), (2, 9, 2)]);
        passes.begin(here, begin(3, 11, 2), Wanted { outputs: false, inputs: true });
        assert_eq!(passes.wanted(pass(3)), Some(Wanted { outputs: false, inputs: true }));
        assert_eq!(modules(&passes.take_task(1)), [1, 0]);
        let rest = passes.take_thread(here);
        assert_eq!(modules(&rest), [3, 2]);
        assert_eq!(rest.iter().map(|finished| finished.recording).collect::<Vec<_>>(), [false, true]);
        assert!(passes.is_empty());
    }
}
