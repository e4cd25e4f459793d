//! Decides where a client will see the message of a refusal, because some clients do not show the
//! response body. Also finds the media types that the client accepts for errors.

use http::header::{ACCEPT, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use hyper::ext::ReasonPhrase;
use packhouse_runtime::{ClientSentence, ErrorTemplate, SentencePlace};

/// Maximum length of a reason phrase, in bytes. Longer ones are truncated.
const REASON_BYTES: usize = 200;
const PROBLEM: &str = "application/problem+json";

/// Facts about the client that receives a refusal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ErrorReader<'a> {
    place: Option<&'a SentencePlace>,
    as_reason: bool,
    takes_problems: bool,
}

impl<'a> ErrorReader<'a> {
    /// Describes the client that sent these headers. `clients` lists the known clients that show
    /// the message in only one place. With `as_reason`, the reason phrase is the message for every
    /// client.
    pub(crate) fn of(
        headers: &HeaderMap,
        mut clients: impl Iterator<Item = &'a ClientSentence>,
        as_reason: bool,
    ) -> Self {
        let user_agent = headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let place = clients.find(|client| client.is_of(user_agent)).map(|client| &client.place);
        Self { place, as_reason, takes_problems: takes_problems(headers) }
    }

    pub(crate) fn shows_body(self) -> bool {
        self.place == Some(&SentencePlace::Body)
    }

    /// Returns the treatment of a plain 404. Such a response is often not a failure, and clients
    /// look for the standard reason phrase.
    pub(crate) fn of_plain_404(self) -> Self {
        let place = self.place.filter(|place| **place == SentencePlace::Body);
        Self { place, as_reason: false, ..self }
    }

    /// Returns the media type of a body that this template produces.
    pub(crate) fn content_type(self, template: &ErrorTemplate) -> &str {
        let problem = self.takes_problems && template.is_problem_details();
        if problem { PROBLEM } else { template.content_type() }
    }

    /// Returns the header in which this client expects the message, with the message as its value.
    pub(crate) fn header(self, sentence: &str) -> Option<(HeaderName, HeaderValue)> {
        let Some(SentencePlace::Header(name)) = self.place else { return None };
        let name = HeaderName::from_lowercase(name.as_bytes()).ok()?;
        Some((name, HeaderValue::from_str(&line(sentence)).ok()?))
    }

    /// Returns the reason phrase if it differs from that of RFC 9110.
    pub(crate) fn reason(self, sentence: &str, status: StatusCode) -> Option<ReasonPhrase> {
        let as_phrase = self.as_reason || self.place == Some(&SentencePlace::Reason);
        (as_phrase || status.canonical_reason().is_none())
            .then(|| ReasonPhrase::try_from(line(sentence)).ok())?
    }
}

/// Converts the message to one line of printable ASCII.
fn line(sentence: &str) -> String {
    let printable = |c: char| if c.is_ascii_graphic() || c == ' ' { c } else { '?' };
    sentence.chars().map(printable).take(REASON_BYTES).collect()
}

/// Reports whether `Accept` names `application/problem+json` (RFC 9457) itself. `*/*` is not
/// enough, because clients that send it expect the format's usual type.
fn takes_problems(headers: &HeaderMap) -> bool {
    let fields = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    fields.flat_map(|field| field.split(',')).any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let is_named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(PROBLEM));
        is_named && !parts.any(is_zero_weight)
    })
}

fn is_zero_weight(parameter: &str) -> bool {
    let Some((name, weight)) = parameter.split_once('=') else { return false };
    name.trim().eq_ignore_ascii_case("q") && weight.trim().parse::<f32>().is_ok_and(|weight| weight <= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepting(value: &'static str) -> HeaderMap {
        [(ACCEPT, HeaderValue::from_static(value))].into_iter().collect()
    }

    #[test]
    fn problem_details_are_taken_only_where_accept_names_them() {
        for value in ["application/problem+json", "*/*, Application/Problem+JSON;q=0.5"] {
            assert!(takes_problems(&accepting(value)), "{value}");
        }
        for value in ["*/*", "application/*", "application/json", "application/problem+json; q=0.0"] {
            assert!(!takes_problems(&accepting(value)), "{value}");
        }
        assert!(!takes_problems(&HeaderMap::new()));
    }

    #[test]
    fn the_sentence_stands_where_the_client_shows_it() {
        let client = |user_agent: &str, place| ClientSentence { user_agent: user_agent.to_owned(), place };
        let clients = [
            client("reads-reason/", SentencePlace::Reason),
            client("reads-body/", SentencePlace::Body),
            client("reads-header/", SentencePlace::Header("tool-notice".to_owned())),
        ];
        let reader = |user_agent: &'static str| {
            let headers: HeaderMap =
                [(USER_AGENT, HeaderValue::from_static(user_agent))].into_iter().collect();
            ErrorReader::of(&headers, clients.iter(), false)
        };
        let reason = |reader: ErrorReader<'_>| {
            let reason = reader.reason("Gr\u{f6}\u{df}e", StatusCode::NOT_FOUND)?;
            Some(String::from_utf8_lossy(reason.as_bytes()).into_owned())
        };
        assert_eq!(reason(reader("reads-reason/6.1")).as_deref(), Some("Gr??e"));
        assert!(reader("reads-body/3.5 x86_64-linux").shows_body());
        assert_eq!(reader("reads-header/10.8 node/v22").header("a\nb").unwrap().1, "a?b");
        let other = reader("curl/8");
        assert_eq!((reason(other), other.shows_body(), other.header("a")), (None, false, None));
        assert_eq!(reason(reader("reads-reason/6.1").of_plain_404()), None);
        assert!(reader("reads-body/3.5").of_plain_404().shows_body());
        let every = ErrorReader { as_reason: true, ..other };
        assert_eq!(reason(every).as_deref(), Some("Gr??e"));
    }
}
