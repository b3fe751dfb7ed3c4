//! Events of modules: their calls, their backward passes, the gradients of their parameters.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use msprobe_collect::{BackwardBegin, Encoder, Finished, ModuleId, Pass, Saving};
use msprobe_dump::filter::Decision;
use msprobe_dump::names::{Category, Direction};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::Collector;
use super::session::Session;

const FORWARD: &str = "forward_data_collect";
const BACKWARD: &str = "backward_data_collect";
const PARAMETERS: &str = "params_data_collect";

/// Room for the figures of one gradient in the file and the module's name, besides sizes.
const GRADIENT_BYTES: usize = 500;

/// A module's call that has begun.
#[pyclass(frozen, module = "msprobe._native")]
pub(crate) struct ModuleCall {
    /// The number the backward pass is told by.
    #[pyo3(get)]
    number: u64,
    pass: Pass,
    call: Mutex<Option<msprobe_collect::ModuleCall>>,
}

fn number_of(pass: Pass) -> u64 {
    ((pass.module.0 as u64) << 40) | pass.index
}

fn pass_of(number: u64, direction: Direction) -> Pass {
    Pass { module: ModuleId((number >> 40) as usize), index: number & ((1 << 40) - 1), direction }
}

#[pymethods]
impl Collector {
    /// Makes a module known by its name and class, as `Module.fc1.Linear`.
    fn add_module(&self, stem: String) -> usize {
        self.session().collector.add_module(stem).0
    }

    /// A call begins; `recording` says whether the window is open.
    fn module_begin(
        &self,
        module: usize,
        args: &Bound<'_, PyTuple>,
        kwargs: &Bound<'_, PyDict>,
        recording: bool,
    ) -> ModuleCall {
        let session = self.session();
        let collector = &session.collector;
        session.note_call(args.py());
        let mut call = collector.module_begin(ModuleId(module));
        let pass = call.pass;
        if recording && collector.notes_crossings() && session.takes_gradients(args) {
            collector.module_crossed();
        }
        if recording && let Some((name, saving)) = collector.module_input_saving(pass) {
            encode_inputs(session, &mut call, &name, saving, args, kwargs);
        }
        ModuleCall { number: number_of(pass), pass, call: Mutex::new(Some(call)) }
    }

    /// The call has returned. Whether its parameters' gradients are wanted.
    fn module_end(
        &self,
        call: &ModuleCall,
        args: &Bound<'_, PyTuple>,
        kwargs: &Bound<'_, PyDict>,
        output: &Bound<'_, PyAny>,
        parameters: &Bound<'_, PyDict>,
        frame: &Bound<'_, PyAny>,
    ) -> bool {
        let session = self.session();
        let taken = call.call.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(begun) = taken else { return false };
        session.note_call(args.py());
        let has_record = match session.collector.module_end(call.pass) {
            Some((name, decision, saving)) => {
                let ended =
                    EndedModule { begun, name: &name, decision, saving, args, kwargs, output, parameters };
                let recorded = ended.record(session, frame);
                if let Err(error) = &recorded {
                    session.adapter.failed(args.py(), FORWARD, &name, error);
                }
                recorded.is_ok()
            }
            None => false,
        };
        if !session.collector.wants_parameter_gradients() {
            return false;
        }
        let _unseen = session.adapter.unseen(args.py());
        match gradient_members(parameters) {
            Ok(members) if members.is_empty() => false,
            Ok(members) => {
                session.collector.reserve_gradients(call.pass.module, members, has_record);
                true
            }
            Err(error) => {
                session.adapter.failed(args.py(), PARAMETERS, "parameters_grad", &error);
                false
            }
        }
    }

    /// The call raised, or nothing is recorded: it only stops running.
    fn module_leave(&self, call: &ModuleCall) {
        let taken = call.call.lock().unwrap_or_else(PoisonError::into_inner).take();
        if taken.is_some() {
            self.session().collector.module_leave(call.pass);
        }
    }

    /// A hook for the gradient of a parameter.
    fn parameter_hook(&self, module: usize, parameter: String, window: Py<PyAny>) -> ParameterHook {
        ParameterHook { session: self.session().clone(), module: ModuleId(module), parameter, window }
    }

    /// The backward pass of a call begins, in a run of autograd of number `task`; calls made at the node `since` or
    /// later are over.
    #[allow(clippy::too_many_arguments, reason = "a call that comes often: no object is made for it")]
    fn module_backward_begin(
        &self,
        call: u64,
        task: i64,
        serial: u64,
        begin_sequence: u64,
        since: u64,
        outputs: usize,
        inputs: usize,
        recording: bool,
    ) {
        let pass = pass_of(call, Direction::Backward);
        let begin = BackwardBegin { pass, task, serial, begin_sequence, outputs, inputs, recording };
        self.session().collector.module_backward_begin(begin, since);
    }

    /// A run of autograd is through.
    fn backward_over(&self, py: Python<'_>, task: i64) {
        let session = self.session();
        session.collector.backward_over(task);
        session.tell(py);
    }

    fn module_output_grad(&self, call: u64, position: usize, grad: &Bound<'_, PyAny>) {
        self.module_gradient(call, true, position, grad);
    }

    fn module_input_grad(&self, call: u64, position: usize, grad: &Bound<'_, PyAny>) {
        self.module_gradient(call, false, position, grad);
    }

    fn module_backward_complete(&self, py: Python<'_>, call: u64, recording: bool) {
        let session = self.session();
        let pass = pass_of(call, Direction::Backward);
        let finished = session.collector.module_backward_complete(pass, recording);
        let held = session.held.lock().unwrap_or_else(PoisonError::into_inner).remove(&pass);
        if finished == Finished::SaveTensors {
            let name = session.collector.module_name(pass);
            for (of_output, position, gradient) in held.unwrap_or_default() {
                encode_gradient(session, &name, of_output, position, gradient.bind(py), Saving::Now);
            }
            session.collector.tensors_saved(&name);
        }
        if finished != Finished::Done {
            session.tell(py);
        }
    }
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
pub(crate) type Held = Mutex<HashMap<Pass, Vec<(bool, usize, Py<PyAny>)>>>;

impl Collector {
    fn module_gradient(&self, call: u64, of_output: bool, position: usize, grad: &Bound<'_, PyAny>) {
        let session = self.session();
        let pass = pass_of(call, Direction::Backward);
        if grad.is_none() {
            return;
        }
        let Some((name, saving)) = session.collector.module_gradient_saving(pass, of_output) else { return };
        if let Some(encoded) = encode_gradient(session, &name, of_output, position, grad, saving) {
            session.collector.module_gradient(pass, of_output, position, encoded);
        }
        if saving == Saving::IfOverflow {
            let mut held = session.held.lock().unwrap_or_else(PoisonError::into_inner);
            held.entry(pass).or_default().push((of_output, position, grad.clone().unbind()));
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

/// Parameters that get a gradient, and the room each needs.
fn gradient_members(parameters: &Bound<'_, PyDict>) -> PyResult<Vec<(String, usize)>> {
    let py = parameters.py();
    let mut members = Vec::with_capacity(parameters.len());
    for (key, parameter) in parameters.iter() {
        if parameter.getattr(intern!(py, "requires_grad"))?.extract::<bool>()? {
            let sizes = parameter.getattr(intern!(py, "ndim"))?.extract::<usize>()? * 24;
            let key: String = key.extract()?;
            let room = GRADIENT_BYTES + sizes + 2 * key.len();
            members.push((key, room));
        }
    }
    Ok(members)
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
