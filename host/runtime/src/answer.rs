//! What a plugin answered, validated: nothing of it is trusted before.

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
use crate::state::blobs::Content as Held;
use crate::state::http::IntentRep;

/// Most bytes of an inline content.
const MAX_INLINE: usize = 1 << 20;
/// Bytes up to which a content is one even if it was written in parts: a few parts cost more than a copy.
const COPIED_BYTES: u64 = 64 << 10;
/// What is as short as this is hashed in no time.
const HASHED_BYTES: u64 = 2 << 10;
/// Most headers of an answer, and most bytes of all of them together.
const MAX_HEADERS: usize = 128;
const MAX_HEADER_BYTES: usize = 64 << 10;
/// Most problems of a failure.
const MAX_PROBLEMS: usize = 100;
/// Longest code or message of a problem, in bytes.
const MAX_PROBLEM_TEXT: usize = 16 << 10;
/// Of one connection, or the host's own to say.
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

/// The answer to a request.
#[derive(Clone)]
pub struct Answer {
    /// 200 to 599.
    pub status: u16,
    /// Without hop-by-hop fields, `content-length` (but for an answer without content), `date` and `set-cookie`.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// What comes after the headers.
    pub content: Content,
    /// When what is served was last changed, in ms since 1970.
    pub modified: Option<u64>,
    /// Whether the answer depends on the request, on the settings of the repositories that were handed over, and on `reads` and
    /// `until` alone, and so may be kept until one of those changes: false when clock, caller or identity were used, or an
    /// upstream's reply that may be another the next time.
    pub keepable: bool,
    /// What of the request the plugin looked at.
    pub looked: Looked,
    /// Whether the call has committed something.
    pub committed: bool,
    /// What a call that changes things came to know of its target by nothing but records that were there: the newest of their revisions.
    /// None where it read anything else, or missed something.
    pub newest_found: Option<u64>,
    /// Whether secrets may stand in it. The server says so, which puts them there.
    pub confidential: bool,
    /// What it was made of.
    pub reads: Reads,
    /// The first moment at which the same request may be answered otherwise because time has passed, in ms since 1970: what was
    /// used of an upstream is no longer fresh then, or a release that was withheld is old enough. None where time changes nothing.
    pub until: Option<i64>,
    /// What it used of what proxies keep. That counts again each time the answer is served again.
    pub cache_uses: Vec<CacheUse>,
}

/// The content of an answer.
#[derive(Clone)]
pub enum Content {
    /// Nothing.
    None,
    /// What the plugin made, at most 2 MiB.
    Inline(Bytes),
    /// The same of some length, in the parts that the plugin put it together of.
    Joined(Joined),
    /// Of any size; readable and durable after the call.
    Blob(Blob),
    /// Still coming in from an upstream when the call ended; its last piece is shown once it is right and kept.
    Arriving(Arriving),
}

/// A refusal in the format's own words.
#[derive(Clone, Debug)]
pub struct Failure {
    /// 400 to 599.
    pub status: u16,
    /// As in [`Answer::headers`].
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// At least one.
    pub problems: Vec<Problem>,
    /// Whether a blob was not there that the plugin asked for, and it did not know what to do then: what it read was changed meanwhile, and
    /// another call may find all as it is now.
    pub torn: bool,
}

/// One thing that is wrong.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Problem {
    /// For programs.
    pub code: String,
    /// For people.
    pub message: String,
    /// Further facts, a JSON object.
    pub detail: Option<serde_json::Value>,
}

type Headers = Vec<(HeaderName, HeaderValue)>;

