//! One output, or one gradient, of one side.

use msprobe_tensor::TensorView;

/// A value that an operator gave.
#[derive(Debug, Clone)]
pub enum Leaf<'a> {
    /// A tensor in host memory.
    Tensor(TensorView<'a>),
    /// Nothing.
    None,
    /// Number, bool or text: its Python type and its value as text.
    Plain {
        /// `<class 'int'>`
        type_text: String,
        /// What `==` compares.
        value: Plain,
    },
    /// Anything else.
    Other {
        /// `<class 'dict'>`
        type_text: String,
        /// Of a dict, its keys as text.
        keys: Option<Vec<String>>,
    },
}

/// A value that Python compares by itself.
#[derive(Debug, Clone, PartialEq)]
pub enum Plain {
    /// A whole number, of any length, or a bool.
    Int(String),
    /// A float.
    Float(f64),
    /// A text.
    Text(String),
}

impl Leaf<'_> {
    /// What has to be the same of both sides before they can be compared.
    pub(crate) fn type_text(&self) -> &str {
        match self {
            Leaf::Tensor(_) => "<class 'torch.Tensor'>",
            Leaf::None => "<class 'NoneType'>",
            Leaf::Plain { type_text, .. } | Leaf::Other { type_text, .. } => type_text,
        }
    }
}
