//! Python values as they are written: walks arguments and results and tells an [`Encoder`] about them.

use msprobe_collect::{
    ElementFigures, Encoded, Encoder, Form, LeafPlace, Measured, NumberStyle, Placement, PlacementKind,
    TensorValue,
};
use msprobe_tensor::{memory, on_this_thread};
use pyo3::exceptions::{PyMemoryError, PyRecursionError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use super::adapter::Kind;
use super::odd::OddTensor;
use super::session::Session;
use super::tensors::{HostTensor, Reading, measure_array};

/// Tensors of a value, and where their gradients belong.
pub(crate) type Leaves<'py> = Vec<(LeafPlace, Bound<'py, PyAny>)>;

/// Encodes values for one session.
pub(crate) struct Walk<'a> {
    pub(crate) session: &'a Session,
    pub(crate) encoder: Encoder,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(session: &'a Session, encoder: Encoder) -> Walk<'a> {
        Walk { session, encoder: encoder.with_format(session.collector.framework().tensor_format) }
    }

    /// All elements of a tuple, as a list.
    pub(crate) fn sequence(mut self, values: &Bound<'_, PyTuple>) -> PyResult<Encoded> {
        self.elements(values.iter())?;
        Ok(self.encoder.finish())
    }

    /// Values of any origin, as a list.
    pub(crate) fn values<'py>(
        mut self,
        values: impl Iterator<Item = Bound<'py, PyAny>>,
    ) -> PyResult<Encoded> {
        self.elements(values)?;
        Ok(self.encoder.finish())
    }

    /// What a call returned: a tuple of any kind is told as itself, anything else is a list of one.
    pub(crate) fn output(mut self, value: &Bound<'_, PyAny>) -> PyResult<Encoded> {
        if value.is_instance_of::<PyTuple>() {
            self.value(value, None)?;
        } else {
            self.elements(std::iter::once(value.clone()))?;
        }
        Ok(self.encoder.finish())
    }

    pub(crate) fn mapping(mut self, values: &Bound<'_, PyDict>) -> PyResult<Encoded> {
        if values.is_empty() {
            return Ok(Encoder::empty_map());
        }
        self.members(values)?;
        Ok(self.encoder.finish())
    }

    pub(crate) fn single(mut self, value: &Bound<'_, PyAny>) -> PyResult<Encoded> {
        self.value(value, None)?;
        Ok(self.encoder.finish())
    }

    /// The structure of a value with a place for each tensor that requires a gradient, and `null` for all else.
    pub(crate) fn structure<'py>(mut self, value: &Bound<'py, PyAny>) -> PyResult<(Encoded, Leaves<'py>)> {
        let mut leaves = Vec::new();
        self.leaves(value, &mut leaves)?;
        Ok((self.encoder.finish(), leaves))
    }

    fn elements<'py>(&mut self, values: impl Iterator<Item = Bound<'py, PyAny>>) -> PyResult<()> {
        self.encoder.begin_list().map_err(too_deep)?;
        for (index, value) in values.enumerate() {
            self.encoder.element(index);
            self.value(&value, None)?;
            self.encoder.leave();
        }
        self.encoder.end_list();
        Ok(())
    }

    fn members(&mut self, values: &Bound<'_, PyDict>) -> PyResult<()> {
        self.encoder.begin_map().map_err(too_deep)?;
        for (key, value) in values.iter() {
            self.member(&key, &value)?;
        }
        self.encoder.end_map();
        Ok(())
    }

    fn member(&mut self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let key = key_text(key)?;
        self.encoder.member(&key);
        self.value(value, Some(&key))?;
        self.encoder.leave();
        Ok(())
    }

    fn value(&mut self, value: &Bound<'_, PyAny>, key: Option<&str>) -> PyResult<()> {
        // A container of millions of values would go on for long.
        if memory::is_short() {
            return Err(PyMemoryError::new_err("out of memory"));
        }
        let kind = self.session.adapter.kind(value)?;
        // A value of these keys is told as what it means, not as what it is.
        if matches!(key, Some("dtype" | "device"))
            && matches!(
                kind,
                Kind::Bool
                    | Kind::Int
                    | Kind::Float
                    | Kind::Str
                    | Kind::DType
                    | Kind::Rare
                    | Kind::Slice
                    | Kind::Size
                    | Kind::Ellipsis
            )
        {
            return self.rare(value, key);
        }
        match kind {
            Kind::Null => self.encoder.json().null(),
            Kind::Bool | Kind::Int | Kind::Float | Kind::Str => self.scalar(value)?,
            Kind::Sequence => {
                let is_plain =
                    value.is_exact_instance_of::<PyTuple>() || value.is_exact_instance_of::<PyList>();
                let _unseen = if is_plain { None } else { Some(self.session.adapter.unseen(value.py())) };
                self.encoder.begin_list().map_err(too_deep)?;
                for (index, element) in value.try_iter()?.enumerate() {
                    self.encoder.element(index);
                    self.value(&element?, None)?;
                    self.encoder.leave();
                }
                self.encoder.end_list();
            }
            Kind::NamedTuple | Kind::Mapping | Kind::Dataclass => match value.cast::<PyDict>() {
                Ok(dict) if dict.is_exact_instance_of::<PyDict>() => self.members(dict)?,
                _ => {
                    let _unseen = self.session.adapter.unseen(value.py());
                    self.encoder.begin_map().map_err(too_deep)?;
                    for_members(value, kind, |key, element| self.member(key, &element))?;
                    self.encoder.end_map();
                }
            },
            Kind::Tensor => self.tensor(value, &Appearance::plain(self.session))?,
            Kind::SpecialTensor => self.special_tensor(value)?,
            Kind::Array => self.array(value)?,
            Kind::Size => {
                let sizes: Vec<i64> = value.extract()?;
                let json = self.encoder.json();
                json.begin_object();
                json.key("type");
                json.string(&self.session.collector.framework().size_type);
                json.key("value");
                json.begin_array();
                for size in sizes {
                    json.int(i128::from(size));
                }
                json.end_array();
                json.end_object();
            }
            Kind::DType => {
                let json = self.encoder.json();
                json.begin_object();
                json.end_object();
            }
            Kind::Ellipsis => {
                let json = self.encoder.json();
                json.begin_object();
                json.key("type");
                json.string("ellipsis");
                json.key("value");
                json.string("...");
                json.end_object();
            }
            Kind::Slice | Kind::Rare => self.rare(value, key)?,
        }
        Ok(())
    }

    fn scalar(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let class: String = value.get_type().name()?.extract()?;
        // Read before anything is written, so that a failure leaves no half of an object.
        let read = Scalar::read(value)?;
        if let Scalar::Float(value) = read {
            self.encoder.note_number(value);
        }
        let json = self.encoder.json();
        json.begin_object();
        json.key("type");
        json.string(&class);
        json.key("value");
        read.write(json);
        json.end_object();
        Ok(())
    }

    /// A value that the adapter tells.
    fn rare(&mut self, value: &Bound<'_, PyAny>, key: Option<&str>) -> PyResult<()> {
        let _unseen = self.session.adapter.unseen(value.py());
        let told = self.session.adapter.rare(value, key)?;
        self.plain(&told)
    }

    /// Plain dicts, lists and scalars from the adapter, written as they are. A tensor among them is encoded.
    fn plain(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        if value.is_none() {
            self.encoder.json().null();
        } else if let Ok(dict) = value.cast::<PyDict>() {
            self.encoder.begin_map().map_err(too_deep)?;
            for (key, element) in dict.iter() {
                self.encoder.member(&key_text(&key)?);
                self.plain(&element)?;
                self.encoder.leave();
            }
            self.encoder.end_map();
        } else if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
            self.encoder.begin_list().map_err(too_deep)?;
            for (index, element) in value.try_iter()?.enumerate() {
                self.encoder.element(index);
                self.plain(&element?)?;
                self.encoder.leave();
            }
            self.encoder.end_list();
        } else if matches!(self.session.adapter.kind(value)?, Kind::Tensor | Kind::SpecialTensor) {
            self.value(value, None)?;
        } else {
            let scalar = Scalar::read(value)?;
            scalar.write(self.encoder.json());
        }
        Ok(())
    }

    fn special_tensor(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let _unseen = self.session.adapter.unseen(value.py());
        let special = self.session.adapter.special(value)?;
        let placement = special.mesh.map(|device_mesh| Placement {
            device_mesh,
            placements: special
                .placements
                .into_iter()
                .map(|(kind, dim, reduce_op)| match (kind.as_str(), dim) {
                    ("Shard", Some(dim)) => PlacementKind::Shard(dim),
                    ("Replicate", _) => PlacementKind::Replicate,
                    _ => PlacementKind::Partial(reduce_op.unwrap_or(kind)),
                })
                .collect(),
        });
        let appearance = Appearance {
            kind: &special.kind,
            placement: placement.as_ref(),
            requires_grad: self.requires_grad(value, &Appearance::plain(self.session))?,
        };
        match special.plain {
            Some(plain) => self.tensor(&plain, &appearance),
            None => self.odd_tensor(value, &appearance),
        }
    }

    /// Whether a tensor requires a gradient, if records tell it.
    fn requires_grad(&self, value: &Bound<'_, PyAny>, appearance: &Appearance<'_>) -> PyResult<Option<bool>> {
        if !self.session.collector.framework().tells_autograd {
            return Ok(None);
        }
        match appearance.requires_grad {
            Some(known) => Ok(Some(known)),
            None => value.getattr(intern!(value.py(), "requires_grad"))?.extract(),
        }
    }

    fn tensor(&mut self, value: &Bound<'_, PyAny>, appearance: &Appearance<'_>) -> PyResult<()> {
        let session = self.session;
        let requires_grad = self.requires_grad(value, appearance)?;
        let saves = self.encoder.saves_now();
        match session.read(value, saves)? {
            Reading::Host(tensor) => {
                let measured = session.measure(value, &tensor)?;
                if saves {
                    let file = session.save(value.py(), &self.encoder.tensor_file(), &tensor)?;
                    self.encoder.note_file(file);
                }
                self.write_tensor(&tensor, appearance, requires_grad, ElementFigures::Known(&measured));
            }
            Reading::Deferred { tensor, ticket } => {
                self.write_tensor(&tensor, appearance, requires_grad, ElementFigures::Deferred(ticket));
            }
            Reading::Odd => self.odd_tensor(value, appearance)?,
        }
        Ok(())
    }

    /// A tensor whose elements do not lie in memory as they count: what the adapter makes of it is measured.
    fn odd_tensor(&mut self, value: &Bound<'_, PyAny>, appearance: &Appearance<'_>) -> PyResult<()> {
        let (session, py) = (self.session, value.py());
        let _unseen = session.adapter.unseen(py);
        let requires_grad = self.requires_grad(value, appearance)?;
        let dtype = session.dtype(value)?;
        let saves = self.encoder.saves_now();
        let checks = session.collector.wanted().crc32;
        let form = session.adapter.form(value, saves || checks)?;
        let measured = OddTensor { form: &form, saves, checks }.measure(session, &mut self.encoder, py)?;
        let is_incomplete = checks || self.encoder.may_save();
        let unmeasured = match &measured {
            Some(_) => form.too_large.as_deref().filter(|_| is_incomplete),
            // There may be no elements at all.
            None if form.plain.is_none() => form.unmeasured.as_deref(),
            None => Some("its elements cannot be reached"),
        };
        let nothing = Measured::unreadable();
        let (figures, stored) = match &measured {
            Some((figures, stored)) => (figures.as_figures(), Some(&*stored.name)),
            None => (ElementFigures::Known(&nothing), None),
        };
        self.encoder.tensor(&TensorValue {
            kind: appearance.kind,
            dtype: &dtype.name,
            shape: &form.shape,
            requires_grad,
            style: NumberStyle::Tensor,
            figures,
            placement: appearance.placement,
            form: Form {
                layout: form.layout.as_deref(),
                parts: form.parts.as_deref(),
                stored_dtype: stored.filter(|stored| **stored != *dtype.name),
                unmeasured,
            },
            is_saveable: measured.is_some() && form.too_large.is_none(),
        });
        Ok(())
    }

    fn write_tensor(
        &mut self,
        tensor: &HostTensor,
        appearance: &Appearance<'_>,
        requires_grad: Option<bool>,
        figures: ElementFigures<'_>,
    ) {
        self.encoder.tensor(&TensorValue {
            kind: appearance.kind,
            dtype: &tensor.dtype.name,
            shape: &tensor.shape,
            requires_grad,
            style: NumberStyle::Tensor,
            figures,
            placement: appearance.placement,
            form: Form::default(),
            is_saveable: true,
        });
    }

    fn array(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let session = self.session;
        let (array, dtype) = session.read_array(value)?;
        let measured = match &array {
            Some(array) => measure_array(value.py(), array)?,
            None => Measured::unreadable(),
        };
        let shape: Vec<usize> = value.getattr(intern!(value.py(), "shape"))?.extract()?;
        let unmeasured = array.is_none().then(|| format!("elements of {dtype} cannot be read"));
        let saves = self.encoder.saves_now();
        if let (true, Some(array)) = (saves, &array) {
            let view = array.view()?;
            let file = self.encoder.tensor_file();
            let saved = value.py().detach(|| on_this_thread(|| session.collector.save_tensor(&file, &view)));
            self.encoder.note_file(saved);
        }
        self.encoder.tensor(&TensorValue {
            kind: "numpy.ndarray",
            dtype: &dtype,
            shape: &shape,
            requires_grad: None,
            style: NumberStyle::Array,
            figures: ElementFigures::Known(&measured),
            placement: None,
            form: Form { unmeasured: unmeasured.as_deref(), ..Form::default() },
            is_saveable: array.is_some(),
        });
        Ok(())
    }

    fn leaves<'py>(&mut self, value: &Bound<'py, PyAny>, leaves: &mut Leaves<'py>) -> PyResult<()> {
        let py = value.py();
        match self.session.adapter.kind(value)? {
            Kind::Tensor | Kind::SpecialTensor
                if !self.session.collector.framework().tells_autograd
                    || value.getattr(intern!(py, "requires_grad"))?.extract::<bool>()? =>
            {
                leaves.push((self.encoder.leaf(), value.clone()));
            }
            Kind::Sequence => {
                self.encoder.begin_list().map_err(too_deep)?;
                for (index, element) in value.try_iter()?.enumerate() {
                    self.encoder.element(index);
                    self.leaves(&element?, leaves)?;
                    self.encoder.leave();
                }
                self.encoder.end_list();
            }
            kind @ (Kind::NamedTuple | Kind::Mapping | Kind::Dataclass) => {
                self.encoder.begin_map().map_err(too_deep)?;
                for_members(value, kind, |key, element| {
                    self.encoder.member(&key_text(key)?);
                    self.leaves(&element, leaves)?;
                    self.encoder.leave();
                    Ok(())
                })?;
                self.encoder.end_map();
            }
            _ => self.encoder.json().null(),
        }
        Ok(())
    }
}

