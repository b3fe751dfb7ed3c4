//! Events of wrapped functions.

use std::sync::{Arc, Mutex, PoisonError};

use msprobe_collect::{ApiId, Encoder, Finished, Saving, Since};
use msprobe_dump::names::Category;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::adapter::Kind;
use super::gradient_entry::Entry;
use super::session::Session;
use super::{Collector, function_gradients};

const INPUT: &str = "forward_input_data_collect";
const OUTPUT: &str = "forward_output_data_collect";
pub(crate) const BACKWARD: &str = "backward_data_collect";

/// A call that has begun and whose output is still to come.
#[pyclass(frozen, module = "msprobe._native")]
pub(crate) struct ApiCall {
    api: ApiId,
    index: u64,
    call: Mutex<Option<msprobe_collect::ApiCall>>,
    /// Where its gradients are watched, if functions are.
    entry: Option<Arc<Entry>>,
}

impl ApiCall {
    fn take(&self) -> Option<msprobe_collect::ApiCall> {
        self.call.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[pymethods]
impl Collector {
    /// Makes a function known by its name, as `Torch.add`.
    fn add_api(&self, stem: &str) -> usize {
        self.session().collector.add_api(stem).0
    }

    /// A call begins, with its arguments as they are now. `None` if nothing is recorded.
    fn api_begin(
        &self,
        api: usize,
        args: &Bound<'_, PyTuple>,
        kwargs: &Bound<'_, PyDict>,
        frame: &Bound<'_, PyAny>,
    ) -> Option<ApiCall> {
        let session = self.session();
        let py = args.py();
        let collector = &session.collector;
        session.note_call(py);
        if session.is_compiled(frame) {
            return None;
        }
        let mut call = collector.api_begin(ApiId(api))?;
        if call.selected {
            match session.stack(frame) {
                Ok(stack) => collector.api_stack(&mut call, stack),
                Err(error) => session.adapter.failed(py, INPUT, &call.name, &error),
            }
        }
        if call.wants_input {
            let encoder = |category| Encoder::for_member(&call.name, category, call.saving);
            let positional =
                session.encode(py, INPUT, &call.name, encoder(Category::Input), |walk| walk.sequence(args));
            let named =
                session.encode(py, INPUT, &call.name, encoder(Category::Kwargs), |walk| walk.mapping(kwargs));
            if let (Some(positional), Some(named)) = (positional, named) {
                collector.api_input(&mut call, positional, named);
            }
        }
        // Last: what was asked of the arguments may have made autograd nodes.
        let entry = self.functions.get().and_then(|watch| watch.enter_call(args, kwargs));
        Some(ApiCall { api: call.api, index: call.index, call: Mutex::new(Some(call)), entry })
    }

    /// A call that is counted and not recorded.
    fn api_skip(&self, api: usize) {
        self.session().collector.api_skip(ApiId(api));
    }

    /// What is to be called with the gradients of a call's inputs and outputs, where the framework's own nodes cannot be
    /// asked for them.
    fn api_backward(&self, call: &ApiCall) -> ApiBackward {
        ApiBackward { session: self.session().clone(), api: call.api, index: call.index, sequence: None }
    }

    /// The call has returned. Watches the gradient of the result if it has one.
    fn api_end(
        &self,
        call: &ApiCall,
        args: &Bound<'_, PyTuple>,
        kwargs: &Bound<'_, PyDict>,
        result: &Bound<'_, PyAny>,
    ) {
        let session = self.session();
        let Some((api, index, name)) = self.finish(call, args, kwargs, Output::Result(result)) else {
            return;
        };
        if let Some(watch) = self.functions.get() {
            if let Some(entry) = &call.entry {
                watch.leave(entry, function_gradients::number_of(api, index), result);
            }
        } else if let Err(error) = watch_gradient(session, api, index, args, result) {
            session.adapter.failed(args.py(), OUTPUT, &name, &error);
        }
    }

    /// A collective operation goes on in the background. `with_output`: its arguments are told as they are now.
    fn collective_begun(
        &self,
        call: &ApiCall,
        args: &Bound<'_, PyTuple>,
        kwargs: &Bound<'_, PyDict>,
        with_output: bool,
    ) {
        self.pause(call, args, kwargs, with_output);
    }

    /// A collective operation is complete, or one of its parts is: its output is what its arguments are now.
    fn collective_end(
        &self,
        call: &ApiCall,
        args: &Bound<'_, PyTuple>,
        kwargs: &Bound<'_, PyDict>,
        is_last: bool,
    ) {
        if is_last {
            self.finish(call, args, kwargs, Output::Arguments);
        } else {
            self.pause(call, args, kwargs, true);
        }
    }

    /// From now on calls made by compiled code are looked for, and left out.
    fn watch_compiled(&self) {
        self.session().compiled.watch();
    }

    /// The call did not return a result: what is known of it is written.
    fn api_fail(&self, py: Python<'_>, call: &ApiCall) {
        let session = self.session();
        if let Some(call) = call.take()
            && session.collector.api_fail(call) == Finished::Tell
        {
            session.tell(py);
        }
    }

    /// A function returned its argument unchanged at the border of a module: its gradients are those of the border.
    /// Where they leave the module, it is over: `serial` is the number of its call.
    fn border_backward(&self, api: usize, index: u64, serial: Option<u64>, gradients: &Bound<'_, PyTuple>) {
        let since = serial.map(|serial| Since { sequence: 0, serial });
        record_backward(self.session(), ApiId(api), index, since, gradients, gradients);
    }
}

enum Output<'a, 'py> {
    Result(&'a Bound<'py, PyAny>),
    Arguments,
}

impl Collector {
    fn finish(
        &self,
        call: &ApiCall,
        args: &Bound<'_, PyTuple>,
        kwargs: &Bound<'_, PyDict>,
        output: Output<'_, '_>,
    ) -> Option<(ApiId, u64, String)> {
        let session = self.session();
        let py = args.py();
        let call = call.take()?;
        session.note_call(py);
        let (api, index) = (call.api, call.index);
        let (name, saving) = (call.name.clone(), call.saving);
        let encode = |saving: Saving| {
            let encoder = Encoder::for_member(&name, Category::Output, saving);
            session.encode(py, OUTPUT, &name, encoder, |walk| match output {
                Output::Result(result) => walk.output(result),
                Output::Arguments => walk.values(args.iter().chain(kwargs.values())),
            })
        };
        let encoded = if session.collector.api_end(&call) { encode(saving) } else { None };
        let finished = session.collector.api_finish(call, encoded);
        if finished == Finished::Tell {
            session.tell(py);
        } else if finished == Finished::SaveTensors {
            // Encoding again with saving on is what writes the files; the text has been written before.
            for (category, values) in [(Category::Input, Some(args)), (Category::Kwargs, None)] {
                let encoder = Encoder::for_member(&name, category, Saving::Now);
                session.encode(py, INPUT, &name, encoder, |walk| match values {
                    Some(values) => walk.sequence(values),
                    None => walk.mapping(kwargs),
                });
            }
            encode(Saving::Now);
            session.collector.tensors_saved(&name);
            session.tell(py);
        }
        Some((api, index, name))
    }

    fn pause(
        &self,
        call: &ApiCall,
        args: &Bound<'_, PyTuple>,
        kwargs: &Bound<'_, PyDict>,
        with_output: bool,
    ) {
        let session = self.session();
        let mut slot = call.call.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(call) = slot.as_mut() else { return };
        let output = if with_output && session.collector.api_end(call) {
            let encoder = Encoder::for_member(&call.name, Category::Output, call.saving);
            let values = args.iter().chain(kwargs.values());
            session.encode(args.py(), OUTPUT, &call.name, encoder, |walk| walk.values(values))
        } else {
            None
        };
        session.collector.api_pause(call, output);
    }
}

/// The first tensor of a result, as the one whose gradient is taken.
fn first_tensor<'py>(session: &Session, value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let mut at = value.clone();
    for _ in 0..msprobe_collect::MAX_DEPTH {
        let kind = match session.adapter.kind(&at)? {
            // Its entries count here, not its fields.
            Kind::Dataclass if at.is_instance_of::<PyDict>() => Kind::Mapping,
            kind => kind,
        };
        let next = match kind {
            Kind::Tensor | Kind::SpecialTensor => return Ok(Some(at)),
            Kind::Sequence | Kind::NamedTuple => match at.try_iter()?.next() {
                Some(first) => first?,
                None => return Ok(None),
            },
            Kind::Mapping => {
                let values = at.call_method0(intern!(at.py(), "values"))?;
                for element in values.try_iter()? {
                    let element = element?;
                    if matches!(session.adapter.kind(&element)?, Kind::Tensor | Kind::SpecialTensor) {
                        return Ok(Some(element));
                    }
                }
                return Ok(None);
            }
            _ => return Ok(None),
        };
        at = next;
    }
    Ok(None)
}

/// Hooks the autograd node behind the result.
fn watch_gradient(
    session: &Arc<Session>,
    api: ApiId,
    index: u64,
    args: &Bound<'_, PyTuple>,
    result: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let py = result.py();
    if !session.collector.framework().tells_autograd {
        return Ok(());
    }
    let _unseen = session.adapter.unseen_by(result);
    let Some(tensor) = first_tensor(session, result)? else { return Ok(()) };
    if !tensor.getattr(intern!(py, "requires_grad"))?.extract::<bool>()?
        || !session.adapter.is_grad_enabled(py)?
    {
        return Ok(());
    }
    let dtype = session.adapter.dtype(&tensor.getattr(intern!(py, "dtype"))?)?;
    if dtype.dtype.is_some_and(msprobe_tensor::DType::is_float8) {
        return Ok(());
    }
    if args.iter().any(|argument| argument.is(&tensor)) && session.adapter.border(&tensor, api.0, index)? {
        return Ok(());
    }
    let node = tensor.getattr(intern!(py, "grad_fn"))?;
    if node.is_none() {
        return Ok(());
    }
    let sequence: u64 = node.call_method0(intern!(py, "_sequence_nr"))?.extract()?;
    let hook = ApiBackward { session: session.clone(), api, index, sequence: Some(sequence) };
    node.call_method1(intern!(py, "register_hook"), (Py::new(py, hook)?,))?;
    Ok(())
}

/// The hook of an autograd node: called with the gradients that leave it and those that came in.
#[pyclass(frozen, module = "msprobe._native")]
pub(crate) struct ApiBackward {
    session: Arc<Session>,
    api: ApiId,
    index: u64,
    /// The number of the node.
    sequence: Option<u64>,
}

#[pymethods]
impl ApiBackward {
    fn __call__(&self, grad_inputs: &Bound<'_, PyTuple>, grad_outputs: &Bound<'_, PyTuple>) {
        let since = self.sequence.map(Since::node);
        record_backward(&self.session, self.api, self.index, since, grad_outputs, grad_inputs);
    }
}

pub(crate) fn record_backward(
    session: &Session,
    api: ApiId,
    index: u64,
    since: Option<Since>,
    input: &Bound<'_, PyTuple>,
    output: &Bound<'_, PyTuple>,
) {
    let py = input.py();
    let Some((name, decision, saving)) = session.collector.api_backward(api, index, since) else {
        return session.tell(py);
    };
    let encode = |wanted: bool, category, values: &Bound<'_, PyTuple>, saving| {
        let encoder = Encoder::for_member(&name, category, saving);
        wanted.then(|| session.encode(py, BACKWARD, &name, encoder, |walk| walk.sequence(values))).flatten()
    };
    let encode_both = |saving| {
        (
            encode(decision.input, Category::Input, input, saving),
            encode(decision.output, Category::Output, output, saving),
        )
    };
    let (encoded_input, encoded_output) = encode_both(saving);
    let finished = session.collector.backward_record(&name, saving, encoded_input, encoded_output);
    if finished == Finished::SaveTensors {
        encode_both(Saving::Now);
        session.collector.tensors_saved(&name);
    }
    if finished != Finished::Done {
        session.tell(py);
    }
}
