//! Requests to an upstream, and its answers.

use packhouse_sdk::{Blob, Context, Error, Failure, Reply, Repository, Settings, address};

/// The size limit of `packages.json`, and of a package's metadata, in bytes.
const DOCUMENT: u64 = 8 << 20;

/// The upstream's answer to a question for something that it may not have.
pub(crate) enum Found<T> {
    Here(T),
    /// The upstream does not have it.
    Absent,
    /// The upstream does not give it to this proxy, or does not want to say that it is absent.
    Refused,
}

impl<T> Found<T> {
    /// The value; none if there is none for whatever reason.
    pub(crate) fn here(self) -> Option<T> {
        match self {
            Self::Here(value) => Some(value),
            Self::Absent | Self::Refused => None,
        }
    }
}

/// A document of the upstream's, and the address that it came from.
pub(crate) struct Document {
    pub(crate) text: String,
    pub(crate) base: String,
}

/// Fetches a document.
///
/// # Errors
/// 502 if the upstream fails, and for a document that is too large or not UTF-8.
pub(crate) fn document(cx: &Context, proxy: &Repository, target: &str) -> Result<Found<Document>, Failure> {
    let reply = cx.upstream("GET", target).limit(DOCUMENT).metadata().start(proxy)?;
    let base = reply.address()?;
    Ok(match found(reply, target)? {
        Found::Here(body) => Found::Here(Document { text: text(&body, target, DOCUMENT)?, base }),
        Found::Absent => Found::Absent,
        Found::Refused => Found::Refused,
    })
}

/// The text of an upstream's answer.
///
/// # Errors
/// 502 if it is too large or not UTF-8.
pub(crate) fn text(body: &Blob, target: &str, limit: u64) -> Result<String, Failure> {
    body.text(limit).map_err(|error| match error {
        Error::TooLarge(size) => unexpected(target, &format!("{size} bytes, and at most {limit} are read")),
        Error::Invalid(_) => unexpected(target, "not UTF-8"),
        other => other.into(),
    })
}

/// The body of an answer.
///
/// # Errors
/// 502 if the upstream fails; 429 if it allows no more requests for now.
pub(crate) fn found(reply: Reply, target: &str) -> Result<Found<Blob>, Failure> {
    match reply.status()? {
        200 => match reply.body() {
            Err(Error::TooLarge(size)) => Err(unexpected(target, &format!("{size} bytes"))),
            body => Ok(Found::Here(body?)),
        },
        404 | 410 => Ok(Found::Absent),
        401..=403 | 405 | 409 | 451 => Ok(Found::Refused),
        status => Err(unexpected(target, &format!("status {status}"))),
    }
}

/// 502: the upstream's answer makes no sense here.
pub(crate) fn unexpected(target: &str, problem: &str) -> Failure {
    Error::Unavailable(format!("{target}: {problem}")).into()
}

/// Whether a failure is the upstream's, and the other members of a group can answer.
pub(crate) fn is_of_upstream(failure: &Failure) -> bool {
    matches!(failure.status, 429 | 502 | 504)
}

/// An address below the upstream's own as a target there. The host shows credentials to no other
/// address.
pub(crate) fn below(proxy: &Repository, address: &str) -> Result<String, Error> {
    let upstream = Settings::of(proxy)?.upstream.unwrap_or_default();
    Ok(address::below(&upstream, address).to_owned())
}
