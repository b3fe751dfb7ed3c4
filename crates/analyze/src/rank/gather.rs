//! What is kept of one record, gathered while it is read.

use std::borrow::Cow;
use std::hash::Hasher as _;

use msprobe_dump::hash::FastHasher;
use msprobe_dump::model::{Place, RecordText, Section, Segment, Statistic, Value, Visitor, Written};
use msprobe_dump::names::{ModulePass, RecordName, is_of_communication};
use msprobe_dump::read::{PullError, Shape};
use msprobe_tensor::DType;

use super::Unmeasured;
use crate::communication::{BatchItem, Communication, RankArgument, is_communication};
use crate::record::{Argument, BadTensor, Kinds, Record, Role, Sums};

/// A tensor as its record describes it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TensorFacts<'a> {
    /// Type of its elements, if it is one we know.
    pub dtype: Option<DType>,
    /// Elements, by its shape; none if that was not recorded.
    pub elements: Option<u64>,
    /// Largest value.
    pub max: Option<f64>,
    /// Smallest value.
    pub min: Option<f64>,
    /// Mean.
    pub mean: Option<f64>,
    /// L2 norm.
    pub norm: Option<f64>,
    /// The name of its file.
    pub data_name: Option<&'a str>,
}

/// Where a tensor stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TensorPlace<'a> {
    /// Index of its record.
    pub record: usize,
    /// The record's name.
    pub name: &'a str,
    /// What it is of the record.
    pub role: Role,
    /// Its number among the tensors of that role.
    pub index: usize,
}

/// Is shown every tensor of a dump.
pub trait TensorWatch {
    /// A tensor.
    fn see(&mut self, place: TensorPlace<'_>, tensor: &TensorFacts<'_>);
}

/// Looks at nothing.
impl TensorWatch for () {
    fn see(&mut self, _: TensorPlace<'_>, _: &TensorFacts<'_>) {}
}

/// A tensor that names a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamedFile {
    pub(super) role: Role,
    /// Its number among the tensors of that role.
    pub(super) index: u32,
    pub(super) data_name: Box<str>,
}

/// A record, what of it was not measured, and the files it names.
pub(super) struct ReadRecord {
    pub(super) index: usize,
    pub(super) record: Record,
    pub(super) unmeasured: Unmeasured,
    pub(super) files: Vec<NamedFile>,
}

/// Reads a record; `index` is its number.
pub(super) fn read_record(
    text: &mut RecordText<'_, '_>,
    index: usize,
    watch: &mut dyn TensorWatch,
) -> Result<ReadRecord, PullError> {
    let name = text.name;
    let record_name = RecordName::parse(name);
    let is_forward_of_module =
        record_name.module().is_some_and(|module| matches!(module.pass(), ModulePass::Forward(_)));
    let mut gather = Gather {
        name,
        index,
        watch,
        is_forward_of_module,
        seen: [0; 3],
        record: Record { name: name.into(), offset: text.offset, ..Record::default() },
        bad: Vec::new(),
        communication: is_of_communication(name).then(Box::<Communication>::default),
        are_gradients: false,
        batch_items: 0,
        unmeasured: Unmeasured::default(),
        parameters: Vec::new(),
        files: Vec::new(),
        is_record: true,
    };
    let length = text.walk(&mut gather)?.len();
    if gather.is_record && !gather.record.has_output && !record_name.is_parameter_gradient() {
        gather.note_unmeasured(|| "it has no results".to_owned());
    }
    let Gather { mut record, bad, communication, unmeasured, parameters, files, .. } = gather;
    record.length = u32::try_from(length).unwrap_or(u32::MAX);
    record.bad = bad.into();
    record.communication = communication.filter(|_| is_communication(name));
    record.parameters = parameters.into();
    Ok(ReadRecord { index, record, unmeasured, files })
}

struct Gather<'a> {
    name: &'a str,
    index: usize,
    watch: &'a mut dyn TensorWatch,
    is_forward_of_module: bool,
    /// Tensors so far, by role.
    seen: [usize; 3],
    record: Record,
    bad: Vec<BadTensor>,
    communication: Option<Box<Communication>>,
    /// Whether the section is the list of the gradients of a parameter.
    are_gradients: bool,
    /// Sends and receives of the section so far.
    batch_items: u16,
    unmeasured: Unmeasured,
    parameters: Vec<u64>,
    files: Vec<NamedFile>,
    is_record: bool,
}

