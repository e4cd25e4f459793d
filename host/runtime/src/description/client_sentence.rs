//! Clients that show people the sentence of a refusal in only one place.

use http::HeaderName;
use serde::{Deserialize, Serialize};

/// Most clients of a description.
const MAX_CLIENTS: usize = 32;

/// A client, and the place where it shows the sentence.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct ClientSentence {
    /// Start of the client's `User-Agent`, such as `tool/`. Letter case is ignored.
    pub user_agent: String,
    /// Place where the client shows the sentence.
    pub place: SentencePlace,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SentencePlace {
    /// The reason phrase of HTTP/1.1, except for a plain 404.
    Reason,
    /// The whole body, which is plain text for this client.
    Body,
    /// The response header of this name, in lower case, in addition to the usual body. A plain 404
    /// has none.
    Header(String),
}

impl ClientSentence {
    /// Returns true if this `User-Agent` belongs to the client.
    #[must_use]
    pub fn is_of(&self, user_agent: &str) -> bool {
        let start = user_agent.get(..self.user_agent.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(&self.user_agent))
    }
}

pub(super) fn validate(clients: &[ClientSentence]) -> Result<(), String> {
    if clients.len() > MAX_CLIENTS {
        return Err(format!("sentence_clients may have at most {MAX_CLIENTS} entries"));
    }
    for ClientSentence { user_agent, place } in clients {
        if user_agent.is_empty() {
            return Err("sentence_clients.user_agent must not be empty".to_owned());
        }
        // The required suffix `-notice` keeps plugins from setting a header that HTTP or the host
        // gives a meaning.
        if let SentencePlace::Header(name) = place
            && !(HeaderName::from_lowercase(name.as_bytes()).is_ok() && name.ends_with("-notice"))
        {
            return Err(format!(
                "sentence_clients.place.header must be a name in lower case that ends with `-notice`, not {name:?}"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(user_agent: &str, place: SentencePlace) -> ClientSentence {
        ClientSentence { user_agent: user_agent.to_owned(), place }
    }

    #[test]
    fn a_client_is_known_by_the_start_of_its_user_agent() {
        let tool = client("tool/", SentencePlace::Reason);
        assert!(tool.is_of("tool/6.1.0") && tool.is_of("Tool/6.1.0"));
        assert!(!tool.is_of("too") && !tool.is_of("not tool/6") && !tool.is_of("toolé/"));
    }

    #[test]
    fn a_header_of_the_protocol_and_an_empty_user_agent_are_refused() {
        assert!(validate(&[client("tool/", SentencePlace::Header("tool-notice".to_owned()))]).is_ok());
        for wrong in ["set-cookie", "Tool-Notice", "a b-notice"] {
            assert!(
                validate(&[client("tool/", SentencePlace::Header(wrong.to_owned()))]).is_err(),
                "{wrong}"
            );
        }
        assert!(validate(&[client("", SentencePlace::Body)]).is_err());
    }
}
