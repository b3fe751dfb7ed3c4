//! Result tables of several ranks side by side: a sheet per figure, a column per rank.

mod bounds;
mod config;
mod table;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use msprobe_dump::names::Rank;
use msprobe_report::VecRows;
use msprobe_report::console::Console;
use msprobe_report::error::{Code, CompareError};
use msprobe_report::output::names_in;
use msprobe_report::paths::{make_directory, publish_stamped, timestamp};
use msprobe_report::{Cell, Sheet, write_workbook};
use rayon::prelude::*;

use self::config::Config;
use self::table::RankTable;

/// A sheet has no room for more, header included.
const MOST_ROWS: usize = 1_048_576;
/// Characters of the name of a sheet.
const LONGEST_NAME: usize = 31;

fn cannot_merge(message: impl Into<String>) -> CompareError {
    CompareError::new(Code::MergeCompareResult, message)
}

/// What was merged.
#[derive(Debug)]
pub struct Merged {
    /// The workbook that was written.
    pub path: PathBuf,
    /// Ranks whose tables could not be read, and are not in it.
    pub left_out: Vec<u64>,
}

/// Merges the compare results of several ranks in a directory as a configuration asks for, and writes
/// `multi_ranks_compare_merge_{time}.xlsx`. A table that cannot be merged is reported and left out.
pub fn merge_result(
    input_dir: &Path,
    output_dir: &Path,
    config: &Path,
    console: &dyn Console,
) -> Result<Merged, CompareError> {
    let config = Config::read(config)?;
    let files = result_files(input_dir, console)?;
    if files.len() < 2 {
        let message = "Number of compare result is no more than 1, no need to merge.";
        console.warning(message);
        return Err(cannot_merge(message));
    }
    let read = |(rank, path): (&u64, &PathBuf)| RankTable::read(path, *rank, &config, console);
    let tables: Vec<RankTable> =
        files.par_iter().map(read).collect::<Vec<_>>().into_iter().flatten().collect();
    if tables.is_empty() {
        return Err(cannot_merge("Nothing to merge."));
    }
    make_directory(output_dir)?;
    let path = output_dir.join(format!("multi_ranks_compare_merge_{}.xlsx", timestamp()));
    let path = write(&path, &tables)?;
    console.info(&format!("The compare results are merged into {}", path.display()));
    let is_merged = |rank: &u64| tables.iter().any(|table| table.rank == *rank);
    let left_out = files.into_keys().filter(|rank| !is_merged(rank)).collect();
    Ok(Merged { path, left_out })
}

/// The results of a directory by rank; of several of one rank the newest.
fn result_files(directory: &Path, console: &dyn Console) -> Result<BTreeMap<u64, PathBuf>, CompareError> {
    let names = names_in(directory).map_err(|error| {
        CompareError::new(Code::IllegalPath, format!("cannot list {}: {error}", directory.display()))
    })?;
    let mut newest: BTreeMap<u64, (String, String)> = BTreeMap::new();
    for name in names.into_iter().filter(|name| name.strip_suffix(".xlsx").is_some()) {
        match ResultName::parse(&name) {
            Some(ResultName::OfRank { rank, time }) => {
                let replaced = newest.get(&rank).is_none_or(|(other, _)| *other <= time);
                let other = if replaced { newest.insert(rank, (time, name)) } else { Some((time, name)) };
                if let Some((_, other)) = other {
                    console.warning(&format!(
                        "{other} is older than another result of rank {rank}, it is left out"
                    ));
                }
            }
            Some(ResultName::Single) => {
                console.warning("Single rank compare result do not need to be merged.");
            }
            None => {
                return Err(cannot_merge(format!("Wrong compare result name: {name}, please check!")));
            }
        }
    }
    Ok(newest.into_iter().map(|(rank, (_, name))| (rank, directory.join(name))).collect())
}

/// What the name of a result tells.
#[derive(Debug, PartialEq, Eq)]
enum ResultName {
    OfRank {
        rank: u64,
        time: String,
    },
    /// Of a run with one rank only.
    Single,
}

impl ResultName {
    /// Reads `compare_result_rank{N}_{time}.xlsx` and `compare_result_rank{N}-rank{N}_{time}.xlsx`.
    fn parse(name: &str) -> Option<ResultName> {
        let stem = name.strip_prefix("compare_result_")?.strip_suffix(".xlsx")?;
        let (ranks, time) = stem.rsplit_once('_')?;
        if time.len() != 14 || !time.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let (rank, other) = ranks.split_once('-').unwrap_or((ranks, ranks));
        match (Rank::of_dir(rank)?, Rank::of_dir(other)?) {
            (Rank(None), Rank(None)) => Some(ResultName::Single),
            (Rank(Some(rank)), Rank(Some(_))) => {
                Some(ResultName::OfRank { rank: rank.into(), time: time.to_owned() })
            }
            _ => None,
        }
    }
}