/// Hands over what a value is told as: fields of a named tuple or dataclass by name, all else by its items.
pub(crate) fn for_members<'py>(
    value: &Bound<'py, PyAny>,
    kind: Kind,
    mut each: impl FnMut(&Bound<'py, PyAny>, Bound<'py, PyAny>) -> PyResult<()>,
) -> PyResult<()> {
    let py = value.py();
    match kind {
        Kind::NamedTuple => {
            let fields = value.getattr(intern!(py, "_fields"))?;
            for (field, element) in fields.try_iter()?.zip(value.try_iter()?) {
                each(&field?, element?)?;
            }
        }
        Kind::Dataclass => {
            let fields = value.getattr(intern!(py, "__dataclass_fields__"))?;
            for field in fields.try_iter()? {
                let field = field?;
                let element = value.getattr(field.cast::<PyString>()?)?;
                each(&field, element)?;
            }
        }
        _ => {
            for item in value.call_method0(intern!(py, "items"))?.try_iter()? {
                let (key, element): (Bound<'py, PyAny>, Bound<'py, PyAny>) = item?.extract()?;
                each(&key, element)?;
            }
        }
    }
    Ok(())
}

/// How a tensor is presented: as itself, or as the shard of another.
struct Appearance<'a> {
    kind: &'a str,
    placement: Option<&'a Placement>,
    requires_grad: Option<bool>,
}

