//! Requests to an upstream, and its answers.

use packhouse_sdk::{Blob, Context, Error, Failure, Found, Reply, Repository, Settings, address};

/// The size limit of `packages.json`, and of a package's metadata, in bytes.
const DOCUMENT: u64 = 8 << 20;

/// A document of the upstream's.
pub(crate) struct Document {
    pub(crate) text: String,
    /// The address that it came from.
    pub(crate) base: String,
    /// The path that was requested, for people.
    pub(crate) path: String,
}

/// Fetches a document.
///
/// # Errors
/// 502 if the upstream fails, and for a document that is too large or not UTF-8.
pub(crate) fn document(cx: &Context, proxy: &Repository, target: &str) -> Result<Found<Document>, Failure> {
    let reply = cx.upstream("GET", target).limit(DOCUMENT).metadata().start(proxy)?;
    let (base, path) = (reply.address()?, reply.path().to_owned());
    reply.look()?.try_map(|reply| {
        let body = reply.body()?;
        Ok(Document { text: text(&body, &path, DOCUMENT)?, base, path })
    })
}

/// The text of an upstream's answer to the request of a path.
///
/// # Errors
/// 502 if it is too large or not UTF-8.
pub(crate) fn text(body: &Blob, path: &str, limit: u64) -> Result<String, Failure> {
    body.text(limit).map_err(|error| match error {
        Error::Invalid(_) => unusable(path, "not UTF-8"),
        other => other.into(),
    })
}

/// The body of an answer; none if what was asked for is not there, or the upstream refuses to tell.
///
/// # Errors
/// 502 if the upstream fails.
pub(crate) fn found(reply: Reply) -> Result<Option<Blob>, Failure> {
    Ok(reply.found()?.map(Reply::body).transpose()?)
}

/// 502: what the upstream answered to the request of a path cannot be used.
pub(crate) fn unusable(path: &str, problem: &str) -> Failure {
    Failure::unusable_upstream(format!("{problem}, for {path}"))
}

/// An address below the upstream's own as a target there. The host shows credentials to no other
/// address.
pub(crate) fn below(proxy: &Repository, address: &str) -> Result<String, Error> {
    let upstream = Settings::of(proxy)?.upstream.unwrap_or_default();
    Ok(address::below(&upstream, address).to_owned())
}
