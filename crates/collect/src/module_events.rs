//! Events of modules: a call begins and ends; its backward pass begins, gathers gradients and ends.

use std::thread::ThreadId;

use msprobe_dump::config::{Level, Task};
use msprobe_dump::filter::Decision;
use msprobe_dump::names::Direction;

use crate::backward::{BackwardBegin, FinishedPass, Since, Wanted};
use crate::collector::{Collector, Finished, State};
use crate::encoder::{Encoded, Saving};
use crate::fragment::Body;
use crate::health::Alarm;
use crate::modules::{ModuleId, Pass};
use crate::notices::GivenHealth;
use crate::stacks::StackRef;

/// A forward call of a module that has begun.
#[derive(Debug)]
pub struct ModuleCall {
    /// The module and the number of the call.
    pub pass: Pass,
    /// Its inputs, if they were encoded before the call.
    input: Option<(Encoded, Encoded)>,
}

impl Collector {
    /// Makes a module known, by its name and class: `Module.fc1.Linear`.
    pub fn add_module(&self, stem: String) -> ModuleId {
        self.state().modules.add(stem)
    }

    /// A call of a module begins and is counted, also while nothing is recorded.
    pub fn module_begin(&self, module: ModuleId) -> ModuleCall {
        let mut state = self.state();
        let thread = std::thread::current().id();
        let pass = Pass { module, index: state.modules.count(module), direction: Direction::Forward };
        state.begin_pass(thread, pass);
        ModuleCall { pass, input: None }
    }

    /// Whether it matters that a module is given tensors with gradients. At level mix the reference calls a function
    /// of its own at that point, which places the module in the tree before what it calls itself.
    pub fn notes_crossings(&self) -> bool {
        self.config().level == Level::Mix
    }

    /// The module that begins was given such tensors: the order is kept.
    pub fn module_crossed(&self) {
        let mut state = self.state();
        if !self.is_enough(&state) {
            state.note_begun();
        }
    }

    /// The name of the record of a pass.
    pub fn module_name(&self, pass: Pass) -> String {
        self.state().modules.name(pass)
    }

    /// The record's name, for encoding, and what becomes of its tensors, if the inputs of a module that has just begun
    /// can matter.
    pub fn module_input_saving(&self, pass: Pass) -> Option<(String, Saving)> {
        let state = self.state();
        if !self.records_data(&state) {
            return None;
        }
        let name = state.modules.name(pass);
        let is_wanted = state.filter.module_running(&name, Direction::Forward).input;
        let saving = self.saving(&state, &name);
        is_wanted.then_some((name, saving))
    }

    fn records_data(&self, state: &State) -> bool {
        state.step.is_some() && !self.is_enough(state) && self.wants_data()
    }

    /// The inputs of the call, encoded before it runs.
    pub fn module_input(&self, call: &mut ModuleCall, args: Encoded, kwargs: Encoded) {
        call.input = Some((args, kwargs));
    }

    /// Whether inputs were encoded.
    pub fn has_module_input(&self, call: &ModuleCall) -> bool {
        call.input.is_some()
    }

    /// The call did not end well, or nothing is recorded: it only stops running.
    pub fn module_leave(&self, pass: Pass) {
        let mut state = self.state();
        if state.step.is_some() {
            let name = state.modules.name(pass);
            state.filter.module_end(&name, Direction::Forward);
        }
        state.running.end(std::thread::current().id(), pass);
    }

    /// The call has ended. `None` if it is not recorded.
    pub fn module_end(&self, pass: Pass) -> Option<(String, Decision, Saving)> {
        let mut state = self.state();
        let thread = std::thread::current().id();
        let name = state.modules.name(pass);
        if state.step.is_none() || self.is_enough(&state) {
            state.running.end(thread, pass);
            return None;
        }
        state.note_module(self, &name);
        let decision = state.filter.module_end(&name, pass.direction);
        state.running.end(thread, pass);
        let saving = self.saving(&state, &name);
        decision.selected.then_some((name, decision, saving))
    }

    /// Writes the record of a module's forward call.
    pub fn module_finish(
        &self,
        name: &str,
        saving: Saving,
        call: ModuleCall,
        output: Option<Encoded>,
        parameters: Option<Encoded>,
        stack: StackRef,
    ) -> Finished {
        self.write_stack(stack.id, name);
        if !self.wants_data() {
            return Finished::Done;
        }
        let mut body = Body::default();
        let mut overflows = false;
        let alarm = self.watch.map_or_else(Alarm::default, |watch| {
            let input = call.input.iter().flat_map(|(args, kwargs)| [args, kwargs]);
            watch.values(input.chain(&output).chain(&parameters))
        });
        let mut given = GivenHealth::Unknown;
        if let Some((args, kwargs)) = call.input {
            given = args.findings.and(kwargs.findings).given();
            overflows |= args.overflows() || kwargs.overflows();
            body = body.with("input_args", args.fragment).with("input_kwargs", kwargs.fragment);
        }
        for (key, value) in [("output", output), ("parameters", parameters)] {
            if let Some(value) = value {
                overflows |= value.overflows();
                if key == "parameters" && value.overflows() && given == GivenHealth::Finite {
                    given = GivenHealth::FiniteButParameters;
                }
                body = body.with(key, value.fragment);
            }
        }
        if body.is_empty() {
            return Finished::Done;
        }
        let body = body.with_recompute(self.framework().tells_autograd.then_some(stack.is_recompute));
        if saving == Saving::IfOverflow {
            return if overflows { self.state().begin_overflow(name, body, given) } else { Finished::Done };
        }
        self.state().write_record(self, None, name, body, alarm)
    }

    /// Whether backward passes of modules are not over yet, as far as is known.
    pub fn has_backward_passes(&self) -> bool {
        !self.state().backward.is_empty()
    }

