//! Values that are not finite and mean no harm. Each rule has a name, and can be switched off by it.

use msprobe_dump::names::{filling, returns_unwritten_memory};

use crate::record::{Kinds, Record};

/// A rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// Memory nobody has written to yet.
    Uninitialized,
    /// A number that is not finite was given on purpose.
    ExplicitFill,
    /// -Inf that hides elements and ends in a softmax.
    Mask,
    /// What a buffer held before something is received into it.
    ReceiveBuffer,
    /// What a call replaces, overwrites, leaves out or only asks about.
    Absorbed,
    /// A plain number that is not finite, given to a call with finite results.
    Argument,
    /// A mean or norm that does not fit, of elements that do.
    NormOverflow,
}

impl Rule {
    /// All of them.
    pub const ALL: [Rule; 7] = [
        Rule::Uninitialized,
        Rule::ExplicitFill,
        Rule::Mask,
        Rule::ReceiveBuffer,
        Rule::Absorbed,
        Rule::Argument,
        Rule::NormOverflow,
    ];

    /// What it is called on the command line and in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Rule::Uninitialized => "uninitialized",
            Rule::ExplicitFill => "explicit-fill",
            Rule::Mask => "mask",
            Rule::ReceiveBuffer => "receive-buffer",
            Rule::Absorbed => "absorbed",
            Rule::Argument => "argument",
            Rule::NormOverflow => "norm-overflow",
        }
    }

    /// What it takes for harmless.
    pub fn description(self) -> &'static str {
        match self {
            Rule::Uninitialized => {
                "results of empty, empty_like, empty_strided, new_empty: memory nobody has written to yet, \
                 as long as nothing but views and writes touch it"
            }
            Rule::ExplicitFill => {
                "results of full, fill_, masked_fill, where and the like that were given NaN or an infinity as an \
                 argument, as long as it ends there"
            }
            Rule::Mask => {
                "tensors with -inf but neither NaN nor +inf that end in a softmax, or in a call or module whose \
                 results are finite: masks. Also, for early warnings, those with the lowest number of their dtype"
            }
            Rule::ReceiveBuffer => {
                "what the buffers of recv, all_gather, reduce_scatter, … held before data arrived in them"
            }
            Rule::Absorbed => {
                "inputs that nothing recorded made, of calls that replace, overwrite, leave out or only ask about them \
                 (nan_to_num, where, zero_, indexing, isfinite; with infinities also clamp, minimum, sigmoid, division, …) \
                 and whose results are finite; also of the modules around them"
            }
            Rule::Argument => {
                "plain numbers that are NaN or infinite among the arguments of a call whose results are finite: bounds of \
                 clamp, orders of norms, numbers to fill in where nothing was to be filled"
            }
            Rule::NormOverflow => {
                "an infinite Mean or Norm beside finite Max and Min, where the elements are so large that the sum \
                 overflows: float32, for norms of float16 float16"
            }
        }
    }

    /// The rule of this name.
    pub fn named(name: &str) -> Option<Rule> {
        Rule::ALL.into_iter().find(|rule| rule.as_str() == name)
    }
}

/// The rules in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules(Vec<Rule>);

impl Default for Rules {
    fn default() -> Rules {
        Rules(Rule::ALL.to_vec())
    }
}

impl Rules {
    /// All but these.
    pub fn without(switched_off: &[Rule]) -> Rules {
        Rules(Rule::ALL.into_iter().filter(|rule| !switched_off.contains(rule)).collect())
    }

    /// Whether a rule is in force.
    pub fn has(&self, rule: Rule) -> bool {
        self.0.contains(&rule)
    }

    /// The rule by which the results of this call are harmless though its inputs are finite.
    pub fn excuse(&self, record: &Record) -> Option<Rule> {
        let function = record.function();
        let rule = if returns_unwritten_memory(function) {
            Rule::Uninitialized
        } else if record.has_bad_number && takes_fill(function) {
            Rule::ExplicitFill
        } else {
            return None;
        };
        self.has(rule).then_some(rule)
    }
}

/// Only -Inf: what a mask looks like.
pub(crate) fn is_mask(kinds: Kinds) -> bool {
    kinds == Kinds::NEGATIVE
}

/// Functions made for elements hidden by -Inf.
pub(crate) fn expects_masks(record: &Record) -> bool {
    const PARTS: [&str; 5] = ["softmax", "logsumexp", "attention", "cross_entropy", "Softmax"];
    let name = &*record.name;
    PARTS.iter().any(|part| name.contains(part))
}