impl Visitor for Gather<'_> {
    fn no_record(&mut self, _: Written<'_>) {
        self.is_record = false;
        self.note_unmeasured(|| "it is no record".to_owned());
    }

    fn recompute(&mut self, is_recompute: bool) {
        self.record.is_recompute = is_recompute;
    }

    fn section(&mut self, section: Section<'_>, shape: Shape) {
        self.are_gradients = matches!(section, Section::Other(_)) && shape == Shape::List;
        let holds_values = matches!(shape, Shape::List | Shape::Object);
        self.record.has_output |= self.are_gradients || section == Section::Output && holds_values;
        self.record.has_input |= section.role() == Role::Input;
        self.batch_items = 0;
    }

    fn begin(&mut self, at: &Place<'_>, shape: Shape) {
        if shape != Shape::List || !self.is_argument(at) {
            return;
        }
        if let (Section::Args, Some(communication)) = (at.section, &mut self.communication) {
            communication.has_list_argument = true;
        }
        self.note_unknown_rank(at);
    }

    fn stray(&mut self, at: &Place<'_>, written: Written<'_>) {
        if self.is_argument(at) {
            self.no_value(at, written);
        } else if at.depth() > 0 || matches!(at.section, Section::Other(_)) {
            self.number(at, written);
        }
    }

    fn member(&mut self, at: &Place<'_>, written: Written<'_>) {
        if self.is_argument(at) {
            self.no_value(at, written);
        }
    }

    fn too_deep(&mut self, at: &Place<'_>) {
        let described = self.described(at);
        self.note_unmeasured(|| format!("{described} stands too deep to be looked at"));
    }

    fn value(&mut self, at: &Place<'_>, value: &Value<'_>) {
        let kind = value.type_name.and_then(Written::text);
        let is_dictionary = at.depth() == 0 && kind.is_none() && value.class_name.is_none();
        if is_dictionary && !matches!(at.section, Section::Other(_)) {
            return;
        }
        let number = content(kind.as_deref(), value);
        self.tensor(at, kind.as_deref(), value);
        if matches!(kind.as_deref(), Some("int" | "float"))
            && number.is_none()
            && value.dtype.is_none()
            && value.unmeasured.is_none()
        {
            self.note_unmeasured(|| "a number has no value".to_owned());
        }
        if let Some(number) = number.filter(|number| !number.is_finite()) {
            self.bad_number(at, number);
        }
        if let Some(operation) = value.p2p() {
            self.batch_items = self.batch_items.saturating_add(1);
            if let (Some(communication), Role::Input) = (&mut self.communication, at.section.role()) {
                let is_send = operation.operation.is_some_and(|operation| operation.contains("send"));
                let tag = operation.tag.unwrap_or(0);
                communication.batch.push(BatchItem { is_send, peer: operation.peer, tag });
            }
        }
        if self.communication.is_some() && self.is_argument(at) {
            self.argument_of_communication(at, kind.as_deref() == Some("int"), number, value);
        }
    }
}

