//! One operator out of a dump: its entries as they stand there.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use msprobe_dump::model::DumpFile;
use msprobe_dump::python_text::push_repr;
use msprobe_dump::read::Json;
use msprobe_report::error::CompareError;
use msprobe_report::output::{make_directory, save};
use serde_json::Value;

use super::{Framework, Propagation, refused, small_text, unreadable};

/// Parts of an entry whose files are named with their directory.
const WITH_FILES: [&str; 5] = ["input_args", "grad_input", "input", "output", "grad_output"];
/// Spaces of each level of a file that people read.
const INDENT: usize = 4;

/// Entries of one operator, each as JSON.
#[derive(Debug, Default)]
pub(super) struct Extracted {
    pub(super) entries: Vec<(String, String)>,
    /// What only MindSpore keeps beside them.
    framework: Option<String>,
    pub(super) real_data_path: Option<String>,
}

impl Extracted {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All entries whose names begin with that of the API.
    pub(super) fn from_dump(path: &Path, api: &str, framework: Framework) -> Result<Extracted, CompareError> {
        let mut file = DumpFile::open(path).map_err(|error| unreadable(path, &error.kind))?;
        let prefix = format!("{api}.");
        let mut found: Vec<(String, Vec<u8>)> = Vec::new();
        while let Some(entry) = file
            .next_record(|record| {
                let is_of_api = record.name.starts_with(&prefix);
                let name = record.name.to_owned();
                let text = record.skip()?;
                Ok(is_of_api.then(|| (name, text.to_vec())))
            })
            .map_err(|error| unreadable(path, &error.kind))?
        {
            if let Some((name, text)) = entry {
                found.retain(|(before, _)| *before != name);
                found.push((name, text));
            }
        }
        let said = file.header().dump_data_dir.clone().unwrap_or_else(|| "null".to_owned());
        let data_dir = Json::parse(said.as_bytes()).ok().and_then(|value| value.as_str().map(str::to_owned));
        let prefix_files =
            data_dir.as_deref().filter(|dir| !dir.is_empty() && framework == Framework::PyTorch);
        let mut extracted = Extracted::default();
        for (name, text) in found {
            let json =
                Json::parse(&text).map_err(|(what, _)| unreadable(path, &format!("{name}: {what}")))?;
            let mut out = String::new();
            push_entry(&mut out, &json, prefix_files);
            extracted.entries.push((name, out));
        }
        if framework == Framework::MindSpore {
            extracted.framework.clone_from(&file.header().framework);
            extracted.real_data_path = data_dir;
        }
        Ok(extracted)
    }

    /// What was extracted before.
    pub(super) fn read(path: &Path) -> Result<Extracted, CompareError> {
        let text = small_text(path)?;
        if text.trim().is_empty() {
            return Err(refused("json file is empty!"));
        }
        let json = Json::parse_file(text.as_bytes())
            .map_err(|(what, at)| unreadable(path, &format!("{what} at byte {at}")))?;
        let Json::Map(members) = json else { return Err(refused("content of json file is not a dict!")) };
        if members.is_empty() {
            return Err(refused("json file is empty!"));
        }
        let mut extracted = Extracted::default();
        for (key, value) in &members {
            match (&**key, value) {
                ("framework", Json::Text(text)) => extracted.framework = Some(text.to_string()),
                ("real_data_path", Json::Text(text)) => extracted.real_data_path = Some(text.to_string()),
                ("real_data_path" | "framework", Json::Null) => {}
                _ => {
                    let mut out = String::new();
                    push_json(&mut out, value, None);
                    extracted.entries.push((key.to_string(), out));
                }
            }
        }
        Ok(extracted)
    }

    /// Writes it for people to read and to change.
    pub(super) fn write(&self, path: &Path) -> Result<(), CompareError> {
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            make_directory(parent).map_err(|error| unreadable(parent, &error))?;
        }
        let mut members: Vec<(String, String)> = self.entries.clone();
        let text = |text: &String| Value::from(text.as_str()).to_string();
        members.extend(self.framework.as_ref().map(|framework| ("framework".to_owned(), text(framework))));
        members.extend(self.real_data_path.as_ref().map(|path| ("real_data_path".to_owned(), text(path))));
        let mut out = String::from("{");
        for (index, (key, value)) in members.iter().enumerate() {
            out.push_str(if index == 0 { "\n" } else { ",\n" });
            let _ = write!(out, "{:INDENT$}{}: ", "", Value::from(key.as_str()));
            if let Ok(json) = Json::parse(value.as_bytes()) {
                push_indented(&mut out, &json, 1);
            }
        }
        out.push_str(if members.is_empty() { "}" } else { "\n}" });
        let written: io::Result<()> = save(path, |file| file.write_all(out.as_bytes()));
        written.map_err(|error| unreadable(path, &error))
    }
}