/// Takes a response out of the call's handles. `BadAnswer` says what of it the contract does not allow.
pub(crate) fn answer(state: &mut HostState, response: wit::Response) -> Result<Answer, CallError> {
    if !(200..=599).contains(&response.status) {
        return Err(bad(format!("the status {}", response.status)));
    }
    // What is being made is not finished any more; what was read for it was read.
    state.end_making();
    let content = match response.content {
        wit::Content::None => Content::None,
        wit::Content::Inline(bytes) if bytes.len() > MAX_INLINE => {
            return Err(bad(format!("{} bytes inline, where {MAX_INLINE} are allowed", bytes.len())));
        }
        wit::Content::Inline(bytes) => Content::Inline(Bytes::from(bytes)),
        wit::Content::Blob(blob) => match state.take(blob)?.0 {
            Held::Whole(blob) => in_memory(blob, None),
            Held::Cut(blob, cut) => in_memory(blob, Some(cut)),
            Held::Joined(joined) if joined.size() <= COPIED_BYTES => Content::Inline(joined.concat()),
            Held::Joined(joined) => Content::Joined(joined),
            Held::Arriving(arriving) => Content::Arriving(arriving),
        },
    };
    let options = response.options.map(|options| state.take(options)).transpose()?;
    let states_length = matches!(content, Content::None) && state.head.method == "HEAD";
    let headers = headers(response.headers, states_length)?;
    state.settle_outside();
    // How old it is changes with each second.
    let tells_age = headers.iter().any(|(name, _)| name == http::header::AGE);
    let newest_found = state.newest_found.filter(|_| state.reads.are_records_of(state.repository));
    Ok(Answer {
        status: response.status,
        headers,
        content,
        modified: options.and_then(|options| options.modified),
        keepable: !state.uncacheable && state.replies.are_known() && !tells_age,
        looked: state.looked,
        committed: state.committed,
        newest_found,
        confidential: false,
        reads: std::mem::take(&mut state.reads),
        until: state.until,
        cache_uses: state.replies.take(),
    })
}

/// Bytes that were made in memory, or a file. What is cut out of something remembered, and of some length, stays so: its digest is told from
/// the other's, which is known.
fn in_memory(blob: Blob, cut: Option<Cut>) -> Content {
    match (blob.made_in_memory(), cut) {
        (None, _) => Content::Blob(blob),
        (Some(bytes), Some(cut)) if bytes.len() as u64 > HASHED_BYTES => {
            Content::Joined(Joined::of(vec![JoinedPart { bytes, cut: Some(cut) }]))
        }
        (Some(bytes), _) => Content::Inline(bytes),
    }
}

/// The same of a failure.
pub(crate) fn failure(failure: wit::Failure) -> Result<Failure, CallError> {
    if !(400..=599).contains(&failure.status) {
        return Err(bad(format!("a failure of the status {}", failure.status)));
    }
    if failure.problems.is_empty() || failure.problems.len() > MAX_PROBLEMS {
        return Err(bad(format!("a failure of {} problems", failure.problems.len())));
    }
    let problems = failure.problems.into_iter().map(problem).collect::<Result<_, _>>()?;
    Ok(Failure { status: failure.status, headers: headers(failure.headers, false)?, problems, torn: false })
}

/// The same of an intent; `max_body` bounds whatever body it asks for.
pub(crate) fn intent(intent: IntentRep) -> Result<Intent, CallError> {
    let action = match intent.action.as_str() {
        "open" => Action::Open,
        "read" => Action::Read,
        "publish" => Action::Publish,
        "delete" => Action::Delete,
        other => return Err(bad(format!("an intent to {other:?}"))),
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
        return Err(bad(format!("a problem of more than {MAX_PROBLEM_TEXT} bytes")));
    }
    let detail = match problem.detail.as_str() {
        "" => None,
        text => match serde_json::from_str(text) {
            Ok(detail @ serde_json::Value::Object(_)) => Some(detail),
            _ => return Err(bad("a problem's detail that is no JSON object".to_owned())),
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
        .map_err(|_| bad(format!("a header by the name of {:?}", shortened(&field.name))))?;
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
        let kept = headers(fields.collect(), false).unwrap();
        assert_eq!(kept.len(), 1);
        assert_eq!(kept[0].0, "x-checksum");
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
