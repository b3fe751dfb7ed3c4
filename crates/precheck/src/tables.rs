//! The two tables of a check while it runs: rows of an API are appended together and never half.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use msprobe_report::output::{make_directory, timestamp};
use msprobe_report::push_csv_row;
use rustix::fs::{FlockOperation, flock};

use crate::csv_file::{CSV, Table};
use crate::mindspore::{MINDSPORE_DETAILS, MINDSPORE_RESULT};
use crate::outcome::Outcome;
use crate::plan::Checker;
use crate::status::Status;
use crate::verdict::{DETAILS, RESULT};

/// What users were promised: for them and their group.
const FILE_MODE: u32 = 0o640;
/// How long to wait before looking again whether there is a name.
const UNTIL_NEXT_NAME: Duration = Duration::from_millis(50);
const RESULT_STEM: &str = "accuracy_checking_result_";
const DETAILS_STEM: &str = "accuracy_checking_details_";

/// Why tables cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The disk, or the file system.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// A result that is to be gone on with and has another name than it was given.
    #[error("When continue run ut, please do not modify the result csv name.")]
    Name,
    /// Its details are not beside it.
    #[error("{} is missing: the details have to lie beside the result to go on with it", .0.display())]
    NoDetails(PathBuf),
    /// It is a table of something else.
    #[error("{} 的表头不正确: it has no column {missing}", path.display())]
    Header {
        /// The file.
        path: PathBuf,
        /// The first column that is not there.
        missing: &'static str,
    },
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> TableError + '_ {
    move |error| TableError::Io { path: path.to_owned(), error }
}

/// The tables, and which APIs they hold.
#[derive(Debug)]
pub struct Tables {
    result: PathBuf,
    details: PathBuf,
    output: PathBuf,
    stamp: String,
    checker: Checker,
    /// Statuses of what was there before.
    done: HashMap<String, (Status, Status)>,
}

impl Tables {
    /// Begins two tables in a directory, or goes on with those of an earlier run. New ones have the time in their names,
    /// or what is given.
    pub fn open(
        output: &Path,
        checker: Checker,
        resume: Option<&Path>,
        given: Option<&str>,
    ) -> Result<Tables, TableError> {
        let output = if output.as_os_str().is_empty() { Path::new(".") } else { output };
        make_directory(output).map_err(at(output))?;
        let (of_result, of_details) = headers(checker);
        let Some(result) = resume else {
            let (stamp, result) = loop {
                let stamp = given.map_or_else(timestamp, str::to_owned);
                let path = output.join(format!("{RESULT_STEM}{stamp}.csv"));
                match begin(&path, of_result) {
                    // Another run began in this second: names have no room for more than the time.
                    Err(error) if given.is_none() && error.kind() == io::ErrorKind::AlreadyExists => {
                        thread::sleep(UNTIL_NEXT_NAME);
                    }
                    begun => break begun.map(|()| (stamp, path.clone())).map_err(at(&path))?,
                }
            };
            let details = output.join(format!("{DETAILS_STEM}{stamp}.csv"));
            begin(&details, of_details).map_err(at(&details))?;
            let output = output.to_owned();
            return Ok(Tables { result, details, output, stamp, checker, done: HashMap::new() });
        };
        let (result, details, stamp) = resumed(result, checker)?;
        let output = output.to_owned();
        let tables = Tables { result, details, output, stamp, checker, done: HashMap::new() };
        tables.go_on(of_result, of_details)
    }

