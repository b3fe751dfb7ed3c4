//! How one output, one direction, one API ended.

use serde::{Deserialize, Serialize};

/// A status, from best to worst; its text is that of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Status {
    /// There was nothing to judge.
    #[serde(rename = "none")]
    None,
    /// Good.
    #[serde(rename = "pass")]
    Pass,
    /// It could not be judged.
    #[serde(rename = "SKIP")]
    Skip,
    /// Doubtful.
    #[serde(rename = "Warning")]
    Warning,
    /// Wrong.
    #[serde(rename = "error")]
    Error,
}

impl Status {
    /// As tables show it.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::None => " ",
            Status::Pass => "pass",
            Status::Skip => "SKIP",
            Status::Warning => "Warning",
            Status::Error => "error",
        }
    }

    /// From a cell.
    pub fn parse(text: &str) -> Option<Status> {
        match text {
            "pass" => Some(Status::Pass),
            "SKIP" => Some(Status::Skip),
            "Warning" => Some(Status::Warning),
            "error" => Some(Status::Error),
            blank if blank.trim().is_empty() => Some(Status::None),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_back() {
        for status in [Status::None, Status::Pass, Status::Skip, Status::Warning, Status::Error] {
            assert_eq!(Status::parse(status.as_str()), Some(status));
        }
        assert_eq!(Status::parse(""), Some(Status::None));
        assert_eq!(Status::parse("Pass"), None);
    }
}
