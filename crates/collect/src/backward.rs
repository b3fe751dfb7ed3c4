//! Backward passes of modules between their beginning and their record.
//!
//! Gradients arrive one by one, and the last one is known before everything inside the module has run: gradients
//! of its parameters may still need operations of their own. Autograd runs nodes newest first, so the module is
//! over when a node older than the module's call is reached. Until then a complete pass waits here.

use std::thread::ThreadId;

use crate::encoder::Encoded;
use crate::fragment::{Fragment, list};
use crate::modules::Pass;

#[derive(Debug, Default)]
pub(crate) struct BackwardPasses {
    open: Vec<OpenPass>,
}

#[derive(Debug)]
struct OpenPass {
    thread: ThreadId,
    pass: Pass,
    outputs: Vec<Option<Encoded>>,
    inputs: Vec<Option<Encoded>>,
    /// Once complete: where the call began, and whether the window was open then.
    complete: Option<(u64, bool)>,
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
    /// A pass begins; one of the same call that never ended is dropped.
    pub(crate) fn begin(&mut self, thread: ThreadId, pass: Pass, outputs: usize, inputs: usize) {
        self.open.retain(|open| open.pass != pass);
        self.open.push(OpenPass {
            thread,
            pass,
            outputs: vec![None; outputs],
            inputs: vec![None; inputs],
            complete: None,
        });
    }

    /// A gradient of an output or an input of the module.
    pub(crate) fn put(&mut self, pass: Pass, of_output: bool, position: usize, gradient: Encoded) {
        if let Some(open) = self.open.iter_mut().rev().find(|open| open.pass == pass) {
            let side = if of_output { &mut open.outputs } else { &mut open.inputs };
            if let Some(slot) = side.get_mut(position) {
                *slot = Some(gradient);
            }
        }
    }

    /// All gradients are there.
    pub(crate) fn complete(&mut self, pass: Pass, begin_sequence: u64, recording: bool) {
        if let Some(open) = self.open.iter_mut().rev().find(|open| open.pass == pass) {
            open.complete = Some((begin_sequence, recording));
        }
    }

    /// Whether a pass has no gradients of inputs, so that nothing inside it leads to its end.
    pub(crate) fn has_no_inputs(&self, pass: Pass) -> bool {
        self.open.iter().rev().find(|open| open.pass == pass).is_some_and(|open| open.inputs.is_empty())
    }

    /// The complete passes of a thread that are over, newest first: those whose call began after the node autograd
    /// has reached there, or all where it runs none.
    pub(crate) fn take_finished(&mut self, thread: ThreadId, reached: Option<u64>) -> Vec<FinishedPass> {
        if self.open.is_empty() {
            return Vec::new();
        }
        let is_over = |begin: u64| reached.is_none_or(|sequence| begin > sequence);
        self.take(|open| open.thread == thread && open.complete.is_some_and(|(begin, _)| is_over(begin)))
    }

    /// The complete passes of all threads, newest first: autograd has run, in whichever thread.
    pub(crate) fn take_complete(&mut self) -> Vec<FinishedPass> {
        self.take(|open| open.complete.is_some())
    }

    /// One pass, if it is complete.
    pub(crate) fn take_one(&mut self, pass: Pass) -> Vec<FinishedPass> {
        self.take(|open| open.pass == pass && open.complete.is_some())
    }

    fn take(&mut self, is_over: impl Fn(&OpenPass) -> bool) -> Vec<FinishedPass> {
        let mut over: Vec<OpenPass> = self.open.extract_if(.., |open| is_over(open)).collect();
        // Equal numbers: a module that only calls another one began first and ends last.
        over.reverse();
        over.sort_by_key(|open| std::cmp::Reverse(open.complete.map(|(begin, _)| begin)));
        over.into_iter()
            .map(|open| FinishedPass {
                thread: open.thread,
                pass: open.pass,
                recording: open.complete.is_some_and(|(_, recording)| recording),
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

    /// Passes of modules 0, 1, ... whose calls began at the given numbers, all complete.
    fn complete(passes: &mut BackwardPasses, thread: ThreadId, first: usize, begun: &[u64]) {
        for (at, begin) in begun.iter().enumerate() {
            let pass = Pass { module: ModuleId(first + at), index: 0, direction: Direction::Backward };
            passes.begin(thread, pass, 1, 1);
            passes.complete(pass, *begin, true);
        }
    }

    fn modules(finished: &[FinishedPass]) -> Vec<usize> {
        finished.iter().map(|finished| finished.pass.module.0).collect()
    }

    #[test]
    fn a_pass_is_over_when_an_older_node_is_reached_or_autograd_is_through() {
        let here = std::thread::current().id();
        let there = std::thread::spawn(|| {}).thread().id();
        let mut passes = BackwardPasses::default();
        complete(&mut passes, here, 0, &[0, 0, 7]);
        complete(&mut passes, there, 3, &[9]);
        assert!(passes.take_finished(here, Some(7)).is_empty());
        assert_eq!(modules(&passes.take_finished(here, Some(0))), [2]);
        // The first call of a process begins at node 0. What only calls another module ends after it.
        assert_eq!(modules(&passes.take_finished(here, None)), [1, 0]);
        let rest = passes.take_complete();
        assert_eq!(modules(&rest), [3]);
        assert_eq!(rest.iter().map(|finished| finished.thread).collect::<Vec<_>>(), [there]);
        assert!(passes.take_complete().is_empty());
    }

    #[test]
    fn what_lacks_gradients_waits() {
        let mut passes = BackwardPasses::default();
        let pass = Pass { module: ModuleId(0), index: 0, direction: Direction::Backward };
        passes.begin(std::thread::current().id(), pass, 1, 1);
        assert!(passes.take_complete().is_empty());
        passes.complete(pass, 3, true);
        assert_eq!(modules(&passes.take_complete()), [0]);
    }
}
