//! Finding the arrays of a run: `data/{key}/step{S}/rank{R}/micro_step{M}/{key}.{id}.npy`, or directly beneath the
//! rank.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::Place;
use crate::console::{Console, LimitedWarnings};
use crate::error::{Code, CompareError};

/// The arrays of each key, in order of their place. Each place has one.
pub type Arrays = BTreeMap<String, Vec<(Place, PathBuf)>>;

/// Numbers and paths of one level of the tree, in order.
pub type Level = Vec<(i64, PathBuf)>;

/// Finds the arrays beneath a `data` directory. A key without any is left out.
pub fn find_arrays(dir: &Path, console: &dyn Console) -> Result<Arrays, CompareError> {
    check_data_directory(dir)?;
    let warnings = LimitedWarnings::new(console, "places with several arrays");
    let mut keys = Arrays::new();
    for (name, key) in entries(dir)? {
        let found = if key.is_dir() { arrays_of_key(&key, console)? } else { continue };
        let found = one_per_place(found, &warnings);
        if !found.is_empty() {
            keys.insert(name, found);
        }
    }
    Ok(keys)
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

fn arrays_of_key(key: &Path, console: &dyn Console) -> Result<Vec<(Place, PathBuf)>, CompareError> {
    let mut found = Vec::new();
    for (step, path) in steps(key, console)? {
        for (rank, path) in ranks(&path, console)? {
            for (micro_step, path) in micro_steps(&path, console)? {
                let arrays = arrays(&path)?;
                found.extend(
                    arrays.into_iter().map(|(id, file)| (Place { step, rank, micro_step, id }, file)),
                );
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Keeps the first file of each place. The order of names decides, so that every run of the comparison agrees.
fn one_per_place(found: Vec<(Place, PathBuf)>, warnings: &LimitedWarnings<'_>) -> Vec<(Place, PathBuf)> {
    let mut kept: Vec<(Place, PathBuf)> = Vec::with_capacity(found.len());
    for (place, file) in found {
        match kept.last() {
            Some((last, first)) if *last == place => warnings.warning(|| {
                let Place { step, rank, micro_step, id } = place;
                format!(
                    "{} and {} are both step {step}, rank {rank}, micro_step {micro_step}, id {id}: only the first \
                     one is compared",
                    first.display(),
                    file.display()
                )
            }),
            _ => kept.push((place, file)),
        }
    }
    kept
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
        match name.strip_prefix("micro_step").filter(|_| path.is_dir()) {
            // Scripts know the message with this spelling.
            Some(rest) => {
                found.push((
                    number(rest, "micro_step", "parse nicro_step number error", &path, console)?,
                    path,
                ));
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
    let in_rank = dir.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"rank"));
    let key = dir.ancestors().nth(2).and_then(Path::file_name).and_then(OsStr::to_str);
    let mut found: Level = entries(dir)?
        .into_iter()
        .filter_map(|(name, path)| {
            let stem = name.strip_suffix(".npy")?;
            let by_underscore = in_rank && key != Some(stem);
            Some((array_id(stem, by_underscore), path))
        })
        .collect();
    found.sort();
    Ok(found)
}

/// `responses.11` is number 11. So is `responses_11` in a rank without micro steps, as the newest tools name it.
fn array_id(stem: &str, by_underscore: bool) -> i64 {
    let last = stem.rsplit('.').next().unwrap_or(stem);
    if let Some(id) = digits(last) {
        return id;
    }
    match stem.rsplit_once('_') {
        Some((name, id)) if by_underscore && is_word(name) => digits(id).unwrap_or(0),
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
        if let Some(rest) = name.strip_prefix(prefix) {
            let number = number(rest, prefix, message, &path, console)?;
            if path.is_dir() {
                found.push((number, path));
            }
        }
    }
    found.sort();
    Ok(found)
}

fn number(
    text: &str,
    prefix: &str,
    message: &'static str,
    path: &Path,
    console: &dyn Console,
) -> Result<i64, CompareError> {
    python_int(text).ok_or_else(|| {
        // The message is one that scripts test for, so which name it is about stands before it.
        console.error(&format!(
            "the name of {} is not {prefix} and a number: rename or remove it",
            path.display()
        ));
        CompareError::new(Code::BrokenJson, message)
    })
}

/// A number as Python's `int` reads it: blanks around it, a sign, single underscores between digits.
fn python_int(text: &str) -> Option<i64> {
    let text = text.trim();
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let groups: Vec<&str> = rest.split('_').collect();
    let whole = |group: &&str| !group.is_empty() && group.bytes().all(|byte| byte.is_ascii_digit());
    if !groups.iter().all(whole) {
        return None;
    }
    format!("{sign}{}", groups.concat()).parse().ok()
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