    /// Reads what is there and takes away what was written of an API whose row is missing.
    fn go_on(
        mut self,
        of_result: &[&'static str],
        of_details: &[&'static str],
    ) -> Result<Tables, TableError> {
        for path in [&self.result, &self.details] {
            end_whole(path).map_err(at(path))?;
        }
        let table = Table::read(&self.result).map_err(at(&self.result))?;
        let details = Table::read(&self.details).map_err(at(&self.details))?;
        for (path, table, headers) in
            [(&self.result, &table, of_result), (&self.details, &details, of_details)]
        {
            if let Some(missing) = headers.iter().find(|header| table.column(header).is_none()) {
                return Err(TableError::Header { path: path.clone(), missing });
            }
        }
        for row in 0..table.len() {
            let status = |column: usize| Status::parse(&table.cell(row, column)).unwrap_or(Status::None);
            self.done.insert(table.cell(row, 0).into_owned(), (status(1), status(2)));
        }
        self.drop_unfinished(&details, of_details)?;
        Ok(self)
    }

    /// Details are written before the result: without one, they are of a run that was interrupted, and stand at the end.
    fn drop_unfinished(&self, details: &Table, headers: &[&'static str]) -> Result<(), TableError> {
        let api_of = |row: usize| {
            let name = details.cell(row, 0).into_owned();
            // `Torch.exp.0.forward.output.0`
            let mut stem = name.as_str();
            for _ in 0..3 {
                stem = stem.rsplit_once('.').map_or(stem, |(front, _)| front);
            }
            stem.to_owned()
        };
        let kept =
            (0..details.len()).rposition(|row| self.done.contains_key(&api_of(row))).map_or(0, |row| row + 1);
        if kept == details.len() {
            return Ok(());
        }
        let column = |header: &str| details.column(header).unwrap_or_default();
        let columns: Vec<usize> = headers.iter().map(|header| column(header)).collect();
        let written = msprobe_report::output::save(&self.details, |file| {
            let mut text = "\u{feff}".as_bytes().to_vec();
            push_csv_row(headers, CSV, &mut text);
            for row in 0..kept {
                let cells: Vec<String> =
                    columns.iter().map(|&column| details.cell(row, column).into_owned()).collect();
                push_csv_row(&cells, CSV, &mut text);
            }
            file.write_all(&text)
        });
        written.map_err(at(&self.details))
    }

    /// The table with a row per API.
    pub fn result_path(&self) -> &Path {
        &self.result
    }

    /// The table with a row per output.
    pub fn details_path(&self) -> &Path {
        &self.details
    }

    /// Where results go.
    pub fn output(&self) -> &Path {
        &self.output
    }

    /// The time in the names.
    pub fn stamp(&self) -> &str {
        &self.stamp
    }

    /// Whose tables they are.
    pub fn checker(&self) -> Checker {
        self.checker
    }

    /// Whether an API has its row.
    pub fn is_done(&self, full_name: &str) -> bool {
        self.done.contains_key(full_name)
    }

    /// Names and statuses of what was done before this run.
    pub fn done(&self) -> &HashMap<String, (Status, Status)> {
        &self.done
    }

    /// Appends the rows of an API, the details first.
    pub fn add(&self, outcome: &Outcome) -> Result<(), TableError> {
        let mut text = Vec::new();
        for row in &outcome.details {
            push_csv_row(row, CSV, &mut text);
        }
        if !text.is_empty() {
            append(&self.details, &text).map_err(at(&self.details))?;
            text.clear();
        }
        if !outcome.result.is_empty() {
            push_csv_row(&outcome.result, CSV, &mut text);
            append(&self.result, &text).map_err(at(&self.result))?;
        }
        Ok(())
    }
}

fn headers(checker: Checker) -> (&'static [&'static str], &'static [&'static str]) {
    match checker {
        Checker::PyTorch => (&RESULT, &DETAILS),
        Checker::MindSpore => (&MINDSPORE_RESULT, &MINDSPORE_DETAILS),
    }
}

/// Paths of both tables of an earlier run, and their stamp.
fn resumed(result: &Path, checker: Checker) -> Result<(PathBuf, PathBuf, String), TableError> {
    let name = result.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let digits = name.strip_prefix(RESULT_STEM).and_then(|rest| rest.strip_suffix(".csv"));
    let is_stamp = |digits: &str| digits.len() == 14 && digits.bytes().all(|byte| byte.is_ascii_digit());
    let stamp = match digits {
        Some(digits) if is_stamp(digits) => digits.to_owned(),
        _ if checker == Checker::PyTorch => return Err(TableError::Name),
        other => other.unwrap_or_default().to_owned(),
    };
    let details = result.with_file_name(name.replace("result", "details"));
    if details == result || !details.is_file() {
        return Err(TableError::NoDetails(details));
    }
    Ok((result.to_owned(), details, stamp))
}

/// Makes a table with its header, where there is none.
fn begin(path: &Path, headers: &[&str]) -> io::Result<()> {
    let mut text = "\u{feff}".as_bytes().to_vec();
    push_csv_row(headers, CSV, &mut text);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(path)?;
    file.set_permissions(std::fs::Permissions::from_mode(FILE_MODE))?;
    file.write_all(&text)
}

/// One write at the end of the file, with nobody else writing.
fn append(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).open(path)?;
    flock(&file, FlockOperation::LockExclusive)?;
    file.write_all(text)
}

