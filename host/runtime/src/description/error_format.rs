//! All that the host needs to refuse a request as a format's clients expect it, made of a description when it is read.

use super::challenge::ChallengeScheme;
use super::error_template::ErrorTemplate;
use super::shown_sentence::ShownSentence;

/// How a format's refusals look: body, challenge and where else the sentence stands.
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorFormat {
    /// By what the body is written.
    pub template: ErrorTemplate,
    /// What a 401 asks for.
    pub challenge: ChallengeScheme,
    /// The path of the token service, where there is one.
    pub token_service: Option<String>,
    /// Whether the reason phrase is the sentence for every client.
    pub sentence_as_reason: bool,
    /// Clients that show the sentence in one place alone.
    pub sentence_clients: Vec<ShownSentence>,
}

impl Default for ErrorFormat {
    /// Where no format is known: the template of one that says nothing, and `Basic`.
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

/// The name under which a template has the words for what is over this limit.
#[must_use]
pub fn excess_of(limit: &str) -> String {
    format!("limit:{limit}")
}
