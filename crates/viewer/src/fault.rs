//! Why a question has no answer.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use msprobe_report::error::CompareError;
use serde_json::json;

/// An error, told once: with what to do about it, or how far along it is.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// The number of the answer.
    pub(crate) status: StatusCode,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
    /// So much of so much is done: it is no error, but too early.
    pub(crate) preparing: Option<(u64, u64)>,
}

impl Fault {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Fault {
        Fault { status, message: message.into(), hint: None, preparing: None }
    }

    /// The question makes no sense.
    pub(crate) fn bad(message: impl Into<String>) -> Fault {
        Fault::new(StatusCode::BAD_REQUEST, message)
    }

    /// There is nothing of that name.
    pub(crate) fn missing(message: impl Into<String>) -> Fault {
        Fault::new(StatusCode::NOT_FOUND, message)
    }

    /// What was asked for does not fit what is there.
    pub(crate) fn conflict(message: impl Into<String>) -> Fault {
        Fault::new(StatusCode::CONFLICT, message)
    }

    /// A file is not what it should be.
    pub(crate) fn unreadable(message: impl Into<String>) -> Fault {
        Fault::new(StatusCode::UNPROCESSABLE_ENTITY, message)
    }

    /// Ask again.
    pub(crate) fn preparing(done: u64, total: u64) -> Fault {
        Fault {
            preparing: Some((done, total)),
            ..Fault::new(StatusCode::SERVICE_UNAVAILABLE, "it is being prepared")
        }
    }

    pub(crate) fn is_preparing(&self) -> bool {
        self.preparing.is_some()
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Fault {
        self.hint = Some(hint.into());
        self
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Fault {
        use rusqlite::ErrorCode;
        match error.sqlite_error_code() {
            Some(ErrorCode::OperationInterrupted) => {
                Fault::new(StatusCode::GATEWAY_TIMEOUT, "the question took too long and was given up")
                    .with_hint("ask for less: one step and rank, or a longer name")
            }
            Some(ErrorCode::TooBig) => Fault::unreadable("a text in the file is too long to be read"),
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                Fault::unreadable(format!("the file is damaged: {error}"))
                    .with_hint("make the graph again with msprobe graph_visualize")
            }
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                Fault::new(StatusCode::SERVICE_UNAVAILABLE, "another program is writing the file")
                    .with_hint("close it there, and ask again")
            }
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
                Fault::new(StatusCode::FORBIDDEN, format!("the file cannot be opened: {error}"))
            }
            _ => Fault::unreadable(format!("the file cannot be read: {error}")),
        }
    }
}

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Fault {
        let status = match error.kind() {
            std::io::ErrorKind::NotFound => StatusCode::NOT_FOUND,
            std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
                StatusCode::FORBIDDEN
            }
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Fault::new(status, error.to_string())
    }
}

impl From<CompareError> for Fault {
    fn from(error: CompareError) -> Fault {
        Fault { hint: error.hint, ..Fault::unreadable(error.message) }
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        let mut body = json!({"error": self.message, "hint": self.hint});
        if let Some((done, total)) = self.preparing {
            body["preparing"] = json!({"done": done, "total": total});
        }
        let mut response = (self.status, Json(body)).into_response();
        if self.preparing.is_some() {
            response.headers_mut().insert("retry-after", axum::http::HeaderValue::from_static("1"));
        }
        response
    }
}