/// Cuts off what stands behind the last whole row.
fn end_whole(path: &Path) -> io::Result<()> {
    let mut file = OpenOptions::new().read(true).write(true).open(path)?;
    flock(&file, FlockOperation::LockExclusive)?;
    let whole = whole_rows(&mut file)?;
    if whole < file.metadata()?.len() {
        file.set_len(whole)?;
    }
    Ok(())
}

/// Bytes up to the end of the last row: a line end that stands in no quotes.
fn whole_rows(file: &mut File) -> io::Result<u64> {
    file.seek(SeekFrom::Start(0))?;
    let mut reader = io::BufReader::new(file);
    let mut chunk = vec![0; 1 << 16];
    let (mut offset, mut whole, mut is_quoted) = (0_u64, 0, false);
    loop {
        let count = reader.read(&mut chunk)?;
        if count == 0 {
            return Ok(whole);
        }
        for &byte in chunk.get(..count).unwrap_or_default() {
            offset += 1;
            match byte {
                b'"' => is_quoted = !is_quoted,
                b'\n' if !is_quoted => whole = offset,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::outcome::Notes;
    use crate::verdict::skip;

    fn outcome(name: &str) -> Outcome {
        skip(name, "a \"reason\",\nin two lines", false, Notes::default())
    }

    #[test]
    fn two_runs_in_one_second_have_tables_of_their_own() {
        let dir = tempfile::tempdir().unwrap();
        let [one, other] = [(); 2].map(|()| Tables::open(dir.path(), Checker::PyTorch, None, None).unwrap());
        assert_ne!(one.result_path(), other.result_path());
        assert_ne!(one.details_path(), other.details_path());
    }

    #[test]
    fn tables_have_their_headers_and_mode() {
        let dir = tempfile::tempdir().unwrap();
        let output = dir.path().join("a/b");
        let tables = Tables::open(&output, Checker::PyTorch, None, Some("20250101000000")).unwrap();
        let text = fs::read_to_string(output.join("accuracy_checking_result_20250101000000.csv")).unwrap();
        assert_eq!(text, "\u{feff}API name,Forward Test Success,Backward Test Success,Message\r\n");
        assert_eq!(fs::metadata(tables.details_path()).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::metadata(&output).unwrap().permissions().mode() & 0o777, 0o750);
    }

    #[test]
    fn a_run_goes_on_where_it_was_cut_off_at_any_byte() {
        let dir = tempfile::tempdir().unwrap();
        let tables = Tables::open(dir.path(), Checker::PyTorch, None, Some("20250101000000")).unwrap();
        let names = ["Torch.a.0", "Torch.b.0", "Torch.c.0"];
        for name in names {
            tables.add(&outcome(name)).unwrap();
        }
        let whole = [tables.result_path(), tables.details_path()].map(|path| fs::read(path).unwrap());
        let header = whole[0].iter().position(|&byte| byte == b'\n').unwrap() + 1;
        let detail_header = whole[1].iter().position(|&byte| byte == b'\n').unwrap() + 1;
        for (cut_result, cut_details) in [(0, 0), (3, 0), (60, 20), (120, 7)] {
            let result = &whole[0][..(whole[0].len() - cut_result).max(header)];
            let details = &whole[1][..(whole[1].len() - cut_details).max(detail_header)];
            fs::write(tables.result_path(), result).unwrap();
            fs::write(tables.details_path(), details).unwrap();
            let again = Tables::open(dir.path(), Checker::PyTorch, Some(tables.result_path()), None).unwrap();
            for name in names {
                if !again.is_done(name) {
                    again.add(&outcome(name)).unwrap();
                }
            }
            let found = [again.result_path(), again.details_path()].map(|path| fs::read(path).unwrap());
            assert_eq!(found, whole, "{cut_result} {cut_details}");
        }
    }

    #[test]
    fn what_cannot_be_gone_on_with_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let open = |path: &Path| Tables::open(dir.path(), Checker::PyTorch, Some(path), None);
        let renamed = dir.path().join("result.csv");
        assert_eq!(
            open(&renamed).unwrap_err().to_string(),
            "When continue run ut, please do not modify the result csv name."
        );
        let result = dir.path().join("accuracy_checking_result_20250101000000.csv");
        assert!(matches!(open(&result), Err(TableError::NoDetails(_))));
        for kind in ["result", "details"] {
            fs::write(dir.path().join(format!("accuracy_checking_{kind}_20250101000000.csv")), "a,b\r\n")
                .unwrap();
        }
        assert!(matches!(open(&result), Err(TableError::Header { .. })));
    }
}
