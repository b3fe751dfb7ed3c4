//! Files that are complete under their final name or not there, with the modes users were promised, and never in the
//! place of a file that was there before.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};

use chrono::{DateTime, Local, NaiveDateTime, TimeDelta};

use crate::console::Console;
pub use crate::unfinished::abandon;
use crate::unfinished::{Placed, Unfinished};

/// What users were promised: for them and their group.
const DIRECTORY_MODE: u32 = 0o750;
/// How names carry times: `20261116093007`.
const STAMP: &str = "%Y%m%d%H%M%S";
const STAMP_DIGITS: usize = 14;
/// Names that are tried before giving up.
const MOST_NAMES: usize = 100_000;

/// Local time as file names carry it: `20261116093007`.
pub fn timestamp() -> String {
    Local::now().format(STAMP).to_string()
}

/// Names in a directory, sorted. One that is not text is shown with replacements.
pub fn names_in(directory: &Path) -> io::Result<Vec<String>> {
    let name = |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
    let mut names = fs::read_dir(directory)?.map(name).collect::<io::Result<Vec<String>>>()?;
    names.sort_unstable();
    Ok(names)
}

/// Makes a directory for results, with its parents, for the user and the group.
pub fn make_directory(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(path)
}

/// Makes a directory in one that the user named, and gives its path. Links in it are not followed: the user did not name
/// where they lead.
pub fn make_directory_in(root: &Path, relative: &Path) -> io::Result<PathBuf> {
    make_directory(root)?;
    let mut path = root.to_owned();
    for part in relative.components() {
        let Component::Normal(name) = part else { continue };
        path.push(name);
        match fs::DirBuilder::new().mode(DIRECTORY_MODE).create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if !fs::symlink_metadata(&path)?.is_dir() {
                    let what = format!("{} is a link or a file, not a directory", path.display());
                    return Err(io::Error::new(io::ErrorKind::NotADirectory, what));
                }
            }
            result => result?,
        }
    }
    Ok(path)
}

/// Writes a file of a fixed name. One that is there already is kept under the time at which it was written, and that is
/// said.
pub fn publish(
    path: &Path,
    console: &dyn Console,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let mut file = Unfinished::begin(path)?;
    write(file.file())?;
    let message = match file.place(path, |older| kept_names(path, older))? {
        Placed::New => return Ok(()),
        Placed::Kept(older) => format!(
            "{} was there already, it is kept as {}",
            path.display(),
            older.file_name().unwrap_or_default().to_string_lossy()
        ),
        Placed::Replaced => format!("{} was there already, it is replaced", path.display()),
    };
    drop(file);
    console.warning(&message);
    Ok(())
}

/// Writes a file whose name carries a number that makes it another file each time, and gives the path it got: that number
/// goes up until the name is free. Numbers of fourteen digits are times, and go up by a second.
pub fn publish_numbered(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<PathBuf> {
    let mut file = Unfinished::begin(path)?;
    write(file.file())?;
    file.place_first_free(numbered_names(path).take(MOST_NAMES))
}

/// The same for writers that open the file themselves: they are given the path it has until it is complete, and find an empty
/// file there.
pub fn publish_numbered_by_path<E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<PathBuf, E> {
    let file = Unfinished::begin(path)?;
    write(file.path())?;
    Ok(file.place_first_free(numbered_names(path).take(MOST_NAMES))?)
}

/// Writes a file that the user named: one that is there gives way, as saving means. Complete or not at all.
pub fn save(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let mut file = Unfinished::begin(path)?;
    write(file.file())?;
    file.replace(path)
}

/// `verdict_20261116093007.json` and later seconds, for a file that was written then.
fn kept_names(path: &Path, older: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let written = fs::symlink_metadata(older).and_then(|metadata| metadata.modified());
    let written = written.map_or_else(|_| Local::now(), DateTime::<Local>::from).naive_local();
    let part = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_os_string();
    let (path, stem, extension) = (path.to_owned(), part(path.file_stem()), part(path.extension()));
    later(written)
        .map(move |time| {
            let mut name = stem.clone();
            name.push(format!("_{}", time.format(STAMP)));
            if !extension.is_empty() {
                name.push(".");
                name.push(&extension);
            }
            path.with_file_name(name)
        })
        .take(MOST_NAMES)
}

fn later(time: NaiveDateTime) -> impl Iterator<Item = NaiveDateTime> {
    (0..).map_while(move |seconds| time.checked_add_signed(TimeDelta::try_seconds(seconds)?))
}

/// The path, and the same with the last long number of its name counted up.
fn numbered_names(path: &Path) -> Box<dyn Iterator<Item = PathBuf>> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let path = path.to_owned();
    let Some((start, end)) = last_number(&name) else {
        let (stem, extension) = match name.rsplit_once('.') {
            Some((stem, extension)) => (stem.to_owned(), format!(".{extension}")),
            None => (name, String::new()),
        };
        let others = {
            let path = path.clone();
            (1..).map(move |number: u64| path.with_file_name(format!("{stem}_{number}{extension}")))
        };
        return Box::new(std::iter::once(path).chain(others));
    };
    let (before, number, after) =
        (name[..start].to_owned(), name[start..end].to_owned(), name[end..].to_owned());
    let time = NaiveDateTime::parse_from_str(&number, STAMP).ok().filter(|_| number.len() == STAMP_DIGITS);
    let numbers: Box<dyn Iterator<Item = String>> = match time {
        Some(time) => Box::new(later(time).map(|time| time.format(STAMP).to_string())),
        None => Box::new((number.parse::<u128>().unwrap_or(0)..).map(|number| number.to_string())),
    };
    Box::new(numbers.map(move |number| path.with_file_name(format!("{before}{number}{after}"))))
}

