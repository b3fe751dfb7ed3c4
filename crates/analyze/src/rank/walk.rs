//! The text of one record, gone through once.

use std::hash::Hasher as _;

use msprobe_dump::hash::FastHasher;
use msprobe_dump::read::{MemberStart, Pull, PullError, Shape};

use crate::communication::{BatchItem, Communication, Group, RankArgument, is_communication};
use crate::outcome::role_word;
use crate::record::{Argument, BadTensor, Kinds, PlainFindings, Record, Role, Sums, number_in_words};

/// Values inside of values beyond this depth are not looked at.
const MAX_DEPTH: usize = 64;

/// A tensor as its record describes it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TensorFacts<'a> {
    /// `torch.float32`.
    pub dtype: &'a str,
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

/// Values of a record of which nobody can say whether they are finite.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Unmeasured {
    /// How many.
    pub count: u64,
    /// The first: `Torch.exp.0.forward output 0: it has no Max and Min`.
    pub first: Option<String>,
    /// Tensors without the name of a file, which a dump of tensors should have.
    pub without_file: u64,
    /// The first of them.
    pub first_without_file: Option<String>,
    /// Tensors whose mean or norm is infinite only because their elements are so large that a sum of them overflows.
    pub overflowed_sums: u64,
    /// The first of them.
    pub first_overflowed_sum: Option<String>,
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
    pub(super) record: Record,
    pub(super) unmeasured: Unmeasured,
    pub(super) files: Vec<NamedFile>,
}

/// Reads the record that comes next in `pull`; `index` is its number.
pub(super) fn read_record(
    member: &MemberStart<'_>,
    pull: &mut Pull<'_>,
    index: usize,
    watch: &mut dyn TensorWatch,
) -> Result<ReadRecord, PullError> {
    let name = &*member.key;
    let mut walk = Walk {
        name,
        index,
        watch,
        seen: [0; 3],
        bad: Vec::new(),
        plain: PlainFindings::default(),
        has_bad_number: false,
        communication: (name.starts_with("Distributed.")).then(Box::<Communication>::default),
        place: Place { role: Role::Input, argument: Argument::Other, batch_item: None },
        batch_items: 0,
        unmeasured: Unmeasured::default(),
        parameters: Vec::new(),
        files: Vec::new(),
    };
    let sections = walk.record(pull)?;
    let unmeasured = std::mem::take(&mut walk.unmeasured);
    let files = std::mem::take(&mut walk.files);
    let record = Record {
        name: name.into(),
        offset: member.offset,
        length: u32::try_from(pull.position()).unwrap_or(u32::MAX),
        plain: walk.plain,
        has_input: sections.has_input,
        has_output: sections.has_output,
        is_recompute: sections.is_recompute,
        has_bad_number: walk.has_bad_number,
        bad: walk.bad.into(),
        communication: walk.communication.filter(|_| is_communication(name)),
        parameters: walk.parameters.into(),
    };
    Ok(ReadRecord { record, unmeasured, files })
}

#[derive(Clone, Copy)]
struct Place {
    role: Role,
    argument: Argument,
    batch_item: Option<u16>,
}

struct Walk<'a> {
    name: &'a str,
    index: usize,
    watch: &'a mut dyn TensorWatch,
    /// Tensors so far, by role.
    seen: [usize; 3],
    bad: Vec<BadTensor>,
    plain: PlainFindings,
    has_bad_number: bool,
    communication: Option<Box<Communication>>,
    place: Place,
    /// Sends and receives of a batch so far, in this section.
    batch_items: u16,
    unmeasured: Unmeasured,
    parameters: Vec<u64>,
    files: Vec<NamedFile>,
}

/// A section of a record.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Input,
    Args,
    Kwargs,
    Output,
    Parameters,
    /// `weight`, `bias`: the gradients of parameters.
    Gradient,
}

/// What there is of a record.
#[derive(Default)]
struct Sections {
    has_input: bool,
    has_output: bool,
    is_recompute: bool,
}

/// What one object turned out to be.
#[derive(Default)]
struct Object {
    /// `Max` or `Min` is NaN or infinite.
    has_bad_extremes: bool,
    /// It has a `value` that is a number, as plain arguments have.
    value: Option<f64>,
    is_int: bool,
    group: Option<Group>,
}

