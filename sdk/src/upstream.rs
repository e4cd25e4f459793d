//! A proxy's upstream. The host owns the connection, the credentials, the cache and its rules.

use crate::host::{HostFetch, HostReply};
use crate::{Blob, Digest, Error, Failure, Repository};

/// How long an answer may be served without asking again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// For ever: what it is never changes.
    Immutable,
    /// So many seconds.
    Seconds(u32),
    /// Not at all.
    Never,
}

/// Which answer of an upstream bytes belong to.
pub(crate) struct Origin {
    /// The path that was requested, for people.
    path: String,
    /// Bytes that the plugin allowed.
    pub(crate) limit: Option<u64>,
}

impl Origin {
    /// The error for so many bytes where `limit` are allowed.
    pub(crate) fn too_large(&self, size: u64, limit: Option<u64>) -> Error {
        let path = &self.path;
        let fault = match limit.filter(|limit| size > *limit) {
            Some(limit) => format!("is over the limit of {limit} bytes"),
            // The host has limits of its own, as for what few bytes unpack to.
            None => format!("is too large, with {size} bytes or more"),
        };
        let advice = "check the proxy's upstream address, or ask the upstream's operator for a smaller one";
        Error::UpstreamTooLarge { size, why: format!("its answer for {path} {fault}; {advice}") }
    }
}

/// A request to an upstream, from [`Context::upstream`](crate::Context::upstream), which [`Fetch::start`] sends.
pub struct Fetch {
    host: Box<dyn HostFetch>,
    origin: Origin,
}

impl Fetch {
    pub(crate) fn new(host: Box<dyn HostFetch>, target: &str) -> Self {
        Self { host, origin: Origin { path: public_path(target).to_owned(), limit: None } }
    }

    /// A header field; part of what the cache knows an answer by.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.host.header(name, value);
        self
    }

    /// The body of a `POST`, whose answers are not kept.
    pub fn body(mut self, bytes: &[u8]) -> Self {
        self.host.body(bytes);
        self
    }

    /// How long the answer may be served; without it, the repository's own setting for metadata.
    pub fn fresh(mut self, freshness: Freshness) -> Self {
        self.host.fresh(freshness);
        self
    }

    /// What it must turn out to be. A mismatch is never kept, and never sent to its end.
    pub fn expect(mut self, digest: &Digest) -> Self {
        self.host.expect(digest);
        self
    }

    /// At most so many bytes.
    pub fn limit(mut self, bytes: u64) -> Self {
        self.host.limit(bytes);
        self.origin.limit = Some(bytes);
        self
    }

    /// Once it is kept, the host shows it as this file of this version.
    pub fn show_as(mut self, name: &str, version: &str, path: &str) -> Self {
        self.host.show_as(name, version, path);
        self
    }

    /// The answer belongs to this file of this version, as its signature or a part of it does: it is judged as that file is, and is not
    /// shown. An answer that belongs to several files is served where one of them may be: name each, at most 16, and the likeliest
    /// first. If none may be served, the refusal is that of the first.
    pub fn part_of(mut self, name: &str, version: &str, path: &str) -> Self {
        self.host.part_of(name, version, path);
        self
    }

    /// The answer is metadata that the plugin reads, and no policy judges it. Any other answer of a proxy is judged: as the version of
    /// [`Fetch::show_as`] or [`Fetch::part_of`], else by the packages of [`Intent::about_package`](crate::Intent::about_package) alone.
    pub fn metadata(mut self) -> Self {
        self.host.metadata();
        self
    }

    /// Sends it and returns at once, so that several can run.
    ///
    /// # Errors
    /// [`Error::Denied`] when the repository is no proxy; [`Error::Invalid`] for a method or target that cannot be.
    pub fn start(self, proxy: &Repository) -> Result<Reply, Error> {
        let Self { host, origin } = self;
        Ok(Reply { host: host.start(proxy.host())?, origin })
    }
}

