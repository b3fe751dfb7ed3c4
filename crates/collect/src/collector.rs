//! The state of a run: counters, filters, running modules, and the step whose files are open.
//!
//! Every event is one short critical section. Measuring and encoding happen outside, in between two of them, so
//! that several threads can be measured at once.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

use msprobe_dump::config::{Config, Level, SummaryMode, Task};
use msprobe_dump::filter::{Decision, Filter};
use msprobe_dump::names::Direction;
use msprobe_dump::write::{RecordId, StepWriter, TensorPool};
use msprobe_tensor::{Statistics, TensorView};

use crate::backward::{BackwardPasses, FinishedPass};
use crate::encoder::{Encoded, Saving};
use crate::fragment::{Body, Fill, Fragment, Nothing, Saved};
use crate::modules::{ModuleId, Modules, Pass, Running};
use crate::notices::Notice;
use crate::overflow::Overflows;
use crate::stacks::{StackId, StackRef, Stacks};

/// An API, by the order in which APIs were made known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ApiId(pub usize);

/// Where the files of a step go, once they exist.
#[derive(Debug)]
pub struct StepPlace {
    /// Writes the JSON files.
    pub writer: StepWriter,
    /// The directory for tensor files, if any are written.
    pub tensor_dir: Option<PathBuf>,
}

/// A forward call of an API that has begun.
#[derive(Debug)]
pub struct ApiCall {
    /// The API.
    pub api: ApiId,
    /// The number of the call.
    pub index: u64,
    /// The record's name.
    pub name: String,
    /// Whether scope and list want it: then its stack is wanted too.
    pub selected: bool,
    /// Whether its inputs are to be encoded.
    pub wants_input: bool,
    /// What becomes of its tensors.
    pub saving: Saving,
    is_recompute: bool,
    record: Option<RecordId>,
    input: Option<(Fragment, Fragment)>,
    overflows: bool,
}

/// A forward call of a module that has begun.
#[derive(Debug)]
pub struct ModuleCall {
    /// The module and the number of the call.
    pub pass: Pass,
    /// Its inputs, if they were encoded before the call.
    input: Option<(Encoded, Encoded)>,
}

/// What is left to do for the caller when a record is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finished {
    /// Nothing.
    Done,
    /// The tensors of the record have to be saved after all: it overflowed.
    SaveTensors,
}

/// A run in progress.
#[derive(Debug)]
pub struct Collector {
    config: Config,
    stacks: Mutex<Stacks>,
    pool: TensorPool,
    state: Mutex<State>,
}

#[derive(Debug)]
pub(crate) struct State {
    filter: Filter,
    apis: Vec<Api>,
    api_ids: HashMap<String, ApiId>,
    pub(crate) modules: Modules,
    pub(crate) running: Running,
    /// Passes begun since the last event, with their parents.
    begun: Vec<(Pass, Option<Pass>)>,
    backward: BackwardPasses,
    gradients: HashMap<ModuleId, GradientRecord>,
    /// Modules that have a backward record in this step.
    with_backward: HashMap<ModuleId, ()>,
    pub(crate) step: Option<StepPlace>,
    /// Counts the steps opened.
    pub(crate) generation: u64,
    deferred: Vec<(RecordId, Body)>,
    /// `optimizer` or `clip_grad` while they run, which of them are in the file already.
    phase: Option<&'static str>,
    phases_seen: Vec<&'static str>,
    overflows: Overflows,
    pub(crate) variables: HashMap<String, u64>,
    pub(crate) notices: Vec<Notice>,
}

#[derive(Debug)]
struct Api {
    /// `Torch.add`
    stem: String,
    calls: u64,
}

/// The gradients of a module's parameters in this step.
#[derive(Debug)]
struct GradientRecord {
    id: Option<RecordId>,
    /// Parameters that get one, and their encoded gradients.
    members: Vec<(String, Option<Encoded>)>,
    capacity_bytes: usize,
}