fn write(path: &Path, tables: &[RankTable]) -> Result<PathBuf, CompareError> {
    let mut headers = vec!["NPU Name".to_owned()];
    headers.extend(tables.iter().map(|table| format!("rank{}", table.rank)));
    let mut named = Vec::new();
    for index in all_indexes(tables) {
        let rows = joined(tables, index);
        if rows.len() < MOST_ROWS {
            named.push((sheet_name(index, ""), VecRows::new(rows)));
            continue;
        }
        for (number, part) in rows.chunks(MOST_ROWS - 1).enumerate() {
            named.push((sheet_name(index, &format!("_part_{number}")), VecRows::new(part.to_vec())));
        }
    }
    let sheets: Vec<Sheet<'_>> = named
        .iter()
        .map(|(name, rows)| Sheet { name: name.clone(), headers: headers.clone(), rows })
        .collect();
    publish_stamped(path, |file| write_workbook(file, &sheets))
}

fn sheet_name(index: &str, part: &str) -> String {
    let room = LONGEST_NAME.saturating_sub(part.len());
    index.chars().take(room).chain(part.chars()).collect()
}

/// The figures of all tables, each once. They have the same ones unless their modes differ and none were asked for.
fn all_indexes(tables: &[RankTable]) -> Vec<&str> {
    let mut indexes: Vec<&str> = Vec::new();
    for index in tables.iter().flat_map(|table| &table.indexes) {
        if !indexes.contains(&index.as_str()) {
            indexes.push(index);
        }
    }
    indexes
}

/// One figure of all ranks, a row per name in the order in which names are first seen. The n-th row of a name that
/// stands in a table more than once goes with the n-th of the others.
fn joined(tables: &[RankTable], index: &str) -> Vec<Vec<Cell>> {
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    let mut places: HashMap<(&str, usize), usize> = HashMap::new();
    for (column, table) in tables.iter().enumerate() {
        let Some(figure) = table.indexes.iter().position(|other| other == index) else { continue };
        let mut seen: HashMap<&str, usize> = HashMap::new();
        for (name, figures) in &table.rows {
            let count = seen.entry(name).or_default();
            let place = *places.entry((name, *count)).or_insert_with(|| {
                let mut row = vec![Cell::Text(name.clone())];
                row.resize(tables.len() + 1, Cell::Empty);
                rows.push(row);
                rows.len() - 1
            });
            *count += 1;
            if let (Some(row), Some(value)) = (rows.get_mut(place), figures.get(figure)) {
                row[column + 1] = value.clone();
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let of_rank = |rank| Some(ResultName::OfRank { rank, time: "20250101000000".into() });
        assert_eq!(ResultName::parse("compare_result_rank3_20250101000000.xlsx"), of_rank(3));
        assert_eq!(ResultName::parse("compare_result_rank3-rank3_20250101000000.xlsx"), of_rank(3));
        assert_eq!(ResultName::parse("compare_result_rank_20250101000000.xlsx"), Some(ResultName::Single));
        assert_eq!(
            ResultName::parse("compare_result_rank-rank_20250101000000.xlsx"),
            Some(ResultName::Single)
        );
        for wrong in [
            "compare_result_20250101000000.xlsx",
            "compare_result_rank3_2025.xlsx",
            "compare_result_rank3-rank_20250101000000.xlsx",
            "compare_result_rankx_20250101000000.xlsx",
            "multi_ranks_compare_merge_20250101000000.xlsx",
        ] {
            assert_eq!(ResultName::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn names_are_joined_as_they_come() {
        let row = |name: &str, value: i128| (name.to_owned(), vec![Cell::Int(value)]);
        let table = |rank, rows| RankTable { rank, indexes: vec!["Max diff".into()], rows };
        let tables =
            [table(0, vec![row("b", 1), row("a", 2), row("a", 3)]), table(1, vec![row("c", 4), row("a", 5)])];
        let words: Vec<String> = joined(&tables, "Max diff")
            .iter()
            .map(|row| row.iter().map(ToString::to_string).collect::<Vec<_>>().join(","))
            .collect();
        assert_eq!(words, ["b,1,", "a,2,5", "a,3,", "c,,4"]);
    }

    #[test]
    fn sheet_names_fit() {
        assert_eq!(sheet_name("Five Thousandths Err Ratio", "_part_0"), "Five Thousandths Err Rat_part_0");
        assert_eq!(sheet_name("Max diff", ""), "Max diff");
    }
}
