//! The final compare: the details of a run on the tested device against those of a run on a reference device.

mod input;
mod row;
mod rules;
mod told;

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use msprobe_report::answer::{Answer, Section};
use msprobe_report::console::Console;
use msprobe_report::error::{Code, CompareError};
use msprobe_report::output::{make_directory, publish_numbered, timestamp};
use msprobe_report::push_csv_row;
use rayon::prelude::*;

use self::input::{Column, Side};
use self::row::Row;
pub use self::row::{FINAL_DETAILS, FINAL_RESULT};
use self::told::Told;
use crate::csv_file::CSV;
use crate::status::Status;

/// What the message of a direction that failed says of `topk`.
const TOPK: &str = "在npu上，topk的入参sorted=False时不生效，会返回有序tensor，而cpu上会返回无序tensor。 \
                    如果topk精度不达标，请检查是否是该原因导致的。";
const NO_BENCHMARK: &str = "This data type does not support benchmark compare.";

/// What came of it.
#[derive(Debug)]
pub struct FinalOutcome {
    /// What is to be said.
    pub answer: Answer,
    /// And what people are shown besides.
    pub sections: Vec<Section>,
    /// Whether every row was compared that could be.
    pub is_all_read: bool,
}

/// Compares two files of details and writes a result and its details.
pub fn final_compare(
    target: &Path,
    reference: &Path,
    output: &Path,
    is_strict: bool,
    console: &dyn Console,
) -> Result<FinalOutcome, CompareError> {
    let sides = [Side::read(target, "npu")?, Side::read(reference, "gpu")?];
    let mut tables = Tables::default();
    let mut told = Told::default();
    judge_all(&sides, is_strict, &mut tables, &mut told, console);
    let unwritable = |error: io::Error| {
        CompareError::new(Code::IllegalPath, format!("{}: {error}", output.display()))
            .with_hint("give a directory that can be written with -o")
    };
    make_directory(output).map_err(unwritable)?;
    let stamp = timestamp();
    let write = |kind: &str, headers: &[&str], rows: &[Vec<String>]| -> Result<PathBuf, CompareError> {
        let path = output.join(format!("api_precision_compare_{kind}_{stamp}.csv"));
        publish_numbered(&path, |file| write_rows(file, headers, rows)).map_err(unwritable)
    };
    let files = vec![
        write("result", &FINAL_RESULT, &tables.result)?,
        write("details", &FINAL_DETAILS, &tables.details)?,
    ];
    let is_all_read = !told.was_aborted;
    let (mut answer, sections) = told.answer();
    answer.output = Some(output.to_owned());
    answer.files = files;
    Ok(FinalOutcome { answer, sections, is_all_read })
}

fn write_rows(file: &mut File, headers: &[&str], rows: &[Vec<String>]) -> io::Result<()> {
    let mut text = "\u{feff}".as_bytes().to_vec();
    push_csv_row(headers, CSV, &mut text);
    for row in rows {
        push_csv_row(row, CSV, &mut text);
        if text.len() > 1 << 20 {
            file.write_all(&text)?;
            text.clear();
        }
    }
    file.write_all(&text)
}

/// The rows of both files, in order.
#[derive(Default)]
struct Tables {
    result: Vec<Vec<String>>,
    details: Vec<Vec<String>>,
}

impl Tables {
    fn result(&mut self, name: &str, forward: Status, backward: Status, message: &str) {
        let row = [name, forward.as_str(), backward.as_str(), message];
        self.result.push(row.map(str::to_owned).to_vec());
    }
}

/// The name of a row: `Torch.exp.0.forward.output.0`.
struct RowName {
    /// `Torch.exp.0`
    api: String,
    /// `exp`
    bare: String,
    /// `forward`, or anything else that stands there.
    direction: String,
}

impl RowName {
    fn parse(name: &str) -> Option<RowName> {
        let segments: Vec<&str> = name.split('.').collect();
        let (bare, front) = match segments.as_slice() {
            [kind, name, index, direction, _, _] => {
                ((*name).to_owned(), (format!("{kind}.{name}.{index}"), direction))
            }
            [kind, outer, name, index, direction, _, _] => {
                (format!("{outer}.{name}"), (format!("{kind}.{outer}.{name}.{index}"), direction))
            }
            _ => return None,
        };
        Some(RowName { api: front.0, bare, direction: (*front.1).to_owned() })
    }
}

/// What becomes of a row, found without looking at any other.
enum Judged {
    InvalidName,
    Absent,
    Twice,
    /// It joins its API.
    Accepted {
        name: RowName,
        row: Row,
        is_unsupported: bool,
    },
    /// The reference tells it under its own name; strictly, it joins its API as one.
    Unusable {
        name: RowName,
        message: String,
    },
}

/// An API while its rows come in.
struct Pending {
    name: RowName,
    forward: Vec<Status>,
    backward: Vec<Status>,
    forward_message: String,
    /// The last row is of a dtype that there is no standard for.
    ends_unsupported: bool,
}

