//! The dump of one rank, read once from front to back.
//!
//! A file that ends early or is damaged gives the records before that place, and a note.

mod files;
#[cfg(test)]
mod tests;
mod walk;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use msprobe_dump::hash::FastMap;
use msprobe_dump::read::{Members, Pull, PullError, Pulled, ReadError, ReadErrorKind, Shape};
use msprobe_tensor::files::{Links, open_regular};

pub use self::files::LostFiles;
use self::walk::{NamedFile, ReadRecord, read_record};
pub use self::walk::{TensorFacts, TensorPlace, TensorWatch, Unmeasured};
use crate::record::{BadTensor, Record};
use crate::rules::{Rule, Rules};

/// A rank and its directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RankDir {
    /// The rank.
    pub rank: u32,
    /// Its directory.
    pub path: PathBuf,
}

/// The dump of one rank.
#[derive(Debug)]
pub struct RankDump {
    /// Whose it is, and where.
    pub dir: RankDir,
    /// `statistics`, `tensor`, …
    pub task: String,
    /// `L0`, `L1`, `mix`.
    pub level: String,
    /// `pytorch`, `mindspore`; empty in old dumps.
    pub framework: String,
    /// Where its tensor files are, if it has any.
    pub tensor_dir: Option<PathBuf>,
    /// Its records, in the order of the file.
    pub records: Vec<Record>,
    /// What is wrong with it; the records are there all the same.
    pub problems: Vec<String>,
    /// Values nobody can say of whether they are finite, by record.
    pub unmeasured: BTreeMap<u32, Unmeasured>,
    /// Tensors without the file they name, once [`RankDump::check_files`] has looked.
    pub lost_files: LostFiles,
    /// The files that tensors name, by record.
    files: BTreeMap<u32, Vec<NamedFile>>,
}

/// The directories of ranks in a step's directory, in ascending order: `rank0`, `rank1`, …; `rank` alone is rank 0, and so
/// is a lone `proc…` if there are no others.
pub fn rank_dirs(step_dir: &Path) -> std::io::Result<Vec<RankDir>> {
    let mut ranks = Vec::new();
    let mut processes = Vec::new();
    for entry in fs::read_dir(step_dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let path = entry.path();
        if !path.is_dir() {
            continue;
        }
        if name.starts_with("proc") {
            processes.push(path);
        } else if let Some(digits) = name.strip_prefix("rank") {
            let is_number = digits.bytes().all(|digit| digit.is_ascii_digit());
            let rank = if digits.is_empty() { Some(0) } else { digits.parse().ok().filter(|_| is_number) };
            if let Some(rank) = rank {
                ranks.push(RankDir { rank, path });
            }
        }
    }
    if ranks.is_empty() && processes.len() == 1 {
        ranks.extend(processes.pop().map(|path| RankDir { rank: 0, path }));
    }
    ranks.sort();
    // `rank` beside `rank0`, `rank01` beside `rank1`: the first of them in the order of names.
    ranks.dedup_by_key(|dir| dir.rank);
    Ok(ranks)
}

impl RankDump {
    /// Reads `dump.json` of a rank. Every tensor is shown to `watch`; `progress` is told how many bytes were read.
    pub fn read(
        dir: RankDir,
        watch: &mut dyn TensorWatch,
        progress: &dyn Fn(u64),
    ) -> Result<RankDump, ReadError> {
        let path = dir.path.join("dump.json");
        let mut members = Members::open(&path, "data")?;
        let mut dump = RankDump {
            dir,
            task: String::new(),
            level: String::new(),
            framework: String::new(),
            tensor_dir: None,
            records: Vec::new(),
            problems: Vec::new(),
            unmeasured: BTreeMap::new(),
            lost_files: LostFiles::default(),
            files: BTreeMap::new(),
        };
        let mut by_name: FastMap<Box<str>, u32> = FastMap::default();
        let mut told = 0;
        loop {
            // A repeated name counts as it does for Python: the last value, in the place of the first.
            let next = dump.records.len();
            let mut index = next;
            let mut name = String::new();
            let read = members.next_pulled(|start, pull| {
                if !start.inner {
                    return dump.header(&start.key, pull).map(|()| None);
                }
                index = by_name.get(&*start.key).map_or(next, |&known| known as usize);
                name.clear();
                name.push_str(&start.key);
                read_record(start, pull, index, watch).map(Some)
            });
            match read {
                Ok(None) => break,
                Err(error) => {
                    dump.note_end(&error)?;
                    break;
                }
                Ok(Some(Pulled { result: Ok(Some(read)), .. })) => {
                    let ReadRecord { mut record, unmeasured, files } = read;
                    dump.unmeasured.remove(&(index as u32));
                    dump.files.remove(&(index as u32));
                    if !files.is_empty() {
                        dump.files.insert(index as u32, files);
                    }
                    if unmeasured != Unmeasured::default() {
                        dump.unmeasured.insert(index as u32, unmeasured);
                    }
                    if index < next {
                        dump.keep_what_was_bad(&mut record, index);
                        dump.records[index] = record;
                    } else {
                        by_name.insert(record.name.clone(), index as u32);
                        dump.records.push(record);
                    }
                }
                Ok(Some(Pulled { result: Ok(None), .. })) => {}
                Ok(Some(Pulled { result: Err((what, _)), end })) => dump.problems.push(format!(
                    "dump.json: {} before byte {end} is left out: {what}",
                    if name.is_empty() { "a member" } else { &name }
                )),
            }
            let offset = members.offset();
            if offset - told > 1 << 20 {
                progress(offset - told);
                told = offset;
            }
        }
        progress(members.offset() - told);
        if !members.has_entered() && dump.problems.is_empty() {
            dump.problems.push("dump.json has no data".to_owned());
        }
        Ok(dump)
    }

