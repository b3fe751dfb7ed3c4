//! Events of modules: their calls, their backward passes, the gradients of their parameters.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use msprobe_collect::{BackwardBegin, Encoder, Finished, ModuleId, Pass, Saving};
use msprobe_dump::filter::Decision;
use msprobe_dump::hash::FastMap;
use msprobe_dump::names::{Category, Direction};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::Collector;
use super::adapter::Kind;
use super::gradient_entry::Entry;
use super::gradient_sink::{Recorder, Sink};
use super::gradient_watch::{Boundary, GradientWatch};
use super::session::Session;
use super::walk::for_members;

const FORWARD: &str = "forward_data_collect";
pub(crate) const BACKWARD: &str = "backward_data_collect";
const PARAMETERS: &str = "params_data_collect";

/// Room for the figures of one gradient in the file and the module's name, besides sizes.
const GRADIENT_BYTES: usize = 500;

/// A module's call that has begun.
#[pyclass(frozen, module = "msprobe._native")]
pub(crate) struct ModuleCall {
    pass: Pass,
    call: Mutex<Option<msprobe_collect::ModuleCall>>,
    /// Where its gradients are watched.
    entry: Option<Arc<Entry>>,
}

impl ModuleCall {
    fn backward(&self) -> Pass {
        Pass { direction: Direction::Backward, ..self.pass }
    }
}

/// The number the backward pass is told by.
fn number_of(pass: Pass) -> u64 {
    ((pass.module.0 as u64) << 40) | pass.index
}

pub(crate) fn pass_of(number: u64, direction: Direction) -> Pass {
    Pass { module: ModuleId((number >> 40) as usize), index: number & ((1 << 40) - 1), direction }
}

/// All hooked modules of a run: their calls, and the gradients of their outputs, inputs and parameters.
#[pyclass(frozen, module = "msprobe._native")]
pub(crate) struct Modules {
    session: Arc<Session>,
    recorder: Arc<Recorder>,
    /// `None` where hooks of the framework tell of gradients.
    watch: Option<GradientWatch>,
    /// Backward passes that were told of so far.
    serials: AtomicU64,
    window: Py<PyAny>,
}

