//! The state of a run: counters, filters, running modules, and the step whose files are open.
//!
//! Every event is one short critical section. Measuring and encoding happen outside, in between two of them, so
//! that several threads can be measured at once. The events themselves are in `api_events`, `module_events`,
//! `gradients` and `variables`.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use msprobe_dump::config::{Config, Level, SummaryMode, Task};
use msprobe_dump::filter::{Filter, Unmatched};
use msprobe_dump::framework::Framework;
use msprobe_dump::write::{Header, RecordId, SavedFile, StepSink, TensorPool};
use msprobe_tensor::{SketchText, Statistics, TensorView, memory};

use crate::api_events::{Api, ApiId};
use crate::backward::BackwardPasses;
use crate::encoder::Saving;
use crate::flight::Flight;
use crate::fragment::{Body, Fill, Nothing};
use crate::gradients::GradientRecord;
use crate::health::{Alarm, Watch};
use crate::measure::{Measured, Wanted};
use crate::modules::{ModuleId, Modules, Pass, Running};
use crate::notices::Notice;
use crate::overflow::{Overflowing, Overflows};
use crate::stacks::{StackId, Stacks};
use crate::unmeasured::Unmeasured;

/// Where the records of a step go.
#[derive(Debug)]
pub struct StepPlace {
    /// Takes what belongs into the JSON files.
    pub sink: StepSink,
    /// The directory for tensor files, if any are written.
    pub tensor_dir: Option<PathBuf>,
}

/// What is left to do for the caller when a record is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finished {
    /// Nothing.
    Done,
    /// The tensors of the record have to be saved after all: it overflowed. Then [`Collector::tensors_saved`].
    SaveTensors,
    /// There is something to log.
    Tell,
}

/// A run in progress.
#[derive(Debug)]
pub struct Collector {
    config: Config,
    framework: Framework,
    /// Judges records for the flight recorder, if there is one.
    pub(crate) watch: Option<Watch>,
    stacks: Mutex<Stacks>,
    pool: TensorPool,
    state: Mutex<State>,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) filter: Filter,
    pub(crate) apis: Vec<Api>,
    pub(crate) api_ids: HashMap<String, ApiId>,
    pub(crate) modules: Modules,
    pub(crate) running: Running,
    /// Passes begun since the last event, with their parents.
    pub(crate) begun: Vec<(Pass, Option<Pass>)>,
    pub(crate) backward: BackwardPasses,
    pub(crate) gradients: HashMap<ModuleId, GradientRecord>,
    /// Modules that have a backward record in this step.
    pub(crate) with_backward: HashSet<ModuleId>,
    pub(crate) step: Option<StepPlace>,
    /// Counts the steps opened.
    pub(crate) generation: u64,
    pub(crate) deferred: Vec<Deferred>,
    /// `optimizer` or `clip_grad` while they run, which of them are in the file already.
    pub(crate) phase: Option<&'static str>,
    pub(crate) phases_seen: Vec<&'static str>,
    pub(crate) overflows: Overflows,
    /// Overflowing records whose tensors are being saved, by name, and the files of these.
    pub(crate) overflowing: HashMap<String, Overflowing>,
    pub(crate) overflow_files: HashMap<String, SavedFile>,
    pub(crate) flight: Option<Flight>,
    pub(crate) variables: HashMap<String, u64>,
    pub(crate) notices: Vec<Notice>,
    pub(crate) unmeasured: Unmeasured,
}

/// A record that waits for figures of an accelerator.
#[derive(Debug)]
pub(crate) struct Deferred {
    id: RecordId,
    /// Only if the flight recorder is on.
    name: String,
    body: Body,
    /// Measurements that may be a reason to write.
    tickets: Vec<usize>,
}

/// Numbers fetched from an accelerator, by ticket.
struct Fetched<'a>(&'a [Measured]);

impl Fill for Fetched<'_> {
    fn statistics(&self, ticket: usize) -> Statistics {
        self.0.get(ticket).map_or_else(Statistics::default, |measured| measured.stats)
    }

    fn sketch(&self, ticket: usize) -> Option<SketchText> {
        self.0.get(ticket)?.sketch
    }
}

