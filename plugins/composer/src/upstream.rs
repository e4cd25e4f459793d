//! Requests to an upstream, and its replies.

use packhouse_sdk::{Blob, Context, Error, Failure, Found, Reply, Repository, Settings, address};

/// The size limit of `packages.json` and of the metadata of a package, in bytes.
const DOCUMENT_LIMIT: u64 = 8 << 20;

/// A document of an upstream.
pub(crate) struct UpstreamDocument {
    pub(crate) text: String,
    /// The address of the document.
    pub(crate) base: String,
    /// The requested path, for messages.
    pub(crate) path: String,
}

/// Fetches a document.
///
/// # Errors
/// 502 if the upstream fails, and for a document that is too large or not UTF-8.
pub(crate) fn document(
    cx: &Context,
    proxy: &Repository,
    target: &str,
) -> Result<Found<UpstreamDocument>, Failure> {
    let reply = cx.upstream("GET", target).limit(DOCUMENT_LIMIT).metadata().start(proxy)?;
    let (base, path) = (reply.address()?, reply.path().to_owned());
    reply.look()?.try_map(|reply| {
        let body = reply.body()?;
        Ok(UpstreamDocument { text: text(&body, &path, DOCUMENT_LIMIT)?, base, path })
    })
}

/// The text of an upstream's reply. `path` is the requested path.
///
/// # Errors
/// 502 if the reply is too large or not UTF-8.
pub(crate) fn text(body: &Blob, path: &str, limit: u64) -> Result<String, Failure> {
    body.text(limit).map_err(|error| match error {
        Error::Invalid(_) => unusable(path, "it is not UTF-8"),
        other => other.into(),
    })
}

/// The body of a reply; `None` if the upstream does not have the file or refuses the request.
///
/// # Errors
/// 502 if the upstream fails.
pub(crate) fn body_if_found(reply: Reply) -> Result<Option<Blob>, Failure> {
    Ok(reply.found()?.map(Reply::body).transpose()?)
}

/// 502: the upstream's reply to the request for this path is unusable.
pub(crate) fn unusable(path: &str, problem: &str) -> Failure {
    Failure::unusable_upstream(format!("{problem}, for {path}"))
}

/// Returns the request target for an address. An address below the upstream's URL becomes a
/// relative path; any other address stays unchanged. The host sends credentials only with relative
/// paths.
pub(crate) fn below(proxy: &Repository, address: &str) -> Result<String, Error> {
    let upstream = Settings::of(proxy)?.upstream.unwrap_or_default();
    Ok(address::below(&upstream, address).to_owned())
}