#[pymethods]
impl Modules {
    /// `window.open` says whether anything is recorded; `autograd` is the module of that name, or `None` if
    /// `backward_begin` and its like tell of backward passes.
    #[new]
    fn new(
        collector: &Bound<'_, Collector>,
        window: Py<PyAny>,
        autograd: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Modules> {
        let py = collector.py();
        let session = collector.get().session().clone();
        let at_end = autograd.map(|autograd| autograd.getattr("at_end_of_backward")).transpose()?;
        let recorder =
            Arc::new(Recorder::new(session.clone(), window.clone_ref(py), at_end.map(Bound::unbind)));
        let watch = match autograd {
            Some(autograd) => {
                Some(GradientWatch::new(py, autograd.extract()?, Sink::Recorder(recorder.clone())))
            }
            None => None,
        };
        Ok(Modules { session, recorder, watch, serials: AtomicU64::new(0), window })
    }

    /// Makes a module known by its name and class, as `Module.fc1.Linear`.
    fn add(&self, stem: String) -> usize {
        self.session.collector.add_module(stem).0
    }

    /// A call begins.
    fn begin(
        &self,
        module: usize,
        args: &Bound<'_, PyTuple>,
        kwargs: &Bound<'_, PyDict>,
    ) -> PyResult<ModuleCall> {
        let session = &self.session;
        let collector = &session.collector;
        let recording = self.recorder.is_recording(args.py())?;
        session.note_call(args.py());
        let mut call = collector.module_begin(ModuleId(module));
        let pass = call.pass;
        if recording && collector.notes_crossings() && session.takes_gradients(args) {
            collector.module_crossed();
        }
        if recording && let Some((name, saving)) = collector.module_input_saving(pass) {
            encode_inputs(session, &mut call, &name, saving, args, kwargs);
        }
        let watch = self.watch.as_ref().filter(|_| recording);
        let entry = watch.and_then(|watch| watch.enter(args));
        Ok(ModuleCall { pass, call: Mutex::new(Some(call)), entry })
    }

    /// The call has returned. `parameters` are those of the module itself, `hooks` the hooks they have of us.
    #[allow(clippy::too_many_arguments, reason = "a call that comes often: no object is made for it")]
    fn end(
        &self,
        call: &ModuleCall,
        args: &Bound<'_, PyTuple>,
        kwargs: &Bound<'_, PyDict>,
        output: &Bound<'_, PyAny>,
        parameters: &Bound<'_, PyAny>,
        hooks: &Bound<'_, PyDict>,
        frame: &Bound<'_, PyAny>,
    ) {
        let session = &self.session;
        let parameters = &present(parameters).unwrap_or_else(|error| {
            session.adapter.failed(args.py(), FORWARD, "parameters", &error);
            PyDict::new(args.py())
        });
        let taken = call.call.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(begun) = taken {
            session.note_call(args.py());
            let has_record = match session.collector.module_end(call.pass) {
                Some((name, decision, saving)) => {
                    let ended = EndedModule {
                        begun,
                        name: &name,
                        decision,
                        saving,
                        args,
                        kwargs,
                        output,
                        parameters,
                    };
                    let recorded = ended.record(session, frame);
                    if let Err(error) = &recorded {
                        session.adapter.failed(args.py(), FORWARD, &name, error);
                    }
                    recorded.is_ok()
                }
                None => false,
            };
            if session.collector.wants_parameter_gradients()
                && let Err(error) = self.watch_parameters(call.pass.module, parameters, hooks, has_record)
            {
                session.adapter.failed(args.py(), PARAMETERS, "parameters_grad", &error);
            }
        }
        if let (Some(watch), Some(entry)) = (&self.watch, &call.entry) {
            watch.leave(entry, number_of(call.pass), output);
        }
    }

    /// The backward pass of a call begins; so many of its outputs and inputs have gradients.
    fn backward_begin(
        &self,
        py: Python<'_>,
        call: &ModuleCall,
        outputs: usize,
        inputs: usize,
    ) -> PyResult<()> {
        let begin = BackwardBegin {
            pass: call.backward(),
            task: 0,
            serial: self.serials.fetch_add(1, Ordering::Relaxed),
            begin_sequence: 0,
            outputs,
            inputs,
            recording: self.recorder.is_recording(py)?,
        };
        // No node is that new: passes end when that is told.
        self.session.collector.module_backward_begin(begin, u64::MAX);
        Ok(())
    }

    /// A gradient of an output or of an input of the call.
    fn backward_gradient(
        &self,
        call: &ModuleCall,
        of_output: bool,
        position: usize,
        grad: &Bound<'_, PyAny>,
    ) {
        self.session.module_gradient(number_of(call.pass), of_output, position, grad);
    }

    /// The backward pass of a call is over.
    fn backward_end(&self, py: Python<'_>, call: &ModuleCall) -> PyResult<()> {
        let is_recording = self.recorder.is_recording(py)?;
        let pass = call.backward();
        let finished = self.session.collector.module_backward_end(pass, is_recording);
        self.session.save_held(py, pass, finished);
        Ok(())
    }

    /// The call raised, or nothing is recorded: it only stops running.
    fn leave(&self, call: &ModuleCall) {
        let taken = call.call.lock().unwrap_or_else(PoisonError::into_inner).take();
        if taken.is_some() {
            self.session.collector.module_leave(call.pass);
        }
    }

    /// Where a tensor lies on the border of a module call, if it does.
    fn boundary(&self, tensor: &Bound<'_, PyAny>) -> Option<Boundary> {
        self.watch.as_ref()?.boundary(tensor)
    }

    /// Forgets runs of autograd that raised.
    fn reset(&self) {
        self.recorder.reset();
    }
}

impl Modules {
    /// Hooks the parameters that get a gradient and are not hooked yet.
    fn watch_parameters(
        &self,
        module: ModuleId,
        parameters: &Bound<'_, PyDict>,
        hooks: &Bound<'_, PyDict>,
        has_record: bool,
    ) -> PyResult<()> {
        let py = parameters.py();
        let session = &self.session;
        let is_plain = |parameter| matches!(session.adapter.kind(&parameter), Ok(Kind::Tensor));
        let _unseen = if parameters.iter().all(|(_, parameter)| is_plain(parameter)) {
            session.adapter.unseen_by_modes(py)
        } else {
            Some(session.adapter.unseen(py))
        };
        let mut members = Vec::with_capacity(parameters.len());
        let mut wanted = Vec::with_capacity(parameters.len());
        for (key, parameter) in parameters.iter() {
            if parameter.getattr(intern!(py, "requires_grad"))?.extract::<bool>()? {
                let sizes = parameter.getattr(intern!(py, "ndim"))?.extract::<usize>()? * 24;
                let name: String = key.extract()?;
                members.push((name.clone(), GRADIENT_BYTES + sizes + 2 * name.len()));
                wanted.push((key, name, parameter));
            }
        }
        if members.is_empty() {
            return Ok(());
        }
        session.collector.reserve_gradients(module, members, has_record);
        for (key, parameter_name, parameter) in wanted {
            // Asked of the parameter: nothing may refer to it, not even weakly, if it is to be exchanged for another
            // one, as `Module.to` does.
            if let Some(known) = hooks.get_item(&key)?
                && (session.adapter.keeps_hooks() || has_hook(&parameter, &known)?)
            {
                continue;
            }
            let hook = ParameterHook {
                session: session.clone(),
                module,
                parameter: parameter_name,
                window: self.window.clone_ref(py),
            };
            let hook = Bound::new(py, hook)?;
            session.adapter.register_hook(&parameter, hook.as_any().clone())?;
            hooks.set_item(key, hook)?;
        }
        Ok(())
    }
}

fn has_hook(parameter: &Bound<'_, PyAny>, known: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = parameter.py();
    let hooks = parameter.getattr(intern!(py, "_backward_hooks"))?;
    if hooks.is_none() {
        return Ok(false);
    }
    for hook in hooks.call_method0(intern!(py, "values"))?.try_iter()? {
        if hook?.is(known) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Parameters that are there, by names that can be written: half of a surrogate pair stands as its number.
fn present<'py>(parameters: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    let py = parameters.py();
    let present = PyDict::new(py);
    let add = |name: Bound<'py, PyAny>, parameter: Bound<'py, PyAny>| {
        if parameter.is_none() {
            Ok(())
        } else if name.extract::<Cow<'_, str>>().is_ok() {
            present.set_item(name, parameter)
        } else {
            let bytes = name.call_method1(intern!(py, "encode"), ("utf-8", "backslashreplace"))?;
            present.set_item(bytes.call_method1(intern!(py, "decode"), ("utf-8",))?, parameter)
        }
    };
    match parameters.cast_exact::<PyDict>() {
        Ok(parameters) => parameters.iter().try_for_each(|(name, parameter)| add(name, parameter))?,
        // Libraries have dicts of their own here.
        Err(_) => for_members(parameters, Kind::Mapping, |name, parameter| add(name.clone(), parameter))?,
    }
    Ok(present)
}

/// A module's call that has returned and is recorded.
struct EndedModule<'a, 'py> {
    begun: msprobe_collect::ModuleCall,
    name: &'a str,
    decision: Decision,
    saving: Saving,
    args: &'a Bound<'py, PyTuple>,
    kwargs: &'a Bound<'py, PyDict>,
    output: &'a Bound<'py, PyAny>,
    parameters: &'a Bound<'py, PyDict>,
}

impl EndedModule<'_, '_> {
    /// Writes the record.
    fn record(self, session: &Session, frame: &Bound<'_, PyAny>) -> PyResult<()> {
        let EndedModule { mut begun, name, decision, saving, args, kwargs, output, parameters } = self;
        let py = args.py();
        let collector = &session.collector;
        let stack = session.stack(frame)?;
        if decision.input && !collector.has_module_input(&begun) && collector.wants_data() {
            // The window or the scope was opened during the call.
            encode_inputs(session, &mut begun, name, saving, args, kwargs);
        }
        let forward = collector.config().data_mode.direction(Direction::Forward) && collector.wants_data();
        let encode = |saving| {
            let encoder = |category| Encoder::for_member(name, category, saving);
            let output = if decision.output && forward {
                session.encode(py, FORWARD, name, encoder(Category::Output), |walk| walk.output(output))
            } else {
                None
            };
            let parameters = if forward {
                session
                    .encode(py, FORWARD, name, encoder(Category::Parameters), |walk| walk.mapping(parameters))
            } else {
                None
            };
            (output, parameters)
        };
        let (encoded_output, encoded_parameters) = encode(saving);
        let finished =
            collector.module_finish(name, saving, begun, encoded_output, encoded_parameters, stack);
        if finished == Finished::SaveTensors {
            save_inputs(session, name, args, kwargs);
            encode(Saving::Now);
            collector.tensors_saved(name);
        }
        if finished != Finished::Done {
            session.tell(py);
        }
        Ok(())
    }
}

/// Gradients of module passes, held while it is not known whether the record overflows.
pub(crate) type Held = Mutex<FastMap<Pass, Vec<(bool, usize, Py<PyAny>)>>>;

impl Session {
    /// A gradient of an output or an input is known.
    pub(crate) fn module_gradient(
        &self,
        call: u64,
        of_output: bool,
        position: usize,
        grad: &Bound<'_, PyAny>,
    ) {
        let pass = pass_of(call, Direction::Backward);
        let Some((name, saving)) = self.collector.module_gradient_saving(pass, of_output) else { return };
        if let Some(encoded) = encode_gradient(self, &name, of_output, position, grad, saving) {
            self.collector.module_gradient(pass, of_output, position, encoded);
        }
        if saving == Saving::IfOverflow {
            let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
            held.entry(pass).or_default().push((of_output, position, grad.clone().unbind()));
        }
    }

