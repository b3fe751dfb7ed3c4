//! Numbers and lists in sentences.

/// `1 pair`, `3 pairs`.
pub fn counted(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// `a, b and 7 more`: the first names, and how many there are beyond them.
pub fn some_of<S: AsRef<str>>(names: impl IntoIterator<Item = S>, most: usize) -> String {
    let mut names = names.into_iter();
    let mut text = String::new();
    for (index, name) in names.by_ref().take(most).enumerate() {
        text.push_str(if index > 0 { ", " } else { "" });
        text.push_str(name.as_ref());
    }
    match names.count() {
        0 => text,
        more => format!("{text} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_lists_are_words() {
        assert_eq!((counted(1, "key"), counted(0, "key")), ("1 key".to_owned(), "0 keys".to_owned()));
        assert_eq!([some_of(["a", "b"], 2), some_of(["a", "b", "c", "d"], 2)], ["a, b", "a, b and 2 more"]);
        assert_eq!(some_of([""; 0], 2), "");
    }
}
