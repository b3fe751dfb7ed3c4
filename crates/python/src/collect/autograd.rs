//! What of PyTorch's autograd the gradient watch uses, found once (see `msprobe.pytorch.hooks.autograd`). Functions
//! that may be recorded are the bare ones, so nobody sees these calls.

use msprobe_dump::hash::FastMap;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};

use super::adapter::Entered;
use super::gradient_flow::Region;

/// The sequence number of every `AccumulateGrad`.
pub(crate) const ACCUMULATE: u64 = u64::MAX;

/// Functions and types by the names they have in the Python module.
#[derive(FromPyObject)]
pub(crate) struct Autograd {
    tensor: Py<PyType>,
    parameter: Py<PyType>,
    mapping: Py<PyAny>,
    strided: Py<PyAny>,
    is_grad_enabled: Py<PyAny>,
    no_grad: Py<PyAny>,
    unseen: Py<PyAny>,
    is_mode_enabled: Py<PyAny>,
    next_sequence: Py<PyAny>,
    task: Py<PyAny>,
    will_run: Py<PyAny>,
    is_view: Py<PyAny>,
    stride: Py<PyAny>,
    storage_offset: Py<PyAny>,
    add: Py<PyAny>,
    as_strided: Py<PyAny>,
    empty_strided: Py<PyAny>,
    copy: Py<PyAny>,
}

impl Autograd {
    pub(crate) fn is_grad_enabled(&self, py: Python<'_>) -> PyResult<bool> {
        self.is_grad_enabled.bind(py).call0()?.extract()
    }

    /// Until it is dropped, no graph is built.
    pub(crate) fn no_grad<'py>(&self, py: Python<'py>) -> PyResult<Option<Entered<'py>>> {
        Ok(if self.is_grad_enabled(py)? { Some(Entered::enter(self.no_grad.bind(py))) } else { None })
    }

    /// Until it is dropped, neither a mode nor a subclass sees what is asked of tensors.
    fn unseen<'py>(&self, py: Python<'py>) -> Entered<'py> {
        Entered::enter(self.unseen.bind(py))
    }

    fn is_mode_enabled(&self, py: Python<'_>) -> bool {
        self.is_mode_enabled.bind(py).call0().and_then(|is_on| is_on.extract()).unwrap_or(true)
    }

    /// The number the next node of this thread gets.
    pub(crate) fn next_sequence(&self, py: Python<'_>) -> PyResult<u64> {
        self.next_sequence.bind(py).call0()?.extract()
    }

    /// The number of the run of autograd in this thread.
    pub(crate) fn task(&self, py: Python<'_>) -> PyResult<i64> {
        self.task.bind(py).call0()?.extract()
    }

    pub(crate) fn will_run(&self, node: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.will_run.bind(node.py()).call1((node,))?.extract()
    }

    pub(crate) fn stride<'py>(&self, tensor: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.stride.bind(tensor.py()).call1((tensor,))
    }

    pub(crate) fn storage_offset(&self, tensor: &Bound<'_, PyAny>) -> PyResult<i64> {
        self.storage_offset.bind(tensor.py()).call1((tensor,))?.extract()
    }

    pub(crate) fn add<'py>(
        &self,
        one: &Bound<'py, PyAny>,
        other: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.add.bind(one.py()).call1((one, other))
    }

    pub(crate) fn as_strided<'py>(
        &self,
        tensor: &Bound<'py, PyAny>,
        size: &Py<PyAny>,
        stride: &Py<PyAny>,
        offset: i64,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.as_strided.bind(tensor.py()).call1((tensor, size, stride, offset))
    }

    /// A tensor of the same dtype on the same device.
    pub(crate) fn empty_strided_like<'py>(
        &self,
        size: &Py<PyAny>,
        stride: &Py<PyAny>,
        like: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = like.py();
        let options = PyDict::new(py);
        for name in [intern!(py, "dtype"), intern!(py, "device")] {
            options.set_item(name, like.getattr(name)?)?;
        }
        self.empty_strided.bind(py).call((size, stride), Some(&options))
    }

    pub(crate) fn copy<'py>(
        &self,
        into: &Bound<'py, PyAny>,
        from: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.copy.bind(into.py()).call1((into, from))
    }

    /// For a view: the node and output number of its base, and where in it the view lies.
    pub(crate) fn in_base<'py>(
        &self,
        tensor: &Bound<'py, PyAny>,
    ) -> PyResult<Option<(Bound<'py, PyAny>, usize, Region)>> {
        let py = tensor.py();
        if !self.is_view.bind(py).call1((tensor,))?.extract::<bool>()? {
            return Ok(None);
        }
        let base = tensor.getattr(intern!(py, "_base"))?;
        let _unseen = if self.is_plain(&base) { None } else { Some(self.unseen(py)) };
        let node = base.getattr(intern!(py, "grad_fn"))?;
        let dtype = intern!(py, "dtype");
        if node.is_none()
            || !base.getattr(dtype)?.is(&tensor.getattr(dtype)?)
            || !tensor.getattr(intern!(py, "layout"))?.is(&self.strided)
        {
            return Ok(None);
        }
        let shape = intern!(py, "shape");
        let region = Region {
            size: tensor.getattr(shape)?.unbind(),
            stride: self.stride(tensor)?.unbind(),
            offset: self.storage_offset(tensor)? - self.storage_offset(&base)?,
            base_size: base.getattr(shape)?.unbind(),
            base_stride: self.stride(&base)?.unbind(),
        };
        Ok(Some((node, output_number(&base)?, region)))
    }

    /// The tensors that require gradients among (nested) sequences and mappings, in order; and what keeps questions
    /// about them from being seen, where somebody would.
    pub(crate) fn flatten<'py>(&self, value: &Bound<'py, PyAny>) -> PyResult<Flat<'py>> {
        let py = value.py();
        let unseen = if self.is_mode_enabled(py) { Some(self.unseen(py)) } else { None };
        let mut flat = Flat { tensors: Vec::new(), unseen };
        self.flatten_into(value, &mut flat)?;
        Ok(flat)
    }

    /// Of a class that is not told what is asked of its tensors.
    fn is_plain(&self, tensor: &Bound<'_, PyAny>) -> bool {
        let class = tensor.get_type();
        class.is(&self.tensor) || class.is(&self.parameter)
    }

    fn flatten_into<'py>(&self, value: &Bound<'py, PyAny>, flat: &mut Flat<'py>) -> PyResult<()> {
        let py = value.py();
        let is_plain = self.is_plain(value);
        let mut hide = |is_plain: bool| {
            if !is_plain && flat.unseen.is_none() {
                flat.unseen = Some(self.unseen(py));
            }
        };
        if is_plain || value.is_instance(self.tensor.bind(py))? {
            hide(is_plain);
            if value.getattr(intern!(py, "requires_grad"))?.extract::<bool>()? {
                flat.tensors.push(value.clone());
            }
        } else if value.is_none()
            || value.is_exact_instance_of::<PyBool>()
            || value.is_exact_instance_of::<PyInt>()
            || value.is_exact_instance_of::<PyFloat>()
            || value.is_exact_instance_of::<PyString>()
        {
        } else if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
            hide(value.is_exact_instance_of::<PyList>() || value.is_exact_instance_of::<PyTuple>());
            for item in value.try_iter()? {
                self.flatten_into(&item?, flat)?;
            }
        } else if value.is_instance(self.mapping.bind(py))? {
            hide(value.is_exact_instance_of::<PyDict>());
            for item in value.call_method0(intern!(py, "values"))?.try_iter()? {
                self.flatten_into(&item?, flat)?;
            }
        }
        Ok(())
    }
}

