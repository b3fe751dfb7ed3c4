//! How a configuration is refused: the exception a script sees, and the lines printed before it.

use std::fmt;

/// The Python class a binding raises for a [`ConfigError`]. Scripts catch these, so they are part of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    /// `MsprobeException`, which has a code.
    Msprobe,
    /// `ScopeException`, which has a code.
    Scope,
    /// Python's plain `Exception`.
    Exception,
    /// Python's `ValueError`.
    Value,
    /// Python's `RuntimeError`: the text cannot be parsed. The message is the parser's reason.
    Runtime,
    /// Python's `AttributeError`: something other than an object where an object must be.
    Attribute,
}

impl ErrorClass {
    /// The name of the class in Python.
    pub const fn python_name(self) -> &'static str {
        match self {
            ErrorClass::Msprobe => "MsprobeException",
            ErrorClass::Scope => "ScopeException",
            ErrorClass::Exception => "Exception",
            ErrorClass::Value => "ValueError",
            ErrorClass::Runtime => "RuntimeError",
            ErrorClass::Attribute => "AttributeError",
        }
    }
}

/// `MsprobeException.INVALID_PARAM_ERROR`.
const INVALID_PARAM: u8 = 0;

/// Codes of `ScopeException`.
#[derive(Debug, Clone, Copy)]
pub(super) enum ScopeCode {
    InvalidApiList = 0,
    InvalidScope = 1,
    Conflict = 2,
}

/// How grave a log line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LogLevel {
    /// `[ERROR]`
    Error,
    /// `[WARNING]`
    Warning,
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            LogLevel::Error => "ERROR",
            LogLevel::Warning => "WARNING",
        })
    }
}

/// A line to log. It may quote the file: whoever prints it replaces control characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// How grave it is.
    pub level: LogLevel,
    /// What it says.
    pub text: String,
}

impl LogLine {
    pub(super) fn warning(text: impl Into<String>) -> LogLine {
        LogLine { level: LogLevel::Warning, text: text.into() }
    }
}

impl fmt::Display for LogLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] {}", self.level, self.text)
    }
}

/// Why a configuration is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text())]
pub struct ConfigError {
    /// What a binding raises.
    pub class: ErrorClass,
    /// The number of a coded exception; `None` for Python's own classes.
    pub code: Option<u8>,
    /// The text of the exception, without the prefix that stands for its code. Empty where the reference puts the
    /// reason into the log only.
    pub message: String,
    /// What to log before raising, in order.
    pub log: Vec<LogLine>,
    /// Keys that mean nothing here, to be logged before that.
    pub remarks: Vec<LogLine>,
}

impl ConfigError {
    /// The reason, wherever it was put.
    fn text(&self) -> &str {
        match self.log.last() {
            Some(line) if self.message.is_empty() => &line.text,
            _ => &self.message,
        }
    }
}

/// A [`ConfigError`] on its way up, before it is joined with what was logged so far.
#[derive(Debug)]
pub(super) struct Refusal {
    class: ErrorClass,
    code: Option<u8>,
    message: String,
    /// The reason goes to the log, and the exception stays bare.
    logged: Option<String>,
}

impl Refusal {
    fn new(class: ErrorClass, code: Option<u8>, message: impl Into<String>) -> Refusal {
        Refusal { class, code, message: message.into(), logged: None }
    }

    /// `MsprobeException`, the reason in its text.
    pub(super) fn invalid(message: impl Into<String>) -> Refusal {
        Refusal::new(ErrorClass::Msprobe, Some(INVALID_PARAM), message)
    }

    /// `MsprobeException` with a bare text, the reason in the log.
    pub(super) fn logged(reason: impl Into<String>) -> Refusal {
        Refusal { logged: Some(reason.into()), ..Refusal::invalid("") }
    }

    pub(super) fn scope(code: ScopeCode, message: impl Into<String>) -> Refusal {
        Refusal::new(ErrorClass::Scope, Some(code as u8), message)
    }

    pub(super) fn plain(message: impl Into<String>) -> Refusal {
        Refusal::new(ErrorClass::Exception, None, message)
    }

    pub(super) fn value(message: impl Into<String>) -> Refusal {
        Refusal::new(ErrorClass::Value, None, message)
    }

    pub(super) fn runtime(message: impl Into<String>) -> Refusal {
        Refusal::new(ErrorClass::Runtime, None, message)
    }

    pub(super) fn attribute(message: impl Into<String>) -> Refusal {
        Refusal::new(ErrorClass::Attribute, None, message)
    }

    pub(super) fn after(self, mut log: Vec<LogLine>) -> ConfigError {
        if let Some(text) = self.logged {
            log.push(LogLine { level: LogLevel::Error, text });
        }
        ConfigError { class: self.class, code: self.code, message: self.message, log, remarks: Vec::new() }
    }
}