/// Numbers fetched from an accelerator, by ticket.
struct Fetched<'a>(&'a [Statistics]);

impl Fill for Fetched<'_> {
    fn statistics(&self, ticket: usize) -> Statistics {
        self.0.get(ticket).copied().unwrap_or_default()
    }
}

impl Collector {
    /// A run that collects what `config` says; tensor files are written by `pool`.
    pub fn new(config: Config, pool: TensorPool) -> Collector {
        let state = State {
            filter: Filter::new(&config),
            apis: Vec::new(),
            api_ids: HashMap::new(),
            modules: Modules::default(),
            running: Running::default(),
            begun: Vec::new(),
            backward: BackwardPasses::default(),
            gradients: HashMap::new(),
            with_backward: HashMap::new(),
            step: None,
            generation: 0,
            deferred: Vec::new(),
            phase: None,
            phases_seen: Vec::new(),
            overflows: Overflows::new(config.overflow_nums),
            variables: HashMap::new(),
            notices: Vec::new(),
        };
        Collector { config, stacks: Mutex::default(), pool, state: Mutex::new(state) }
    }

    /// What is collected.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The writers of tensor files.
    pub fn pool(&self) -> &TensorPool {
        &self.pool
    }

    /// The call stacks of the run.
    pub fn stacks(&self) -> MutexGuard<'_, Stacks> {
        self.stacks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether checksums are wanted.
    pub fn wants_crc32(&self) -> bool {
        self.config.summary_mode == SummaryMode::Md5 && !self.config.async_dump
    }

    /// Whether records have values at all; task `structure` wants only their names.
    fn wants_data(&self) -> bool {
        self.config.task != Task::Structure
    }

    fn has_construct(&self) -> bool {
        matches!(self.config.level, Level::L0 | Level::Mix)
    }

    fn saving(&self, state: &State, name: &str) -> Saving {
        match self.config.task {
            Task::Tensor => Saving::Now,
            Task::OverflowCheck => Saving::IfOverflow,
            _ if state.filter.saves_tensors(name) => Saving::Now,
            _ => Saving::Never,
        }
    }

    /// Opens the files of a step; those of the step before are finished.
    pub fn open_step(&self, place: StepPlace) {
        let mut state = self.state();
        state.generation += 1;
        let before = state.step.replace(place);
        drop(state);
        // Waits for the disk, so not under the lock.
        drop(before);
    }

    /// Whether a step's files are open.
    pub fn has_step(&self) -> bool {
        self.state().step.is_some()
    }

    /// Writes a tensor of the record being made under the name it has there.
    pub fn save_tensor(&self, file_name: &str, view: &TensorView<'_>) {
        let path = match &self.state().step {
            Some(StepPlace { tensor_dir: Some(dir), .. }) => dir.join(file_name),
            _ => return,
        };
        self.pool.save(path, view);
    }

    /// Everything recorded so far gets visible on disk. Numbers still on an accelerator come in `fetched`, by
    /// ticket. Returns what went wrong, if anything did.
    pub fn flush(&self, fetched: &[Statistics]) -> Result<(), String> {
        let mut state = self.state();
        for (id, body) in std::mem::take(&mut state.deferred) {
            if let Some(step) = &state.step {
                step.writer.close(id, body.render(&Fetched(fetched)));
            }
        }
        let json = match &state.step {
            Some(step) => step.writer.flush().map_err(|error| error.to_string()),
            None => Ok(()),
        };
        drop(state);
        let tensors = self.pool.drain().map_err(|error| error.to_string());
        json.and(tensors)
    }

    /// Whether writing failed; everything recorded later is dropped.
    pub fn failure(&self) -> Option<String> {
        let state = self.state();
        state.step.as_ref().and_then(|step| step.writer.failure()).or_else(|| self.pool.failure())
    }