/// Where the last number of at least fourteen digits stands.
fn last_number(name: &str) -> Option<(usize, usize)> {
    let bytes = name.as_bytes();
    let mut end = bytes.len();
    loop {
        end = bytes[..end].iter().rposition(u8::is_ascii_digit)? + 1;
        let start = bytes[..end].iter().rposition(|byte| !byte.is_ascii_digit()).map_or(0, |at| at + 1);
        if (STAMP_DIGITS..=38).contains(&(end - start)) {
            return Some((start, end));
        }
        end = start;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::console::{Remembered, Silent};

    fn names(path: &str) -> Vec<String> {
        let names = numbered_names(Path::new(path)).take(3);
        names.map(|path| path.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn times_and_numbers_go_up() {
        assert_eq!(
            names("out/compare_result_rank0_20261231235959.report.json"),
            [
                "out/compare_result_rank0_20261231235959.report.json",
                "out/compare_result_rank0_20270101000000.report.json",
                "out/compare_result_rank0_20270101000001.report.json"
            ]
        );
        assert_eq!(
            names("diff_analyze_1700000000000000009.json")[1..],
            ["diff_analyze_1700000000000000010.json", "diff_analyze_1700000000000000011.json"]
        );
        assert_eq!(names("a_123_99999999999999.x")[1], "a_123_100000000000000.x", "no time");
        assert_eq!(names("a.b")[1..], ["a_1.b", "a_2.b"]);
        assert_eq!(last_number("12345678901234"), Some((0, 14)));
        assert_eq!(last_number(""), None);
    }

    #[test]
    fn many_at_once_leave_a_file_each() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("compare_result_20261231235955.xlsx");
        let fixed = dir.path().join("verdict.json");
        std::thread::scope(|scope| {
            for number in 0..8_u8 {
                let (path, fixed) = (&path, &fixed);
                scope.spawn(move || {
                    let text = [number];
                    publish_numbered(path, |file| file.write_all(&text)).unwrap();
                    publish(fixed, &Silent, |file| file.write_all(&text)).unwrap();
                });
            }
        });
        let mut found = [Vec::new(), Vec::new()];
        for entry in fs::read_dir(dir.path()).unwrap() {
            let entry = entry.unwrap();
            assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o640);
            let is_verdict = entry.file_name().to_string_lossy().starts_with("verdict");
            found[usize::from(is_verdict)].extend(fs::read(entry.path()).unwrap());
        }
        for mut found in found {
            found.sort_unstable();
            assert_eq!(found, [0, 1, 2, 3, 4, 5, 6, 7]);
        }
    }

    #[test]
    fn what_was_there_is_kept_and_that_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("verdict.json");
        let heard = Remembered::default();
        publish(&path, &heard, |file| file.write_all(b"old")).unwrap();
        assert!(heard.said(|_| true).is_empty());
        publish(&path, &heard, |file| file.write_all(b"new")).unwrap();
        let said = heard.said(|_| true).join("\n");
        let kept = said.rsplit(' ').next().unwrap();
        assert!(kept.starts_with("verdict_2") && said.contains("verdict.json was there already"), "{said}");
        assert_eq!(fs::read_to_string(dir.path().join(kept)).unwrap(), "old");
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        let failed = publish(&path, &heard, |_| Err(io::Error::other("full")));
        assert_eq!(failed.unwrap_err().to_string(), "full");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "nothing is left of what failed");
    }

    #[test]
    fn saving_replaces_the_name_not_where_it_leads() {
        let dir = tempfile::tempdir().unwrap();
        let (path, target) = (dir.path().join("a.npy"), dir.path().join("target"));
        fs::write(&target, "precious").unwrap();
        std::os::unix::fs::symlink(&target, &path).unwrap();
        save(&path, |file| file.write_all(b"new")).unwrap();
        assert_eq!([&path, &target].map(|path| fs::read_to_string(path).unwrap()), ["new", "precious"]);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn directories_in_the_output_are_no_links() {
        let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let made = make_directory_in(dir.path(), Path::new("rank0/pictures")).unwrap();
        assert_eq!(made, dir.path().join("rank0/pictures"));
        assert_eq!(fs::metadata(&made).unwrap().permissions().mode() & 0o777, 0o750);
        make_directory_in(dir.path(), Path::new("rank0/pictures")).unwrap();
        std::os::unix::fs::symlink(outside.path(), dir.path().join("rank1")).unwrap();
        let error = make_directory_in(dir.path(), Path::new("rank1/pictures")).unwrap_err();
        assert!(error.to_string().contains("rank1 is a link"), "{error}");
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    }
}
