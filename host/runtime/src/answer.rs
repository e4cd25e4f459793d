//! Validation of a plugin's answer. The host trusts no part of an answer before this validation.

use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use packhouse_store::{Arriving, Blob};

use crate::bindings::packhouse::format::http as wit;
use crate::error::CallError;
use crate::joined::{Cut, Joined, JoinedPart};
use crate::reads::Reads;
use crate::request::{Action, Intent, Looked};
use crate::services::CacheUse;
use crate::state::HostState;
use crate::state::blobs::BlobContent;
use crate::state::http::IntentRep;

/// Most bytes of an inline content.
const MAX_INLINE: usize = 1 << 20;
/// Content up to this size is copied into one buffer: a few parts cost more than a copy.
const COPIED_BYTES: u64 = 64 << 10;
/// Hashing content up to this size takes negligible time.
const HASHED_BYTES: u64 = 2 << 10;
/// Most headers of an answer, and most bytes of all of them together.
const MAX_HEADERS: usize = 128;
const MAX_HEADER_BYTES: usize = 64 << 10;
const MAX_PROBLEMS: usize = 100;
/// Longest code or message of a problem, in bytes.
const MAX_PROBLEM_TEXT: usize = 16 << 10;
/// Headers that belong to one connection, or that only the host may set.
const DROPPED: [&str; 12] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "content-length",
    "date",
    "set-cookie",
];

#[derive(Clone)]
pub struct Answer {
    /// Status code from 200 to 599.
    pub status: u16,
    /// Excludes hop-by-hop fields, `date`, `set-cookie`, and `content-length` unless the answer has
    /// no content.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub content: Content,
    /// Time at which the served content last changed, in ms since 1970.
    pub modified: Option<u64>,
    /// True if the answer depends only on the request, the settings of the call's repositories,
    /// `reads` and `until`. The server may then cache the answer until one of these inputs changes.
    /// False if the plugin used the clock, the caller or the identity, or an upstream's reply that
    /// may differ the next time.
    pub cacheable: bool,
    /// Parts of the request that the plugin looked at.
    pub looked: Looked,
    /// True if the call committed something.
    pub committed: bool,
    /// For calls that write: newest revision of the records that the call read. None unless the
    /// call read only existing records of its target, each by its key.
    pub newest_found: Option<u64>,
    /// True if the content may contain secrets. The server sets this field, because the server
    /// inserts the secrets.
    pub confidential: bool,
    /// The data that the answer was made from.
    pub reads: Reads,
    /// The first moment at which the passing of time may change the answer to the same request, in
    /// ms since 1970. At that moment, an upstream's reply stops being fresh, or a withheld release
    /// becomes old enough. None if time changes nothing.
    pub until: Option<i64>,
    /// Uses of cached proxy content. Each time the server serves the answer again, it counts these
    /// uses again.
    pub cache_uses: Vec<CacheUse>,
}

#[derive(Clone)]
pub enum Content {
    None,
    /// Bytes that the plugin made, at most 2 MiB.
    Inline(Bytes),
    /// Longer bytes that the plugin made, in the parts that it joined.
    Joined(Joined),
    /// Content of any size, readable and durable after the call.
    Blob(Blob),
    /// A body that was still arriving from an upstream when the call ended. The server sends the
    /// last piece only after it has verified and stored the body.
    Arriving(Arriving),
}

/// A refusal in the format's own words.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Status code from 400 to 599.
    pub status: u16,
    /// Response headers, filtered like those of [`Answer::headers`].
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub problems: Vec<Problem>,
    /// True if a blob that the plugin requested was missing and the plugin did not handle it. A
    /// concurrent change removed the blob, so another call may succeed.
    pub torn: bool,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Problem {
    /// Machine-readable code of the problem.
    pub code: String,
    /// Message for people to read.
    pub message: String,
    /// Further facts, as a JSON object.
    pub detail: Option<serde_json::Value>,
}

type Headers = Vec<(HeaderName, HeaderValue)>;