fn judge_all(
    [target, reference]: &[Side; 2],
    is_strict: bool,
    tables: &mut Tables,
    told: &mut Told,
    console: &dyn Console,
) {
    let judged: Vec<(String, Judged)> =
        (0..target.len()).into_par_iter().map(|row| judge(target, row, reference, is_strict)).collect();
    let mut pending: Option<Pending> = None;
    for (row_name, judged) in judged {
        match judged {
            Judged::InvalidName => {
                let message = format!("The API name {row_name} is invalid.");
                tables.details.push(Row::skipped(&row_name, message.clone()).cells());
                tables.result(&row_name, Status::Skip, Status::Skip, &message);
                told.skipped(&row_name, message);
            }
            Judged::Absent => {
                console.warning(&format!("This {row_name} in the NPU data is not found in the GPU data."));
                told.absent.push(row_name);
            }
            Judged::Twice => {
                console.error(&format!(
                    "Analyse csv Error: This {row_name} has multiple records in the GPU data."
                ));
                if is_strict {
                    told.skipped(&row_name, "has several rows in the GPU data".to_owned());
                    continue;
                }
                // As in the reference, nothing behind it is looked at, and the API before it is not told.
                told.was_aborted = true;
                return;
            }
            Judged::Unusable { name, message } => {
                tables.details.push(Row::skipped(&row_name, message.clone()).cells());
                told.skipped(&row_name, message.clone());
                if is_strict {
                    accept(&mut pending, &name, Status::Skip, &message, false, is_strict, tables, told);
                } else {
                    tables.result(&row_name, Status::Skip, Status::Skip, &message);
                }
            }
            Judged::Accepted { name, row, is_unsupported } => {
                if !matches!(name.direction.as_str(), "forward" | "backward") {
                    console.error(&format!("{row_name}: the direction is neither forward nor backward"));
                }
                let (status, message) = (row.status, row.message.clone());
                told.row(&row_name, status, &message);
                tables.details.push(row.cells());
                accept(&mut pending, &name, status, &message, is_unsupported, is_strict, tables, told);
            }
        }
    }
    if let Some(last) = pending {
        last.finish(is_strict, tables, told);
    }
}

#[allow(clippy::too_many_arguments, reason = "a row, and where it goes")]
fn accept(
    pending: &mut Option<Pending>,
    name: &RowName,
    status: Status,
    message: &str,
    is_unsupported: bool,
    is_strict: bool,
    tables: &mut Tables,
    told: &mut Told,
) {
    if pending.as_ref().is_some_and(|pending| pending.name.api != name.api)
        && let Some(before) = pending.take()
    {
        before.finish(is_strict, tables, told);
    }
    let api = pending.get_or_insert_with(|| Pending {
        name: RowName { api: name.api.clone(), bare: name.bare.clone(), direction: String::new() },
        forward: Vec::new(),
        backward: Vec::new(),
        forward_message: String::new(),
        ends_unsupported: false,
    });
    match name.direction.as_str() {
        "forward" => {
            api.forward.push(status);
            message.clone_into(&mut api.forward_message);
        }
        "backward" => api.backward.push(status),
        _ => {}
    }
    api.ends_unsupported = is_unsupported;
}

impl Pending {
    /// Writes the row of the API.
    fn finish(self, is_strict: bool, tables: &mut Tables, told: &mut Told) {
        let [forward, backward] = [&self.forward, &self.backward].map(|statuses| status_of(statuses));
        let only_skipped = !matches!(forward.max(backward), Status::Warning | Status::Error)
            && [forward, backward].iter().all(|status| *status != Status::Pass);
        if self.ends_unsupported && (!is_strict || only_skipped) {
            tables.result(&self.name.api, Status::Skip, Status::Skip, NO_BENCHMARK);
            told.api(&self.name.api, Status::Skip);
            return;
        }
        let message = if forward == Status::Error && self.name.bare == "topk" {
            TOPK
        } else if forward == Status::Skip {
            &self.forward_message
        } else {
            ""
        };
        tables.result(&self.name.api, forward, backward, message);
        told.api(&self.name.api, forward.max(backward));
    }
}

/// The worst; SKIP only if there is nothing else.
fn status_of(statuses: &[Status]) -> Status {
    let judged = statuses.iter().copied().filter(|status| *status != Status::Skip).max();
    judged.unwrap_or(if statuses.is_empty() { Status::None } else { Status::Skip })
}

fn judge(target: &Side, row: usize, reference: &Side, is_strict: bool) -> (String, Judged) {
    let row_name = target.text(row, Column::Name);
    let Some(name) = RowName::parse(&row_name) else { return (row_name, Judged::InvalidName) };
    let reference_row = match reference.find(&row_name) {
        None => return (row_name, Judged::Absent),
        Some((_, count)) if count > 1 => return (row_name, Judged::Twice),
        Some((first, _)) => first,
    };
    let dtype_text = target.text(row, Column::DeviceDtype);
    let dtype = rules::float_dtype(&dtype_text);
    let is_unsupported = dtype.is_some_and(|dtype| {
        use msprobe_tensor::DType::{C64, C128, F64};
        matches!(dtype, F64 | C64 | C128)
    });
    let own_status = Status::parse(&target.status(row));
    if dtype_text.trim().is_empty() || is_unsupported || target.shape(row) == "(0,)" {
        let mut skipped = Row::skipped(&row_name, target.message(row));
        if is_strict && own_status == Some(Status::Error) && dtype_text.trim().is_empty() {
            // Nothing was measured because both sides are of different kinds.
            skipped.status = Status::Error;
        }
        return (row_name, Judged::Accepted { name, row: skipped, is_unsupported });
    }
    let sides = rules::Sides { target, target_row: row, reference, reference_row };
    let judged = match rules::judge(&row_name, &name.bare, dtype, &sides, is_strict) {
        Ok(row) => Judged::Accepted { name, row, is_unsupported: false },
        Err(_) if is_strict && own_status == Some(Status::Error) => {
            // A number or a shape that was wrong before anything could be measured stays wrong.
            let mut row = Row::skipped(&row_name, target.message(row));
            row.status = Status::Error;
            Judged::Accepted { name, row, is_unsupported: false }
        }
        Err(error) => Judged::Unusable { name, message: error.to_string() },
    };
    (row_name, judged)
}

#[cfg(test)]
mod tests;
