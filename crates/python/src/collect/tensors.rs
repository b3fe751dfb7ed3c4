//! Tensors of the framework where they lie: a handful of attribute reads, no copy.

use msprobe_collect::{Measured, Wanted, measure};
use msprobe_dump::write::SavedFile;
use msprobe_tensor::{
    DType, Endian, TensorView, crc32, crc32_of_bytes, on_this_thread, sketch_width, with_crew,
};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::adapter::KnownDType;
use super::session::Session;
use super::shared::Memory;
use crate::tensor::Described;

/// Below this many elements, letting other Python threads run costs more than measuring.
const DETACH_ELEMENTS: usize = 16 << 10;
/// From here on several threads of ours measure, where the framework's own cannot be had. Below it those, which wait for
/// the next operation by spinning, would be in the way.
const PARALLEL_ELEMENTS: usize = 8 << 20;
/// Below this many elements, looking up what was measured before costs more than measuring.
const SHARE_ELEMENTS: usize = 4 << 10;

/// What a tensor says about itself.
pub(crate) struct HostTensor {
    pub(crate) dtype: KnownDType,
    pub(crate) shape: Vec<usize>,
    strides: Vec<isize>,
    address: usize,
    /// Keeps the memory, where it is not the caller's own tensor.
    _owner: Option<Py<PyAny>>,
}

/// How the elements of a tensor can be had.
pub(crate) enum Reading {
    /// They are in host memory.
    Host(HostTensor),
    /// An accelerator is computing their statistics.
    Deferred {
        /// Without an address.
        tensor: HostTensor,
        /// What to ask for later.
        ticket: usize,
    },
    /// They do not lie in memory as they count, or not at all: the adapter knows more.
    Odd,
}

impl HostTensor {
    pub(crate) fn numel(&self) -> usize {
        self.shape.iter().product()
    }

    /// Borrows the memory. The tensor is an argument of the running hook or owned by `self`, so it outlives this.
    pub(crate) fn view(&self) -> PyResult<TensorView<'_>> {
        let dtype = self.known_dtype()?;
        // Strides of a framework are never negative here, so memory begins at the address.
        let reach: usize = self
            .shape
            .iter()
            .zip(&self.strides)
            .map(|(&size, &stride)| (size - 1) * stride.unsigned_abs())
            .sum();
        let len_bytes = (reach + 1) * dtype.size_bytes();
        let (shape, strides) = (self.shape.clone(), self.strides.clone());
        let address = self.address as *const u8;
        // SAFETY: the address is that of the first element and was read a moment ago from a tensor that is kept
        // alive by the caller's arguments; sizes and strides are the tensor's own.
        #[allow(unsafe_code, reason = "memory of another library")]
        let view =
            unsafe { TensorView::from_raw(dtype, shape, strides, address, len_bytes, 0, Endian::Little) };
        view.map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// The checksum of the elements.
    pub(crate) fn checksum(&self, py: Python<'_>) -> PyResult<u32> {
        if self.numel() == 0 {
            return Ok(crc32_of_bytes(&[]));
        }
        let view = self.view()?;
        Ok(py.detach(|| crc32(&view)))
    }

    fn known_dtype(&self) -> PyResult<DType> {
        let name = &self.dtype.name;
        self.dtype
            .dtype
            .ok_or_else(|| PyValueError::new_err(format!("the elements of {name} cannot be read")))
    }
}

impl Session {
    /// Reads where a tensor is. A tensor elsewhere is brought to the host if its elements are needed (`saves`, or
    /// checksums, or a decision now); otherwise its accelerator is asked for the statistics.
    pub(crate) fn read(&self, tensor: &Bound<'_, PyAny>, saves: bool) -> PyResult<Reading> {
        let py = tensor.py();
        let dtype = self.dtype(tensor)?;
        // Nested tensors have no shape and say so by raising.
        let shape = tensor.getattr(intern!(py, "shape")).and_then(|shape| int_tuple(&shape));
        let (Some(_), Ok(shape)) = (dtype.dtype, shape) else { return Ok(Reading::Odd) };
        let outline =
            |dtype, shape| HostTensor { dtype, shape, strides: Vec::new(), address: 0, _owner: None };
        if shape.contains(&0) {
            return Ok(empty(dtype, shape));
        }
        if !self.collector.framework().tells_places {
            return self.read_copy(tensor, dtype, shape);
        }
        if !tensor.getattr(intern!(py, "is_cpu"))?.extract::<bool>()? {
            if !saves
                && !self.decides_at_once
                && let Some(ticket) = self.adapter.measure_on_device(tensor)?
            {
                return Ok(Reading::Deferred { tensor: outline(dtype, shape), ticket });
            }
            return self.read_copy(tensor, dtype, shape);
        }
        let lazily = |name: &Py<PyAny>| name.bind(py).call1((tensor,))?.extract::<bool>();
        let is_complex = matches!(dtype.dtype, Some(DType::C64 | DType::C128));
        if lazily(&self.adapter.is_neg)? || (is_complex && lazily(&self.adapter.is_conj)?) {
            return self.read_copy(tensor, dtype, shape);
        }
        Ok(self.read_host(tensor, dtype, shape, None))
    }

    fn read_copy(
        &self,
        tensor: &Bound<'_, PyAny>,
        dtype: KnownDType,
        shape: Vec<usize>,
    ) -> PyResult<Reading> {
        let Some(copy) = self.adapter.on_host(tensor)? else { return Ok(Reading::Odd) };
        // What cannot be read as it is was made wider; its name stays.
        let dtype = KnownDType { dtype: self.dtype(&copy)?.dtype, ..dtype };
        Ok(self.read_host(&copy, dtype, shape, Some(copy.clone().unbind())))
    }