impl Gather<'_> {
    /// Whether this is the place of an argument, a result or a gradient, not of something inside of one.
    fn is_argument(&self, at: &Place<'_>) -> bool {
        let is_known = self.are_gradients || !matches!(at.section, Section::Other(_));
        at.depth() == 1 && !at.is_inside_value && is_known
    }

    fn note_unmeasured(&mut self, what: impl FnOnce() -> String) {
        let name = self.name;
        self.unmeasured.values.note(|| format!("{name}: {}", what()));
    }

    /// `output 0`, of the tensor that comes next.
    fn described(&self, at: &Place<'_>) -> String {
        let role = at.section.role();
        format!("{} {}", role.as_str(), self.seen[role as usize])
    }

    /// An argument that is no value.
    fn no_value(&mut self, at: &Place<'_>, written: Written<'_>) {
        if matches!(written.shape(), Some(Shape::Number | Shape::Text)) {
            let described = self.described(at);
            self.note_unmeasured(|| format!("{described} is no value"));
        }
        self.note_unknown_rank(at);
        self.number(at, written);
    }

    fn note_unknown_rank(&mut self, at: &Place<'_>) {
        if let (Section::Kwargs, Some(Segment::Key(key))) = (at.section, at.segment())
            && let Some(communication) = &mut self.communication
            && let Some(argument) = rank_argument(communication, key)
        {
            *argument = RankArgument::Unknown;
        }
    }

    /// A bare number, if it is one.
    fn number(&mut self, at: &Place<'_>, written: Written<'_>) {
        if let Some(number) = written.number().filter(|number| !number.is_finite()) {
            self.bad_number(at, number);
        }
    }

    /// A plain number that is not finite: among the results it counts like a tensor.
    fn bad_number(&mut self, at: &Place<'_>, number: f64) {
        if at.section.role() == Role::Input {
            self.record.has_bad_number = true;
            return;
        }
        // It is nobody else's: numbers cannot be followed.
        let mut hash = FastHasher::default();
        hash.write(self.name.as_bytes());
        hash.write_usize(self.bad.len());
        self.push_bad(at, hash.finish(), Kinds::of(number), false);
    }

    fn push_bad(&mut self, at: &Place<'_>, fingerprint: u64, kinds: Kinds, requires_grad: bool) {
        let argument = match at.argument() {
            _ if !self.are_gradients && matches!(at.section, Section::Other(_)) => Argument::Other,
            Some(Segment::Index(index)) => Argument::Position(u16::try_from(index).unwrap_or(u16::MAX)),
            Some(Segment::Key(key)) => Argument::named(key),
            None => Argument::Other,
        };
        self.bad.push(BadTensor {
            fingerprint,
            role: at.section.role(),
            argument,
            kinds,
            requires_grad,
            batch_item: at.is_in_p2p.then_some(self.batch_items),
        });
    }

    /// What a value tells of a tensor, if it is one.
    fn tensor(&mut self, at: &Place<'_>, kind: Option<&str>, value: &Value<'_>) {
        let dtype_name = value.dtype.and_then(Written::text);
        let is_tensor = dtype_name.is_some()
            || kind.is_some_and(|kind| kind.contains("Tensor") || kind.contains("ndarray"));
        let figures = Statistic::ALL.map(|statistic| value.statistic(statistic));
        let [max, min, mean, norm] = figures;
        let role = at.section.role();
        let unmeasured = value.unmeasured.and_then(Written::text);
        if !is_tensor && figures == [None; 4] && unmeasured.is_none() && value.repeated.is_none() {
            return;
        }
        let dtype = dtype_name.as_deref().and_then(DType::parse);
        let elements = value.elements();
        let kinds = Kinds::of_figures(&figures, dtype, elements);
        let data_name = value.file.and_then(Written::text);
        if let Some(key) = value.repeated {
            let described = self.described(at);
            self.note_unmeasured(|| format!("{described} has {key} twice"));
        }
        if kinds.is_finite() && Sums::of(&figures, dtype, elements) == Sums::Overflowed {
            let (name, described) = (self.name, self.described(at));
            let text = || format!("{name}: {described} has an infinite Mean or Norm");
            self.unmeasured.overflowed_sums.note(text);
        }
        if let Some(reason) = &unmeasured {
            let described = self.described(at);
            self.note_unmeasured(|| format!("{described} was not measured: {reason}"));
        } else if is_tensor && elements != Some(0) {
            self.check_extremes(at, value, [max, min], dtype);
            if let Some(data_name) = &data_name {
                let index = self.seen[role as usize] as u32;
                self.files.push(NamedFile { role, index, data_name: (&**data_name).into() });
            } else {
                let (name, index) = (self.name, self.seen[role as usize]);
                let text = || format!("{name}: {} {index} has no file", role.as_str());
                self.unmeasured.without_file.note(text);
            }
        }
        if dtype_name.is_some() {
            let facts =
                TensorFacts { dtype, elements, max, min, mean, norm, data_name: data_name.as_deref() };
            let index = &mut self.seen[role as usize];
            let place = TensorPlace { record: self.index, name: self.name, role, index: *index };
            self.watch.see(place, &facts);
            *index += 1;
        }
        // Many layers begin with the same ones or zeros: a constant tells no parameter from another.
        let tells_apart = role == Role::Parameter && max != min && self.is_forward_of_module;
        if tells_apart || !kinds.is_finite() {
            let fingerprint = fingerprint(dtype_name, value, &figures);
            if tells_apart {
                self.parameters.push(fingerprint);
            }
            if !kinds.is_finite() {
                let requires_grad = value.requires_grad.and_then(Written::flag) == Some(true);
                self.push_bad(at, fingerprint, kinds, requires_grad);
            }
        }
        let is_bad = |figure: Option<f64>| figure.is_some_and(|figure| !figure.is_finite());
        if (is_bad(max) || is_bad(min)) && self.is_argument(at) {
            let plain = &mut self.record.plain;
            match at.section {
                Section::Input => plain.input = true,
                Section::Args => plain.input_args = true,
                Section::Kwargs => plain.input_kwargs = true,
                Section::Output => plain.output = true,
                Section::Parameters | Section::Other(_) => {}
            }
        }
    }

    /// Whether the largest and smallest value of a tensor can be what they say.
    fn check_extremes(
        &mut self,
        at: &Place<'_>,
        value: &Value<'_>,
        [max, min]: [Option<f64>; 2],
        dtype: Option<DType>,
    ) {
        let is_flag = |written: &Option<Written<'_>>| written.is_some_and(|written| written.flag().is_some());
        let what = if max.is_none() || min.is_none() {
            "has no Max and Min"
        } else if dtype != Some(DType::Bool) && value.statistics[..2].iter().any(is_flag) {
            "has true or false for Max or Min"
        } else if max < min {
            "has a Max below its Min"
        } else {
            return;
        };
        let described = self.described(at);
        self.note_unmeasured(|| format!("{described} {what}"));
    }

    fn argument_of_communication(
        &mut self,
        at: &Place<'_>,
        is_int: bool,
        number: Option<f64>,
        value: &Value<'_>,
    ) {
        let Some(communication) = &mut self.communication else { return };
        let group = || value.group();
        match (at.section, at.segment()) {
            (Section::Args, _) => {
                communication.ints.extend(number.filter(|_| is_int).map(|number| number as i64));
                if let Some(group) = group() {
                    communication.positional_group = Some(group);
                }
            }
            (Section::Kwargs, Some(Segment::Key("group"))) => communication.group = group(),
            (Section::Kwargs, Some(Segment::Key(key))) => {
                if let Some(argument) = rank_argument(communication, key) {
                    *argument =
                        number.map_or(RankArgument::Unknown, |number| RankArgument::Known(number as i64));
                }
            }
            _ => {}
        }
    }
}

