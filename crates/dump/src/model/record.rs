//! The text of one record, gone through once, without a tree.

use std::fmt;

use super::value::is_p2p_class;
use super::{Value, Written};
use crate::read::{Pull, PullError, Shape};

/// Values inside of values beyond this depth are not looked at.
const MAX_DEPTH: usize = 64;

/// A member of a record, by what it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Section<'k> {
    /// `input`: in backward the gradients of the outputs.
    Input,
    /// `input_args`: arguments by position.
    Args,
    /// `input_kwargs`: arguments by name.
    Kwargs,
    /// `output`: results, in backward the gradients of the arguments.
    Output,
    /// `parameters` of a module.
    Parameters,
    /// Anything else: in a record of gradients the name of a parameter. Empty where a record is one value, such as a variable
    /// that was saved.
    Other(&'k str),
}

/// What a value is of its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// An argument, or in backward the gradient of an output.
    Input,
    /// A parameter of a module.
    Parameter,
    /// A result, or in backward the gradient of an argument; also the gradient of a parameter.
    Output,
}

impl Role {
    /// Its word in reports.
    pub fn as_str(self) -> &'static str {
        ["input", "parameter", "output"][self as usize]
    }
}

impl<'k> Section<'k> {
    /// The section of this key.
    pub fn of(key: &'k str) -> Section<'k> {
        match key {
            "input" => Section::Input,
            "input_args" => Section::Args,
            "input_kwargs" => Section::Kwargs,
            "output" => Section::Output,
            "parameters" => Section::Parameters,
            other => Section::Other(other),
        }
    }

    /// What its values are of the record.
    pub fn role(self) -> Role {
        match self {
            Section::Input | Section::Args | Section::Kwargs => Role::Input,
            Section::Parameters => Role::Parameter,
            Section::Output | Section::Other(_) => Role::Output,
        }
    }

    /// How places in it begin: those of all arguments alike.
    pub fn word(self) -> &'k str {
        match self {
            Section::Input | Section::Args | Section::Kwargs => "input",
            Section::Parameters => "parameters",
            Section::Output => "output",
            Section::Other(key) => key,
        }
    }
}

/// One step on the way to a value: in a list, or in an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Segment<'p> {
    /// Its number in a list.
    Index(usize),
    /// Its key in an object.
    Key(&'p str),
}

/// Where in a record something stands.
#[derive(Debug, Clone, Copy)]
pub struct Place<'p> {
    /// The member of the record it is in.
    pub section: Section<'p>,
    /// Whether it is part of a value that says its type, not a value of the record by itself.
    pub is_inside_value: bool,
    /// Whether it is part of a send or receive.
    pub is_in_p2p: bool,
    above: Option<(&'p Place<'p>, Segment<'p>)>,
    depth: usize,
}

impl<'p> Place<'p> {
    fn top(section: Section<'p>) -> Place<'p> {
        Place { section, is_inside_value: false, is_in_p2p: false, above: None, depth: 0 }
    }

    fn below(above: &'p Place<'p>, segment: Segment<'p>) -> Place<'p> {
        Place { above: Some((above, segment)), depth: above.depth + 1, ..*above }
    }

    /// How many steps it is below its section: 0 if it is all of it, 1 for an argument or a result.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// The argument or result it is, or is inside of.
    pub fn argument(&self) -> Option<Segment<'p>> {
        let (above, segment) = self.above?;
        if above.depth == 0 { Some(segment) } else { above.argument() }
    }

    /// Puts the keys on the way to it behind a text, each after a dot; numbers in lists are left out.
    pub fn push_keys(&self, text: &mut String) {
        if let Some((above, segment)) = self.above {
            above.push_keys(text);
            if let Segment::Key(key) = segment {
                text.push('.');
                text.push_str(key);
            }
        }
    }

    /// The last step to it.
    pub fn segment(&self) -> Option<Segment<'p>> {
        self.above.map(|(_, segment)| segment)
    }
}

/// `input.0.key`: the section's word and the steps below it.
impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.above {
            None => f.write_str(self.section.word()),
            Some((above, segment)) => {
                above.fmt(f)?;
                match segment {
                    Segment::Index(index) => write!(f, ".{index}"),
                    Segment::Key(key) => write!(f, ".{key}"),
                }
            }
        }
    }
}

