//! Upstreams of the memory host: responses and failures that a test sets, and the requests sent to
//! them.

use crate::blob::MemoryBlob;
use crate::state::{self, Bytes, Fetched, Shared, UpstreamAnswer};
use packhouse_sdk::host::{HostBlob, HostFetch, HostReply, HostRepository, Pairs};
use packhouse_sdk::{Digest, Error, Freshness, Version};

/// Request to an upstream. Responses are not cached.
pub(crate) struct MemoryFetch {
    host: Shared,
    fetched: Fetched,
}

impl MemoryFetch {
    pub(crate) fn new(host: Shared, method: &str, target: &str) -> Self {
        let (method, target) = (method.to_owned(), target.to_owned());
        Self { host, fetched: Fetched { method, target, ..Fetched::default() } }
    }
}

impl HostFetch for MemoryFetch {
    fn header(&mut self, name: &str, value: &str) {
        self.fetched.headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }

    fn body(&mut self, bytes: &[u8]) {
        self.fetched.body = bytes.to_vec();
    }

    fn fresh(&mut self, freshness: Freshness) {
        self.fetched.fresh = Some(freshness);
    }

    fn expect(&mut self, digest: &Digest) {
        self.fetched.expect.push(digest.clone());
    }

    fn limit(&mut self, bytes: u64) {
        self.fetched.limit = Some(bytes);
    }

    fn show_as(&mut self, name: &str, version: &str, path: &str) {
        self.fetched.show_as = Some((name.to_owned(), version.to_owned(), path.to_owned()));
    }

    fn part_of(&mut self, name: &str, version: &str, path: &str) {
        self.fetched.part_of.push((name.to_owned(), version.to_owned(), path.to_owned()));
    }

    fn metadata(&mut self) {
        self.fetched.is_metadata = true;
    }

    fn start(mut self: Box<Self>, proxy: &dyn HostRepository) -> Result<Box<dyn HostReply>, Error> {
        self.fetched.repository = proxy.name();
        let Fetched { method, target, .. } = &self.fetched;
        if !matches!(method.as_str(), "GET" | "HEAD" | "POST") {
            return Err(Error::Invalid(format!("an upstream request cannot have the method {method}")));
        }
        if proxy.kind() != "proxy" {
            return Err(Error::Denied);
        }
        let answer = self.host.borrow().upstream_answer(method, target);
        self.host.borrow_mut().fetched.push(self.fetched.clone());
        Ok(Box::new(MemoryReply { answer, host: self.host, fetched: self.fetched }))
    }
}

struct MemoryReply {
    answer: Result<UpstreamAnswer, Error>,
    host: Shared,
    fetched: Fetched,
}

impl MemoryReply {
    fn answer(&self) -> Result<&UpstreamAnswer, Error> {
        self.answer.as_ref().map_err(Error::clone)
    }

    /// Returns the upstream's own status if it refuses to answer.
    fn refusal(&self) -> Result<Option<u16>, Error> {
        let status = self.answer()?.status;
        let refuses = self.fetched.method != "POST" && matches!(status, 401..=403 | 405 | 409 | 451);
        Ok(refuses.then_some(status))
    }

    /// Lists the file of `show_as`, in addition to the files that are listed already.
    fn show(&self, bytes: &Bytes) -> Result<(), Error> {
        let Some((name, number, path)) = &self.fetched.show_as else { return Ok(()) };
        let digest = state::digest("sha256", bytes)?;
        let mut host = self.host.borrow_mut();
        let now = host.now;
        let Some(repository) = host.repositories.get_mut(&self.fetched.repository) else { return Ok(()) };
        let before = repository.listed.get(&(name.clone(), number.clone())).cloned();
        let version = before.unwrap_or_else(|| Version::new(name, number));
        let listed = version.file(path, digest, bytes.len() as u64);
        repository.apply(crate::catalog::CatalogChange::Show(listed), now);
        Ok(())
    }
}

impl HostReply for MemoryReply {
    fn status(&self) -> Result<u16, Error> {
        Ok(if self.refusal()?.is_some() { 404 } else { self.answer()?.status })
    }

    fn headers(&self) -> Result<Pairs, Error> {
        let mut headers = self.answer()?.headers.clone();
        headers.extend(self.refusal()?.map(|status| ("refused".to_owned(), status.to_string())));
        Ok(headers)
    }

    fn address(&self) -> Result<String, Error> {
        let answer = self.answer()?;
        let target = &self.fetched.target;
        Ok(match &answer.address {
            Some(address) => address.clone(),
            None if target.contains("://") => target.clone(),
            None => format!("https://upstream.test/{}", target.trim_start_matches('/')),
        })
    }

    fn expect(&mut self, digest: &Digest) {
        self.fetched.expect.push(digest.clone());
    }

    fn body(self: Box<Self>) -> Result<Box<dyn HostBlob>, Error> {
        let answer = self.answer()?;
        let body = if self.fetched.method == "HEAD" { Bytes::default() } else { answer.body.clone() };
        if self.fetched.limit.is_some_and(|limit| body.len() as u64 > limit) {
            return Err(Error::TooLarge(body.len() as u64));
        }
        let is_stored = answer.status == 200 && self.fetched.method == "GET";
        if is_stored {
            for expected in &self.fetched.expect {
                if state::digest(expected.algorithm(), &body)? != *expected {
                    let target = &self.fetched.target;
                    return Err(Error::Unavailable(format!("{target} is not {expected}")));
                }
            }
            self.show(&body)?;
        }
        Ok(MemoryBlob::boxed(body))
    }
}
