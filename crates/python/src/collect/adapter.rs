//! What a framework's Python adapter knows and Rust asks for: kinds of values, and everything that is too rare
//! to be worth knowing here. The contract is `msprobe.core.framework`.

use std::sync::{Arc, Mutex, PoisonError};

use msprobe_collect::Framework;
use msprobe_dump::hash::FastMap;
use msprobe_tensor::{DType, Sketch, SketchSums};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::framework::Words;

/// How a value is encoded.
#[pyclass(frozen, eq, from_py_object, module = "msprobe._native", rename_all = "SCREAMING_SNAKE_CASE")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `null`: nothing is known about it, or nothing is worth telling.
    Null,
    Bool,
    Int,
    Float,
    Str,
    /// list, tuple
    Sequence,
    /// namedtuple: an object with its fields
    NamedTuple,
    Mapping,
    /// an object with its fields
    Dataclass,
    /// a tensor of the framework itself, as `msprobe.core.framework.Tensor` says
    Tensor,
    /// any subclass of a tensor
    SpecialTensor,
    Array,
    /// the sizes of a tensor
    Size,
    #[pyo3(name = "DTYPE")]
    DType,
    Slice,
    Ellipsis,
    /// the adapter encodes it
    Rare,
}

/// A dtype object and what it means here.
#[derive(Debug, Clone)]
pub(crate) struct KnownDType {
    pub(crate) name: Arc<str>,
    pub(crate) dtype: Option<DType>,
}

/// A number that an accelerator found.
#[derive(Debug, Clone, Copy, FromPyObject)]
pub(crate) enum DeviceNumber {
    /// Of a tensor of integers.
    Int(i64),
    Float(f64),
}

/// What an accelerator found for a sketch.
#[derive(Debug, FromPyObject)]
pub(crate) struct DeviceSketch {
    shape: Vec<usize>,
    /// Sum of squares, buckets, eighths of rows, eighths of columns; as far as the shape has them.
    sums: Vec<f64>,
    hash: i64,
}

impl DeviceSketch {
    /// The sketch; `None` if it does not go with the shape.
    pub(crate) fn read(&self) -> Option<Sketch> {
        let hash = self.hash.cast_unsigned();
        let Some(mut sums) = SketchSums::of_shape(&self.shape) else { return Some(Sketch::of_hash(hash)) };
        let mut numbers = self.sums.iter().copied();
        sums.squares = numbers.next()?;
        let eighths = [sums.rows.as_mut(), sums.columns.as_mut().map(|(_, columns)| columns)];
        for sum in sums.buckets.iter_mut().chain(eighths.into_iter().flatten().flatten()) {
            *sum = numbers.next()?;
        }
        Some(Sketch::new(&sums, hash))
    }
}

/// The adapter, with what it said remembered.
pub(crate) struct Adapter {
    object: Py<PyAny>,
    pub(crate) data_ptr: Py<PyAny>,
    pub(crate) stride: Py<PyAny>,
    pub(crate) is_neg: Py<PyAny>,
    pub(crate) is_conj: Py<PyAny>,
    is_grad_enabled: Py<PyAny>,
    unseen: Py<PyAny>,
    is_mode_enabled: Py<PyAny>,
    /// Hangs a function on the gradient of a tensor, where the tensor's own way does not do.
    register_hook: Option<Py<PyAny>>,
    /// Where the threads are that the framework computes with (see [`super::crew`]).
    pub(crate) team: Option<(usize, usize)>,
    kinds: Mutex<FastMap<usize, (Kind, Py<PyType>)>>,
    dtypes: Mutex<FastMap<usize, (KnownDType, Py<PyAny>)>>,
}

/// A context manager of the framework (see [`Adapter::unseen`]), left when this is dropped.
pub(crate) struct Entered<'py>(Option<Bound<'py, PyAny>>);

impl<'py> Entered<'py> {
    pub(crate) fn enter(class: &Bound<'py, PyAny>) -> Entered<'py> {
        let manager = class.call0().ok();
        Entered(manager.filter(|manager| manager.call_method0(intern!(class.py(), "__enter__")).is_ok()))
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        if let Some(guard) = &self.0 {
            let (py, nothing) = (guard.py(), guard.py().None());
            // It only gives back a setting of the thread.
            let _ = guard.call_method1(intern!(py, "__exit__"), (&nothing, &nothing, &nothing));
        }
    }
}

impl Adapter {
    pub(crate) fn new(object: Bound<'_, PyAny>) -> PyResult<Adapter> {
        let take = |name: &str| object.getattr(name).map(Bound::unbind);
        Ok(Adapter {
            data_ptr: take("data_ptr")?,
            stride: take("stride")?,
            is_neg: take("is_neg")?,
            is_conj: take("is_conj")?,
            is_grad_enabled: take("is_grad_enabled")?,
            unseen: take("unseen")?,
            is_mode_enabled: take("is_mode_enabled")?,
            register_hook: object.getattr("register_hook")?.extract()?,
            team: object.getattr("team")?.extract()?,
            kinds: Mutex::default(),
            dtypes: Mutex::default(),
            object: object.unbind(),
        })
    }