    /// The step is over: files are finished, counters start again.
    pub fn end_step(&self) {
        let mut state = self.state();
        state.finish_passes(self, std::thread::current().id(), 0);
        let step = state.step.take();
        state.deferred.clear();
        for api in &mut state.apis {
            api.calls = 0;
        }
        state.modules.reset_counters();
        state.running.clear();
        state.begun.clear();
        state.backward.clear();
        state.gradients.clear();
        state.with_backward.clear();
        state.phase = None;
        state.phases_seen.clear();
        state.variables.clear();
        state.filter.reset();
        drop(state);
        drop(step);
    }

    /// Things to log, in order. Only these two tell of any: task `overflow_check`, and gradients without a step.
    pub fn take_notices(&self) -> Vec<Notice> {
        std::mem::take(&mut self.state().notices)
    }

    /// Whether task `overflow_check` has all it wanted.
    pub fn is_over(&self) -> bool {
        self.config.task == Task::OverflowCheck && self.state().overflows.is_enough()
    }

    /// `optimizer` or `clip_grad` runs, or neither.
    pub fn set_phase(&self, phase: Option<&'static str>) {
        self.state().phase = phase;
    }

    // ---- APIs

    /// Makes an API known. The same name is the same API.
    pub fn add_api(&self, stem: &str) -> ApiId {
        let mut state = self.state();
        if let Some(&id) = state.api_ids.get(stem) {
            return id;
        }
        let id = ApiId(state.apis.len());
        state.apis.push(Api { stem: stem.to_owned(), calls: 0 });
        state.api_ids.insert(stem.to_owned(), id);
        id
    }

    /// A call begins and is counted. `None` if nothing is being recorded.
    pub fn api_begin(&self, api: ApiId) -> Option<ApiCall> {
        let mut state = self.state();
        if state.step.is_none() || self.is_enough(&state) {
            return None;
        }
        state.finish_passes(self, std::thread::current().id(), 0);
        let entry = state.apis.get_mut(api.0)?;
        let index = entry.calls;
        entry.calls += 1;
        let name = format!("{}.{index}.forward", entry.stem);
        let decision = state.filter.api_begin(&name);
        let wants_input = decision.input && self.wants_data();
        let saving = self.saving(&state, &name);
        // The place in the file is that of the input; overflows are written when they are known.
        let record = match &state.step {
            Some(step) if wants_input && saving != Saving::IfOverflow => Some(step.writer.open_record(&name)),
            _ => None,
        };
        Some(ApiCall {
            api,
            index,
            name,
            selected: decision.selected,
            wants_input,
            saving,
            is_recompute: false,
            record,
            input: None,
            overflows: false,
        })
    }

    /// Where the call comes from.
    pub fn api_stack(&self, call: &mut ApiCall, stack: StackRef) {
        call.is_recompute = stack.is_recompute;
        self.write_stack(stack.id, &call.name);
    }

    fn write_stack(&self, stack: StackId, name: &str) {
        if let Some(step) = &self.state().step {
            step.writer.stack_name(stack.0, name, || self.stacks().frames(stack));
        }
    }

    /// The inputs of the call, encoded before it runs.
    pub fn api_input(&self, call: &mut ApiCall, args: Encoded, kwargs: Encoded) {
        call.overflows |= args.overflows || kwargs.overflows;
        call.input = Some((args.fragment, kwargs.fragment));
    }

    /// The call has ended (asynchronous ones: they are complete). Whether its output is to be encoded.
    pub fn api_end(&self, call: &ApiCall) -> bool {
        let mut state = self.state();
        state.finish_passes(self, std::thread::current().id(), 0);
        state.note_api(self, &call.name);
        state.filter.api_end(&call.name).output && self.wants_data()
    }