/// See [`Autograd::flatten`].
pub(crate) struct Flat<'py> {
    pub(crate) tensors: Vec<Bound<'py, PyAny>>,
    unseen: Option<Entered<'py>>,
}

/// The output of its node that a tensor is.
pub(crate) fn output_number(tensor: &Bound<'_, PyAny>) -> PyResult<usize> {
    tensor.getattr(intern!(tensor.py(), "output_nr"))?.extract()
}

/// Nodes are numbered as they are made.
pub(crate) fn sequence_number(node: &Bound<'_, PyAny>) -> PyResult<u64> {
    node.call_method0(intern!(node.py(), "_sequence_nr"))?.extract()
}

/// Values by object, in the order in which the objects came. The values keep their objects alive.
pub(crate) struct Ordered<V> {
    places: FastMap<usize, usize>,
    pub(crate) values: Vec<V>,
}

impl<V> Default for Ordered<V> {
    fn default() -> Ordered<V> {
        Ordered { places: FastMap::default(), values: Vec::new() }
    }
}

impl<V> Ordered<V> {
    pub(crate) fn entry(&mut self, object: &Bound<'_, PyAny>, new: impl FnOnce() -> V) -> &mut V {
        let place = *self.places.entry(object.as_ptr() as usize).or_insert_with(|| {
            self.values.push(new());
            self.values.len() - 1
        });
        &mut self.values[place]
    }

    pub(crate) fn get(&self, object: *mut pyo3::ffi::PyObject) -> Option<&V> {
        self.places.get(&(object as usize)).map(|&place| &self.values[place])
    }

    pub(crate) fn get_mut(&mut self, object: *mut pyo3::ffi::PyObject) -> Option<&mut V> {
        self.places.get(&(object as usize)).map(|&place| &mut self.values[place])
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}