    /// The framework it speaks for.
    pub(crate) fn framework(&self, py: Python<'_>) -> PyResult<Framework> {
        self.object(py).getattr(intern!(py, "framework"))?.extract::<Words>()?.read()
    }

    /// Until it is dropped, nobody sees what is asked of the framework for the tool's own sake.
    pub(crate) fn unseen<'py>(&self, py: Python<'py>) -> Entered<'py> {
        Entered::enter(self.unseen.bind(py))
    }

    /// The same where only plain tensors are asked: nobody could see it unless a mode of the user's is on.
    pub(crate) fn unseen_by_modes<'py>(&self, py: Python<'py>) -> Option<Entered<'py>> {
        let is_on = self.is_mode_enabled.bind(py).call0().and_then(|is_on| is_on.extract());
        is_on.unwrap_or(true).then(|| self.unseen(py))
    }

    /// The same where this value is asked.
    pub(crate) fn unseen_by<'py>(&self, value: &Bound<'py, PyAny>) -> Option<Entered<'py>> {
        match self.kind(value) {
            Ok(Kind::Tensor) => self.unseen_by_modes(value.py()),
            _ => Some(self.unseen(value.py())),
        }
    }

    fn object<'py>(&self, py: Python<'py>) -> &Bound<'py, PyAny> {
        self.object.bind(py)
    }

    pub(crate) fn kind(&self, value: &Bound<'_, PyAny>) -> PyResult<Kind> {
        let class = value.get_type();
        let key = class.as_ptr() as usize;
        if let Some((kind, _)) = self.kinds.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(*kind);
        }
        let py = value.py();
        let kind: Kind = self.object(py).call_method1(intern!(py, "kind"), (&class,))?.extract()?;
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner).insert(key, (kind, class.unbind()));
        Ok(kind)
    }

    pub(crate) fn dtype(&self, object: &Bound<'_, PyAny>) -> PyResult<KnownDType> {
        let key = object.as_ptr() as usize;
        if let Some((known, _)) = self.dtypes.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(known.clone());
        }
        let name = object.str()?.to_string();
        let known = KnownDType { dtype: DType::parse(&name), name: Arc::from(name) };
        let mut dtypes = self.dtypes.lock().unwrap_or_else(PoisonError::into_inner);
        // Only objects that live as long as the framework may be remembered by address; these are few.
        if dtypes.len() < 256 {
            dtypes.insert(key, (known.clone(), object.clone().unbind()));
        }
        Ok(known)
    }

    /// A value the adapter turns into plain dicts, lists and scalars, written as they are.
    pub(crate) fn rare<'py>(
        &self,
        value: &Bound<'py, PyAny>,
        key: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = value.py();
        self.object(py).call_method1(intern!(py, "rare"), (value, key))
    }

    /// A subclass of a tensor: its elements as a plain tensor (or `None`), the name of its type, and the placement
    /// of a distributed one.
    pub(crate) fn special<'py>(&self, tensor: &Bound<'py, PyAny>) -> PyResult<SpecialTensor<'py>> {
        let py = tensor.py();
        self.object(py).call_method1(intern!(py, "special"), (tensor,))?.extract()
    }

    /// What can be measured of a tensor whose elements do not lie in memory as they count. `whole`: also what
    /// belongs into a file.
    pub(crate) fn form<'py>(&self, tensor: &Bound<'py, PyAny>, whole: bool) -> PyResult<Form<'py>> {
        let py = tensor.py();
        self.object(py).call_method1(intern!(py, "form"), (tensor, whole))?.extract()
    }

    /// The elements of a tensor that is not in host memory, or that is stored lazily, in host memory; `None` if it
    /// has none.
    pub(crate) fn on_host<'py>(&self, tensor: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = tensor.py();
        let copy = self.object(py).call_method1(intern!(py, "on_host"), (tensor,))?;
        Ok((!copy.is_none()).then_some(copy))
    }

    /// Starts computing the statistics of a tensor on its accelerator. `None` if they cannot be computed there.
    pub(crate) fn measure_on_device(&self, tensor: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
        let py = tensor.py();
        self.object(py).call_method1(intern!(py, "measure_on_device"), (tensor,))?.extract()
    }

    /// All statistics computed on accelerators since the last time, by ticket.
    pub(crate) fn fetch(&self, py: Python<'_>) -> PyResult<Vec<[DeviceNumber; 4]>> {
        self.object(py).call_method0(intern!(py, "fetch"))?.extract()
    }

    /// What sketches are made of, of all tensors that [`fetch`](Self::fetch) has statistics of, if asked before it.
    pub(crate) fn fetch_sketches(&self, py: Python<'_>) -> PyResult<Vec<DeviceSketch>> {
        self.object(py).call_method0(intern!(py, "fetch_sketches"))?.extract()
    }

    /// The frames of a stack as they are written, and whether it recomputes activations.
    pub(crate) fn describe_stack(&self, frame: &Bound<'_, PyAny>) -> PyResult<(Vec<String>, bool)> {
        let py = frame.py();
        self.object(py).call_method1(intern!(py, "describe_stack"), (frame,))?.extract()
    }

    /// Whether code is the way into what the framework has compiled.
    pub(crate) fn is_compiled_code(&self, code: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = code.py();
        self.object(py).call_method1(intern!(py, "is_compiled_code"), (code,))?.extract()
    }

    pub(crate) fn is_grad_enabled(&self, py: Python<'_>) -> PyResult<bool> {
        self.is_grad_enabled.bind(py).call0()?.extract()
    }

    /// Has `hook` called with the gradient of a tensor.
    pub(crate) fn register_hook(&self, tensor: &Bound<'_, PyAny>, hook: Bound<'_, PyAny>) -> PyResult<()> {
        let py = tensor.py();
        match &self.register_hook {
            Some(register) => register.bind(py).call1((tensor, hook))?,
            None => tensor.call_method1(intern!(py, "register_hook"), (hook,))?,
        };
        Ok(())
    }

    /// Whether a hook that was registered stays with its parameter.
    pub(crate) fn keeps_hooks(&self) -> bool {
        self.register_hook.is_some()
    }

    /// The number of the autograd node that runs in this thread; `None` if autograd does not.
    pub(crate) fn running_node(&self, py: Python<'_>) -> Option<u64> {
        let node = self.object(py).call_method0(intern!(py, "running_node"));
        // The largest number ends nothing.
        node.and_then(|node| node.extract()).unwrap_or(Some(u64::MAX))
    }

    /// A function returned its argument unchanged. Whether its gradient is taken care of.
    pub(crate) fn border(&self, tensor: &Bound<'_, PyAny>, api: usize, index: u64) -> PyResult<bool> {
        let py = tensor.py();
        let border = self.object(py).getattr(intern!(py, "border"))?;
        if border.is_none() { Ok(false) } else { border.call1((tensor, api, index))?.extract() }
    }

    /// Things to log: whether each is a warning, and its text.
    pub(crate) fn tell(&self, py: Python<'_>, notices: Vec<(bool, String)>) {
        if let Err(error) = self.object(py).call_method1(intern!(py, "tell"), (notices,)) {
            error.write_unraisable(py, None);
        }
    }

    /// Something could not be recorded.
    pub(crate) fn failed(&self, py: Python<'_>, phase: &str, name: &str, error: &PyErr) {
        let value = error.value(py);
        if let Err(error) = self.object(py).call_method1(intern!(py, "failed"), (phase, name, value)) {
            error.write_unraisable(py, None);
        }
    }
}

/// See [`Adapter::form`], and `msprobe.core.framework.Form` for what each means.
#[derive(FromPyObject)]
pub(crate) struct Form<'py> {
    pub(crate) plain: Option<Bound<'py, PyAny>>,
    pub(crate) shape: Vec<usize>,
    pub(crate) zeros: u64,
    pub(crate) whole: Option<Bound<'py, PyAny>>,
    pub(crate) too_large: Option<String>,
    pub(crate) layout: Option<String>,
    pub(crate) parts: Option<String>,
    pub(crate) unmeasured: Option<String>,
}

/// See [`Adapter::special`].
#[derive(FromPyObject)]
pub(crate) struct SpecialTensor<'py> {
    pub(crate) plain: Option<Bound<'py, PyAny>>,
    pub(crate) kind: String,
    pub(crate) mesh: Option<Vec<usize>>,
    pub(crate) placements: Vec<(String, Option<i64>, Option<String>)>,
}
