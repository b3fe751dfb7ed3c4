//! Finding the arrays of a run: `data/{key}/step{S}/rank{R}/micro_step{M}/{key}.{id}.npy`, or directly beneath the
//! rank. What is in the tree and is no array of it is kept as unread: nobody may say of it that it is the same.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use msprobe_dump::names::key_data_dir;
use msprobe_report::console::Console;
use msprobe_report::error::{Code, CompareError};

use super::ArrayPlace;

const MICRO_STEP: &str = "micro_step";

/// The arrays of each key, in order of their place, then of their names: the members of a dict share a place.
pub type Arrays = BTreeMap<String, Vec<(ArrayPlace, PathBuf)>>;

/// Numbers and paths of one level of the tree, in order.
pub type Level = Vec<(i64, PathBuf)>;

/// What is beneath a `data` directory.
#[derive(Debug, Default)]
pub struct Found {
    /// The arrays.
    pub arrays: Arrays,
    /// What should hold arrays and was passed over, each with the reason.
    pub unread: Vec<String>,
}

/// Finds the arrays beneath a `data` directory. A key without any is left out.
pub fn find_arrays(dir: &Path, console: &dyn Console) -> Result<Arrays, CompareError> {
    Ok(find_everything(dir, console)?.arrays)
}

/// Finds the arrays beneath a `data` directory, and what is there besides.
pub fn find_everything(dir: &Path, console: &dyn Console) -> Result<Found, CompareError> {
    check_data_directory(dir)?;
    let mut found = Found::default();
    for (name, key) in entries(dir)? {
        if !key.is_dir() {
            found.pass_over(&name, &key, "it is no directory of a key");
            continue;
        }
        let before = found.unread.len();
        let arrays = arrays_of_key(&key, console, &mut found)?;
        if !arrays.is_empty() {
            found.arrays.insert(name, arrays);
        } else if found.unread.len() == before {
            found.unread.push(format!("{}: there is no array in it", key.display()));
        }
    }
    Ok(found)
}

impl Found {
    /// Notes what is not read. Hidden files are nobody's data.
    fn pass_over(&mut self, name: &str, path: &Path, reason: &str) {
        if !name.starts_with('.') {
            self.unread.push(format!("{}: {reason}", path.display()));
        }
    }

    /// Notes a directory of a level with nothing in it: what should be there is not compared.
    fn note_if_empty(&mut self, dir: &Path) {
        let has_entries =
            |entries: Vec<(String, PathBuf)>| entries.iter().any(|(name, _)| !name.starts_with('.'));
        if entries(dir).is_ok_and(|entries| !has_entries(entries)) {
            self.unread.push(format!("{}: there is nothing in it", dir.display()));
        }
    }

    /// What is in a directory; one that cannot be listed costs what is in it.
    fn list<T: Default>(&mut self, listed: Result<T, CompareError>) -> Result<T, CompareError> {
        match listed {
            Err(error) if error.code == Code::IllegalPath => {
                self.unread.push(error.message);
                Ok(T::default())
            }
            listed => listed,
        }
    }

    /// Notes what is in a directory and is none of the expected directories.
    fn pass_over_others(&mut self, dir: &Path, expected: &Level, what: &str) {
        for (name, path) in entries(dir).unwrap_or_default() {
            if !expected.iter().any(|(_, known)| *known == path) {
                self.pass_over(&name, &path, &format!("it is no directory of a {what}"));
            }
        }
    }
}

fn check_data_directory(dir: &Path) -> Result<(), CompareError> {
    const HINT: &str = "give the dump_path, the directory that holds data/";
    let fail = |text: String| Err(CompareError::new(Code::IllegalPath, text).with_hint(HINT));
    match fs::symlink_metadata(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fail(format!("The file path {} does not exist.", dir.display()))
        }
        Err(error) => Err(cannot_read(dir, &error)),
        Ok(found) if found.is_symlink() => fail(format!("The file path {} is a soft link.", dir.display())),
        Ok(found) if !found.is_dir() => fail(format!("The {} should be a directory!", dir.display())),
        Ok(_) => Ok(()),
    }
}

fn arrays_of_key(
    key: &Path,
    console: &dyn Console,
    found: &mut Found,
) -> Result<Vec<(ArrayPlace, PathBuf)>, CompareError> {
    let mut all = Vec::new();
    let steps_of_key = found.list(steps(key, console))?;
    found.pass_over_others(key, &steps_of_key, "step");
    for (step, path) in steps_of_key {
        found.note_if_empty(&path);
        let ranks_of_step = found.list(ranks(&path, console))?;
        found.pass_over_others(&path, &ranks_of_step, "rank");
        for (rank, rank_path) in ranks_of_step {
            found.note_if_empty(&rank_path);
            let micro_steps_of_rank = found.list(micro_steps(&rank_path, console))?;
            for (micro_step, path) in micro_steps_of_rank {
                if path != rank_path {
                    found.note_if_empty(&path);
                }
                let arrays_here = found.list(arrays(&path))?;
                for (name, entry) in entries(&path).unwrap_or_default() {
                    // A rank without micro steps may have some besides.
                    let is_level =
                        path == rank_path && key_data_dir(&name, MICRO_STEP).is_some() && entry.is_dir();
                    // Statistics of the arrays beside them.
                    let is_summary = entry.extension().is_some_and(|kind| kind == "json");
                    if !is_level && !is_summary && !arrays_here.iter().any(|(_, array)| *array == entry) {
                        found.pass_over(&name, &entry, "it is no .npy file");
                    }
                }
                all.extend(
                    arrays_here
                        .into_iter()
                        .map(|(id, file)| (ArrayPlace { step, rank, micro_step, id }, file)),
                );
            }
        }
    }
    all.sort();
    Ok(all)
}