/// Is shown a record, in the order of its text.
pub trait Visitor {
    /// The record is no object.
    fn no_record(&mut self, _written: Written<'_>) {}

    /// The record says whether it repeats an earlier call, to save memory.
    fn recompute(&mut self, _is_recompute: bool) {}

    /// A section begins; one that is written again counts instead of the earlier one.
    fn section(&mut self, _section: Section<'_>, _shape: Shape) {}

    /// A list or an object begins.
    fn begin(&mut self, _at: &Place<'_>, _shape: Shape) {}

    /// An object has ended; what is inside of it was shown before. It is a value if it says its type, or a dictionary.
    fn value(&mut self, at: &Place<'_>, value: &Value<'_>);

    /// Something that is no object and no list, at a place of one: in a list or a section, or a number under a name that describes
    /// no value.
    fn stray(&mut self, _at: &Place<'_>, _written: Written<'_>) {}

    /// Something plain in an object that has not said its type: part of its description, or a value of a dictionary.
    fn member(&mut self, _at: &Place<'_>, _written: Written<'_>) {}

    /// Something nested too deeply to be looked at.
    fn too_deep(&mut self, _at: &Place<'_>) {}
}

/// Shows a visitor the record that comes next in `pull`, section by section.
pub(super) fn walk_record(pull: &mut Pull<'_>, visitor: &mut impl Visitor) -> Result<(), PullError> {
    if pull.shape()? != Shape::Object {
        visitor.no_record(Written::next(pull)?);
        return Ok(());
    }
    let mut walk = Walk { visitor, sizes: Vec::new() };
    pull.enter()?;
    while let Some(key) = pull.key()? {
        let shape = pull.shape()?;
        if key == "is_recompute" && shape == Shape::Word {
            let is_recompute = pull.word()? == Some(true);
            walk.visitor.recompute(is_recompute);
            continue;
        }
        let section = Section::of(&key);
        walk.visitor.section(section, shape);
        walk.any(pull, shape, &Place::top(section))?;
    }
    Ok(())
}

/// Shows a visitor the record that comes next in `pull` as one value.
pub(super) fn walk_value(pull: &mut Pull<'_>, visitor: &mut impl Visitor) -> Result<(), PullError> {
    let shape = pull.shape()?;
    Walk { visitor, sizes: Vec::new() }.any(pull, shape, &Place::top(Section::Other("")))
}

struct Walk<'v, V> {
    visitor: &'v mut V,
    /// Sizes of the shapes of the objects that have begun and not ended.
    sizes: Vec<u64>,
}

/// What a member of a value may be, besides text and words.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// Nothing else.
    Plain,
    /// A number.
    Number,
    /// A list of whole numbers.
    List,
    /// Anything.
    Content,
}

impl<V: Visitor> Walk<'_, V> {
    fn any(&mut self, pull: &mut Pull<'_>, shape: Shape, at: &Place<'_>) -> Result<(), PullError> {
        match shape {
            Shape::Object | Shape::List if at.depth > MAX_DEPTH => {
                self.visitor.too_deep(at);
                pull.skip()
            }
            Shape::Object => self.object(pull, at),
            Shape::List => {
                self.visitor.begin(at, Shape::List);
                pull.enter()?;
                let mut index = 0;
                while pull.element()? {
                    let shape = pull.shape()?;
                    self.any(pull, shape, &Place::below(at, Segment::Index(index)))?;
                    index += 1;
                }
                Ok(())
            }
            Shape::Text | Shape::Number | Shape::Word => {
                self.visitor.stray(at, Written::next(pull)?);
                Ok(())
            }
        }
    }

    fn object(&mut self, pull: &mut Pull<'_>, at: &Place<'_>) -> Result<(), PullError> {
        self.visitor.begin(at, Shape::Object);
        let start = pull.position();
        let (first_size, mut sizes) = (self.sizes.len(), None);
        let mut value: Value<'_> = Value::default();
        let (mut is_typed, mut is_in_p2p) = (false, at.is_in_p2p);
        pull.enter()?;
        while let Some(key) = pull.key()? {
            let shape = pull.shape()?;
            let from = pull.position();
            let (field, described_by) = field(&mut value, &key);
            let child = || Place {
                is_inside_value: at.is_inside_value || is_typed,
                is_in_p2p,
                ..Place::below(at, Segment::Key(&key))
            };
            match (shape, field.as_ref().map(|(_, expected)| *expected)) {
                (Shape::List, Some(Expected::List)) if key == "shape" => {
                    self.sizes.truncate(first_size);
                    let mut ahead = pull.clone();
                    sizes = self.read_sizes(&mut ahead)?.then_some(first_size..self.sizes.len());
                    // Of a dictionary they are the elements of one of its values.
                    if is_typed { *pull = ahead } else { self.any(pull, shape, &child())? }
                }
                (Shape::List, Some(Expected::List)) if is_typed => pull.skip()?,
                (Shape::List | Shape::Object, _) => self.any(pull, shape, &child())?,
                (Shape::Number, None | Some(Expected::Plain | Expected::List)) => {
                    self.visitor.stray(&child(), Written::next(pull)?);
                }
                _ if is_typed || key == "type" => pull.skip()?,
                _ => self.visitor.member(&child(), Written::next(pull)?),
            }
            if let Some((slot, _)) = field {
                let written = Written::new(pull.since(from));
                is_typed |= key == "type" && shape == Shape::Text;
                is_in_p2p |= key == "class_type" && is_p2p_class(written);
                let is_again = slot.replace(written).is_some();
                value.repeated = value.repeated.or(described_by.filter(|_| is_again));
            }
        }
        let sizes = sizes.and_then(|range| self.sizes.get(range));
        let value = Value { written: pull.since(start), sizes, ..value };
        self.visitor.value(at, &value);
        self.sizes.truncate(first_size);
        Ok(())
    }

    /// The sizes of a shape are put behind those that are there. Whether they are all there.
    fn read_sizes(&mut self, pull: &mut Pull<'_>) -> Result<bool, PullError> {
        let mut are_whole = true;
        pull.enter()?;
        while pull.element()? {
            let written = Written::next(pull)?.bytes();
            let size: Option<u64> = std::str::from_utf8(written).ok().and_then(|digits| digits.parse().ok());
            are_whole &= size.is_some();
            self.sizes.extend(size);
        }
        Ok(are_whole)
    }
}

/// Where a member of an object goes, and what may stand there.
type Field<'v, 'a> = Option<(&'v mut Option<Written<'a>>, Expected)>;

/// The field of a key, and its name if it tells what the value is.
#[inline]
fn field<'v, 'a>(value: &'v mut Value<'a>, key: &str) -> (Field<'v, 'a>, Option<&'static str>) {
    use Expected::{Content, List, Number, Plain};
    let (slot, expected, name) = match key {
        "type" => (&mut value.type_name, Plain, "type"),
        "dtype" => (&mut value.dtype, Plain, "dtype"),
        "shape" => (&mut value.shape, List, "shape"),
        "Max" => (&mut value.statistics[0], Content, "Max"),
        "Min" => (&mut value.statistics[1], Content, "Min"),
        "Mean" => (&mut value.statistics[2], Content, "Mean"),
        "Norm" => (&mut value.statistics[3], Content, "Norm"),
        "data_name" => (&mut value.file, Plain, "data_name"),
        "value" => (&mut value.value, Content, "value"),
        other => {
            let field = match other {
                "requires_grad" => (&mut value.requires_grad, Plain),
                "md5" => (&mut value.checksum, Plain),
                "sketch" => (&mut value.sketch, Plain),
                "stored_dtype" => (&mut value.stored_dtype, Plain),
                "layout" => (&mut value.layout, Plain),
                "unmeasured" => (&mut value.unmeasured, Plain),
                "unwritten" => (&mut value.unwritten, Plain),
                "group_ranks" => (&mut value.group_ranks, List),
                "group_id" => (&mut value.group_id, Plain),
                "class_type" => (&mut value.class_name, Plain),
                "op" => (&mut value.operation, Plain),
                "peer" => (&mut value.peer, Number),
                "tag" => (&mut value.tag, Number),
                _ => return (None, None),
            };
            return (Some(field), None);
        }
    };
    (Some((slot, expected)), Some(name))
}
