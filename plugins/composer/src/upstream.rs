//! Requests to an upstream, and its answers.

use packhouse_sdk::{Blob, Context, Error, Failure, Reply, Repository, Settings, address};

/// The size limit of `packages.json`, and of a package's metadata, in bytes.
const DOCUMENT: u64 = 8 << 20;

/// A document of the upstream's, and the address that it came from.
pub(crate) struct Document {
    pub(crate) text: String,
    pub(crate) base: String,
}

/// Fetches a document; none if the upstream has none.
///
/// # Errors
/// 502 if the upstream fails, and for a document that is too large or not UTF-8.
pub(crate) fn document(cx: &Context, proxy: &Repository, target: &str) -> Result<Option<Document>, Failure> {
    let reply = cx.upstream("GET", target).limit(DOCUMENT).metadata().start(proxy)?;
    let base = reply.address()?;
    let Some(body) = found(reply, target)? else { return Ok(None) };
    Ok(Some(Document { text: text(&body, target, DOCUMENT)?, base }))
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

/// The body of an answer; none if what was asked for is not there, or the upstream refuses to tell.
///
/// # Errors
/// 502 if the upstream fails; 429 if it allows no more requests for now.
pub(crate) fn found(reply: Reply, target: &str) -> Result<Option<Blob>, Failure> {
    match reply.status()? {
        200 => match reply.body() {
            Err(Error::TooLarge(size)) => Err(unexpected(target, &format!("{size} bytes"))),
            body => Ok(Some(body?)),
        },
        404 | 410 => Ok(None),
        status => Err(unexpected(target, &format!("status {status}"))),
    }
}

/// 502: the upstream's answer makes no sense here.
pub(crate) fn unexpected(target: &str, problem: &str) -> Failure {
    Failure::unusable_upstream(format!("{problem}, for {}", address::public_path(target)))
}

/// An address below the upstream's own as a target there. The host shows credentials to no other
/// address.
pub(crate) fn below(proxy: &Repository, address: &str) -> Result<String, Error> {
    let upstream = Settings::of(proxy)?.upstream.unwrap_or_default();
    Ok(address::below(&upstream, address).to_owned())
}
