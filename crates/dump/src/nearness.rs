//! How near one word is to another: for hints about words that mean nothing where they stand.

/// What is compared of a word; names of records are shorter.
const MAX_CHARS: usize = 256;

/// The fewest single-character changes, whatever the case, that make `pattern` out of `text`; with `inside`, out of
/// any part of it.
pub(crate) fn distance(pattern: &str, text: &str, inside: bool) -> usize {
    let folded = |text: &str| -> Vec<char> {
        text.chars().take(MAX_CHARS).map(|char| char.to_ascii_lowercase()).collect()
    };
    let (pattern, text) = (folded(pattern), folded(text));
    // One column of the usual table: the cost of each beginning of the pattern at one place in the text.
    let mut column: Vec<usize> = (0..=pattern.len()).collect();
    let mut best = pattern.len();
    for (place, char) in text.iter().enumerate() {
        let mut diagonal = if inside { 0 } else { place };
        let mut above = if inside { 0 } else { place + 1 };
        if let Some(first) = column.first_mut() {
            *first = above;
        }
        for (cell, wanted) in column.iter_mut().skip(1).zip(&pattern) {
            let cost = (diagonal + usize::from(wanted != char)).min(above + 1).min(*cell + 1);
            diagonal = std::mem::replace(cell, cost);
            above = cost;
        }
        best = best.min(above);
    }
    if inside { best } else { column.last().copied().unwrap_or_default() }
}

/// The word nearest to `wanted`, if it is near enough to be what was meant: at most a third of it is to be changed.
pub(crate) fn meant<'a>(wanted: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = |word: &&str| distance(wanted, word, false) <= wanted.chars().count().div_ceil(3);
    words.into_iter().filter(near).min_by_key(|word| distance(wanted, word, false))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn changes_are_counted() {
        for (pattern, text, whole, inside) in [
            ("", "", 0, 0),
            ("", "abc", 3, 0),
            ("abc", "", 3, 3),
            ("kitten", "sitting", 3, 2),
            ("relu", "Functional.relu.0.forward", 21, 0),
            ("rleu", "Functional.relu.0.forward", 22, 2),
            ("DISTRIBUTED", "distributed", 0, 0),
            ("linaer", "Functional.linear", 12, 2),
            ("语言", "语音", 1, 1),
        ] {
            assert_eq!(distance(pattern, text, false), whole, "{pattern} {text}");
            assert_eq!(distance(pattern, text, true), inside, "{pattern} {text}");
        }
        let long = "x".repeat(100_000);
        assert_eq!(distance(&long, &long, false), 0);
    }

    #[test]
    fn only_what_can_be_meant_is_offered() {
        let keys = ["dump_path", "step", "rank", "level"];
        assert_eq!(meant("dump_pth", keys), Some("dump_path"));
        assert_eq!(meant("Level", keys), Some("level"));
        assert_eq!(meant("steps", keys), Some("step"));
        assert_eq!(meant("foo", keys), None);
    }

    /// By the definition, without a table.
    fn naive(a: &[char], b: &[char]) -> usize {
        match (a, b) {
            ([], rest) | (rest, []) => rest.len(),
            ([x, a @ ..], [y, b @ ..]) if x == y => naive(a, b),
            ([_, a_rest @ ..], [_, b_rest @ ..]) => {
                1 + naive(a_rest, b).min(naive(a, b_rest)).min(naive(a_rest, b_rest))
            }
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(a in "[a-c]{0,5}", b in "[a-c]{0,5}") {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            prop_assert_eq!(distance(&a, &b, false), naive(&chars(&a), &chars(&b)));
            let parts = (0..=b.len()).flat_map(|from| (from..=b.len()).map(move |to| (from, to)));
            let best = parts.map(|(from, to)| naive(&chars(&a), &chars(&b[from..to]))).min();
            prop_assert_eq!(Some(distance(&a, &b, true)), best);
        }
    }
}
