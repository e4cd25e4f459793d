//! Requests to a proxy's upstream. The host owns the connection, the credentials, the cache and its
//! rules.

use crate::host::{HostFetch, HostReply};
use crate::{Blob, Digest, Error, Failure, Repository};

/// Time for which the host may serve a response from the cache without revalidation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// Unlimited: the content never changes.
    Immutable,
    /// This many seconds.
    Seconds(u32),
    /// Zero: the host always revalidates the response.
    Never,
}

/// Request and limit of the upstream response to which a blob belongs.
pub(crate) struct Origin {
    /// Requested path, for people.
    path: String,
    /// Limit in bytes that the plugin set.
    pub(crate) limit: Option<u64>,
}

impl Origin {
    /// Returns the error for `size` bytes if `limit` bytes are allowed.
    pub(crate) fn too_large(&self, size: u64, limit: Option<u64>) -> Error {
        let path = &self.path;
        let fault = match limit.filter(|limit| size > *limit) {
            Some(limit) => format!("is over the limit of {limit} bytes"),
            // The host has further limits, such as the ratio of decoded to encoded bytes.
            None => format!("is too large, with {size} bytes or more"),
        };
        let advice = "check the proxy's upstream address, or ask the upstream's operator for a smaller one";
        Error::UpstreamTooLarge { size, why: format!("its response for {path} {fault}; {advice}") }
    }
}

/// Request to an upstream, from [`Context::upstream`](crate::Context::upstream). [`Fetch::start`]
/// sends it.
pub struct Fetch {
    host: Box<dyn HostFetch>,
    origin: Origin,
}

impl Fetch {
    pub(crate) fn new(host: Box<dyn HostFetch>, target: &str) -> Self {
        Self { host, origin: Origin { path: public_path(target).to_owned(), limit: None } }
    }

    /// Adds a header field, which also becomes part of the cache key.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.host.header(name, value);
        self
    }

    /// Sets the body of a `POST`, whose responses are not cached.
    pub fn body(mut self, bytes: &[u8]) -> Self {
        self.host.body(bytes);
        self
    }

    /// Sets how long the response may be served from the cache. By default the repository's setting
    /// for metadata applies.
    pub fn fresh(mut self, freshness: Freshness) -> Self {
        self.host.fresh(freshness);
        self
    }

    /// Sets the expected digest. A response with another digest is never cached, and never sent to
    /// its end.
    pub fn expect(mut self, digest: &Digest) -> Self {
        self.host.expect(digest);
        self
    }

    /// Limits the response to this many bytes.
    pub fn limit(mut self, bytes: u64) -> Self {
        self.host.limit(bytes);
        self.origin.limit = Some(bytes);
        self
    }

    /// Lists the response as this file of this version once it is stored.
    pub fn show_as(mut self, name: &str, version: &str, path: &str) -> Self {
        self.host.show_as(name, version, path);
        self
    }

    /// Declares that the response belongs to this file of this version, like its signature or a
    /// part of it. The host judges the response like that file, and does not list it. If the
    /// response belongs to several files, call this for each of them, at most 16 times, the most
    /// likely first. The host serves the response if any of these files may be served; otherwise it
    /// gives the reason for refusing the first.
    pub fn part_of(mut self, name: &str, version: &str, path: &str) -> Self {
        self.host.part_of(name, version, path);
        self
    }

    /// Declares that the response is metadata for the plugin; no policy judges it. The host judges
    /// every other response as the version of [`Fetch::show_as`] or [`Fetch::part_of`]. Without
    /// either, it judges only the packages of
    /// [`Intent::about_package`](crate::Intent::about_package).
    pub fn metadata(mut self) -> Self {
        self.host.metadata();
        self
    }

    /// Sends the request and returns at once, so that several can run in parallel.
    ///
    /// # Errors
    /// [`Error::Denied`] if the repository is not a proxy; [`Error::Invalid`] for an invalid method
    /// or target.
    pub fn start(self, proxy: &Repository) -> Result<Reply, Error> {
        let Self { host, origin } = self;
        Ok(Reply { host: host.start(proxy.host())?, origin })
    }
}

/// Returns the part of a target that clients may see. The query is left out because it may contain
/// a signature. The host name is left out because it may be internal.
fn public_path(target: &str) -> &str {
    let path = target.split(['?', '#']).next().unwrap_or_default();
    let host = path.split_once("://").map(|(_, rest)| rest);
    host.map_or(path, |rest| rest.find('/').and_then(|at| rest.get(at..)).unwrap_or("/"))
}