    /// Writes what is known of a call that goes on in the background: its inputs, and its output as it is now.
    pub fn api_pause(&self, call: &mut ApiCall, output: Option<Encoded>) {
        if call.saving == Saving::IfOverflow {
            return;
        }
        let state = &mut *self.state();
        let Some(step) = &state.step else { return };
        let body = call_body(call, output.map(|output| output.fragment));
        if body.is_empty() || body.is_deferred() {
            return;
        }
        let id = *call.record.get_or_insert_with(|| step.writer.open_record(&call.name));
        let text = body.render(&Nothing);
        // The output will be about as long as the input is.
        let room = 2 * text.len();
        step.writer.set(id, text, room);
    }

    /// Writes the record of a call; `output` as far as it was wanted and could be encoded.
    pub fn api_finish(&self, call: ApiCall, output: Option<Encoded>) -> Finished {
        let overflows = call.overflows || output.as_ref().is_some_and(|output| output.overflows);
        let output = output.map(|output| output.fragment);
        if call.saving == Saving::IfOverflow {
            if !overflows {
                return Finished::Done;
            }
            let mut body = Body::default();
            if let Some((args, kwargs)) = call.input {
                body = body.with("input_args", args).with("input_kwargs", kwargs);
            }
            if let Some(output) = output {
                body = body.with("output", output);
            }
            let body = body.with_bool("is_recompute", call.is_recompute);
            return self.write_overflow(&call.name, &body);
        }
        let state = &mut *self.state();
        let Some(step) = &state.step else { return Finished::Done };
        let body = call_body(&call, output);
        match (call.record, !body.is_empty()) {
            (Some(id), true) => write_body(step, &mut state.deferred, id, body),
            (Some(id), false) => step.writer.abandon(id),
            (None, true) => {
                let id = step.writer.open_record(&call.name);
                write_body(step, &mut state.deferred, id, body);
            }
            (None, false) => {}
        }
        Finished::Done
    }

    /// The backward pass of a call, whose autograd node has the given sequence number. What is to be encoded.
    pub fn api_backward(&self, api: ApiId, index: u64, sequence: u64) -> Option<(String, Decision, Saving)> {
        let mut state = self.state();
        if self.is_enough(&state) {
            return None;
        }
        if state.step.is_none() {
            state.notices.push(Notice::NoStep);
            return None;
        }
        state.finish_passes(self, std::thread::current().id(), sequence);
        let name = format!("{}.{index}.backward", state.apis.get(api.0)?.stem);
        state.note_api(self, &name);
        let decision = state.filter.api_backward(&name);
        let saving = self.saving(&state, &name);
        (decision.any() && self.wants_data()).then_some((name, decision, saving))
    }

    /// Writes a backward record.
    pub fn backward_record(
        &self,
        name: &str,
        saving: Saving,
        input: Option<Encoded>,
        output: Option<Encoded>,
    ) -> Finished {
        let mut body = Body::default();
        let mut overflows = false;
        for (key, side) in [("input", input), ("output", output)] {
            if let Some(side) = side {
                overflows |= side.overflows;
                body = body.with(key, side.fragment);
            }
        }
        if saving == Saving::IfOverflow {
            return if overflows { self.write_overflow(name, &body) } else { Finished::Done };
        }
        let state = &mut *self.state();
        if let Some(step) = &state.step {
            let id = step.writer.open_record(name);
            write_body(step, &mut state.deferred, id, body);
        }
        Finished::Done
    }

    fn write_overflow(&self, name: &str, body: &Body) -> Finished {
        let state = &mut *self.state();
        let Some(step) = &state.step else { return Finished::Done };
        step.writer.append(name, body.render(&Saved));
        state.overflows.add(name, &mut state.notices);
        Finished::SaveTensors
    }

    fn is_enough(&self, state: &State) -> bool {
        self.config.task == Task::OverflowCheck && state.overflows.is_enough()
    }

    // ---- modules

    /// Makes a module known, by its name and class: `Module.fc1.Linear`.
    pub fn add_module(&self, stem: String) -> ModuleId {
        self.state().modules.add(stem)
    }

