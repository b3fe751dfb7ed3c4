//! The JSON file of an entry: what its tensors have for figures.

use msprobe_tensor::{DType, FourStatistics};

use crate::write::JsonText;

/// How many blanks a level is indented, as the tools that read these files by eye are used to.
const INDENT: usize = 4;

/// How the tensors of a value were put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grouping {
    /// It is one tensor.
    Single,
    /// By position.
    List,
    /// By name.
    Mapping,
}

/// What is said about one tensor.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Record {
    /// Its name in a mapping.
    pub(super) label: String,
    pub(super) figures: FourStatistics,
    pub(super) shape: Vec<usize>,
    /// The dtype, where the file tells it.
    pub(super) dtype: Option<DType>,
}

/// The text of the file.
pub(super) fn document(grouping: Grouping, records: &[Record]) -> String {
    let mut text = JsonText::indented(INDENT);
    text.begin_object();
    text.key("data");
    match grouping {
        Grouping::Single => {
            if let Some(record) = records.first() {
                put(&mut text, record);
            }
        }
        Grouping::List => {
            text.begin_array();
            for record in records {
                put(&mut text, record);
            }
            text.end_array();
        }
        Grouping::Mapping => {
            text.begin_object();
            for record in records {
                text.key(&record.label);
                put(&mut text, record);
            }
            text.end_object();
        }
    }
    text.end_object();
    text.finish()
}

fn put(text: &mut JsonText, record: &Record) {
    let FourStatistics { max, min, mean, norm } = record.figures;
    text.begin_object();
    for (name, figure) in [("max", max), ("min", min), ("mean", mean), ("norm", norm)] {
        text.key(name);
        text.float(figure);
    }
    text.key("shape");
    text.begin_array();
    for &size in &record.shape {
        text.int(size as i128);
    }
    text.end_array();
    if let Some(dtype) = record.dtype {
        text.key("dtype");
        text.string(dtype.name());
    }
    text.end_object();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(label: &str, shape: Vec<usize>, dtype: Option<DType>) -> Record {
        let figures = FourStatistics { max: f64::INFINITY, min: -1e-5, mean: f64::NAN, norm: 2.0 };
        Record { label: label.to_owned(), figures, shape, dtype }
    }

    #[test]
    fn documents_are_what_pythons_json_writes() {
        let single = document(Grouping::Single, &[record("", vec![2, 3], None)]);
        assert_eq!(
            single,
            r#"{
    "data": {
        "max": Infinity,
        "min": -1e-05,
        "mean": NaN,
        "norm": 2.0,
        "shape": [
            2,
            3
        ]
    }
}"#
        );
        let mapping = document(Grouping::Mapping, &[record("中", vec![], Some(DType::I64))]);
        let end = "\n            \"shape\": [],\n            \"dtype\": \"int64\"\n        }\n    }\n}";
        assert!(
            mapping.starts_with("{\n    \"data\": {\n        \"\\u4e2d\": {\n            \"max\""),
            "{mapping}"
        );
        assert!(mapping.ends_with(end), "{mapping}");
        assert_eq!(document(Grouping::List, &[]), "{\n    \"data\": []\n}");
        assert_eq!(document(Grouping::Mapping, &[]), "{\n    \"data\": {}\n}");
    }
}