/// Takes a response out of the call's handles. `BadAnswer` states which part breaks the contract.
pub(crate) fn answer(state: &mut HostState, response: wit::Response) -> Result<Answer, CallError> {
    if !(200..=599).contains(&response.status) {
        return Err(bad(format!("the status {}", response.status)));
    }
    // Abandons an unfinished memo entry. The answer still depends on the entry's reads.
    state.end_making();
    let content = match response.content {
        wit::Content::None => Content::None,
        wit::Content::Inline(bytes) if bytes.len() > MAX_INLINE => {
            return Err(bad(format!("{} inline bytes, over the limit of {MAX_INLINE}", bytes.len())));
        }
        wit::Content::Inline(bytes) => Content::Inline(Bytes::from(bytes)),
        wit::Content::Blob(blob) => match state.take(blob)?.0 {
            BlobContent::Whole(blob) => in_memory(blob, None),
            BlobContent::Cut(blob, cut) => in_memory(blob, Some(cut)),
            BlobContent::Joined(joined) if joined.size() <= COPIED_BYTES => Content::Inline(joined.concat()),
            BlobContent::Joined(joined) => Content::Joined(joined),
            BlobContent::Arriving(arriving) => Content::Arriving(arriving),
        },
    };
    let options = response.options.map(|options| state.take(options)).transpose()?;
    let states_length = matches!(content, Content::None) && state.head.method == "HEAD";
    let headers = headers(response.headers, states_length)?;
    state.note_clock_and_random();
    // The `Age` header changes with each second, so an answer with it must not be cached.
    let has_age = headers.iter().any(|(name, _)| name == http::header::AGE);
    let newest_found = state.newest_found.filter(|_| state.reads.are_records_of(state.repository));
    Ok(Answer {
        status: response.status,
        headers,
        content,
        modified: options.and_then(|options| options.modified),
        cacheable: !state.uncacheable && state.replies.are_known() && !has_age,
        looked: state.looked,
        committed: state.committed,
        newest_found,
        confidential: false,
        reads: std::mem::take(&mut state.reads),
        until: state.until,
        cache_uses: state.replies.take(),
    })
}

/// Converts a blob into content: inline bytes if the blob was made in memory, or else the blob
/// itself. A piece of a memoized blob above [`HASHED_BYTES`] keeps its cut, because the server then
/// derives its digest from the known digest of that blob.
fn in_memory(blob: Blob, cut: Option<Cut>) -> Content {
    match (blob.made_in_memory(), cut) {
        (None, _) => Content::Blob(blob),
        (Some(bytes), Some(cut)) if bytes.len() as u64 > HASHED_BYTES => {
            Content::Joined(Joined::of(vec![JoinedPart { bytes, cut: Some(cut) }]))
        }
        (Some(bytes), _) => Content::Inline(bytes),
    }
}

/// Validates a plugin's failure. `BadAnswer` states which part breaks the contract.
pub(crate) fn failure(failure: wit::Failure) -> Result<Failure, CallError> {
    if !(400..=599).contains(&failure.status) {
        return Err(bad(format!("a failure with the status {}", failure.status)));
    }
    if failure.problems.is_empty() || failure.problems.len() > MAX_PROBLEMS {
        return Err(bad(format!("a failure with {} problems", failure.problems.len())));
    }
    let problems = failure.problems.into_iter().map(problem).collect::<Result<_, _>>()?;
    Ok(Failure { status: failure.status, headers: headers(failure.headers, false)?, problems, torn: false })
}

/// Validates a plugin's intent. `BadAnswer` states which part breaks the contract.
pub(crate) fn intent(intent: IntentRep) -> Result<Intent, CallError> {
    let action = match intent.action.as_str() {
        "open" => Action::Open,
        "read" => Action::Read,
        "publish" => Action::Publish,
        "delete" => Action::Delete,
        other => return Err(bad(format!("an intent with the action {other:?}"))),
    };
    let known = |name: &String| name.parse().map_err(|error| bad(format!("{error}")));
    let digests = intent.digests.iter().map(known).collect::<Result<_, _>>()?;
    Ok(Intent {
        action,
        subject: intent.subject,
        body: intent.body,
        limit: intent.limit,
        digests,
        also_read: intent.also_read,
        check: intent.check,
        for_publish: intent.for_publish && action == Action::Read,
        packages: intent.packages,
        many_packages: intent.many_packages,
        for_caller: false,
        looked: Looked::default(),
    })
}

