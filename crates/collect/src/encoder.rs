//! Values of a call as they are written: the caller walks its objects and tells each one to an [`Encoder`].

use msprobe_dump::names::{Category, TensorFormat};
use msprobe_dump::write::{JsonText, SavedFile, tensor_file_name};

use crate::fragment::{Fragment, MEMBER_DEPTH, RECORD_DEPTH};
use crate::health::{Findings, Health, Part};
use crate::measure::{Measured, NumberStyle, write_statistics};

/// Containers may be nested this deep; beyond it the value is refused.
pub const MAX_DEPTH: usize = 50;

/// Enough for the arguments of most calls, so that text is not moved while it grows.
const USUAL_BYTES: usize = 1536;

/// A value nested deeper than [`MAX_DEPTH`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("containers nested more than {MAX_DEPTH} levels deep")]
pub struct TooDeep;

/// Whether the tensors of a record are written to files of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Saving {
    /// No.
    Never,
    /// Yes, at once.
    Now,
    /// Only if the record turns out to overflow.
    IfOverflow,
}

/// What is known of a tensor's elements.
#[derive(Debug, Clone, Copy)]
pub enum ElementFigures<'a> {
    /// Everything that is asked for.
    Known(&'a Measured),
    /// An accelerator is still computing; the ticket is the caller's.
    Deferred(usize),
}

/// A tensor as it is described in a record.
#[derive(Debug)]
pub struct TensorValue<'a> {
    /// Its type: the framework's word for a tensor, or `numpy.ndarray`.
    pub kind: &'a str,
    /// The name of its dtype, as its framework writes it.
    pub dtype: &'a str,
    /// Its sizes.
    pub shape: &'a [usize],
    /// Whether it requires a gradient; arrays have no such thing.
    pub requires_grad: Option<bool>,
    /// How numbers are written.
    pub style: NumberStyle,
    /// Statistics, checksum and sketch.
    pub figures: ElementFigures<'a>,
    /// Where the elements of a distributed tensor lie: its mesh and placements, encoded by
    /// [`Encoder::placement`].
    pub placement: Option<&'a Placement>,
    /// What is odd about it.
    pub form: Form<'a>,
    /// Whether the elements can be written to a file.
    pub is_saveable: bool,
}

/// What there is to say of a tensor whose elements do not lie in memory as they count. Nothing, for most.
#[derive(Debug, Clone, Copy, Default)]
pub struct Form<'a> {
    /// How they are kept: sparse, nested, the class of a wrapper.
    pub layout: Option<&'a str>,
    /// The shapes of the parts of a nested tensor, as JSON.
    pub parts: Option<&'a str>,
    /// The dtype of what was measured, where it is another.
    pub stored_dtype: Option<&'a str>,
    /// Why statistics, checksum or file are missing.
    pub unmeasured: Option<&'a str>,
}

/// How a distributed tensor is spread over its devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// Ranks of the device mesh.
    pub device_mesh: Vec<usize>,
    /// One entry per mesh dimension.
    pub placements: Vec<PlacementKind>,
}

/// One dimension of a placement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlacementKind {
    /// Split along a dimension of the tensor.
    Shard(i64),
    /// The same everywhere.
    Replicate,
    /// To be reduced.
    Partial(String),
}

/// Encodes one value (of a call: all positional arguments, say) and finds names for its tensors.
#[derive(Debug)]
pub struct Encoder {
    json: JsonText,
    fragment: Fragment,
    depth: usize,
    levels: usize,
    /// The part of tensor names before the path.
    stem: String,
    /// Dotted path of the place now.
    path: String,
    path_ends: Vec<usize>,
    saving: Saving,
    tensor_format: TensorFormat,
    findings: Findings,
    unmeasured: Vec<(String, String)>,
    leaves: usize,
    /// The file of the tensor that is told next.
    file: Option<SavedFile>,
}

impl Encoder {
    /// For a member of a record: `name` is the record's. Names of tensors start with it and the category.
    pub fn for_member(name: &str, category: Category, saving: Saving) -> Encoder {
        Encoder::new(MEMBER_DEPTH, format!("{name}.{}", category.as_str()), saving)
    }

    /// For one element of a member that is a list.
    pub fn for_element(name: &str, category: Category, position: usize, saving: Saving) -> Encoder {
        Encoder::new(MEMBER_DEPTH + 1, format!("{name}.{}.{position}", category.as_str()), saving)
    }

    /// For the gradient of a parameter, which lies in a list: `name` is that of the record.
    pub fn for_gradient(name: &str, parameter: &str, saving: Saving) -> Encoder {
        Encoder::new(MEMBER_DEPTH + 1, format!("{name}.{parameter}"), saving)
    }

