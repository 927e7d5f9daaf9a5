//! Refusals of the API (RFC 9457).

use http::StatusCode;
use serde_json::{Value, json};

/// Why something was not done.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    /// The line that the command line would print.
    pub(crate) detail: String,
}

/// Result with that.
pub(crate) type Result<T> = std::result::Result<T, Problem>;

impl Problem {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into() }
    }

    /// What was asked for cannot be.
    pub(crate) fn refused(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    }

    /// What was asked for is not there.
    pub(crate) fn missing(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({
            "type": "about:blank",
            "title": self.status.canonical_reason().unwrap_or("refused"),
            "status": self.status.as_u16(),
            "detail": self.detail,
        })
    }
}

impl From<lab::Error> for Problem {
    fn from(error: lab::Error) -> Self {
        let status = match &error {
            lab::Error::Caller(_) => StatusCode::UNPROCESSABLE_ENTITY,
            lab::Error::Machine { .. } | lab::Error::FerryStopped => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            lab::Error::System { .. } => StatusCode::INTERNAL_SERVER_ERROR,
            lab::Error::Peer(_) => StatusCode::BAD_GATEWAY,
        };
        Self::new(status, error.to_string())
    }
}

/// What is asked for by its name and is not there.
pub(crate) fn absent(problem: Problem) -> Problem {
    match problem.status {
        StatusCode::UNPROCESSABLE_ENTITY => Problem::missing(problem.detail),
        _ => problem,
    }
}