/// Forward and backward entry of what a script is to run.
pub(super) fn check(
    extracted: &Extracted,
    propagation: Propagation,
    framework: Framework,
) -> Result<(&str, Option<&str>), CompareError> {
    let entries = &extracted.entries;
    if entries.len() > 2 {
        return Err(refused(
            "json file has more than one API, the API only contains forward and backward info",
        ));
    }
    let Some((name, forward)) = entries.first() else { return Err(refused("json file is empty!")) };
    let segments = name.split('.').count();
    let is_object = |text: &str| text.starts_with('{');
    if !matches!(segments, 4 | 5) || !name.ends_with(".forward") || !is_object(forward) {
        return Err(refused("Invalid forward API data in json_content!"));
    }
    let backward = entries.get(1);
    if propagation == Propagation::Backward && backward.is_none() {
        return Err(refused("Backward propagation requires contains forward and backward info!"));
    }
    if backward.is_some_and(|(name, text)| !name.ends_with(".backward") || !is_object(text)) {
        return Err(refused("Invalid backward API data in json_content!"));
    }
    let kind = name.split('.').next().unwrap_or_default();
    let is_known = matches!(kind, "Functional" | "Tensor" | "Torch")
        || framework == Framework::MindSpore && matches!(kind, "Mint" | "MintFunctional");
    if !is_known {
        return Err(refused(format!("type {kind} of API is not supported!")));
    }
    Ok((forward, backward.map(|(_, text)| text.as_str())))
}

/// An entry with its file names led by the directory they are in.
fn push_entry(out: &mut String, entry: &Json<'_>, data_dir: Option<&str>) {
    let (Json::Map(members), Some(dir)) = (entry, data_dir) else { return push_json(out, entry, None) };
    out.push('{');
    for (index, (key, value)) in members.iter().enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        let _ = write!(out, "{}: ", Value::from(&**key));
        push_json(out, value, WITH_FILES.contains(&&**key).then_some(dir));
    }
    out.push('}');
}

/// A value as Python's reader takes it, NaN and infinity included.
fn push_json(out: &mut String, value: &Json<'_>, data_dir: Option<&str>) {
    match value {
        Json::List(elements) => {
            out.push('[');
            for (index, element) in elements.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                push_json(out, element, data_dir);
            }
            out.push(']');
        }
        Json::Map(members) => {
            out.push('{');
            for (index, (key, value)) in members.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                let _ = write!(out, "{}: ", Value::from(&**key));
                match (data_dir, &**key, value) {
                    (Some(dir), "data_name", Json::Text(name)) => {
                        let file: PathBuf = Path::new(dir).join(&**name);
                        out.push_str(&Value::from(file.to_string_lossy()).to_string());
                    }
                    _ => push_json(out, value, data_dir),
                }
            }
            out.push('}');
        }
        scalar => push_scalar(out, scalar),
    }
}

fn push_scalar(out: &mut String, value: &Json<'_>) {
    match value {
        Json::Null => out.push_str("null"),
        Json::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Json::Float(value) if value.is_nan() => out.push_str("NaN"),
        Json::Float(value) if value.is_infinite() => {
            out.push_str(if *value > 0.0 { "Infinity" } else { "-Infinity" });
        }
        Json::Text(text) => out.push_str(&Value::from(&**text).to_string()),
        number => push_repr(out, number),
    }
}

/// The same over several lines.
fn push_indented(out: &mut String, value: &Json<'_>, depth: usize) {
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.push_str(&" ".repeat(depth * INDENT));
    };
    match value {
        Json::List(elements) if !elements.is_empty() => {
            out.push('[');
            for (index, element) in elements.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                line(out, depth + 1);
                push_indented(out, element, depth + 1);
            }
            line(out, depth);
            out.push(']');
        }
        Json::Map(members) if !members.is_empty() => {
            out.push('{');
            for (index, (key, value)) in members.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                line(out, depth + 1);
                let _ = write!(out, "{}: ", Value::from(&**key));
                push_indented(out, value, depth + 1);
            }
            line(out, depth);
            out.push('}');
        }
        Json::List(_) => out.push_str("[]"),
        Json::Map(_) => out.push_str("{}"),
        scalar => push_scalar(out, scalar),
    }
}