impl Collector {
    /// A run under a framework that collects what `config` says; tensor files are written by `pool`.
    pub fn new(config: Config, framework: Framework, pool: TensorPool) -> Collector {
        let state = State {
            filter: Filter::new(&config),
            apis: Vec::new(),
            api_ids: HashMap::new(),
            modules: Modules::default(),
            running: Running::default(),
            begun: Vec::new(),
            backward: BackwardPasses::default(),
            gradients: HashMap::new(),
            with_backward: HashSet::new(),
            step: None,
            generation: 0,
            deferred: Vec::new(),
            phase: None,
            phases_seen: Vec::new(),
            overflows: Overflows::new(config.overflow_nums),
            overflowing: HashMap::new(),
            overflow_files: HashMap::new(),
            flight: config.flight_recorder.map(|recorder| Flight::new(recorder, &config.dump_path)),
            variables: HashMap::new(),
            notices: Vec::new(),
            unmeasured: Unmeasured::default(),
        };
        let watch = config.flight_recorder.map(|recorder| Watch::new(recorder.ignore_masks));
        Collector { config, framework, watch, stacks: Mutex::default(), pool, state: Mutex::new(state) }
    }

    /// What is collected.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What it is collected from.
    pub fn framework(&self) -> &Framework {
        &self.framework
    }