impl<'a> Appearance<'a> {
    fn plain(session: &'a Session) -> Appearance<'a> {
        let kind = &session.collector.framework().tensor_type;
        Appearance { kind, placement: None, requires_grad: None }
    }
}

enum Scalar {
    Null,
    Bool(bool),
    Int(i128),
    /// An integer beyond 128 bits, in decimal digits.
    BigInt(String),
    Float(f64),
    Str(String),
}

impl Scalar {
    fn read(value: &Bound<'_, PyAny>) -> PyResult<Scalar> {
        if value.is_none() {
            Ok(Scalar::Null)
        } else if let Ok(value) = value.cast::<PyBool>() {
            Ok(Scalar::Bool(value.is_true()))
        } else if value.is_instance_of::<PyFloat>() {
            Ok(Scalar::Float(value.extract()?))
        } else if value.is_instance_of::<PyInt>() {
            match value.extract::<i64>() {
                Ok(small) => Ok(Scalar::Int(i128::from(small))),
                Err(_) => {
                    let builtin = value.py().get_type::<PyInt>();
                    let digits = builtin.call_method1(intern!(value.py(), "__repr__"), (value,))?;
                    Ok(Scalar::BigInt(digits.extract()?))
                }
            }
        } else if let Ok(text) = value.cast::<PyString>() {
            // Lone surrogates cannot be told in UTF-8.
            let utf8 = text.to_string_lossy().into_owned();
            Ok(Scalar::Str(utf8))
        } else {
            let class = value.get_type();
            Err(PyValueError::new_err(format!("a value of {class} cannot be written")))
        }
    }

    fn write(&self, json: &mut msprobe_dump::write::JsonText) {
        match self {
            Scalar::Null => json.null(),
            Scalar::Bool(value) => json.bool(*value),
            Scalar::Int(value) => json.int(*value),
            Scalar::BigInt(digits) => json.raw(digits),
            Scalar::Float(value) => json.float(*value),
            Scalar::Str(text) => json.string(text),
        }
    }
}

/// The key of a member, as Python's json writes it.
fn key_text(key: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(text) = key.cast::<PyString>() {
        return Ok(text.to_string_lossy().into_owned());
    }
    match Scalar::read(key) {
        Ok(Scalar::Null) => Ok("null".to_owned()),
        Ok(Scalar::Bool(value)) => Ok(value.to_string()),
        Ok(Scalar::Int(value)) => Ok(value.to_string()),
        _ => Ok(key.str()?.to_string_lossy().into_owned()),
    }
}

fn too_deep(error: msprobe_collect::TooDeep) -> PyErr {
    PyRecursionError::new_err(error.to_string())
}