    /// For a saved variable.
    pub fn for_variable(name: &str, saving: Saving) -> Encoder {
        Encoder::new(RECORD_DEPTH, name.to_owned(), saving)
    }

    /// A map without members, without the way there: most calls have no keyword arguments.
    pub fn empty_map() -> Encoded {
        Encoded { fragment: Fragment::plain("{}".to_owned()), ..Encoded::default() }
    }

    fn new(depth: usize, stem: String, saving: Saving) -> Encoder {
        Encoder {
            json: JsonText::with_capacity(depth, USUAL_BYTES),
            fragment: Fragment::default(),
            depth,
            levels: 0,
            stem,
            path: String::new(),
            path_ends: Vec::new(),
            saving,
            tensor_format: TensorFormat::Npy,
            findings: Findings::default(),
            unmeasured: Vec::new(),
            leaves: 0,
            file: None,
        }
    }

    /// At the leaf of another value: continues its path, at its depth.
    pub fn at_leaf(name: &str, place: &LeafPlace, saving: Saving) -> Encoder {
        let mut encoder = Encoder::new(place.depth, name.to_owned(), saving);
        encoder.path.push_str(&place.path);
        encoder
    }

    /// With tensor files in a framework's own format instead of numpy's.
    #[must_use]
    pub fn with_format(mut self, tensor_format: TensorFormat) -> Encoder {
        self.tensor_format = tensor_format;
        self
    }

    /// Whether tensors are to be saved now.
    pub fn saves_now(&self) -> bool {
        self.saving == Saving::Now
    }

    /// Whether tensors are saved now, or may be.
    pub fn may_save(&self) -> bool {
        self.saving != Saving::Never
    }

    /// The file name of a tensor at the place now, the same in the record and on disk.
    pub fn tensor_file(&self) -> String {
        tensor_file_name(format!("{}{}.{}", self.stem, self.path, self.tensor_format))
    }

    /// The tensor that is told next is being saved: its record is not shown before it is known what became of the file.
    pub fn note_file(&mut self, file: SavedFile) {
        self.file = Some(file);
    }

    /// A list begins. Each element is announced by [`Encoder::element`].
    pub fn begin_list(&mut self) -> Result<(), TooDeep> {
        self.enter()?;
        self.json.begin_array();
        Ok(())
    }

    /// The list ends.
    pub fn end_list(&mut self) {
        self.json.end_array();
        self.levels -= 1;
    }

    /// A map begins. Each member is announced by [`Encoder::member`].
    pub fn begin_map(&mut self) -> Result<(), TooDeep> {
        self.enter()?;
        self.json.begin_object();
        Ok(())
    }

    /// The map ends.
    pub fn end_map(&mut self) {
        self.json.end_object();
        self.levels -= 1;
    }

    fn enter(&mut self) -> Result<(), TooDeep> {
        if self.levels >= MAX_DEPTH {
            return Err(TooDeep);
        }
        self.levels += 1;
        Ok(())
    }

    /// An element of a list follows; [`Encoder::leave`] comes after its value.
    pub fn element(&mut self, index: usize) {
        use std::fmt::Write as _;
        self.path_ends.push(self.path.len());
        let _ = write!(self.path, ".{index}");
    }

    /// A member of a map follows; [`Encoder::leave`] comes after its value.
    pub fn member(&mut self, key: &str) {
        self.json.key(key);
        self.path_ends.push(self.path.len());
        self.path.push('.');
        self.path.push_str(key);
    }

    /// The element or member is told.
    pub fn leave(&mut self) {
        if let Some(end) = self.path_ends.pop() {
            self.path.truncate(end);
        }
    }

    /// A value that is written as it is.
    pub fn json(&mut self) -> &mut JsonText {
        &mut self.json
    }

    /// A number that is no tensor, as it was given; it is written by [`Encoder::json`].
    pub fn note_number(&mut self, value: f64) {
        self.findings.note_number(value);
    }

    /// A place whose value comes later, `null` until then. Returns what is needed to fill it.
    pub fn leaf(&mut self) -> LeafPlace {
        let index = self.leaves;
        self.leaves += 1;
        // An empty raw value keeps the separators right; the hole sits where it is.
        self.json.raw("");
        self.fragment.push_leaf_hole(self.json.len(), index);
        LeafPlace { index, path: self.path.clone(), depth: self.depth + self.levels }
    }