/// A number made of dtype, shape and statistics: the same tensor has the same one wherever it appears.
fn fingerprint(dtype: Option<Cow<'_, str>>, value: &Value<'_>, figures: &[Option<f64>; 4]) -> u64 {
    let mut hash = FastHasher::default();
    hash.write(dtype.unwrap_or_default().as_bytes());
    for size in value.sizes.unwrap_or_default() {
        hash.write_u64(*size);
    }
    // All NaN are one: which of them it was says nothing about the tensor.
    let bits = |figure: f64| if figure.is_nan() { f64::NAN.to_bits() } else { figure.to_bits() };
    for figure in figures {
        hash.write_u64(figure.map_or(1, bits));
    }
    hash.finish()
}

/// The number of a plain value.
fn content(kind: Option<&str>, value: &Value<'_>) -> Option<f64> {
    let written = value.value?;
    let Some(words) = written.text() else { return written.number() };
    match kind {
        Some("str") => None,
        Some("complex") => {
            let words = words.to_ascii_lowercase();
            (words.contains("nan") || words.contains("inf")).then_some(f64::NAN)
        }
        _ => written.number_or_word(),
    }
}

fn rank_argument<'a>(communication: &'a mut Communication, key: &str) -> Option<&'a mut RankArgument> {
    Some(match key {
        "src" => &mut communication.src,
        "src_group" => &mut communication.src_group,
        "dst" => &mut communication.dst,
        "dst_group" => &mut communication.dst_group,
        "group_src" => &mut communication.group_src,
        "group_dst" => &mut communication.group_dst,
        "tag" => &mut communication.tag,
        _ => return None,
    })
}
