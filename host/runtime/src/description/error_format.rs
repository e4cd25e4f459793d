//! Complete error format of a plugin, built when its description is parsed. The host uses it to
//! refuse a request as the format's clients expect.

use super::challenge::ChallengeScheme;
use super::client_sentence::ClientSentence;
use super::error_template::ErrorTemplate;

/// Form of a format's refusals: the body, the challenge, and the places where clients show the
/// sentence.
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorFormat {
    pub template: ErrorTemplate,
    /// The challenge of a 401 response.
    pub challenge: ChallengeScheme,
    /// The path of the token service, if there is one.
    pub token_service: Option<String>,
    /// True if the reason phrase is the sentence for every client.
    pub sentence_as_reason: bool,
    /// Clients that show the sentence in only one place.
    pub sentence_clients: Vec<ClientSentence>,
}

impl Default for ErrorFormat {
    /// Default template and `Basic`. Used if the format is unknown.
    fn default() -> Self {
        Self {
            template: ErrorTemplate::default(),
            challenge: ChallengeScheme::basic(),
            token_service: None,
            sentence_as_reason: false,
            sentence_clients: Vec::new(),
        }
    }
}

/// Template key of the message for this limit.
#[must_use]
pub fn excess_of(limit: &str) -> String {
    format!("limit:{limit}")
}
