//! Refusals of the management API, as errors of commands.

use std::fmt;

use reqwest::StatusCode;
use serde_json::Value;

use super::text;

/// A response with an error status. Its text is the API's sentence.
#[derive(Debug)]
pub(crate) struct ApiRefusal {
    status: StatusCode,
    message: String,
}

impl ApiRefusal {
    /// Reads the body of a response. Other programs on the way, such as reverse proxies, answer
    /// without a sentence of the API.
    pub(super) fn read(status: StatusCode, body: &str) -> ApiRefusal {
        let body: Value = serde_json::from_str(body).unwrap_or_default();
        let message = match text(&body, "message") {
            "" => format!("the server answered with {status}, and not as the management API does"),
            sentence => sentence.to_owned(),
        };
        ApiRefusal { status, message }
    }

    /// Returns whether an error is a refusal with this status.
    pub(crate) fn has_status(error: &anyhow::Error, status: StatusCode) -> bool {
        error.downcast_ref::<ApiRefusal>().is_some_and(|refusal| refusal.status == status)
    }
}

impl fmt::Display for ApiRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ApiRefusal {}
