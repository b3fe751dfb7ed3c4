//! The seam to a framework: what it calls its things in a dump and in a configuration. All else that is particular to one
//! is its adapter's.

use crate::names::TensorFormat;

/// The words of a framework.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Framework {
    /// Its name in the head of the JSON files, and in messages.
    pub name: String,
    /// The type of a tensor in records.
    pub tensor_type: String,
    /// The type of the sizes of a tensor, where it has one of its own.
    pub size_type: String,
    /// The format of tensor files.
    pub tensor_format: TensorFormat,
    /// Prefixes an end of a scope can have: of its own APIs, without those a script registers.
    pub api_prefixes: Vec<String>,
    /// Keys that configurations of other frameworks have, and whose they are. They do nothing under this one.
    pub foreign_keys: Vec<(String, String)>,
    /// Whether records say which tensors require gradients and which calls recompute.
    pub tells_autograd: bool,
    /// Whether tensors say themselves where their elements lie. If not, the adapter brings each to host memory.
    pub tells_places: bool,
    /// Whether numbers are measured as 32-bit floats: a double beyond them is infinite. Complex numbers then have a norm.
    pub measures_singles: bool,
}

#[cfg(test)]
impl Framework {
    /// One to test with.
    pub(crate) fn known() -> Framework {
        Framework {
            name: "pytorch".to_owned(),
            tensor_type: "torch.Tensor".to_owned(),
            size_type: "torch.Size".to_owned(),
            tensor_format: TensorFormat::Pt,
            api_prefixes: ["Distributed", "Functional", "Torch", "Tensor"].map(str::to_owned).to_vec(),
            foreign_keys: vec![("device".to_owned(), "MindSpore's static graphs".to_owned())],
            tells_autograd: true,
            tells_places: true,
            measures_singles: false,
        }
    }
}