    /// A call of a module begins and is counted, also while nothing is recorded.
    pub fn module_begin(&self, module: ModuleId) -> ModuleCall {
        let mut state = self.state();
        let thread = std::thread::current().id();
        state.finish_passes(self, thread, 0);
        let pass = Pass { module, index: state.modules.count(module), direction: Direction::Forward };
        state.begin_pass(thread, pass);
        ModuleCall { pass, input: None }
    }

    /// The record's name, for encoding, and what becomes of its tensors.
    pub fn module_saving(&self, pass: Pass) -> (String, Saving) {
        let state = self.state();
        let name = state.modules.name(pass);
        let saving = self.saving(&state, &name);
        (name, saving)
    }

    /// Whether the inputs of a module that has just begun can matter.
    pub fn wants_module_input(&self) -> bool {
        let state = self.state();
        state.step.is_some()
            && !self.is_enough(&state)
            && self.wants_data()
            && self.config.data_mode.input(Direction::Forward)
    }

    /// Whether module records have values at all.
    pub fn wants_module_data(&self) -> bool {
        self.wants_data()
    }

    /// Whether gradients of modules can matter.
    pub fn wants_module_gradients(&self) -> bool {
        let state = self.state();
        state.step.is_some()
            && !self.is_enough(&state)
            && self.wants_data()
            && self.config.data_mode.direction(Direction::Backward)
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
        state.finish_passes(self, thread, 0);
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
        if let Some((args, kwargs)) = call.input {
            overflows |= args.overflows || kwargs.overflows;
            body = body.with("input_args", args.fragment).with("input_kwargs", kwargs.fragment);
        }
        for (key, value) in [("output", output), ("parameters", parameters)] {
            if let Some(value) = value {
                overflows |= value.overflows;
                body = body.with(key, value.fragment);
            }
        }
        if body.is_empty() {
            return Finished::Done;
        }
        let body = body.with_bool("is_recompute", stack.is_recompute);
        if saving == Saving::IfOverflow {
            return if overflows { self.write_overflow(name, &body) } else { Finished::Done };
        }
        let state = &mut *self.state();
        if let Some(step) = &state.step {
            let id = step.writer.open_record(name);
            write_body(step, &mut state.deferred, id, body);
        }
        Finished::Done
    }

    /// Reserves the place of a module's parameter gradients, once per step: right after its first forward record.
    /// `members` are the parameters that get one, with room for each in bytes.
    pub fn reserve_gradients(&self, module: ModuleId, members: Vec<(String, usize)>) {
        if !self.wants_data() || !self.config.data_mode.parameters_grad() || members.is_empty() {
            return;
        }
        let state = &mut *self.state();
        if state.gradients.contains_key(&module) {
            return;
        }
        let Some(step) = &state.step else { return };
        let capacity_bytes = members.iter().map(|(_, bytes)| bytes).sum();
        let members = members.into_iter().map(|(name, _)| (name, None)).collect();
        let mut record = GradientRecord { id: None, members, capacity_bytes };
        if self.config.task != Task::OverflowCheck {
            let id = step.writer.open_record(&format!("{}.parameters_grad", state.modules.stem(module)));
            step.writer.set(id, record.body().render(&Nothing), record.capacity_bytes);
            record.id = Some(id);
        }
        state.gradients.insert(module, record);
    }

    /// A gradient of a parameter of this module is at hand. The record's name if it is to be encoded.
    pub fn gradient_begin(&self, module: ModuleId) -> Option<(String, Saving)> {
        let state = &mut *self.state();
        if self.is_enough(state) || !self.wants_data() {
            return None;
        }
        let step = state.step.as_ref()?;
        let stem = state.modules.stem(module);
        let name = format!("{stem}.parameters_grad");
        if !state.filter.parameters_grad(stem) && !state.with_backward.contains_key(&module) {
            if let Some(id) = state.gradients.remove(&module).and_then(|record| record.id) {
                step.writer.remove(id);
            }
            return None;
        }
        let saving = self.saving(state, &name);
        Some((name, saving))
    }

