//! Upstreams in memory: answers that a test has laid down.

use crate::blob::MemoryBlob;
use crate::state::{self, Shared, UpstreamAnswer};
use packhouse_sdk::host::{HostBlob, HostFetch, HostReply, HostRepository, Pairs};
use packhouse_sdk::{Digest, Error, Freshness};

/// A request to an upstream. Nothing is kept: each is answered anew.
pub(crate) struct MemoryFetch {
    host: Shared,
    method: String,
    target: String,
    expect: Option<Digest>,
    limit: u64,
}

impl MemoryFetch {
    pub(crate) fn new(host: Shared, method: &str, target: &str) -> Self {
        Self { host, method: method.to_owned(), target: target.to_owned(), expect: None, limit: u64::MAX }
    }
}

impl HostFetch for MemoryFetch {
    fn header(&mut self, _name: &str, _value: &str) {}

    fn body(&mut self, _bytes: &[u8]) {}

    fn fresh(&mut self, _freshness: Freshness) {}

    fn expect(&mut self, digest: &Digest) {
        self.expect = Some(digest.clone());
    }

    fn limit(&mut self, bytes: u64) {
        self.limit = bytes;
    }

    fn show_as(&mut self, _name: &str, _version: &str, _path: &str) {}

    fn start(self: Box<Self>, proxy: &dyn HostRepository) -> Result<Box<dyn HostReply>, Error> {
        if !matches!(self.method.as_str(), "GET" | "HEAD" | "POST") {
            return Err(Error::Invalid(format!("an upstream is not asked by {}", self.method)));
        }
        if proxy.kind() != "proxy" {
            return Err(Error::Denied);
        }
        let mut state = self.host.borrow_mut();
        state.fetched.push(format!("{} {}", self.method, self.target));
        let answer = state.upstream.get(&(self.method, self.target.clone())).cloned();
        Ok(Box::new(MemoryReply { answer, target: self.target, expect: self.expect, limit: self.limit }))
    }
}

struct MemoryReply {
    answer: Option<UpstreamAnswer>,
    target: String,
    expect: Option<Digest>,
    limit: u64,
}

impl MemoryReply {
    fn answer(&self) -> Result<&UpstreamAnswer, Error> {
        self.answer.as_ref().ok_or_else(|| Error::Unavailable(format!("no upstream answers {}", self.target)))
    }
}

impl HostReply for MemoryReply {
    fn status(&self) -> Result<u16, Error> {
        Ok(self.answer()?.status)
    }

    fn headers(&self) -> Result<Pairs, Error> {
        Ok(self.answer()?.headers.clone())
    }

    fn address(&self) -> Result<String, Error> {
        self.answer()?;
        Ok(match self.target.contains("://") {
            true => self.target.clone(),
            false => format!("https://upstream.test/{}", self.target.trim_start_matches('/')),
        })
    }

    fn expect(&mut self, digest: &Digest) {
        self.expect = Some(digest.clone());
    }

    fn body(self: Box<Self>) -> Result<Box<dyn HostBlob>, Error> {
        let body = self.answer()?.body.clone();
        if body.len() as u64 > self.limit {
            return Err(Error::TooLarge(body.len() as u64));
        }
        if let Some(expected) = &self.expect
            && state::digest(expected.algorithm(), &body)? != *expected
        {
            return Err(Error::Unavailable(format!("{} is not {expected}", self.target)));
        }
        Ok(MemoryBlob::boxed(body))
    }
}