impl Walk<'_> {
    fn record(&mut self, pull: &mut Pull<'_>) -> Result<Sections, PullError> {
        if pull.shape()? != Shape::Object {
            pull.skip()?;
            self.note_unmeasured(|| "it is no record".to_owned());
            return Ok(Sections::default());
        }
        let mut sections = Sections::default();
        pull.enter()?;
        while let Some(key) = pull.key()? {
            let section = match &*key {
                "input" => Section::Input,
                "input_args" => Section::Args,
                "input_kwargs" => Section::Kwargs,
                "output" => Section::Output,
                "parameters" => Section::Parameters,
                "is_recompute" if pull.shape()? == Shape::Word => {
                    sections.is_recompute = pull.word()? == Some(true);
                    continue;
                }
                _ if pull.shape()? == Shape::List => Section::Gradient,
                // Nobody knows what it is, but there may be tensors in it.
                _ => {
                    self.place = Place { role: Role::Output, argument: Argument::Other, batch_item: None };
                    self.value(pull, 0)?;
                    continue;
                }
            };
            let holds_values = matches!(pull.shape()?, Shape::List | Shape::Object);
            sections.has_output |= matches!(section, Section::Output | Section::Gradient) && holds_values;
            sections.has_input |= matches!(section, Section::Input | Section::Args | Section::Kwargs);
            self.section(section, pull)?;
        }
        if !sections.has_output && !self.name.contains(".parameters_grad") {
            self.note_unmeasured(|| "it has no results".to_owned());
        }
        Ok(sections)
    }

    fn note_unmeasured(&mut self, what: impl FnOnce() -> String) {
        self.unmeasured.count += 1;
        if self.unmeasured.first.is_none() {
            self.unmeasured.first = Some(format!("{}: {}", self.name, what()));
        }
    }

    /// `output 0`, of the tensor that comes next.
    fn described(&self) -> String {
        let role = self.place.role;
        format!("{} {}", role_word(role), self.seen[role as usize])
    }

    fn section(&mut self, section: Section, pull: &mut Pull<'_>) -> Result<(), PullError> {
        let role = match section {
            Section::Input | Section::Args | Section::Kwargs => Role::Input,
            Section::Parameters => Role::Parameter,
            Section::Output | Section::Gradient => Role::Output,
        };
        self.place = Place { role, argument: Argument::Other, batch_item: None };
        self.batch_items = 0;
        match pull.shape()? {
            Shape::List => {
                pull.enter()?;
                let mut position = 0_u16;
                while pull.element()? {
                    self.place.argument = Argument::Position(position);
                    self.place.batch_item = None;
                    self.member(section, None, pull)?;
                    position = position.saturating_add(1);
                }
            }
            Shape::Object if is_value(pull)? => {
                let object = self.object(pull, 0)?;
                self.note(section, &object);
            }
            Shape::Object => {
                pull.enter()?;
                while let Some(key) = pull.key()? {
                    self.place.argument = Argument::named(&key);
                    self.place.batch_item = None;
                    self.member(section, Some(&key), pull)?;
                }
            }
            _ => pull.skip()?,
        }
        Ok(())
    }

    /// One argument or result.
    fn member(&mut self, section: Section, key: Option<&str>, pull: &mut Pull<'_>) -> Result<(), PullError> {
        let shape = pull.shape()?;
        if shape != Shape::Object {
            if matches!(shape, Shape::Number | Shape::Text) {
                let described = self.described();
                self.note_unmeasured(|| format!("{described} is no value"));
            }
            if shape == Shape::List
                && section == Section::Args
                && let Some(communication) = &mut self.communication
            {
                communication.has_list_argument = true;
            }
            if let (Some(key), Some(communication)) = (key, &mut self.communication)
                && section == Section::Kwargs
                && let Some(argument) = rank_argument(communication, key)
            {
                *argument = RankArgument::Unknown;
            }
            return self.value(pull, 0);
        }
        let object = self.object(pull, 0)?;
        if object.has_bad_extremes {
            match section {
                Section::Input => self.plain.input = true,
                Section::Args => self.plain.input_args = true,
                Section::Kwargs => self.plain.input_kwargs = true,
                Section::Output => self.plain.output = true,
                Section::Parameters | Section::Gradient => {}
            }
        }
        self.note(section, &object);
        let Some(communication) = &mut self.communication else { return Ok(()) };
        match (section, key) {
            (Section::Args, _) => {
                if object.is_int
                    && let Some(value) = object.value
                {
                    communication.ints.push(value as i64);
                }
                if object.group.is_some() {
                    communication.positional_group = object.group;
                }
            }
            (Section::Kwargs, Some("group")) => communication.group = object.group,
            (Section::Kwargs, Some(key)) => {
                if let Some(argument) = rank_argument(communication, key) {
                    *argument =
                        object.value.map_or(RankArgument::Unknown, |value| RankArgument::Known(value as i64));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn note(&mut self, section: Section, object: &Object) {
        let is_argument = matches!(section, Section::Args | Section::Kwargs | Section::Input);
        self.has_bad_number |= is_argument && object.value.is_some_and(|value| !value.is_finite());
    }

    /// Any value inside of an argument or result.
    fn value(&mut self, pull: &mut Pull<'_>, depth: usize) -> Result<(), PullError> {
        match pull.shape()? {
            Shape::Object => {
                let object = self.object(pull, depth)?;
                if self.place.role == Role::Input {
                    self.has_bad_number |= object.value.is_some_and(|value| !value.is_finite());
                }
                Ok(())
            }
            Shape::List if depth < MAX_DEPTH => {
                pull.enter()?;
                while pull.element()? {
                    self.value(pull, depth + 1)?;
                }
                Ok(())
            }
            Shape::List => self.skip_deep(pull),
            Shape::Number => {
                let number = pull.number()?;
                self.number(number);
                Ok(())
            }
            _ => pull.skip(),
        }
    }

    fn skip_deep(&mut self, pull: &mut Pull<'_>) -> Result<(), PullError> {
        let described = self.described();
        self.note_unmeasured(|| format!("{described} stands too deep to be looked at"));
        pull.skip()
    }

    /// A plain number: among the results it counts like a tensor.
    fn number(&mut self, number: f64) {
        if number.is_finite() {
            return;
        }
        if self.place.role == Role::Input {
            self.has_bad_number = true;
            return;
        }
        // It is nobody else's: numbers cannot be followed.
        let mut hash = FastHasher::default();
        hash.write(self.name.as_bytes());
        hash.write_usize(self.bad.len());
        self.bad.push(BadTensor {
            fingerprint: hash.finish(),
            role: self.place.role,
            argument: self.place.argument,
            kinds: Kinds::of(number),
            requires_grad: false,
            batch_item: self.place.batch_item,
        });
    }

    fn object(&mut self, pull: &mut Pull<'_>, depth: usize) -> Result<Object, PullError> {
        let mut object = Object::default();
        if depth >= MAX_DEPTH {
            self.skip_deep(pull)?;
            return Ok(object);
        }
        let mut hash = FastHasher::default();
        let (mut dtype, mut data_name, mut unmeasured) = (None, None, None);
        let (mut is_tensor, mut is_number) = (false, false);
        let (mut kind, mut words) = (None, None);
        let (mut seen, mut has_words) = (Seen::default(), false);
        let mut facts = TensorFacts::default();
        let mut requires_grad = false;
        let mut is_batch_item = false;
        let mut item = BatchItem { is_send: false, peer: None, tag: 0 };
        pull.enter()?;
        while let Some(key) = pull.key()? {
            let shape = pull.shape()?;
            match (&*key, shape) {
                ("type", Shape::Text) => {
                    let text = pull.text()?;
                    seen.note("type");
                    object.is_int = text == "int";
                    is_number = object.is_int || text == "float";
                    is_tensor |= text.contains("Tensor") || text.contains("ndarray");
                    kind = Some(text);
                }
                ("class_type", Shape::Text) => is_batch_item = pull.text()?.contains("P2POp"),
                ("dtype", Shape::Text) => {
                    let text = pull.text()?;
                    seen.note("dtype");
                    hash.write(text.as_bytes());
                    dtype = Some(text);
                }
                ("shape", Shape::List) => {
                    seen.note("shape");
                    facts.elements = Some(1);
                    pull.enter()?;
                    while pull.element()? {
                        if pull.shape()? == Shape::Number {
                            let size = pull.number()?;
                            hash.write_u64(size.to_bits());
                            facts.elements = facts.elements.and_then(|count| count.checked_mul(size as u64));
                        } else {
                            facts.elements = None;
                            pull.skip()?;
                        }
                    }
                }
                ("Max", _) => {
                    seen.note("Max");
                    has_words |= shape == Shape::Word;
                    keep(&mut facts.max, figure(pull, &mut hash)?);
                }
                ("Min", _) => {
                    seen.note("Min");
                    has_words |= shape == Shape::Word;
                    keep(&mut facts.min, figure(pull, &mut hash)?);
                }
                ("Mean", _) => {
                    seen.note("Mean");
                    keep(&mut facts.mean, figure(pull, &mut hash)?);
                }
                ("Norm", _) => {
                    seen.note("Norm");
                    keep(&mut facts.norm, figure(pull, &mut hash)?);
                }
                ("data_name", Shape::Text) => {
                    seen.note("data_name");
                    data_name = Some(pull.text()?);
                }
                ("unmeasured", Shape::Text) => unmeasured = Some(pull.text()?),
                ("requires_grad", Shape::Word) => requires_grad = pull.word()? == Some(true),
                ("value", Shape::Text) => {
                    seen.note("value");
                    words = Some(pull.text()?);
                }
                ("value", Shape::Object | Shape::List) => self.value(pull, depth + 1)?,
                ("value", _) => {
                    seen.note("value");
                    keep(&mut object.value, number_of(pull)?);
                }
                ("op", Shape::Text) => item.is_send = pull.text()?.contains("send"),
                ("peer", Shape::Number) => item.peer = Some(pull.number()? as i64),
                ("tag", Shape::Number) => item.tag = pull.number()? as i64,
                ("group_ranks", Shape::List) => {
                    let group = object.group.get_or_insert_default();
                    pull.enter()?;
                    while pull.element()? {
                        match pull.shape()? {
                            Shape::Number => group.ranks.push(pull.number()? as i64),
                            _ => pull.skip()?,
                        }
                    }
                }
                ("group_id", Shape::Text) => {
                    let id = pull.text()?;
                    if !is_batch_item {
                        object.group.get_or_insert_default().id = id.into();
                    }
                }
                // The tensor of a send or receive stands inside of it.
                ("tensor", Shape::Object) if is_batch_item => {
                    self.place.batch_item = Some(self.batch_items);
                    self.object(pull, depth + 1)?;
                }
                (_, Shape::Object | Shape::List | Shape::Number) => self.value(pull, depth + 1)?,
                _ => pull.skip()?,
            }
        }
        if let Some(words) = words {
            keep(&mut object.value, number_of_words(kind.as_deref(), &words));
        }
        let is_bad = |figure: Option<f64>| figure.is_some_and(|figure| !figure.is_finite());
        object.has_bad_extremes = is_bad(facts.max) || is_bad(facts.min);
        let figures = [facts.max, facts.min, facts.mean, facts.norm];
        let dtype_name = dtype.as_deref().unwrap_or_default();
        let kinds = Kinds::of_figures(&figures, dtype_name, facts.elements);
        is_tensor |= dtype.is_some();
        if let Some(key) = seen.repeated {
            let described = self.described();
            self.note_unmeasured(|| format!("{described} has {key} twice"));
        }
        if kinds.is_finite() && Sums::of(&figures, dtype_name, facts.elements) == Sums::Overflowed {
            self.unmeasured.overflowed_sums += 1;
            if self.unmeasured.first_overflowed_sum.is_none() {
                let text = format!("{}: {} has an infinite Mean or Norm", self.name, self.described());
                self.unmeasured.first_overflowed_sum = Some(text);
            }
        }
        if let Some(reason) = &unmeasured {
            let described = self.described();
            self.note_unmeasured(|| format!("{described} was not measured: {reason}"));
        } else if is_tensor && facts.elements != Some(0) {
            if facts.max.is_none() || facts.min.is_none() {
                let described = self.described();
                self.note_unmeasured(|| format!("{described} has no Max and Min"));
            } else if has_words && !dtype_name.to_ascii_lowercase().ends_with("bool") {
                let described = self.described();
                self.note_unmeasured(|| format!("{described} has true or false for Max or Min"));
            } else if facts.max < facts.min {
                let described = self.described();
                self.note_unmeasured(|| format!("{described} has a Max below its Min"));
            }
            if let Some(data_name) = &data_name {
                let index = self.seen[self.place.role as usize] as u32;
                let data_name = (&**data_name).into();
                self.files.push(NamedFile { role: self.place.role, index, data_name });
            } else {
                self.unmeasured.without_file += 1;
                if self.unmeasured.first_without_file.is_none() {
                    let text = format!("{}: {} has no file", self.name, self.described());
                    self.unmeasured.first_without_file = Some(text);
                }
            }
        } else if is_number && object.value.is_none() {
            self.note_unmeasured(|| "a number has no value".to_owned());
        }
        if let Some(dtype) = &dtype {
            self.tensor(&TensorFacts { dtype, data_name: data_name.as_deref(), ..facts });
        }
        if let Some(value) = object.value
            && self.place.role != Role::Input
        {
            self.number(value);
        }
        // Many layers begin with the same ones or zeros: a constant tells no parameter from another.
        if self.place.role == Role::Parameter && facts.max != facts.min && self.name.contains(".forward") {
            self.parameters.push(hash.finish());
        }
        if !kinds.is_finite() {
            self.bad.push(BadTensor {
                fingerprint: hash.finish(),
                role: self.place.role,
                argument: self.place.argument,
                kinds,
                requires_grad,
                batch_item: self.place.batch_item,
            });
        }
        if is_batch_item {
            self.batch_items = self.batch_items.saturating_add(1);
            if let Some(communication) = &mut self.communication
                && self.place.role == Role::Input
            {
                communication.batch.push(item);
            }
        }
        Ok(object)
    }

    fn tensor(&mut self, facts: &TensorFacts<'_>) {
        let role = self.place.role;
        let index = &mut self.seen[role as usize];
        self.watch.see(TensorPlace { record: self.index, name: self.name, role, index: *index }, facts);
        *index += 1;
    }
}

/// The members of a value that were there, and one that came again. What a reader takes for the value then depends on the
/// reader.
#[derive(Default)]
struct Seen {
    keys: [&'static str; 9],
    count: usize,
    repeated: Option<&'static str>,
}

impl Seen {
    fn note(&mut self, key: &'static str) {
        if self.keys[..self.count].contains(&key) {
            self.repeated = Some(key);
        } else if let Some(place) = self.keys.get_mut(self.count) {
            *place = key;
            self.count += 1;
        }
    }
}

/// The last one counts, but what is not finite is not forgotten.
fn keep(known: &mut Option<f64>, new: Option<f64>) {
    if known.is_none_or(f64::is_finite) {
        *known = new;
    }
}

/// The number of a plain value that was written as text; none if it is a text.
fn number_of_words(kind: Option<&str>, words: &str) -> Option<f64> {
    match kind {
        Some("str") => None,
        Some("complex") => {
            let words = words.to_ascii_lowercase();
            (words.contains("nan") || words.contains("inf")).then_some(f64::NAN)
        }
        _ => number_in_words(words),
    }
}

/// Whether the object that comes next is one value, not the values of a section by name.
fn is_value(pull: &Pull<'_>) -> Result<bool, PullError> {
    let mut ahead = pull.clone();
    ahead.enter()?;
    Ok(match ahead.key()? {
        Some(key) => matches!(&*key, "type" | "class_type") && ahead.shape()? == Shape::Text,
        None => false,
    })
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

/// A statistic: a number, or a word for one that is not finite; of bool tensors whether any, or all, are true.
fn figure(pull: &mut Pull<'_>, hash: &mut FastHasher) -> Result<Option<f64>, PullError> {
    let figure = match pull.shape()? {
        Shape::Word => pull.word()?.map(|value| f64::from(u8::from(value))),
        _ => number_of(pull)?,
    };
    // All NaN are one: which of them it was says nothing about the tensor.
    hash.write_u64(
        figure.map_or(1, |figure| if figure.is_nan() { f64::NAN.to_bits() } else { figure.to_bits() }),
    );
    Ok(figure)
}

fn number_of(pull: &mut Pull<'_>) -> Result<Option<f64>, PullError> {
    Ok(match pull.shape()? {
        Shape::Number => Some(pull.number()?),
        Shape::Text => number_in_words(&pull.text()?),
        _ => {
            pull.skip()?;
            None
        }
    })
}