    /// The encoded gradient.
    pub fn gradient(&self, module: ModuleId, name: &str, parameter: &str, gradient: Encoded) -> Finished {
        let state = &mut *self.state();
        let Some(step) = &state.step else { return Finished::Done };
        if self.config.task == Task::OverflowCheck {
            if !gradient.overflows {
                return Finished::Done;
            }
            let record = state.gradients.entry(module).or_insert_with(|| GradientRecord {
                id: None,
                members: Vec::new(),
                capacity_bytes: 0,
            });
            record.put_overflow(parameter, gradient);
            let id = *record.id.get_or_insert_with(|| step.writer.open_record(name));
            step.writer.set(id, record.body().render(&Saved), 0);
            state.overflows.add(name, &mut state.notices);
            return Finished::SaveTensors;
        }
        // A gradient of a module without a forward record in this step (backward after the next start).
        let record = state.gradients.entry(module).or_insert_with(|| GradientRecord {
            id: Some(step.writer.open_record(name)),
            members: Vec::new(),
            capacity_bytes: 0,
        });
        record.put(parameter, gradient);
        if let Some(id) = record.id {
            step.writer.set(id, record.body().render(&Nothing), record.capacity_bytes);
        }
        Finished::Done
    }

    // ---- backward of modules

    /// The backward pass of a module call begins, at an autograd node of the given sequence number.
    pub fn module_backward_begin(&self, pass: Pass, sequence: u64, outputs: usize, inputs: usize) {
        let mut state = self.state();
        let thread = std::thread::current().id();
        state.finish_passes(self, thread, sequence);
        state.begin_pass(thread, pass);
        state.backward.begin(thread, pass, outputs, inputs);
    }

    /// A gradient of that pass. `of_output`: of an output of the module, which is an input of the pass.
    pub fn module_gradient(&self, pass: Pass, of_output: bool, position: usize, gradient: Encoded) {
        self.state().backward.put(pass, of_output, position, gradient);
    }

    /// All gradients of the pass are known. Its record follows when autograd reaches nodes older than the call;
    /// at once, where nothing inside the module leads to its end, and in task `overflow_check`, whose caller still
    /// holds the tensors now.
    pub fn module_backward_complete(&self, pass: Pass, begin_sequence: u64, recording: bool) -> Finished {
        let mut state = self.state();
        state.backward.complete(pass, begin_sequence, recording);
        if self.config.task != Task::OverflowCheck && !state.backward.has_no_inputs(pass) {
            return Finished::Done;
        }
        let mut outcome = Finished::Done;
        for finished in state.backward.take_one(pass) {
            outcome = state.finish_pass(self, std::thread::current().id(), finished);
        }
        outcome
    }
}

impl State {
    fn begin_pass(&mut self, thread: ThreadId, pass: Pass) {
        let parent = self.running.begin(thread, pass, &self.modules);
        if self.step.is_some() {
            self.begun.push((pass, parent));
            let name = self.modules.name(pass);
            self.filter.module_begin(&name);
        }
    }

    /// Ends the backward passes that are complete and whose call began after the given sequence number.
    fn finish_passes(&mut self, collector: &Collector, thread: ThreadId, sequence: u64) {
        for finished in self.backward.take_finished(thread, sequence) {
            self.finish_pass(collector, thread, finished);
        }
    }

    fn finish_pass(&mut self, collector: &Collector, thread: ThreadId, finished: FinishedPass) -> Finished {
        let pass = finished.pass;
        let mut outcome = Finished::Done;
        let name = self.modules.name(pass);
        if finished.recording && self.step.is_some() && !collector.is_enough(self) {
            self.note_module(collector, &name);
            let decision = self.filter.module_end(&name, Direction::Backward);
            if decision.any() && collector.wants_data() {
                let saving = collector.saving(self, &name);
                outcome = self.write_pass(&name, decision, saving, finished);
                self.with_backward.insert(pass.module, ());
            }
        } else {
            self.filter.module_end(&name, Direction::Backward);
        }
        self.running.end(thread, pass);
        outcome
    }