    /// Collection writes a record again when it knows more. If the last form is finite and an earlier one was not, both count.
    fn keep_what_was_bad(&mut self, record: &mut Record, index: usize) {
        let Some(earlier) = self.records.get(index) else { return };
        record.has_bad_number |= earlier.has_bad_number;
        let is_lost = |tensor: &&BadTensor| record.kinds(tensor.role).is_finite();
        let lost: Vec<BadTensor> = earlier.bad.iter().filter(is_lost).copied().collect();
        if !lost.is_empty() {
            self.problems.push(format!(
                "dump.json: {} is written more than once, and an earlier form of it is not finite where the last one is",
                record.name
            ));
            record.bad = record.bad.iter().copied().chain(lost).collect();
        }
    }

    /// How many values nobody can say of whether they are finite, and the first of them.
    pub fn not_measured(&self, rules: &Rules) -> (u64, Option<&str>) {
        let mut count = 0;
        let mut first = None;
        for unmeasured in self.unmeasured.values() {
            count += unmeasured.count;
            first = first.or(unmeasured.first.as_deref());
            // Only a dump of tensors has files.
            if self.task == "tensor" {
                count += unmeasured.without_file;
                first = first.or(unmeasured.first_without_file.as_deref());
            }
            if !rules.has(Rule::NormOverflow) {
                count += unmeasured.overflowed_sums;
                first = first.or(unmeasured.first_overflowed_sum.as_deref());
            }
        }
        count += self.lost_files.count;
        first = first.or(self.lost_files.first.as_deref());
        (count, first)
    }

    /// The record's text, read again from the file and parsed.
    pub fn read_again(&self, record: &Record) -> Result<Vec<u8>, std::io::Error> {
        let mut file = open_regular(&self.dir.path.join("dump.json"), Links::Refuse)?;
        file.seek(SeekFrom::Start(record.offset))?;
        let mut text = Vec::new();
        file.take(u64::from(record.length)).read_to_end(&mut text)?;
        Ok(text)
    }

    /// A file that ends early is what a killed job leaves: what came before the end counts. One that cannot be opened
    /// does not.
    fn note_end(&mut self, error: &ReadError) -> Result<(), ReadError> {
        match &error.kind {
            ReadErrorKind::Syntax { what, offset } => {
                self.problems.push(format!(
                    "dump.json is damaged or was not written to its end ({what} at byte {offset}): the {} records before \
                     that are used",
                    self.records.len()
                ));
                Ok(())
            }
            ReadErrorKind::Io(source) => Err(ReadError {
                path: error.path.clone(),
                kind: ReadErrorKind::Io(std::io::Error::new(source.kind(), source.to_string())),
            }),
        }
    }

    fn header(&mut self, key: &str, pull: &mut Pull<'_>) -> Result<(), PullError> {
        if key == "data" {
            self.problems.push("dump.json: data is no list of records by name".to_owned());
        }
        if pull.shape()? != Shape::Text {
            return pull.skip();
        }
        let text = pull.text()?.into_owned();
        match key {
            "task" => {
                if !self.task.is_empty() && self.task != text {
                    self.problems.push(format!("dump.json: task is {} and {text}", self.task));
                }
                self.task = text;
            }
            "level" => self.level = text,
            "framework" => self.framework = text,
            // A dump may have been moved since, and must not name files elsewhere: they are beside it.
            "dump_data_dir" => self.tensor_dir = Some(self.dir.path.join("dump_tensor_data")),
            _ => {}
        }
        Ok(())
    }
}