/// The steps of a key.
pub fn steps(key: &Path, console: &dyn Console) -> Result<Level, CompareError> {
    numbered_directories(key, "step", "parse step number error", console)
}

/// The ranks of a step.
pub fn ranks(step: &Path, console: &dyn Console) -> Result<Level, CompareError> {
    numbered_directories(step, "rank", "parse rank number error", console)
}

/// The micro steps of a rank. Where anything else lies there, the rank itself is micro step 0 too.
pub fn micro_steps(rank: &Path, console: &dyn Console) -> Result<Level, CompareError> {
    let mut found = Level::new();
    let mut flat = false;
    for (name, path) in entries(rank)? {
        match key_data_dir(&name, MICRO_STEP).filter(|_| path.is_dir()) {
            Some(Ok(number)) => found.push((number, path)),
            // Scripts know the message with this spelling.
            Some(Err(_)) => {
                return Err(no_number(MICRO_STEP, "parse nicro_step number error", &path, console));
            }
            None => flat = true,
        }
    }
    if flat {
        found.push((0, rank.to_owned()));
    }
    found.sort();
    Ok(found)
}

/// The arrays of a micro step, or of a rank that has none.
pub fn arrays(dir: &Path) -> Result<Level, CompareError> {
    let in_rank =
        dir.file_name().and_then(OsStr::to_str).is_some_and(|name| key_data_dir(name, "rank").is_some());
    let levels_above = if in_rank { 2 } else { 3 };
    let key = dir.ancestors().nth(levels_above).and_then(Path::file_name).and_then(OsStr::to_str);
    let mut found: Level = entries(dir)?
        .into_iter()
        .filter_map(|(name, path)| {
            let stem = name.strip_suffix(".npy")?;
            Some((array_id(stem, key.unwrap_or_default(), in_rank), path))
        })
        .collect();
    found.sort();
    Ok(found)
}

/// `responses.11` is number 11, and so is `responses11`, as the manual shows it. So is `responses_11` in a rank without
/// micro steps, as the newest tools name it.
fn array_id(stem: &str, key: &str, in_rank: bool) -> i64 {
    let last = stem.rsplit('.').next().unwrap_or(stem);
    if let Some(id) = digits(last) {
        return id;
    }
    // A key may end in a number itself.
    if stem == key {
        return 0;
    }
    if let Some(id) = stem.strip_prefix(key).filter(|_| !key.is_empty()).and_then(digits) {
        return id;
    }
    match stem.rsplit_once('_') {
        Some((name, id)) if in_rank && is_word(name) => digits(id).unwrap_or(0),
        _ => 0,
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|letter| letter.is_alphanumeric() || letter == '_')
}

fn digits(text: &str) -> Option<i64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

fn numbered_directories(
    dir: &Path,
    prefix: &str,
    message: &'static str,
    console: &dyn Console,
) -> Result<Level, CompareError> {
    let mut found = Level::new();
    for (name, path) in entries(dir)? {
        if let Some(number) = key_data_dir(&name, prefix) {
            let number = number.map_err(|_| no_number(prefix, message, &path, console))?;
            if path.is_dir() {
                found.push((number, path));
            }
        }
    }
    found.sort();
    Ok(found)
}

fn no_number(prefix: &str, message: &'static str, path: &Path, console: &dyn Console) -> CompareError {
    // The message is one that scripts test for, so which name it is about stands before it.
    console
        .error(&format!("the name of {} is not {prefix} and a number: rename or remove it", path.display()));
    CompareError::new(Code::BrokenJson, message)
}

/// Names and paths in a directory, in order of the names. One that is not text is shown with replacements.
fn entries(dir: &Path) -> Result<Vec<(String, PathBuf)>, CompareError> {
    let list = || -> io::Result<Vec<(String, PathBuf)>> {
        fs::read_dir(dir)?
            .map(|entry| entry.map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path())))
            .collect()
    };
    let mut found = list().map_err(|error| cannot_read(dir, &error))?;
    found.sort();
    Ok(found)
}

fn cannot_read(dir: &Path, error: &io::Error) -> CompareError {
    CompareError::new(Code::IllegalPath, format!("cannot read {}: {error}", dir.display()))
        .with_hint("check the permissions of the directory")
}

#[cfg(test)]
mod tests;
