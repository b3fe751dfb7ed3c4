//! The dump of one rank, read once from front to back.
//!
//! A file that ends early or is damaged gives the records before that place, and a note.

mod files;
mod gather;
#[cfg(test)]
mod tests;
mod unmeasured;

use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use msprobe_dump::hash::FastMap;
use msprobe_dump::model::{Damage, Dir, DumpFile, RunDir};
use msprobe_dump::names::Rank;
use msprobe_dump::read::ReadError;
use msprobe_tensor::files::{Links, open_regular};

use self::gather::{NamedFile, ReadRecord, read_record};
pub use self::gather::{TensorFacts, TensorPlace, TensorWatch};
pub use self::unmeasured::{Noted, Unmeasured};
use crate::record::{BadTensor, Record};
use crate::rules::Rules;

/// A rank and its directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct RankDir {
    /// The rank.
    pub rank: u32,
    /// Its directory.
    pub path: PathBuf,
}

/// The dump of one rank.
#[derive(Debug, Default)]
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
    /// Tensors that name a file which is not there, or is none of a tensor, once [`RankDump::check_files`] has looked.
    pub lost_files: Noted,
    /// The files that tensors name, by record.
    files: BTreeMap<u32, Vec<NamedFile>>,
}

/// The directories of ranks in a step's directory, in ascending order.
pub fn rank_dirs(step_dir: &Path) -> std::io::Result<Vec<RankDir>> {
    Ok(RunDir::read(step_dir)?.ranks.into_iter().map(RankDir::from).collect())
}

impl From<Dir<Rank>> for RankDir {
    fn from(dir: Dir<Rank>) -> RankDir {
        RankDir { rank: dir.of.number(), path: dir.path }
    }
}

impl RankDump {
    /// Reads `dump.json` of a rank. Every tensor is shown to `watch`; `progress` is told how many bytes were read.
    pub fn read(
        dir: RankDir,
        watch: &mut dyn TensorWatch,
        progress: &dyn Fn(u64),
    ) -> Result<RankDump, ReadError> {
        let mut file = DumpFile::open(&dir.path.join("dump.json"))?;
        let mut dump = RankDump { dir, ..RankDump::default() };
        let mut by_name: FastMap<Box<str>, u32> = FastMap::default();
        let (mut told, mut damage_told) = (0, 0);
        loop {
            // A repeated name counts as it does for Python: the last value, in the place of the first.
            let next = dump.records.len();
            let read = file.next_record(|text| {
                let index = by_name.get(text.name).map_or(next, |&known| known as usize);
                read_record(text, index, watch)
            })?;
            for damage in file.damage().iter().skip(damage_told) {
                dump.note(damage);
            }
            damage_told = file.damage().len();
            let Some(read) = read else { break };
            if read.index == next {
                by_name.insert(read.record.name.clone(), next as u32);
            }
            dump.keep(read);
            let offset = file.offset();
            if offset - told > 1 << 20 {
                progress(offset - told);
                told = offset;
            }
        }
        progress(file.offset() - told);
        let header = file.header().clone();
        dump.task = header.task.unwrap_or_default();
        dump.level = header.level.unwrap_or_default();
        dump.framework = header.framework.unwrap_or_default();
        dump.tensor_dir = header.has_tensor_dir.then(|| dump.dir.path.join("dump_tensor_data"));
        Ok(dump)
    }

    fn keep(&mut self, read: ReadRecord) {
        let ReadRecord { index, mut record, unmeasured, files } = read;
        self.unmeasured.remove(&(index as u32));
        self.files.remove(&(index as u32));
        if !files.is_empty() {
            self.files.insert(index as u32, files);
        }
        if unmeasured != Unmeasured::default() {
            self.unmeasured.insert(index as u32, unmeasured);
        }
        if index < self.records.len() {
            self.keep_what_was_bad(&mut record, index);
            self.records[index] = record;
        } else {
            self.records.push(record);
        }
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
        // Only a dump of tensors has files.
        let has_files = self.task == "tensor";
        let of_records = self.unmeasured.values().flat_map(|unmeasured| unmeasured.counted(has_files, rules));
        let (mut count, mut first) = (0, None);
        for noted in of_records.chain([&self.lost_files]) {
            count += noted.count;
            first = first.or(noted.first.as_deref());
        }
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

    /// A file that ends early is what a killed job leaves: what came before the end counts.
    fn note(&mut self, damage: &Damage) {
        self.problems.push(match damage {
            Damage::Ends { what, offset } => format!(
                "dump.json is damaged or was not written to its end ({what} at byte {offset}): the {} records before \
                 that are used",
                self.records.len()
            ),
            Damage::Record { name, what, end, .. } => format!(
                "dump.json: {} before byte {end} is left out: {what}",
                if name.is_empty() { "a member" } else { name }
            ),
            Damage::NoRecords => "dump.json: data is no list of records by name".to_owned(),
            Damage::NoData => "dump.json has no data".to_owned(),
            Damage::Tasks(first, last) => format!("dump.json: task is {first} and {last}"),
        });
    }
}
