//! The contract as traits: what the SDK's types stand on.
//!
//! In Wasm they are implemented over the contract's imports, in tests by `packhouse-testkit`. Plugins do not call them: they
//! use [`Context`](crate::Context), [`Repository`](crate::Repository), [`Blob`](crate::Blob) and so on. What each method
//! answers in each case is said in `wit/v0.1`, whose names these are; errors are the host's.

use crate::{
    Digest, Entry, Error, Expectation, Freshness, Login, LoginState, Matches, Outcome, PublicKey,
    ReasonedVerdict, Release, ReleaseVerdict, Signature, Statement, Token, Version, VersionDocument,
    VersionId,
};
use std::any::Any;

/// Names and values, of header fields or of a log line.
pub type Pairs = Vec<(String, String)>;

/// Interfaces `host`, `identity` and the constructors of `blobs` and `upstream`.
pub trait Host {
    /// A line for the log.
    fn log(&self, level: &str, message: &str, fields: &[(&str, &str)]);
    /// Ms since 1970; the same all through a call.
    fn now(&self) -> u64;
    /// An empty writer.
    fn writer(&self) -> Box<dyn HostWriter>;
    /// A request to an upstream, not yet started.
    fn fetch(&self, method: &str, target: &str) -> Box<dyn HostFetch>;
    /// Says that a proxy is left out of the answer, and why.
    fn leave_out(&self, proxy: &dyn HostRepository, reason: &str);
    /// Where a sign-in stands.
    ///
    /// # Errors
    /// The host's.
    fn finish_login(&self, id: &str) -> Result<LoginState, Error>;
    /// The caller's own tokens.
    ///
    /// # Errors
    /// The host's.
    fn tokens(&self) -> Result<Vec<Token>, Error>;
    /// False where the caller has none of that id.
    ///
    /// # Errors
    /// The host's.
    fn revoke(&self, id: &str) -> Result<bool, Error>;
}

/// What of a request is not read at once.
pub trait HostRequest {
    /// The query in the order it came.
    fn query(&self) -> Pairs;
    /// Its header fields.
    fn headers(&self) -> Pairs;
    /// The public address that its path is below.
    fn address(&self) -> String;
    /// The name of whoever asks.
    fn caller(&self) -> Option<String>;
    /// Whether it publishes something that another server served before.
    fn is_moved(&self) -> bool;
    /// The body, once.
    fn take_body(&self) -> Option<Box<dyn HostBlob>>;
    /// The parts, once.
    fn take_parts(&self) -> Vec<HostPart>;
}

/// A part of a form.
pub struct HostPart {
    /// Its field's name.
    pub name: String,
    /// Its file's name, where it has one.
    pub filename: Option<String>,
    /// Its own header fields.
    pub headers: Pairs,
    /// Its bytes.
    pub body: Box<dyn HostBlob>,
}

/// Resource `blob`.
#[expect(missing_docs, reason = "wit/v0.1/blobs.wit says it")]
#[expect(clippy::missing_errors_doc, reason = "wit/v0.1/blobs.wit says it")]
pub trait HostBlob: Any {
    fn size(&self) -> Result<u64, Error>;
    fn digest(&self, algorithm: &str) -> Result<Digest, Error>;
    fn read(&self, offset: u64, length: u32) -> Result<Vec<u8>, Error>;
    fn find(&self, needle: &[u8], start: u64, end: u64) -> Result<Option<u64>, Error>;
    fn slice(&self, offset: u64, length: u64) -> Result<Box<dyn HostBlob>, Error>;
    fn decode(&self, encoding: &str, limit: u64, digests: &[&str]) -> Result<Box<dyn HostBlob>, Error>;
}

/// `part` of `wit/v0.1/blobs.wit`.
pub enum HostWritten<'a> {
    /// The plugin's own bytes.
    Bytes(Vec<u8>),
    /// Some of a blob's.
    Section {
        /// The blob.
        of: &'a dyn HostBlob,
        /// Where they begin in it.
        offset: u64,
        /// How many they are.
        length: u64,
    },
}

/// `noted` of `wit/v0.1/memo.wit`.
pub struct HostNoted {
    /// What the plugin noted.
    pub note: Vec<u8>,
    /// Its bytes.
    pub body: Box<dyn HostBlob>,
    /// How many they are.
    pub size: u64,
}

/// Resource `writer`.
#[expect(missing_docs, reason = "wit/v0.1/blobs.wit says it")]
#[expect(clippy::missing_errors_doc, reason = "wit/v0.1/blobs.wit says it")]
pub trait HostWriter {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Error>;
    fn append(&mut self, blob: &dyn HostBlob) -> Result<(), Error>;
    fn write_parts(&mut self, parts: Vec<HostWritten<'_>>) -> Result<(), Error>;
    fn finish(self: Box<Self>) -> Result<Box<dyn HostBlob>, Error>;
}

/// Resource `upload`.
#[expect(missing_docs, reason = "wit/v0.1/blobs.wit says it")]
#[expect(clippy::missing_errors_doc, reason = "wit/v0.1/blobs.wit says it")]
pub trait HostUpload {
    fn note(&self) -> String;
    fn length(&self) -> u64;
    fn received(&self) -> u64;
    fn finish(self: Box<Self>) -> Result<Box<dyn HostBlob>, Error>;
    fn abort(self: Box<Self>) -> Result<(), Error>;
}

/// `run` of `wit/v0.1/records.wit`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HostRun {
    /// The last key.
    pub last: String,
    /// How many keys they are.
    pub count: u32,
}

