//! Names of tensor files: the record, and where in it the tensor stood.

use std::fmt;
use std::str::FromStr;

use super::module::PARAMETERS_GRAD;
use super::record::DEBUG;
use super::{Direction, ModulePass, NameError, RecordName, is_of_module, parse_index};
use crate::words::words;

words! {
    /// The part of a record a tensor belongs to.
    Category {
        /// Positional inputs; `input_args` in records.
        Input = "input",
        /// Keyword inputs; `input_kwargs` in records.
        Kwargs = "kwargs",
        /// Outputs.
        Output = "output",
        /// Parameters of a module.
        Parameters = "parameters",
    }
}

words! {
    /// The format of a tensor file, by its extension.
    TensorFormat {
        /// torch's.
        Pt = "pt",
        /// numpy's.
        Npy = "npy",
    }
}

/// The longest name that is read; file systems allow 255. Finding where the record ends takes quadratic time in
/// names made for it.
const MAX_NAME_BYTES: usize = 4096;

/// Where in a record a tensor stood. Paths are indices of lists and keys of dicts, joined by dots; keys may
/// contain dots of their own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TensorPlace {
    /// In a value of a call: `input.0`, `kwargs.extra`, `output.1.extra`, `parameters.weight`.
    Value {
        /// The part of the record.
        category: Category,
        /// The path below it; starts with a position, a keyword or a parameter.
        path: String,
    },
    /// The gradient of a parameter: `weight`.
    Gradient {
        /// The parameter's own name, without dots.
        parameter: String,
    },
    /// In a saved variable: `b.0`, or nothing where the variable is the tensor.
    Saved {
        /// The path in the variable.
        path: Option<String>,
    },
}

/// A tensor file's name: `Functional.linear.0.forward.input.0.pt`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TensorFileName {
    record: RecordName,
    place: TensorPlace,
    format: TensorFormat,
}

impl TensorFileName {
    /// A name from its parts. Gradients are of `parameters_grad` records, saved tensors of saved variables, and
    /// values of all others; anything else makes no name.
    pub fn new(
        record: impl Into<RecordName>,
        place: TensorPlace,
        format: TensorFormat,
    ) -> Result<TensorFileName, NameError> {
        let name = TensorFileName { record: record.into(), place, format };
        let is_gradient = matches!(&name.record, RecordName::Module(module)
            if matches!(module.pass(), ModulePass::ParametersGrad(_)));
        let is_saved = matches!(name.record, RecordName::Saved(_));
        let fits = match &name.place {
            TensorPlace::Value { path, .. } => !is_gradient && !is_saved && !path.is_empty(),
            TensorPlace::Gradient { parameter } => {
                is_gradient && !parameter.is_empty() && !parameter.contains('.')
            }
            TensorPlace::Saved { path } => is_saved && path.as_deref() != Some(""),
        };
        if fits { Ok(name) } else { Err(not_a_file(name.to_string())) }
    }

    /// The record the tensor is of.
    pub fn record(&self) -> &RecordName {
        &self.record
    }

    /// Where in the record it stood.
    pub fn place(&self) -> &TensorPlace {
        &self.place
    }

    /// The file's format.
    pub fn format(&self) -> TensorFormat {
        self.format
    }
}

fn not_a_file(text: String) -> NameError {
    NameError {
        text,
        what: "the name of a tensor file",
        form: "record.input.0.pt, record.parameters_grad.weight.pt or name.0.debug.pt",
    }
}

impl fmt::Display for TensorFileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.", self.record)?;
        match &self.place {
            TensorPlace::Value { category, path } => write!(f, "{category}.{path}.")?,
            TensorPlace::Gradient { parameter } => write!(f, "{parameter}.")?,
            TensorPlace::Saved { path: Some(path) } => write!(f, "{path}.")?,
            TensorPlace::Saved { path: None } => {}
        }
        write!(f, "{}", self.format)
    }
}

impl FromStr for TensorFileName {
    type Err = NameError;

    /// The record ends where one first can: keys of dicts may look like the end of a record, names of modules and
    /// functions do not.
    fn from_str(text: &str) -> Result<TensorFileName, NameError> {
        let fail = || not_a_file(text.to_owned());
        if text.len() > MAX_NAME_BYTES {
            return Err(fail());
        }
        let (stem, extension) = text.rsplit_once('.').ok_or_else(fail)?;
        let format = TensorFormat::from_word(extension).ok_or_else(fail)?;
        let segments: Vec<&str> = stem.split('.').collect();
        let (record, place) =
            (1..=segments.len()).find_map(|end| split_at(&segments, end)).ok_or_else(fail)?;
        TensorFileName::new(record, place, format)
    }
}

/// Splits before segment `end`, if what is before it is a record, and what is after it a place in such a record.
fn split_at(segments: &[&str], end: usize) -> Option<(RecordName, TensorPlace)> {
    let (record, place) = segments.split_at_checked(end)?;
    let looks_like = match record {
        [.., word, index] if parse_index(index).is_some() => {
            is_of_module(record.first()?) && (is_direction(word) || *word == PARAMETERS_GRAD)
        }
        [.., index, word] => {
            *word == PARAMETERS_GRAD
                || (parse_index(index).is_some() && (is_direction(word) || *word == DEBUG))
        }
        _ => false,
    };
    // Looking costs little; joining and parsing is for those that can be it.
    let record: RecordName = looks_like.then(|| record.join("."))?.parse().ok()?;
    let place = match &record {
        RecordName::Saved(_) => TensorPlace::Saved { path: (!place.is_empty()).then(|| place.join(".")) },
        RecordName::Module(module) if matches!(module.pass(), ModulePass::ParametersGrad(_)) => match place {
            [parameter] => TensorPlace::Gradient { parameter: (*parameter).to_owned() },
            _ => return None,
        },
        RecordName::Api(_) | RecordName::Module(_) => {
            let (category, path) = place.split_first().filter(|(_, path)| !path.is_empty())?;
            TensorPlace::Value { category: Category::from_word(category)?, path: path.join(".") }
        }
    };
    Some((record, place))
}

fn is_direction(word: &str) -> bool {
    Direction::from_word(word).is_some()
}