    fn write_pass(
        &mut self,
        name: &str,
        decision: Decision,
        saving: Saving,
        finished: FinishedPass,
    ) -> Finished {
        let Some(step) = &self.step else { return Finished::Done };
        let mut body = Body::default();
        let overflows = finished.overflows();
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
            step.writer.append(name, body.render(&Saved));
            self.overflows.add(name, &mut self.notices);
            return Finished::SaveTensors;
        }
        let id = step.writer.open_record(name);
        write_body(step, &mut self.deferred, id, body);
        Finished::Done
    }

    /// Places an API call in the tree, and all passes begun before it.
    fn note_api(&mut self, collector: &Collector, name: &str) {
        if !collector.has_construct() {
            return;
        }
        let parent = match self.phase {
            Some(phase) => Some(phase.to_owned()),
            None => self.running.innermost(std::thread::current().id()).map(|pass| self.modules.name(pass)),
        };
        self.note_phase();
        if let Some(step) = &self.step
            && (self.phase.is_some() || collector.config.level == Level::Mix)
        {
            step.writer.construct(name, parent.as_deref());
        }
        self.note_begun();
    }

    fn note_module(&mut self, collector: &Collector, name: &str) {
        if !collector.has_construct() {
            return;
        }
        self.note_phase();
        if let (Some(step), Some(phase)) = (&self.step, self.phase) {
            step.writer.construct(name, Some(phase));
        }
        self.note_begun();
    }

    fn note_phase(&mut self) {
        if let (Some(step), Some(phase)) = (&self.step, self.phase)
            && !self.phases_seen.contains(&phase)
        {
            step.writer.construct(phase, None);
            self.phases_seen.push(phase);
        }
    }

    fn note_begun(&mut self) {
        let Some(step) = &self.step else { return };
        for (pass, parent) in self.begun.drain(..) {
            let parent = parent.map(|parent| self.modules.name(parent));
            step.writer.construct(&self.modules.name(pass), parent.as_deref());
        }
    }
}

/// The record of a call, as far as it is known.
fn call_body(call: &ApiCall, output: Option<Fragment>) -> Body {
    let mut body = Body::default();
    if let Some((args, kwargs)) = call.input.clone() {
        body = body.with("input_args", args).with("input_kwargs", kwargs);
        body = body.with_bool("is_recompute", call.is_recompute);
    }
    if let Some(output) = output {
        body = body.with("output", output);
        if call.input.is_none() {
            body = body.with_bool("is_recompute", call.is_recompute);
        }
    }
    body
}

fn write_body(step: &StepPlace, deferred: &mut Vec<(RecordId, Body)>, id: RecordId, body: Body) {
    if body.is_deferred() {
        deferred.push((id, body));
    } else {
        step.writer.close(id, body.render(&Nothing));
    }
}

impl GradientRecord {
    fn put(&mut self, parameter: &str, gradient: Encoded) {
        match self.members.iter_mut().find(|(name, _)| name == parameter) {
            Some((_, slot)) => *slot = Some(gradient),
            None => self.members.push((parameter.to_owned(), Some(gradient))),
        }
    }

    /// Only overflowing gradients are listed.
    fn put_overflow(&mut self, parameter: &str, gradient: Encoded) {
        self.members.retain(|(_, slot)| slot.is_some());
        self.put(parameter, gradient);
    }

    fn body(&self) -> Fragment {
        crate::fragment::gradients(
            self.members.iter().map(|(name, slot)| (name.as_str(), slot.as_ref().map(|slot| &slot.fragment))),
        )
    }
}
