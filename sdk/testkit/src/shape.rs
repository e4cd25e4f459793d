//! Conversion of a format's responses, with the part of the host's rules that tests need.

use crate::answer::Answer;
use packhouse_sdk::{Content, Failure, ReadAt, Response};

/// Largest inline content in bytes; larger content must be a blob.
const INLINE: usize = 1 << 20;

/// Returns the answer that the host would send. A response that the host would refuse to send is a
/// fault of the plugin.
pub(crate) fn answered(response: Response) -> Result<Answer, Failure> {
    if !(200..400).contains(&response.status) {
        return Err(Failure::internal(format!("an answer has status {}", response.status)));
    }
    if let Some((name, value)) = response.headers.iter().find(|(name, value)| !fits(name, value)) {
        return Err(Failure::internal(format!("an answer has the header field {name:?}: {value:?}")));
    }
    let body = match response.content {
        Content::None => Vec::new(),
        Content::Inline(bytes) if bytes.len() > INLINE => {
            return Err(Failure::internal("more than 1 MiB inline"));
        }
        Content::Inline(bytes) => bytes,
        Content::Blob(blob) => blob.read_all(u64::MAX)?,
    };
    let (status, headers, modified) = (response.status, response.headers, response.modified);
    Ok(Answer { status, headers, body, problems: Vec::new(), modified })
}

/// True if the name is in lower case, and the value consists of visible ASCII, spaces and tabs.
fn fits(name: &str, value: &str) -> bool {
    let token = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_';
    let visible = |byte: u8| (b' '..=b'~').contains(&byte) || byte == b'\t';
    !name.is_empty() && name.bytes().all(token) && value.bytes().all(visible)
}

pub(crate) fn refused(failure: Failure) -> Answer {
    let problems = failure.problems.into_iter().map(|problem| (problem.code, problem.message));
    let problems: Vec<_> = problems.collect();
    let messages: Vec<_> = problems.iter().map(|(_, message)| message.as_str()).collect();
    let body = messages.join("\n").into_bytes();
    Answer { status: failure.status, headers: failure.headers, body, problems, modified: None }
}
