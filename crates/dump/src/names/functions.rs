//! What is known of functions by their names, where it matters for values that are not finite.

/// How a function fills in a number it is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filling {
    /// Everywhere: what was there before is not read.
    Everywhere,
    /// Here and there: the rest stays what it was.
    Partly,
}

/// Whether a function (`empty` of `Torch.empty`) returns memory that nobody has written to.
pub fn returns_unwritten_memory(function: &str) -> bool {
    matches!(
        function,
        "empty"
            | "empty_like"
            | "empty_strided"
            | "empty_permuted"
            | "empty_quantized"
            | "empty_with_format"
            | "new_empty"
            | "new_empty_strided"
            | "resize_"
            | "resize_as_"
    )
}

/// Whether and how a function fills in a number it is given.
pub fn filling(function: &str) -> Option<Filling> {
    match function {
        "full" | "full_like" | "new_full" | "fill" | "fill_" => Some(Filling::Everywhere),
        "masked_fill" | "masked_fill_" | "index_fill" | "index_fill_" | "fill_diagonal_" | "pad"
        | "constant_pad_nd" => Some(Filling::Partly),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_known_by_their_whole_name() {
        assert!(returns_unwritten_memory("new_empty") && !returns_unwritten_memory("empty_cache"));
        assert_eq!(filling("full"), Some(Filling::Everywhere));
        assert_eq!(filling("masked_fill_"), Some(Filling::Partly));
        assert_eq!(filling("fully_connected"), None);
    }
}