    /// All gradients of a call are known.
    pub(crate) fn module_backward_complete(&self, py: Python<'_>, call: u64, recording: bool) {
        let pass = pass_of(call, Direction::Backward);
        let finished = self.collector.module_backward_complete(pass, recording);
        self.save_held(py, pass, finished);
    }

    /// Saves the gradients of a pass that were held until it was known whether it overflows.
    fn save_held(&self, py: Python<'_>, pass: Pass, finished: Finished) {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner).remove(&pass);
        if finished == Finished::SaveTensors {
            let name = self.collector.module_name(pass);
            for (of_output, position, gradient) in held.unwrap_or_default() {
                encode_gradient(self, &name, of_output, position, gradient.bind(py), Saving::Now);
            }
            self.collector.tensors_saved(&name);
        }
        if finished != Finished::Done {
            self.tell(py);
        }
    }
}

fn encode_gradient(
    session: &Session,
    name: &str,
    of_output: bool,
    position: usize,
    grad: &Bound<'_, PyAny>,
    saving: Saving,
) -> Option<msprobe_collect::Encoded> {
    let category = if of_output { Category::Input } else { Category::Output };
    let encoder = Encoder::for_element(name, category, position, saving);
    session.encode(grad.py(), BACKWARD, name, encoder, |walk| walk.single(grad))
}

fn encode_inputs(
    session: &Session,
    call: &mut msprobe_collect::ModuleCall,
    name: &str,
    saving: Saving,
    args: &Bound<'_, PyTuple>,
    kwargs: &Bound<'_, PyDict>,
) {
    let py = args.py();
    let encoder = |category| Encoder::for_member(name, category, saving);
    let positional = session.encode(py, FORWARD, name, encoder(Category::Input), |walk| walk.sequence(args));
    let named = session.encode(py, FORWARD, name, encoder(Category::Kwargs), |walk| walk.mapping(kwargs));
    if let (Some(positional), Some(named)) = (positional, named) {
        session.collector.module_input(call, positional, named);
    }
}

fn save_inputs(session: &Session, name: &str, args: &Bound<'_, PyTuple>, kwargs: &Bound<'_, PyDict>) {
    let py = args.py();
    let encoder = |category| Encoder::for_member(name, category, Saving::Now);
    session.encode(py, FORWARD, name, encoder(Category::Input), |walk| walk.sequence(args));
    session.encode(py, FORWARD, name, encoder(Category::Kwargs), |walk| walk.mapping(kwargs));
}

/// Called by autograd with the gradient of a parameter.
#[pyclass(frozen, module = "msprobe._native")]
pub(crate) struct ParameterHook {
    session: Arc<Session>,
    module: ModuleId,
    parameter: String,
    /// `open` says whether anything is recorded.
    window: Py<PyAny>,
}

#[pymethods]
impl ParameterHook {
    fn __call__(&self, grad: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = grad.py();
        if !self.window.bind(py).getattr(intern!(py, "open"))?.extract::<bool>()? {
            return Ok(());
        }
        let session = &*self.session;
        let Some((name, saving)) = session.collector.gradient_begin(self.module) else { return Ok(()) };
        let encode = |saving| {
            let encoder = Encoder::for_gradient(&name, &self.parameter, saving);
            session.encode(py, PARAMETERS, &name, encoder, |walk| walk.single(grad))
        };
        let Some(encoded) = encode(saving) else { return Ok(()) };
        let finished = session.collector.gradient(self.module, &name, &self.parameter, encoded);
        if finished == Finished::SaveTensors {
            encode(Saving::Now);
            session.collector.tensors_saved(&name);
        }
        if finished != Finished::Done {
            session.tell(py);
        }
        Ok(())
    }
}
