//! File names made of parameter names.

use std::borrow::Cow;
use std::collections::HashSet;

/// Longest name of a file.
const MOST_BYTES: usize = 255;

/// The name a parameter's file has without its `ending`: the parameter's own where a file can be called so. Otherwise
/// what a file cannot have becomes `_`, a long name is cut, and a checksum of the whole name keeps it apart from others.
pub fn file_stem<'a>(parameter: &'a str, ending: &str) -> Cow<'a, str> {
    let room = MOST_BYTES.saturating_sub(ending.len());
    let forbidden = |character: char| character == '/' || character.is_control();
    // With the ending, neither `.` nor `..` nor nothing is special.
    if parameter.len() <= room && !parameter.contains(forbidden) {
        return Cow::Borrowed(parameter);
    }
    let mark = format!("~{:08x}", crc32fast::hash(parameter.as_bytes()));
    let mut stem = parameter.replace(forbidden, "_");
    let mut cut = stem.len().min(room.saturating_sub(mark.len()));
    while !stem.is_char_boundary(cut) {
        cut -= 1;
    }
    stem.truncate(cut);
    stem.push_str(&mark);
    Cow::Owned(stem)
}

/// Names for the files of several parameters, each its own. `taken` are names they must not have.
pub(super) fn distinct_files<'a>(
    parameters: impl Iterator<Item = &'a str>,
    ending: &str,
    taken: &[String],
) -> Vec<String> {
    let parameters: Vec<&str> = parameters.collect();
    let mut used: HashSet<String> = taken.iter().cloned().collect();
    let mut files: Vec<Option<String>> = parameters
        .iter()
        .map(|parameter| Some(format!("{}{ending}", file_stem(parameter, ending))))
        .map(|file| file.filter(|file| used.insert(file.clone())))
        .collect();
    // Those whose name is taken come last, so that nobody else loses theirs.
    for (parameter, file) in parameters.iter().zip(&mut files) {
        if file.is_none() {
            let free = (1u32..).map(|number| {
                let ending = format!("_{number}{ending}");
                format!("{}{ending}", file_stem(parameter, &ending))
            });
            *file = free.into_iter().find(|file| used.insert(file.clone()));
        }
    }
    files.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENDING: &str = "_similarities.png";

    #[test]
    fn most_names_stay() {
        for name in ["fc1.weight", "层.权重", ".", "..", "a b", ""] {
            assert_eq!(file_stem(name, ENDING), name);
        }
    }

    #[test]
    fn names_no_file_can_have_are_made_safe() {
        assert_eq!(file_stem("a/b", ".npy"), format!("a_b~{}", crc("a/b")));
        assert!(!file_stem("../../x\0\n", ".npy").contains(['/', '\0', '\n']));
        for long in ["x".repeat(300), "权".repeat(300)] {
            let stem = file_stem(&long, ENDING);
            assert!(stem.len() + ENDING.len() <= 255 && stem.ends_with(&crc(&long)), "{stem}");
        }
    }

    fn crc(text: &str) -> String {
        format!("{:08x}", crc32fast::hash(text.as_bytes()))
    }

    #[test]
    fn no_file_is_written_twice() {
        let taken = ["summary_similarities.png".to_owned()];
        let files = distinct_files(["summary", "summary_1", "a", "a/b", "a_b"].into_iter(), ENDING, &taken);
        let ab = format!("a_b~{}_similarities.png", crc("a/b"));
        assert_eq!(
            files,
            [
                "summary_2_similarities.png",
                "summary_1_similarities.png",
                "a_similarities.png",
                &ab,
                "a_b_similarities.png"
            ]
        );
    }
}
