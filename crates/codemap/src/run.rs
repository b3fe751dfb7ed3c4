//! From paths to files.

use std::fs;
use std::path::{Path, PathBuf};

use msprobe_report::console::Console;
use msprobe_report::error::{Code, CompareError};
use msprobe_report::paths::{check_exists, make_directory, publish_stamped, timestamp};
use msprobe_tensor::files::{Links, open_regular};

use crate::files::{LongNames, find};
use crate::ir::parse;
use crate::scopes::Scopes;
use crate::table;

/// What became of a dump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mapped {
    /// Lines of code of files of tensors.
    Arrays {
        /// The table.
        path: PathBuf,
        /// How many files there are.
        files: usize,
        /// How many of them have a scope.
        with_scope: usize,
        /// How many files are not in the table, because nothing says which operator they belong to.
        left_out: usize,
    },
    /// Tables of statistics that have two columns more.
    Tables {
        /// Their paths.
        paths: Vec<PathBuf>,
        /// Rows that have a scope.
        with_scope: usize,
        /// How many tables could not be written again.
        left_out: usize,
    },
    /// There is nothing to map.
    Nothing,
}

/// Looks up what the files of a dump come from in the text of a graph. Files of tensors get a table in `output`; where there
/// are none, tables of statistics are written again with two columns more.
pub fn map_code(
    ir: &Path,
    dump: &Path,
    output: &Path,
    console: &dyn Console,
) -> Result<Mapped, CompareError> {
    check_exists(ir)?;
    check_exists(dump)?;
    let scopes = Scopes::new(parse(&read(ir)?));
    if scopes.is_empty() {
        let message = format!("{} has no node with a scope", ir.display());
        return Err(CompareError::new(Code::IllegalPath, message).with_hint(
            "give the text of a graph, such as anf_after_graph_build_0001.ir, which save_graphs=2 leaves",
        ));
    }
    let found = find(dump, console);
    if !found.arrays.is_empty() {
        return map_arrays(&found.arrays, &scopes, output, console);
    }
    if found.tables.is_empty() {
        console.warning(&format!("no .npy file and no statistic.csv below {}", dump.display()));
        return Ok(Mapped::Nothing);
    }
    let (mut paths, mut with_scope, mut left_out) = (Vec::new(), 0, 0);
    for path in found.tables {
        match table::complete(&path, &scopes) {
            Ok(rows) => {
                with_scope += rows;
                paths.push(path);
            }
            Err(error) => {
                console.error(&format!("{} stays as it is: {error}", path.display()));
                left_out += 1;
            }
        }
    }
    Ok(Mapped::Tables { paths, with_scope, left_out })
}

fn read(ir: &Path) -> Result<Vec<u8>, CompareError> {
    let text = open_regular(ir, Links::Refuse).and_then(|mut file| {
        let mut text = Vec::new();
        std::io::Read::read_to_end(&mut file, &mut text)?;
        Ok(text)
    });
    text.map_err(|error| {
        CompareError::new(Code::IllegalPath, format!("cannot read {}: {error}", ir.display()))
            .with_hint("nothing was changed")
    })
}

fn map_arrays(
    arrays: &[PathBuf],
    scopes: &Scopes,
    output: &Path,
    console: &dyn Console,
) -> Result<Mapped, CompareError> {
    let (mut rows, mut with_scope, mut left_out) = (Vec::new(), 0, 0);
    let mut names = LongNames::default();
    for path in arrays {
        match names.operator(path) {
            Ok(name) => {
                let source = scopes.find(&name);
                with_scope += usize::from(!source.scopes.is_empty());
                let real = fs::canonicalize(path).unwrap_or_else(|_| path.clone());
                rows.push((real.to_string_lossy().into_owned(), source));
            }
            Err(why) => {
                console.error(&format!("{why}; it is left out"));
                left_out += 1;
            }
        }
    }
    make_directory(output)?;
    let path = publish_stamped(&output.join(format!("code_mapping_{}.csv", timestamp())), |file| {
        let mut writer = csv::Writer::from_writer(file);
        writer.write_record(["File Path", "Code Stack", "Scope Name"])?;
        for (path, source) in &rows {
            writer.write_record([path, &source.code, &source.scopes])?;
        }
        writer.flush()
    })?;
    Ok(Mapped::Arrays { path, files: arrays.len(), with_scope, left_out })
}