    /// A tensor.
    pub fn tensor(&mut self, tensor: &TensorValue<'_>) {
        let depth = self.depth + self.levels;
        let json = &mut self.json;
        json.begin_object();
        json.key("type");
        json.string(tensor.kind);
        json.key("dtype");
        json.string(tensor.dtype);
        json.key("shape");
        json.begin_array();
        for &size in tensor.shape {
            json.int(size as i128);
        }
        json.end_array();
        let (crc32, sketch) = match tensor.figures {
            ElementFigures::Known(measured) => {
                let health = Health::of(&measured.stats);
                if health > Health::Finite {
                    self.findings.note(Part::of(&self.path), health);
                }
                write_statistics(json, &measured.stats, tensor.style, tensor.shape.is_empty());
                (measured.crc32, measured.sketch)
            }
            ElementFigures::Deferred(ticket) => {
                self.fragment.push_statistics_hole(json.len(), ticket, depth, Part::of(&self.path));
                (None, None)
            }
        };
        if let Some(requires_grad) = tensor.requires_grad {
            json.key("requires_grad");
            json.bool(requires_grad);
        }
        if let Some(placement) = tensor.placement {
            write_placement(json, placement);
        }
        write_form(json, &tensor.form);
        if let Some(reason) = tensor.form.unmeasured {
            self.findings.note_unmeasured();
            self.unmeasured.push((format!("{}{}", self.stem, self.path), reason.to_owned()));
        }
        if let Some(crc32) = crc32 {
            json.key("md5");
            json.string(&format!("{crc32:08x}"));
        }
        if let Some(sketch) = sketch {
            json.key("sketch");
            json.string(sketch.as_str());
        }
        if let ElementFigures::Deferred(ticket) = tensor.figures {
            self.fragment.push_sketch_hole(json.len(), ticket, depth);
        }
        if tensor.is_saveable {
            match self.saving {
                Saving::Never => {}
                Saving::Now => {
                    let name = self.tensor_file();
                    self.json.key("data_name");
                    let at = self.json.len();
                    self.json.string(&name);
                    let file = self.file.take();
                    let file = file.unwrap_or_else(|| SavedFile::unwritten("the tensor was not saved"));
                    self.fragment.push_file(at, self.json.len() - at, file);
                }
                Saving::IfOverflow => {
                    let name = self.tensor_file();
                    self.fragment.push_name_hole(self.json.len(), name, depth);
                }
            }
        }
        self.json.end_object();
    }

    /// The value, and whether any tensor in it was found to overflow.
    pub fn finish(self) -> Encoded {
        let text = self.json.finish();
        Encoded {
            fragment: self.fragment.with_text(text),
            findings: self.findings,
            unmeasured: self.unmeasured,
            leaves: self.leaves,
        }
    }
}

/// A place in a value that is filled later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeafPlace {
    /// Its number in the value, from 0.
    pub index: usize,
    path: String,
    depth: usize,
}

/// A finished value.
#[derive(Debug, Clone, Default)]
pub struct Encoded {
    pub(crate) fragment: Fragment,
    /// How its tensors are.
    pub(crate) findings: Findings,
    /// Names of tensors that were not measured, and why not.
    pub(crate) unmeasured: Vec<(String, String)>,
    pub(crate) leaves: usize,
}

impl Encoded {
    /// Whether a tensor in it is NaN or infinite somewhere.
    pub fn overflows(&self) -> bool {
        self.findings.overflows()
    }
}

fn write_form(json: &mut JsonText, form: &Form<'_>) {
    for (key, text) in [("layout", form.layout), ("stored_dtype", form.stored_dtype)] {
        if let Some(text) = text {
            json.key(key);
            json.string(text);
        }
    }
    if let Some(parts) = form.parts {
        json.key("parts");
        json.raw(parts);
    }
    if let Some(reason) = form.unmeasured {
        json.key("unmeasured");
        json.string(reason);
    }
}

fn write_placement(json: &mut JsonText, placement: &Placement) {
    json.key("device_mesh");
    json.begin_array();
    for &rank in &placement.device_mesh {
        json.int(rank as i128);
    }
    json.end_array();
    json.key("placements");
    json.begin_array();
    for kind in &placement.placements {
        json.begin_object();
        match kind {
            PlacementKind::Shard(dim) => {
                json.key("Shard");
                json.begin_object();
                json.key("dim");
                json.int(i128::from(*dim));
                json.end_object();
            }
            PlacementKind::Replicate => {
                json.key("Replicate");
                json.begin_object();
                json.end_object();
            }
            PlacementKind::Partial(reduce_op) => {
                json.key("Partial");
                json.begin_object();
                json.key("reduce_op");
                json.string(reduce_op);
                json.end_object();
            }
        }
        json.end_object();
    }
    json.end_array();
}
