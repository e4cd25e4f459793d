//! Requests, bytes, upstreams and the rest of the host, over the imports.

use super::generated::packhouse::format as wit;
use super::{convert, repository};
use crate::host::{
    Host, HostBlob, HostFetch, HostPart, HostReply, HostRepository, HostRequest, HostUpload, HostWriter,
    Pairs,
};
use crate::{Digest, Error, Freshness, LoginState, Request, Token};

/// Reads a request once. The body, and who asks, stay with the host until they are wanted.
pub(super) fn request(kind: String, host: &wit::http::Request) -> Request<'_> {
    Request {
        kind,
        method: host.method(),
        claim: host.claim(),
        path: host.path(),
        query: host.query(),
        headers: convert::pairs(host.headers()),
        address: host.address(),
        host,
    }
}

impl HostRequest for wit::http::Request {
    fn caller(&self) -> Option<String> {
        Self::caller(self)
    }

    fn take_body(&self) -> Option<Box<dyn HostBlob>> {
        Self::take_body(self).map(blob)
    }

    fn take_parts(&self) -> Vec<HostPart> {
        let parts = Self::take_parts(self).into_iter();
        parts
            .map(|part| HostPart {
                name: part.name,
                filename: part.filename,
                headers: convert::pairs(part.headers),
                body: blob(part.body),
            })
            .collect()
    }
}

/// The imports themselves.
pub(super) struct Imports;

impl Host for Imports {
    fn log(&self, level: &str, message: &str, fields: &[(&str, &str)]) {
        let fields: Vec<_> =
            fields.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        wit::host::log(level, message, &fields);
    }

    fn now(&self) -> u64 {
        wit::host::now()
    }

    fn writer(&self) -> Box<dyn HostWriter> {
        Box::new(WriterHandle(wit::blobs::Writer::new()))
    }

    fn fetch(&self, method: &str, target: &str) -> Box<dyn HostFetch> {
        Box::new(FetchHandle(wit::upstream::Fetch::new(method, target)))
    }

    fn finish_login(&self, id: &str) -> Result<LoginState, Error> {
        Ok(match wit::identity::finish_login(id).map_err(convert::error)? {
            wit::identity::LoginState::Waiting(seconds) => LoginState::Waiting(seconds),
            wit::identity::LoginState::Granted(placeholder) => LoginState::Granted(placeholder),
            wit::identity::LoginState::Gone => LoginState::Gone,
        })
    }

    fn tokens(&self) -> Result<Vec<Token>, Error> {
        let tokens = wit::identity::tokens().map_err(convert::error)?.into_iter();
        Ok(tokens
            .map(|token| Token {
                id: token.id,
                name: token.name,
                hint: token.hint,
                scope: token.scope,
                created: token.created,
                expires: token.expires,
            })
            .collect())
    }

    fn revoke(&self, id: &str) -> Result<bool, Error> {
        wit::identity::revoke(id).map_err(convert::error)
    }
}

/// A blob's handle.
pub(super) struct BlobHandle(pub(super) wit::blobs::Blob);

pub(super) fn blob(handle: wit::blobs::Blob) -> Box<dyn HostBlob> {
    Box::new(BlobHandle(handle))
}

impl HostBlob for BlobHandle {
    fn size(&self) -> Result<u64, Error> {
        self.0.size().map_err(convert::error)
    }

    fn digest(&self, algorithm: &str) -> Result<Digest, Error> {
        self.0.digest(algorithm).map(Digest::trusted).map_err(convert::error)
    }

    fn read(&self, offset: u64, length: u32) -> Result<Vec<u8>, Error> {
        self.0.read(offset, length).map_err(convert::error)
    }

    fn find(&self, needle: &[u8], start: u64, end: u64) -> Result<Option<u64>, Error> {
        self.0.find(needle, start, end).map_err(convert::error)
    }

    fn slice(&self, offset: u64, length: u64) -> Result<Box<dyn HostBlob>, Error> {
        self.0.slice(offset, length).map(blob).map_err(convert::error)
    }

    fn decode(&self, encoding: &str, limit: u64, digests: &[&str]) -> Result<Box<dyn HostBlob>, Error> {
        self.0.decode(encoding, limit, &convert::owned(digests)).map(blob).map_err(convert::error)
    }
}

struct WriterHandle(wit::blobs::Writer);

impl HostWriter for WriterHandle {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.0.write(bytes).map_err(convert::error)
    }

    fn finish(self: Box<Self>) -> Result<Box<dyn HostBlob>, Error> {
        wit::blobs::Writer::finish(self.0).map(blob).map_err(convert::error)
    }
}

pub(super) struct UploadHandle(pub(super) wit::blobs::Upload);

impl HostUpload for UploadHandle {
    fn note(&self) -> String {
        self.0.note()
    }

    fn length(&self) -> u64 {
        self.0.length()
    }

    fn received(&self) -> u64 {
        self.0.received()
    }

    fn finish(self: Box<Self>) -> Result<Box<dyn HostBlob>, Error> {
        wit::blobs::Upload::finish(self.0).map(blob).map_err(convert::error)
    }

    fn abort(self: Box<Self>) -> Result<(), Error> {
        wit::blobs::Upload::abort(self.0).map_err(convert::error)
    }
}

struct FetchHandle(wit::upstream::Fetch);

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
        wit::upstream::Reply::body(self.0).map(blob).map_err(convert::error)
    }
}