    /// A function or module is called. `node` is the number of the autograd node that runs in this thread, if one
    /// does; if not, all backward passes here are over.
    pub fn called(&self, node: Option<u64>) {
        let mut state = self.state();
        let thread = std::thread::current().id();
        let over = match node {
            Some(sequence) => state.backward.take_over(thread, Since::node(sequence)),
            None => state.backward.take_thread(thread),
        };
        state.finish_passes(self, over);
    }

    /// A run of autograd is through.
    pub fn backward_over(&self, task: i64) {
        let mut state = self.state();
        let over = state.backward.take_task(task);
        state.finish_passes(self, over);
    }

    /// The backward pass of a module call begins. Calls made at the node `since` or later, and after this one, are
    /// over.
    pub fn module_backward_begin(&self, begin: BackwardBegin, since: u64) {
        let mut state = self.state();
        let thread = std::thread::current().id();
        state.end_passes(self, thread, Since { sequence: since, serial: begin.serial + 1 });
        // One of the same call that never ended.
        let stale = state.backward.take_one(begin.pass);
        state.finish_passes(self, stale);
        state.begin_pass(thread, begin.pass);
        let wanted = if begin.recording && self.records_data(&state) {
            let name = state.modules.name(begin.pass);
            let decision = state.filter.module_running(&name, Direction::Backward);
            Wanted { outputs: decision.input, inputs: decision.output }
        } else {
            Wanted { outputs: false, inputs: false }
        };
        state.backward.begin(thread, begin, wanted);
    }

    /// The record's name, for encoding, and what becomes of its tensors, if gradients of that side can matter.
    pub fn module_gradient_saving(&self, pass: Pass, of_output: bool) -> Option<(String, Saving)> {
        let state = self.state();
        let wanted = state.backward.wanted(pass)?;
        if !(if of_output { wanted.outputs } else { wanted.inputs }) || !self.records_data(&state) {
            return None;
        }
        let name = state.modules.name(pass);
        let saving = self.saving(&state, &name);
        Some((name, saving))
    }

    /// A gradient of that pass. `of_output`: of an output of the module, which is an input of the pass.
    pub fn module_gradient(&self, pass: Pass, of_output: bool, position: usize, gradient: Encoded) {
        self.state().backward.put(pass, of_output, position, gradient);
    }

    /// All gradients of the pass are known. Its record follows when autograd reaches nodes older than the call;
    /// at once, where nothing inside the module leads to its end, and in task `overflow_check`, whose caller still
    /// holds the tensors now.
    pub fn module_backward_complete(&self, pass: Pass, recording: bool) -> Finished {
        let mut state = self.state();
        state.backward.complete(pass, recording);
        if self.config().task != Task::OverflowCheck && !state.backward.has_no_inputs(pass) {
            return Finished::Done;
        }
        state.finish_one(self, pass)
    }

    /// All gradients of the pass are known, and everything inside the module has run.
    pub fn module_backward_end(&self, pass: Pass, recording: bool) -> Finished {
        let mut state = self.state();
        state.backward.complete(pass, recording);
        state.finish_one(self, pass)
    }
}

impl State {
    fn finish_one(&mut self, collector: &Collector, pass: Pass) -> Finished {
        let mut outcome = Finished::Done;
        for finished in self.backward.take_one(pass) {
            outcome = self.finish_pass(collector, finished);
        }
        outcome
    }

    pub(crate) fn begin_pass(&mut self, thread: ThreadId, pass: Pass) {
        let parent = self.running.begin(thread, pass, &self.modules);
        if self.step.is_some() {
            self.begun.push((pass, parent));
            let name = self.modules.name(pass);
            self.filter.module_begin(&name);
        }
    }

    /// Ends the backward passes of a thread that are over.
    pub(crate) fn end_passes(&mut self, collector: &Collector, thread: ThreadId, since: Since) {
        let over = self.backward.take_over(thread, since);
        self.finish_passes(collector, over);
    }

    pub(crate) fn finish_passes(&mut self, collector: &Collector, over: Vec<FinishedPass>) {
        for finished in over {
            self.finish_pass(collector, finished);
        }
    }

    fn finish_pass(&mut self, collector: &Collector, finished: FinishedPass) -> Finished {
        let (thread, pass) = (finished.thread, finished.pass);
        let mut outcome = Finished::Done;
        let name = self.modules.name(pass);
        if finished.recording && self.step.is_some() && !collector.is_enough(self) {
            self.note_module(collector, &name);
            let decision = self.filter.module_end(&name, Direction::Backward);
            if decision.any() && collector.wants_data() {
                let saving = collector.saving(self, &name);
                outcome = self.write_pass(collector, &name, decision, saving, finished);
                self.with_backward.insert(pass.module);
            }
        } else {
            self.filter.module_end(&name, Direction::Backward);
        }
        self.running.end(thread, pass);
        outcome
    }

    fn write_pass(
        &mut self,
        collector: &Collector,
        name: &str,
        decision: Decision,
        saving: Saving,
        finished: FinishedPass,
    ) -> Finished {
        let mut body = Body::default();
        let overflows = finished.overflows();
        let given = finished.given();
        let alarm = collector.watch.map_or_else(Alarm::default, |watch| {
            watch.values(finished.gradients(decision.input, decision.output))
        });
        let (input, output) = finished.sides();
        if decision.input {
            body = body.with("input", input);
        }
        if decision.output {
            body = body.with("output", output);
        }
        if saving == Saving::IfOverflow {
            if !overflows {
                return Finished::Done;
            }
            return self.begin_overflow(name, body, given);
        }
        self.write_record(collector, None, name, body, alarm)
    }
}