/// What a call does with the elements it is given, by what it is made for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Treatment {
    /// It reads none, or only asks about them: that its results are finite says nothing of what it read.
    Asks,
    /// It replaces, overwrites or leaves out some: its results can be finite whatever was among them.
    Replaces,
    /// It makes finite numbers of infinities.
    Bounds,
    /// It sums up products or elements: if it makes -Inf of finite numbers, the sum was too large.
    Sums,
    /// It computes with every element, as far as is known: there, finite results contradict inputs that are not.
    Computes,
}

fn treatment(function: &str) -> Treatment {
    match function {
        "ones_like" | "zeros_like" | "rand_like" | "randn_like" | "full_like" | "empty_like"
        | "new_zeros" | "new_ones" | "isfinite" | "isinf" | "isnan" | "isneginf" | "isposinf" | "item"
        | "tolist" | "size" | "numel" | "dim" | "any" | "all" | "equal" | "allclose" | "isclose" | "eq"
        | "ne" | "lt" | "le" | "gt" | "ge" | "__eq__" | "__ne__" | "__lt__" | "__le__" | "__gt__"
        | "__ge__" | "__bool__" | "argmax" | "argmin" | "argsort" | "__len__" => Treatment::Asks,
        "nan_to_num" | "nan_to_num_" | "nansum" | "nanmean" | "nanmedian" | "nanquantile" | "fmin"
        | "fmax" | "where" | "masked_fill" | "masked_fill_" | "masked_select" | "masked_scatter"
        | "masked_scatter_" | "index_select" | "index_copy" | "index_copy_" | "index_put" | "index_put_"
        | "index_fill" | "index_fill_" | "gather" | "scatter" | "scatter_" | "take" | "take_along_dim"
        | "__getitem__" | "select" | "narrow" | "topk" | "kthvalue" | "tril" | "triu" | "copy_" | "fill_"
        | "zero_" | "set_" | "normal_" | "uniform_" | "random_" | "bernoulli_" | "exponential_"
        | "trunc_normal_" | "bucketize" | "searchsorted" | "signbit" => Treatment::Replaces,
        "clamp" | "clamp_" | "clip" | "clip_" | "minimum" | "maximum" | "min" | "max" | "amin" | "amax"
        | "relu" | "relu_" | "relu6" | "hardtanh" | "hardsigmoid" | "sigmoid" | "sigmoid_" | "tanh"
        | "tanh_" | "erf" | "atan" | "sign" | "exp" | "softplus" | "elu" | "gelu" | "silu" | "div"
        | "__truediv__" | "__rtruediv__" | "reciprocal" | "rsqrt" | "remainder" => Treatment::Bounds,
        "matmul" | "__matmul__" | "__rmatmul__" | "mm" | "bmm" | "addmm" | "baddbmm" | "linear"
        | "einsum" | "conv1d" | "conv2d" | "conv3d" | "sum" | "mean" | "cumsum" | "dot" | "mul"
        | "__mul__" => Treatment::Sums,
        _ => Treatment::Computes,
    }
}

/// Calls that read no elements, or only ask about them.
pub(crate) fn looks_only(function: &str) -> bool {
    treatment(function) == Treatment::Asks
}

/// Calls that sum up products or elements.
pub(crate) fn sums_up(function: &str) -> bool {
    treatment(function) == Treatment::Sums
}

/// Calls that can have finite results though these are among the elements they are given.
pub(crate) fn can_absorb(function: &str, kinds: Kinds) -> bool {
    let absorbs = match treatment(function) {
        Treatment::Asks | Treatment::Replaces => true,
        Treatment::Bounds => !kinds.contains(Kinds::NAN),
        Treatment::Sums | Treatment::Computes => false,
    };
    absorbs || returns_unwritten_memory(function)
}

fn takes_fill(function: &str) -> bool {
    filling(function).is_some()
        || matches!(function, "where" | "__setitem__" | "nan_to_num" | "scalar_tensor")
}

/// Calls that show the same memory in another shape or write into it: what was never written stays so.
pub(crate) fn keeps_memory(function: &str) -> bool {
    const VIEWS: [&str; 30] = [
        "view",
        "view_as",
        "reshape",
        "flatten",
        "unflatten",
        "narrow",
        "__getitem__",
        "__setitem__",
        "select",
        "chunk",
        "split",
        "unbind",
        "squeeze",
        "unsqueeze",
        "transpose",
        "t",
        "permute",
        "swapaxes",
        "movedim",
        "expand",
        "expand_as",
        "as_strided",
        "detach",
        "detach_",
        "contiguous",
        "to",
        "requires_grad_",
        "set_",
        "copy_",
        "data",
    ];
    VIEWS.contains(&function)
}
