//! MindSpore APIs whose PyTorch counterpart has another name. All others are called the same in both.

/// The PyTorch name of a MindSpore API, both as `{type}.{name}`; none if it is the same.
pub(super) fn pytorch_name(api: &str) -> Option<String> {
    let renamed = match api {
        "Functional.bidense" => "Functional.bilinear",
        "Functional.dense" => "Functional.linear",
        "Functional.equal" => "Torch.eq",
        "Functional.swapaxes" => "Torch.transpose",
        "Tensor.asnumpy" => "Tensor.numpy",
        "Tensor.cauchy" => "Tensor.cauchy_",
        "Tensor.equal" => "Tensor.eq",
        "Tensor.fill_diagonal" => "Tensor.fill_diagonal_",
        "Tensor.gather_elements" => "Tensor.gather",
        "Tensor.swapaxes" => "Tensor.transpose",
        _ => return functional_in_torch(api.strip_prefix("Functional.")?),
    };
    Some(renamed.to_owned())
}

/// The name of a function that torch has itself.
fn functional_in_torch(name: &str) -> Option<String> {
    match name {
        "abs" | "absolute" | "acos" | "acosh" | "add" | "addbmm" | "addcdiv" | "addcmul" | "addmm"
        | "addmv" | "angle" | "arange" | "arccos" | "arccosh" | "arcsinh" | "arctan" | "arctanh"
        | "argmax" | "asin" | "asinh" | "atan" | "atan2" | "atanh" | "baddbmm" | "bartlett_window"
        | "bincount" | "bitwise_and" | "bitwise_or" | "bitwise_xor" | "blackman_window" | "ceil"
        | "cholesky_solve" | "clamp" | "clip" | "column_stack" | "conj" | "cosh" | "cross" | "cumprod"
        | "diag_embed" | "diagflat" | "diagonal" | "digamma" | "dist" | "div" | "divide" | "einsum"
        | "erf" | "erfc" | "exp" | "exp2" | "expm1" | "eye" | "flip" | "fliplr" | "flipud"
        | "floor_divide" | "fmax" | "fmod" | "full" | "full_like" | "gcd" | "geqrf" | "greater"
        | "greater_equal" | "hamming_window" | "hann_window" | "heaviside" | "histc" | "hsplit"
        | "hstack" | "hypot" | "i0" | "igamma" | "igammac" | "imag" | "inner" | "inverse" | "is_nonzero"
        | "is_tensor" | "isinf" | "isneginf" | "isposinf" | "isreal" | "kaiser_window" | "kron" | "lcm"
        | "lerp" | "log1p" | "logaddexp" | "logaddexp2" | "logdet" | "logical_and" | "logical_not"
        | "logical_or" | "logical_xor" | "logit" | "logspace" | "lt" | "lu_solve" | "lu_unpack"
        | "masked_select" | "matmul" | "mm" | "moveaxis" | "movedim" | "msort" | "mul" | "multiply"
        | "nan_to_num" | "nansum" | "neg" | "negative" | "nextafter" | "nonzero" | "not_equal" | "numel"
        | "ones_like" | "orgqr" | "outer" | "permute" | "polar" | "pow" | "rand" | "rand_like" | "randn"
        | "randn_like" | "ravel" | "real" | "reciprocal" | "remainder" | "reshape" | "roll" | "rot90"
        | "round" | "row_stack" | "rsqrt" | "searchsorted" | "sgn" | "sign" | "signbit" | "sin" | "sinc"
        | "sinh" | "slogdet" | "square" | "subtract" | "sum" | "swapdims" | "t" | "tan" | "topk"
        | "trace" | "trapz" | "tril" | "tril_indices" | "triu_indices" | "true_divide" | "trunc"
        | "unbind" | "unsqueeze" | "vander" | "view_as_real" | "vsplit" | "where" | "xlogy"
        | "zeros_like" => Some(format!("Torch.{name}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_those_of_pytorch() {
        for (api, expected) in [
            ("Functional.dense", "Functional.linear"),
            ("Functional.equal", "Torch.eq"),
            ("Tensor.gather_elements", "Tensor.gather"),
            ("Functional.abs", "Torch.abs"),
            ("Functional.zeros_like", "Torch.zeros_like"),
        ] {
            assert_eq!(pytorch_name(api).as_deref(), Some(expected));
        }
    }

    #[test]
    fn other_names_stay() {
        for api in ["Functional.softmax", "Tensor.abs", "Torch.abs", "Functional.", "abs", ""] {
            assert_eq!(pytorch_name(api), None);
        }
    }
}