/// What clients may see of a target: no query, which may hold a signature, and no host, which may be
/// one of an inner network.
fn public_path(target: &str) -> &str {
    let path = target.split(['?', '#']).next().unwrap_or_default();
    let host = path.split_once("://").map(|(_, rest)| rest);
    host.map_or(path, |rest| rest.find('/').and_then(|at| rest.get(at..)).unwrap_or("/"))
}

/// Outcome of a request for something that an upstream may not have, from [`Reply::look`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found<T> {
    /// The upstream has it.
    There(T),
    /// The upstream has nothing there. What was fetched before is withdrawn.
    Nothing,
    /// The upstream refuses to say (401, 402, 403, 405, 409, 451). What was fetched before is not
    /// withdrawn.
    Refused,
}

impl<T> Found<T> {
    /// Returns the value if the upstream has it.
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

    /// Applies `read` to the value if the upstream has it.
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

/// An upstream's answer. The first question to it waits for its headers.
pub struct Reply {
    host: Box<dyn HostReply>,
    origin: Origin,
}

impl Reply {
    /// The upstream's status. Of a `GET` or `HEAD`, an upstream that refuses to say what it has is
    /// a 404 here. [`Reply::look`] tells the two apart.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the upstream cannot be reached and no copy is kept.
    pub fn status(&self) -> Result<u16, Error> {
        self.host.status()
    }

    /// The answer itself where its status is 200; none where the upstream has nothing there (404,
    /// 410), or refuses to say.
    ///
    /// # Errors
    /// 502 with the status for any other, and as [`Reply::status`].
    pub fn found(self) -> Result<Option<Self>, Failure> {
        Ok(self.look()?.there())
    }

    /// Like [`Reply::found`], but tells an upstream that has nothing there from one that refuses to say.
    ///
    /// # Errors
    /// As [`Reply::found`].
    pub fn look(self) -> Result<Found<Self>, Failure> {
        match self.status()? {
            200 => Ok(Found::There(self)),
            404 if self.header("refused")?.is_some() => Ok(Found::Refused),
            404 | 410 => Ok(Found::Nothing),
            // Of a `POST`, the status is the upstream's own.
            401..=403 | 405 | 409 | 451 => Ok(Found::Refused),
            status => Err(self.unusable(format!("the upstream answered with status {status}"))),
        }
    }

    /// 502: what the upstream answered cannot be used. `why` says so for people; the path is added.
    pub fn unusable(&self, why: impl std::fmt::Display) -> Failure {
        Failure::unusable_upstream(format!("{why}, for {}", self.path()))
    }

    /// The path that was requested, for people: without its query, and of an absolute address without
    /// its host.
    pub fn path(&self) -> &str {
        &self.origin.path
    }

    /// Its header fields; of a kept answer, those it came with; of a refusal, also `refused` with the
    /// upstream's own status.
    ///
    /// # Errors
    /// As [`Reply::status`].
    pub fn headers(&self) -> Result<Vec<(String, String)>, Error> {
        self.host.headers()
    }

    /// The first of its header fields of this name, in either case.
    ///
    /// # Errors
    /// As [`Reply::status`].
    pub fn header(&self, name: &str) -> Result<Option<String>, Error> {
        let fields = self.headers()?.into_iter();
        Ok(fields.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value).next())
    }

    /// Where it came from after redirects: what links in it are relative to.
    ///
    /// # Errors
    /// As [`Reply::status`].
    pub fn address(&self) -> Result<String, Error> {
        self.host.address()
    }

    /// As [`Fetch::expect`], for what only its headers or another reply told.
    pub fn expect(&mut self, digest: &Digest) {
        self.host.expect(digest);
    }

    /// Its bytes. Given as a response's content while they are still arriving, they go to the client as they come.
    ///
    /// # Errors
    /// As [`Reply::status`]; [`Error::UpstreamTooLarge`] for more than [`Fetch::limit`], here or when the bytes are read.
    pub fn body(self) -> Result<Blob, Error> {
        let Self { host, origin } = self;
        match host.body() {
            Ok(body) => Ok(Blob::of_upstream(body, origin)),
            Err(Error::TooLarge(size)) => Err(origin.too_large(size, origin.limit)),
            Err(error) => Err(error),
        }
    }
}
