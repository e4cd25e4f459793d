//! Requests to upstreams and their responses, which call the imports.

use super::generated::packhouse::format as wit;
use super::{blobs, convert, repository};
use crate::host::{HostBlob, HostFetch, HostReply, HostRepository, Pairs};
use crate::{Digest, Error, Freshness};

pub(super) struct FetchHandle(pub(super) wit::upstream::Fetch);

impl HostFetch for FetchHandle {
    fn header(&mut self, name: &str, value: &str) {
        self.0.header(name, value);
    }

    fn body(&mut self, bytes: &[u8]) {
        self.0.body(bytes);
    }

    fn fresh(&mut self, freshness: Freshness) {
        self.0.fresh(convert::freshness(freshness));
    }

    fn expect(&mut self, digest: &Digest) {
        self.0.expect(digest.as_str());
    }

    fn limit(&mut self, bytes: u64) {
        self.0.limit(bytes);
    }

    fn show_as(&mut self, name: &str, version: &str, path: &str) {
        self.0.show_as(name, version, path);
    }

    fn part_of(&mut self, name: &str, version: &str, path: &str) {
        self.0.part_of(name, version, path);
    }

    fn metadata(&mut self) {
        self.0.metadata();
    }

    fn start(self: Box<Self>, proxy: &dyn HostRepository) -> Result<Box<dyn HostReply>, Error> {
        let reply = wit::upstream::Fetch::start(self.0, repository::handle(proxy)?);
        Ok(Box::new(ReplyHandle(reply.map_err(convert::error)?)))
    }
}

struct ReplyHandle(wit::upstream::Reply);

impl HostReply for ReplyHandle {
    fn status(&self) -> Result<u16, Error> {
        self.0.status().map_err(convert::error)
    }

    fn headers(&self) -> Result<Pairs, Error> {
        self.0.headers().map(convert::pairs).map_err(convert::error)
    }

    fn address(&self) -> Result<String, Error> {
        self.0.address().map_err(convert::error)
    }

    fn expect(&mut self, digest: &Digest) {
        self.0.expect(digest.as_str());
    }

    fn body(self: Box<Self>) -> Result<Box<dyn HostBlob>, Error> {
        wit::upstream::Reply::body(self.0).map(blobs::blob).map_err(convert::error)
    }
}