/// `run-list` of `wit/v0.1/records.wit`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct HostRuns {
    /// In the order of their keys.
    pub runs: Vec<HostRun>,
    /// Whether there are keys after them.
    pub more: bool,
}

/// Resource `repository`, and the functions of `releases`, `advisories`, `identity`, `signing` and `memo` that take one.
#[expect(missing_docs, reason = "wit/v0.1/records.wit says it")]
#[expect(clippy::missing_errors_doc, reason = "wit/v0.1/records.wit says it")]
pub trait HostRepository: Any {
    fn name(&self) -> String;
    fn kind(&self) -> String;
    fn settings(&self) -> String;
    fn get(&self, key: &str) -> Result<Option<Entry>, Error>;
    fn scan(&self, prefix: &str, after: Option<&str>, limit: u32) -> Result<Vec<Entry>, Error>;
    fn keys(
        &self,
        prefix: &str,
        delimiter: Option<&str>,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<String>, Error>;
    fn runs(&self, prefix: &str, after: Option<&str>) -> Result<HostRuns, Error>;
    fn search(&self, text: &str, offset: u32, limit: u32) -> Result<Matches, Error>;
    fn withheld(&self, names: &[String]) -> Result<Vec<String>, Error>;
    fn judge_releases(&self, package: &str, releases: &[Release]) -> Result<Vec<ReleaseVerdict>, Error>;
    fn judge_with_reasons(&self, package: &str, releases: &[Release]) -> Result<Vec<ReasonedVerdict>, Error>;
    fn judge_asked(&self, package: &str, release: &Release) -> Result<ReleaseVerdict, Error>;
    fn advisories(&self, packages: &[String]) -> Result<String, Error>;
    fn begin(&self) -> Result<Box<dyn HostTransaction>, Error>;
    fn blob(&self, digest: &Digest) -> Result<Option<Box<dyn HostBlob>>, Error>;
    fn keep(&self, blob: &dyn HostBlob) -> Result<Digest, Error>;
    fn begin_upload(&self, note: &str) -> Result<String, Error>;
    fn upload(&self, name: &str) -> Result<Option<Box<dyn HostUpload>>, Error>;
    fn begin_login(&self) -> Result<Login, Error>;
    fn signing_keys(&self) -> Result<Vec<PublicKey>, Error>;
    fn sign(&self, message: &[u8]) -> Result<Signature, Error>;
    fn find_pieces(&self, names: &[String]) -> Result<Vec<Option<HostNoted>>, Error>;
    fn start_piece(&self, name: &str) -> Result<Box<dyn HostMaking>, Error>;
}

/// Resource `making`.
#[expect(missing_docs, reason = "wit/v0.1/memo.wit says it")]
#[expect(clippy::missing_errors_doc, reason = "wit/v0.1/memo.wit says it")]
pub trait HostMaking {
    fn finish(self: Box<Self>, note: &[u8], bytes: &[u8]) -> Result<Box<dyn HostBlob>, Error>;
}

/// Resource `transaction`.
#[expect(missing_docs, reason = "wit/v0.1/records.wit says it")]
#[expect(clippy::missing_errors_doc, reason = "wit/v0.1/records.wit says it")]
pub trait HostTransaction {
    fn put(&mut self, key: &str, value: &[u8], expect: Expectation, blobs: &[Digest]);
    fn remove(&mut self, key: &str, expect: Expectation);
    fn require(&mut self, key: &str, expect: Expectation);
    fn show(&mut self, version: &Version);
    fn hide(&mut self, id: &VersionId);
    fn hide_file(&mut self, id: &VersionId, path: &str);
    fn attest(&mut self, statement: &Statement);
    fn document(&mut self, document: &VersionDocument);
    fn commit(self: Box<Self>) -> Result<Outcome, Error>;
}

/// Resource `fetch`.
#[expect(missing_docs, reason = "wit/v0.1/upstream.wit says it")]
#[expect(clippy::missing_errors_doc, reason = "wit/v0.1/upstream.wit says it")]
pub trait HostFetch {
    fn header(&mut self, name: &str, value: &str);
    fn body(&mut self, bytes: &[u8]);
    fn fresh(&mut self, freshness: Freshness);
    fn expect(&mut self, digest: &Digest);
    fn limit(&mut self, bytes: u64);
    fn show_as(&mut self, name: &str, version: &str, path: &str);
    fn part_of(&mut self, name: &str, version: &str, path: &str);
    fn metadata(&mut self);
    fn start(self: Box<Self>, proxy: &dyn HostRepository) -> Result<Box<dyn HostReply>, Error>;
}

/// Resource `reply`.
#[expect(missing_docs, reason = "wit/v0.1/upstream.wit says it")]
#[expect(clippy::missing_errors_doc, reason = "wit/v0.1/upstream.wit says it")]
pub trait HostReply {
    fn status(&self) -> Result<u16, Error>;
    fn headers(&self) -> Result<Pairs, Error>;
    fn address(&self) -> Result<String, Error>;
    fn expect(&mut self, digest: &Digest);
    fn body(self: Box<Self>) -> Result<Box<dyn HostBlob>, Error>;
}