fn problem(problem: wit::Problem) -> Result<Problem, CallError> {
    if problem.code.len() > MAX_PROBLEM_TEXT || problem.message.len() > MAX_PROBLEM_TEXT {
        return Err(bad(format!("a problem with more than {MAX_PROBLEM_TEXT} bytes")));
    }
    let detail = match problem.detail.as_str() {
        "" => None,
        text => match serde_json::from_str(text) {
            Ok(detail @ serde_json::Value::Object(_)) => Some(detail),
            _ => return Err(bad("a problem whose detail is not a JSON object".to_owned())),
        },
    };
    Ok(Problem { code: problem.code, message: problem.message, detail })
}

fn headers(fields: Vec<wit::Header>, states_length: bool) -> Result<Headers, CallError> {
    let bytes: usize = fields.iter().map(|field| field.name.len() + field.value.len()).sum();
    if fields.len() > MAX_HEADERS || bytes > MAX_HEADER_BYTES {
        return Err(bad(format!("{} headers of {bytes} bytes", fields.len())));
    }
    let mut headers = Vec::with_capacity(fields.len());
    for field in fields {
        let header = header(&field)?;
        let length = states_length && header.0 == http::header::CONTENT_LENGTH;
        if length || !DROPPED.contains(&header.0.as_str()) {
            headers.push(header);
        }
    }
    Ok(headers)
}

fn header(field: &wit::Header) -> Result<(HeaderName, HeaderValue), CallError> {
    let name = HeaderName::from_bytes(field.name.as_bytes())
        .map_err(|_| bad(format!("a header with the name {:?}", shortened(&field.name))))?;
    let plain = field.value.bytes().all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte));
    let value = HeaderValue::from_str(&field.value).ok().filter(|_| plain);
    let value =
        value.ok_or_else(|| bad(format!("the header {name} with a value that is not visible ASCII")))?;
    Ok((name, value))
}

fn shortened(text: &str) -> &str {
    text.get(..text.floor_char_boundary(64)).unwrap_or_default()
}

fn bad(what: String) -> CallError {
    CallError::BadAnswer(what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::BodyPlan;

    fn field(name: &str, value: &str) -> wit::Header {
        wit::Header { name: name.to_owned(), value: value.to_owned() }
    }

    fn refusal(status: u16, detail: &str) -> wit::Failure {
        let problem =
            wit::Problem { code: "c".to_owned(), message: "m".to_owned(), detail: detail.to_owned() };
        wit::Failure { status, headers: Vec::new(), problems: vec![problem] }
    }

    #[test]
    fn the_hosts_own_headers_are_left_out() {
        let fields = DROPPED.iter().map(|name| field(name, "1")).chain([field("X-Checksum", "a\tb")]);
        let sent = headers(fields.collect(), false).unwrap();
        assert_eq!(sent.len(), 1);
        assert_eq!(sent[0].0, "x-checksum");
        let length = headers(vec![field("content-length", "5")], true).unwrap();
        assert_eq!(length.len(), 1);
    }

    #[test]
    fn headers_that_break_the_wire_are_refused() {
        for (name, value) in [("a b", "1"), ("", "1"), ("a", "1\r\nx: y"), ("a", "ü"), ("a", "\0")] {
            assert!(headers(vec![field(name, value)], false).is_err(), "{name:?}: {value:?}");
        }
        assert!(headers((0..=MAX_HEADERS).map(|_| field("a", "1")).collect(), false).is_err());
        assert!(headers(vec![field("a", &"1".repeat(MAX_HEADER_BYTES))], false).is_err());
    }

    #[test]
    fn failures_are_refusals_with_a_problem() {
        assert!(failure(refusal(409, "")).is_ok());
        assert!(failure(refusal(409, r#"{"a": 1}"#)).unwrap().problems[0].detail.is_some());
        assert!(failure(refusal(200, "")).is_err());
        assert!(failure(refusal(409, "[]")).is_err());
        assert!(failure(wit::Failure { problems: Vec::new(), ..refusal(409, "") }).is_err());
    }

    #[test]
    fn intents_are_bounded_by_the_operators_limit() {
        let made = |action: &str, digest: &str| IntentRep {
            action: action.to_owned(),
            digests: vec![digest.to_owned()],
            body: BodyPlan::Body { limit: 100 },
            for_publish: true,
            ..IntentRep::default()
        };
        let taken = intent(made("publish", "sha1")).unwrap();
        assert_eq!((taken.body.at_most(Some(10)), taken.for_publish), (BodyPlan::Body { limit: 10 }, false));
        assert!(intent(made("write", "sha1")).is_err());
        assert!(intent(made("read", "crc32")).is_err());
    }
}