    /// The head of the JSON files of a step.
    pub fn header(&self, tensor_dir: Option<&Path>) -> Header {
        Header {
            task: self.config.task.as_str().to_owned(),
            level: self.config.level.as_str().to_owned(),
            framework: self.framework.name.clone(),
            dump_data_dir: tensor_dir.map(|dir| dir.to_string_lossy().into_owned()),
        }
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

    /// What is wanted of each tensor beside statistics.
    pub fn wanted(&self) -> Wanted {
        let crc32 = self.config.summary_mode == SummaryMode::Md5 && !self.config.async_dump;
        Wanted { crc32, sketch: self.config.sketch }
    }

    /// Whether records have values at all; task `structure` wants only their names.
    pub fn wants_data(&self) -> bool {
        self.config.task != Task::Structure
    }

    pub(crate) fn has_construct(&self) -> bool {
        matches!(self.config.level, Level::L0 | Level::Mix)
    }

    pub(crate) fn saving(&self, state: &State, name: &str) -> Saving {
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

    /// Writes a tensor of the record being made under the name it has there. What is returned knows what becomes of
    /// the file.
    pub fn save_tensor(&self, file_name: &str, view: &TensorView<'_>) -> SavedFile {
        let path = match &self.state().step {
            Some(StepPlace { tensor_dir: Some(dir), .. }) => dir.join(file_name),
            _ => return SavedFile::unwritten("there is no directory for tensor files"),
        };
        let file = self.pool.save(path, view, self.framework.tensor_format);
        if self.config.task == Task::OverflowCheck {
            self.state().overflow_files.insert(file_name.to_owned(), file.clone());
        }
        file
    }

    /// All tensors of an overflowing record have been saved (see [`Finished::SaveTensors`]): it can be written.
    pub fn tensors_saved(&self, name: &str) {
        self.state().finish_overflow(name);
    }

    /// Everything recorded so far gets visible on disk. Numbers still on an accelerator come in `fetched`, by
    /// ticket. Returns what went wrong, if anything did.
    pub fn flush(&self, fetched: &[Measured]) -> Result<(), String> {
        let mut state = self.state();
        let over = state.backward.take_complete();
        state.finish_passes(self, over);
        state.settle(self, &Fetched(fetched));
        state.finish_overflows();
        drop(state);
        // Records wait for their files, and nobody is to wait for the lock meanwhile.
        self.pool.wait();
        let state = self.state();
        let json = match &state.step {
            Some(step) => step.sink.flush().map_err(|error| error.to_string()),
            None => Ok(()),
        };
        let json = json.and(state.flight_failure().or_else(|| state.lack_of_memory()).map_or(Ok(()), Err));
        drop(state);
        let tensors = self.pool.drain().map_err(|error| error.to_string());
        json.and(tensors)
    }

    /// Whether writing failed; everything recorded later is dropped.
    pub fn failure(&self) -> Option<String> {
        let state = self.state();
        let failure = state.step.as_ref().and_then(|step| step.sink.failure());
        failure
            .or_else(|| state.flight_failure())
            .or_else(|| self.pool.failure())
            .or_else(|| state.lack_of_memory())
    }

    /// The step is over: files are finished, counters start again.
    pub fn end_step(&self) {
        let mut state = self.state();
        let over = state.backward.take_complete();
        state.finish_passes(self, over);
        state.finish_overflows();
        let step = state.step.take();
        state.end_flight_step();
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
        state.unmeasured = Unmeasured::default();
        state.filter.reset();
        drop(state);
        drop(step);
    }

    /// Things to log, in order. Only these tell of any: task `overflow_check`, the flight recorder, and gradients
    /// without a step.
    pub fn take_notices(&self) -> Vec<Notice> {
        std::mem::take(&mut self.state().notices)
    }

    /// What of `list` and `scope` nothing in the step so far is named by; each part once in a run.
    pub fn take_unmatched(&self) -> Vec<Unmatched> {
        self.state().filter.take_unmatched()
    }

    /// Whether task `overflow_check` or the flight recorder has all it wanted.
    pub fn is_over(&self) -> bool {
        let state = self.state();
        self.has_all_overflows(&state)
            || (state.step.is_none() && state.flight.as_ref().is_some_and(Flight::is_over))
    }

    /// `optimizer` or `clip_grad` runs, or neither.
    pub fn set_phase(&self, phase: Option<&'static str>) {
        self.state().phase = phase;
    }

    /// Whether nothing more is to be recorded: there is all that was wanted, or no memory for more.
    pub(crate) fn is_enough(&self, state: &State) -> bool {
        self.has_all_overflows(state) || memory::is_short()
    }

    fn has_all_overflows(&self, state: &State) -> bool {
        self.config.task == Task::OverflowCheck && state.overflows.is_enough()
    }

    pub(crate) fn write_stack(&self, stack: StackId, name: &str) {
        if let Some(step) = &self.state().step {
            step.sink.stack_name(stack.0, name, || self.stacks().frames(stack));
        }
    }
}

impl State {
    /// Memory was refused to something that is only held in memory.
    fn lack_of_memory(&self) -> Option<String> {
        let step = self.step.as_ref().filter(|_| memory::is_short())?;
        let text = if step.sink.is_memory() {
            "the flight recorder is out of memory; hint: leave the process more memory, or hold fewer steps or records"
        } else {
            "out of memory; hint: leave the process more memory, or record less (level, list, scope)"
        };
        Some(text.to_owned())
    }

    /// Places an API call in the tree, and all passes begun before it.
    pub(crate) fn note_api(&mut self, collector: &Collector, name: &str) {
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
            step.sink.construct(name, parent.as_deref());
        }
        self.note_begun();
    }

    pub(crate) fn note_module(&mut self, collector: &Collector, name: &str) {
        if !collector.has_construct() {
            return;
        }
        self.note_phase();
        if let (Some(step), Some(phase)) = (&self.step, self.phase) {
            step.sink.construct(name, Some(phase));
        }
        self.note_begun();
    }

    fn note_phase(&mut self) {
        if let (Some(step), Some(phase)) = (&self.step, self.phase)
            && !self.phases_seen.contains(&phase)
        {
            step.sink.construct(phase, None);
            self.phases_seen.push(phase);
        }
    }

    pub(crate) fn note_begun(&mut self) {
        let Some(step) = &self.step else { return };
        for (pass, parent) in self.begun.drain(..) {
            let parent = parent.map(|parent| self.modules.name(parent));
            step.sink.construct(&self.modules.name(pass), parent.as_deref());
        }
    }

    /// Writes a record, or keeps it until an accelerator has answered.
    pub(crate) fn write_record(
        &mut self,
        collector: &Collector,
        id: Option<RecordId>,
        name: &str,
        body: Body,
        alarm: Alarm,
    ) -> Finished {
        let Some(step) = &self.step else { return Finished::Done };
        let id = id.unwrap_or_else(|| step.sink.open_record(name));
        if body.is_deferred() {
            step.sink.wait_for(id);
            let name = if collector.watch.is_some() { name.to_owned() } else { String::new() };
            self.deferred.push(Deferred { id, name, body, tickets: alarm.tickets });
        } else {
            step.sink.close(id, name, body.render(&Nothing));
        }
        if alarm.is_raised { self.raise(collector, name) } else { Finished::Done }
    }

    /// Completes what waited for figures of an accelerator.
    fn settle(&mut self, collector: &Collector, fetched: &Fetched<'_>) {
        let deferred = std::mem::take(&mut self.deferred);
        if let Some(watch) = collector.watch {
            let is_bad = |ticket: &usize| watch.figures(&fetched.statistics(*ticket));
            if let Some(bad) = deferred.iter().find(|record| record.tickets.iter().any(is_bad)) {
                self.raise_at(collector, bad.id, &bad.name);
            }
        }
        let Some(step) = &self.step else { return };
        for Deferred { id, name, body, .. } in deferred {
            // What was dropped until now is old.
            if step.sink.holds(id) {
                step.sink.close(id, &name, body.render(fetched));
            }
        }
        let mut bad = None;
        for (module, record) in &mut self.gradients {
            let (Some(id), room) = record.place() else { continue };
            let Some((text, is_bad)) = record.settle(fetched, collector.watch) else { continue };
            let name = self.modules.gradients_name(*module);
            record.move_to(step.sink.set(id, &name, text, room));
            if is_bad {
                bad = Some(name);
            }
        }
        if let Some(name) = bad {
            self.raise(collector, &name);
        }
    }
}