    fn read_host(
        &self,
        tensor: &Bound<'_, PyAny>,
        dtype: KnownDType,
        shape: Vec<usize>,
        owner: Option<Py<PyAny>>,
    ) -> Reading {
        let py = tensor.py();
        // Sparse and functional tensors have no memory of their own to point at, and say so by raising.
        let address = self.adapter.data_ptr.bind(py).call1((tensor,)).and_then(|address| address.extract());
        let strides = self.adapter.stride.bind(py).call1((tensor,)).and_then(|strides| int_tuple(&strides));
        match (address, strides) {
            (Ok(address), Ok(strides)) if address != 0 => {
                Reading::Host(HostTensor { dtype, shape, strides, address, _owner: owner })
            }
            _ => Reading::Odd,
        }
    }

    pub(crate) fn dtype(&self, tensor: &Bound<'_, PyAny>) -> PyResult<KnownDType> {
        self.adapter.dtype(&tensor.getattr(intern!(tensor.py(), "dtype"))?)
    }

    /// The figures of a tensor, from before if it has not changed since.
    pub(crate) fn measure(&self, object: &Bound<'_, PyAny>, tensor: &HostTensor) -> PyResult<Measured> {
        let numel = tensor.numel();
        let view = if numel == 0 { empty_view(tensor.known_dtype()?)? } else { tensor.view()? };
        let measured = self.measure_view(object, tensor, &view);
        Ok(if self.collector.framework().measures_singles { measured.as_singles(&view) } else { measured })
    }

    fn measure_view(
        &self,
        object: &Bound<'_, PyAny>,
        tensor: &HostTensor,
        view: &TensorView<'_>,
    ) -> Measured {
        let numel = tensor.numel();
        let wanted = self.collector.wanted();
        if numel < SHARE_ELEMENTS {
            return measure(view, wanted);
        }
        let in_order = view.in_memory_order();
        // Where elements are brought to the host, nobody says whether they have changed.
        let is_own = self.collector.framework().tells_places;
        let memory = in_order.as_bytes().filter(|_| is_own).map(|bytes| Memory {
            address: tensor.address,
            dtype: view.dtype(),
            bytes,
            is_row_major: view.is_row_major(),
            width: if wanted.sketch { sketch_width(view.shape()) } else { 0 },
        });
        let known = memory.and_then(|memory| self.shared.find(object, memory, &self.adapter.data_ptr));
        if let Some(measured) = known.filter(|known| known.has(wanted)) {
            return measured;
        }
        let find = || match known {
            Some(known) => known.completed(view, wanted),
            None => measure(view, wanted),
        };
        let measured =
            if numel < DETACH_ELEMENTS { find() } else { object.py().detach(|| self.with_help(numel, find)) };
        if let Some(memory) = memory {
            self.shared.keep(object, memory, &measured);
        }
        measured
    }

    /// Goes through so many elements with whoever can help: never threads of the whole process, which a forked child lacks.
    fn with_help<T: Send>(&self, numel: usize, work: impl FnOnce() -> T + Send) -> T {
        if let Some(crew) = self.crew.for_elements(numel) {
            with_crew(crew, work)
        } else if numel < PARALLEL_ELEMENTS {
            on_this_thread(work)
        } else {
            self.threads.install(work)
        }
    }

    /// Hands a tensor to the writers of files, which go through it before this returns.
    pub(crate) fn save(&self, py: Python<'_>, file: &str, tensor: &HostTensor) -> PyResult<SavedFile> {
        let view = if tensor.numel() == 0 { None } else { Some(tensor.view()?) };
        Ok(match view {
            Some(view) => {
                py.detach(|| self.with_help(tensor.numel(), || self.collector.save_tensor(file, &view)))
            }
            None => {
                let view = TensorView::contiguous(tensor.known_dtype()?, tensor.shape.clone(), &[])
                    .map_err(|error| PyValueError::new_err(error.to_string()))?;
                self.collector.save_tensor(file, &view)
            }
        })
    }

    /// A numpy array, if its elements can be read, and the name of its dtype.
    pub(crate) fn read_array(&self, array: &Bound<'_, PyAny>) -> PyResult<(Option<Described>, String)> {
        let py = array.py();
        let name = array.getattr(intern!(py, "dtype"))?.str()?.to_string();
        let described = self.describe.bind(py).call1((array,))?.extract::<Described>()?;
        let readable = described.view().is_ok();
        Ok((readable.then_some(described), name))
    }
}

/// The figures of an array.
pub(crate) fn measure_array(py: Python<'_>, array: &Described) -> PyResult<Measured> {
    let view = array.view()?;
    Ok(py.detach(|| measure(&view, Wanted::default())))
}

/// A tensor without elements, which may have no memory either.
fn empty(dtype: KnownDType, shape: Vec<usize>) -> Reading {
    let strides = vec![0; shape.len()];
    let address = std::ptr::NonNull::<u64>::dangling().as_ptr() as usize;
    Reading::Host(HostTensor { dtype, shape, strides, address, _owner: None })
}

fn empty_view(dtype: DType) -> PyResult<TensorView<'static>> {
    TensorView::contiguous(dtype, vec![0], &[]).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// A tuple of integers, which is what sizes and strides are.
fn int_tuple<'py, T>(value: &Bound<'py, PyAny>) -> PyResult<Vec<T>>
where
    T: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
{
    let tuple = value.cast::<PyTuple>()?;
    let mut numbers = Vec::with_capacity(tuple.len());
    for number in tuple.iter() {
        numbers.push(number.extract()?);
    }
    Ok(numbers)
}
