//! A dump cut into pieces for several processes, as scripts of the reference know them.

use std::io::Write;
use std::path::{Path, PathBuf};

use msprobe_dump::read::{Members, ReadError};
use msprobe_report::output::save;

use super::{Plan, PlanError};

impl Plan {
    /// Positions in `count` blocks of the same size; the last takes the rest.
    pub fn split(&self, count: usize) -> Vec<Vec<usize>> {
        let count = count.max(1);
        let size = self.entries.len() / count;
        let end = |block: usize| if block + 1 == count { self.entries.len() } else { (block + 1) * size };
        (0..count).map(|block| (block * size..end(block)).collect()).collect()
    }

    /// `temp_part{i}.json`, each with a block of forward entries, all backward ones, and what else the dump says.
    pub fn write_parts(&self, count: usize, directory: &Path) -> Result<Vec<PathBuf>, PlanError> {
        let others = self.other_members()?;
        if !others.iter().any(|(key, _)| key == "dump_data_dir") {
            return Err(PlanError::Missing("dump_data_dir"));
        }
        let blocks = self.split(count);
        let mut paths = Vec::with_capacity(blocks.len());
        for (index, block) in blocks.iter().enumerate() {
            let path = directory.join(format!("temp_part{index}.json"));
            let forward = block.iter().filter_map(|&position| self.entries.get(position));
            let forward = forward.map(|entry| (format!("{}.forward", entry.full_name), entry.forward));
            let backward =
                self.backward.iter().map(|(name, place)| (format!("{name}.backward"), Some(*place)));
            let mut texts = Vec::new();
            for (name, place) in forward.chain(backward) {
                let text = self.text(place).map_err(|error| self.unreadable(error))?;
                texts.push((name, text.unwrap_or_default()));
            }
            let written = save(&path, |file| {
                file.write_all(b"{")?;
                for (key, value) in &others {
                    write!(file, "{}: {value}, ", quoted(key))?;
                }
                file.write_all(b"\"data\": {")?;
                for (index, (name, text)) in texts.iter().enumerate() {
                    let comma = if index == 0 { "" } else { ", " };
                    write!(file, "{comma}{}: {text}", quoted(name))?;
                }
                file.write_all(b"}}")
            });
            written.map_err(|error| PlanError::Read(ReadError { path: path.clone(), kind: error.into() }))?;
            paths.push(path);
        }
        Ok(paths)
    }

    fn unreadable(&self, error: std::io::Error) -> PlanError {
        PlanError::Read(ReadError { path: self.path.clone(), kind: error.into() })
    }

    /// Everything of the file but its records, as texts.
    fn other_members(&self) -> Result<Vec<(String, String)>, PlanError> {
        let mut members = Members::open(&self.path, "data")?;
        let mut others = Vec::new();
        while let Some(pulled) = members.next_pulled(|start, pull| {
            if start.inner {
                pull.skip()?;
                return Ok(None);
            }
            let key = start.key.clone().into_owned();
            pull.skip()?;
            Ok(Some((key, String::from_utf8_lossy(pull.since(0)).trim().to_owned())))
        })? {
            if let Ok(Some(member)) = pulled.result {
                others.push(member);
            }
        }
        Ok(others)
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