/// Result of a request for something that an upstream may not have, from [`Reply::look`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found<T> {
    /// The upstream has the item.
    There(T),
    /// The upstream does not have the item. A copy that was fetched earlier is therefore withdrawn.
    Nothing,
    /// The upstream refuses to answer (401, 402, 403, 405, 409, 451). A copy that was fetched
    /// earlier is not withdrawn.
    Refused,
}

impl<T> Found<T> {
    /// Returns the value if the upstream has the item.
    pub fn there(self) -> Option<T> {
        match self {
            Found::There(it) => Some(it),
            Found::Nothing | Found::Refused => None,
        }
    }

    /// Borrows the value.
    pub fn as_ref(&self) -> Found<&T> {
        match self {
            Found::There(it) => Found::There(it),
            Found::Nothing => Found::Nothing,
            Found::Refused => Found::Refused,
        }
    }

    /// Applies `read` to the value if the upstream has the item.
    ///
    /// # Errors
    /// Returns the error of `read`.
    pub fn try_map<U, E>(self, read: impl FnOnce(T) -> Result<U, E>) -> Result<Found<U>, E> {
        Ok(match self {
            Found::There(it) => Found::There(read(it)?),
            Found::Nothing => Found::Nothing,
            Found::Refused => Found::Refused,
        })
    }
}

/// Response of an upstream. The methods wait until the headers have arrived.
pub struct Reply {
    host: Box<dyn HostReply>,
    origin: Origin,
}

impl Reply {
    /// Returns the upstream's status. For `GET` and `HEAD`, the status is also 404 if the upstream
    /// refuses to answer; [`Reply::look`] tells a refusal from a missing item.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the upstream cannot be reached and no copy is cached.
    pub fn status(&self) -> Result<u16, Error> {
        self.host.status()
    }

    /// Returns the response if its status is 200. `None` if the upstream does not have the item
    /// (404, 410) or refuses to answer.
    ///
    /// # Errors
    /// A failure of 502 that names any other status, and the errors of [`Reply::status`].
    pub fn found(self) -> Result<Option<Self>, Failure> {
        Ok(self.look()?.there())
    }

    /// Returns the response like [`Reply::found`], but distinguishes a missing item from a refusal.
    ///
    /// # Errors
    /// Fails like [`Reply::found`].
    pub fn look(self) -> Result<Found<Self>, Failure> {
        match self.status()? {
            200 => Ok(Found::There(self)),
            404 if self.header("refused")?.is_some() => Ok(Found::Refused),
            404 | 410 => Ok(Found::Nothing),
            // For a `POST`, the status is the upstream's own.
            401..=403 | 405 | 409 | 451 => Ok(Found::Refused),
            status => Err(self.unusable(format!("the upstream answered with status {status}"))),
        }
    }

    /// Creates a 502 failure for an unusable response. `why` is the reason for people; this
    /// function adds the path.
    pub fn unusable(&self, why: impl std::fmt::Display) -> Failure {
        Failure::unusable_upstream(format!("{why}, for {}", self.path()))
    }

    /// Returns the requested path for people: without the query and, for an absolute address,
    /// without the host.
    pub fn path(&self) -> &str {
        &self.origin.path
    }

    /// Returns the header fields. A cached response has the header fields of the original response.
    /// A refusal also has `refused` with the upstream's own status.
    ///
    /// # Errors
    /// Fails like [`Reply::status`].
    pub fn headers(&self) -> Result<Vec<(String, String)>, Error> {
        self.host.headers()
    }

    /// Returns the first header field of this name; the case of the name is ignored.
    ///
    /// # Errors
    /// Fails like [`Reply::status`].
    pub fn header(&self, name: &str) -> Result<Option<String>, Error> {
        let fields = self.headers()?.into_iter();
        Ok(fields.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value).next())
    }

    /// Returns the final address after redirects. Links in the response are relative to it.
    ///
    /// # Errors
    /// Fails like [`Reply::status`].
    pub fn address(&self) -> Result<String, Error> {
        self.host.address()
    }

    /// Sets the expected digest, like [`Fetch::expect`], if only the headers of this response or
    /// another response contain the digest.
    pub fn expect(&mut self, digest: &Digest) {
        self.host.expect(digest);
    }

    /// Returns the body. If the plugin uses the body as content of a response while it still
    /// arrives, the host streams it to the client.
    ///
    /// # Errors
    /// The errors of [`Reply::status`]; [`Error::UpstreamTooLarge`] past [`Fetch::limit`], here or
    /// when the bytes are read.
    pub fn body(self) -> Result<Blob, Error> {
        let Self { host, origin } = self;
        match host.body() {
            Ok(body) => Ok(Blob::of_upstream(body, origin)),
            Err(Error::TooLarge(size)) => Err(origin.too_large(size, origin.limit)),
            Err(error) => Err(error),
        }
    }
}
