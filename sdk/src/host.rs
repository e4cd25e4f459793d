//! Contract between host and plugin as traits; the SDK's types are built on them.
//!
//! In Wasm, the SDK implements these traits by calling the contract's imports. In tests,
//! `packhouse-testkit` implements them. Plugins do not call them, but use
//! [`Context`](crate::Context), [`Repository`](crate::Repository), [`Blob`](crate::Blob) and so on.
//! Methods have the names of the functions in `wit/v0.1`, which describes their behaviour and their
//! errors.

use crate::{
    Digest, Entry, Error, Expectation, Freshness, Login, LoginState, Matches, Outcome, PublicKey,
    ReasonedVerdict, Release, ReleaseVerdict, Signature, Statement, Token, Version, VersionDocument,
    VersionId,
};
use std::any::Any;

/// Names and values of header fields or of a log line.
pub type Pairs = Vec<(String, String)>;

/// Interfaces `host` and `identity`, and the constructors of `blobs` and `upstream`.
pub trait Host {
    /// Writes a line to the log.
    fn log(&self, level: &str, message: &str, fields: &[(&str, &str)]);
    /// Returns the Unix time in ms; it does not change during a call.
    fn now(&self) -> u64;
    /// Creates an empty writer.
    fn writer(&self) -> Box<dyn HostWriter>;
    /// Creates a request to an upstream without sending it.
    fn fetch(&self, method: &str, target: &str) -> Box<dyn HostFetch>;
    /// Reports that a proxy is left out of the response, and why.
    fn leave_out(&self, proxy: &dyn HostRepository, reason: &str);
    /// Returns the state of a sign-in.
    ///
    /// # Errors
    /// Returns the host's error.
    fn finish_login(&self, id: &str) -> Result<LoginState, Error>;
    /// Returns the caller's own tokens.
    ///
    /// # Errors
    /// Returns the host's error.
    fn tokens(&self) -> Result<Vec<Token>, Error>;
    /// Revokes a token. Returns false if the caller has no token with that id.
    ///
    /// # Errors
    /// Returns the host's error.
    fn revoke(&self, id: &str) -> Result<bool, Error>;
}

/// Parts of a request that are read on demand.
pub trait HostRequest {
    /// Returns the query parameters in their original order.
    fn query(&self) -> Pairs;
    /// Returns the header fields.
    fn headers(&self) -> Pairs;
    /// Returns the public address that the path is relative to.
    fn address(&self) -> String;
    /// Returns the caller's name.
    fn caller(&self) -> Option<String>;
    /// True if the request publishes something that another server served before.
    fn is_moved(&self) -> bool;
    /// Returns the body. Only the first call returns it.
    fn take_body(&self) -> Option<Box<dyn HostBlob>>;
    /// Returns the parts of a form. Only the first call returns them.
    fn take_parts(&self) -> Vec<HostPart>;
}

/// Part of a form.
pub struct HostPart {
    /// Name of the field.
    pub name: String,
    /// Name of the file, if the field has one.
    pub filename: Option<String>,
    /// Header fields of the part.
    pub headers: Pairs,
    /// Content of the part.
    pub body: Box<dyn HostBlob>,
}

/// Resource `blob`.
#[expect(clippy::missing_errors_doc, reason = "wit/v0.1/blobs.wit documents the errors")]
pub trait HostBlob: Any {
    /// Returns the size in bytes.
    fn size(&self) -> Result<u64, Error>;
    /// Returns the digest by this algorithm.
    fn digest(&self, algorithm: &str) -> Result<Digest, Error>;
    /// Returns up to `length` bytes from `offset` on, at most 1 MiB.
    fn read(&self, offset: u64, length: u32) -> Result<Vec<u8>, Error>;
    /// Returns the offset of the first `needle` between `start` and `end`.
    fn find(&self, needle: &[u8], start: u64, end: u64) -> Result<Option<u64>, Error>;
    /// Returns a part of the bytes without copying them.
    fn slice(&self, offset: u64, length: u64) -> Result<Box<dyn HostBlob>, Error>;
    /// Decodes the bytes into a new blob of at most `limit` bytes.
    fn decode(&self, encoding: &str, limit: u64, digests: &[&str]) -> Result<Box<dyn HostBlob>, Error>;
}

/// Variant `part` of `wit/v0.1/blobs.wit`.
pub enum HostWritten<'a> {
    /// Bytes of the plugin.
    Bytes(Vec<u8>),
    /// A section of a blob.
    Section {
        /// Blob that contains the section.
        of: &'a dyn HostBlob,
        /// Offset of the section in the blob, in bytes.
        offset: u64,
        /// Length of the section in bytes.
        length: u64,
    },
}

/// Record `noted` of `wit/v0.1/memo.wit`.
pub struct HostPiece {
    /// Note that the plugin stored with the piece.
    pub note: Vec<u8>,
    /// Bytes of the piece.
    pub body: Box<dyn HostBlob>,
    /// Size of the bytes.
    pub size: u64,
}

/// Resource `writer`.
#[expect(clippy::missing_errors_doc, reason = "wit/v0.1/blobs.wit documents the errors")]
pub trait HostWriter {
    /// Appends bytes.
    fn write(&mut self, bytes: &[u8]) -> Result<(), Error>;
    /// Appends all bytes of a blob.
    fn append(&mut self, blob: &dyn HostBlob) -> Result<(), Error>;
    /// Appends these parts in their order.
    fn write_parts(&mut self, parts: Vec<HostWritten<'_>>) -> Result<(), Error>;
    /// Returns everything that was written as a blob.
    fn finish(self: Box<Self>) -> Result<Box<dyn HostBlob>, Error>;
}

/// Resource `upload`.
#[expect(clippy::missing_errors_doc, reason = "wit/v0.1/blobs.wit documents the errors")]
pub trait HostUpload {
    /// Returns the note that the plugin passed when it began the upload.
    fn note(&self) -> String;
    /// Returns the size in bytes.
    fn length(&self) -> u64;
    /// Returns how many bytes this request added.
    fn received(&self) -> u64;
    /// Ends the upload and returns its bytes as a blob.
    fn finish(self: Box<Self>) -> Result<Box<dyn HostBlob>, Error>;
    /// Deletes the upload and its bytes.
    fn abort(self: Box<Self>) -> Result<(), Error>;
}

/// Record `run` of `wit/v0.1/records.wit`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HostRun {
    /// Last key of the run.
    pub last: String,
    /// Number of keys in the run.
    pub count: u32,
}

/// Record `run-list` of `wit/v0.1/records.wit`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct HostRuns {
    /// Runs in the order of their keys.
    pub runs: Vec<HostRun>,
    /// True if there are keys after the last run.
    pub more: bool,
}

/// Resource `repository`, and the functions of `releases`, `advisories`, `identity`, `signing` and
/// `memo` that take one.
#[expect(clippy::missing_errors_doc, reason = "wit/v0.1/records.wit documents the errors")]
pub trait HostRepository: Any {
    /// Returns the name as in addresses.
    fn name(&self) -> String;
    /// Returns `hosted`, `proxy` or `group`.
    fn kind(&self) -> String;
    /// Returns the settings as a JSON object.
    fn settings(&self) -> String;
    /// Returns the record with this key.
    fn get(&self, key: &str) -> Result<Option<Entry>, Error>;
    /// Returns a page of records whose key begins with `prefix`.
    fn scan(&self, prefix: &str, after: Option<&str>, limit: u32) -> Result<Vec<Entry>, Error>;
    /// Returns a page of keys that begin with `prefix`.
    fn keys(
        &self,
        prefix: &str,
        delimiter: Option<&str>,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<String>, Error>;
    /// Returns a page of the runs of keys that begin with `prefix`.
    fn runs(&self, prefix: &str, after: Option<&str>) -> Result<HostRuns, Error>;
    /// Searches the listed packages.
    fn search(&self, text: &str, offset: u32, limit: u32) -> Result<Matches, Error>;
    /// Returns the names that must not be requested from an upstream.
    fn withheld(&self, names: &[String]) -> Result<Vec<String>, Error>;
    /// Returns verdicts on releases: `releases.judge-versions`.
    fn judge_releases(&self, package: &str, releases: &[Release]) -> Result<Vec<ReleaseVerdict>, Error>;
    /// Returns verdicts with reasons: `releases.judge-with-reasons`.
    fn judge_with_reasons(&self, package: &str, releases: &[Release]) -> Result<Vec<ReasonedVerdict>, Error>;
    /// Returns the verdict on the requested release: `releases.judge-asked`.
    fn judge_asked(&self, package: &str, release: &Release) -> Result<ReleaseVerdict, Error>;
    /// Returns advisories as a JSON object: `advisories.find`.
    fn advisories(&self, packages: &[String]) -> Result<String, Error>;
    /// Begins a transaction.
    fn begin(&self) -> Result<Box<dyn HostTransaction>, Error>;
    /// Returns the blob with this SHA-256.
    fn blob(&self, digest: &Digest) -> Result<Option<Box<dyn HostBlob>>, Error>;
    /// Keeps a blob for the grace period and returns its SHA-256.
    fn keep(&self, blob: &dyn HostBlob) -> Result<Digest, Error>;
    /// Begins an upload and returns its name.
    fn begin_upload(&self, note: &str) -> Result<String, Error>;
    /// Returns the upload of this name.
    fn upload(&self, name: &str) -> Result<Option<Box<dyn HostUpload>>, Error>;
    /// Begins a sign-in: `identity.begin-login`.
    fn begin_login(&self) -> Result<Login, Error>;
    /// Returns the keys that verify signatures: `signing.keys`.
    fn signing_keys(&self) -> Result<Vec<PublicKey>, Error>;
    /// Signs a message: `signing.sign`.
    fn sign(&self, message: &[u8]) -> Result<Signature, Error>;
    /// Returns the cached pieces of these names: `memo.find-noted`.
    fn find_pieces(&self, names: &[String]) -> Result<Vec<Option<HostPiece>>, Error>;
    /// Starts to make a piece: `making.start` of `memo`.
    fn start_piece(&self, name: &str) -> Result<Box<dyn HostMaking>, Error>;
}

/// Resource `making`.
#[expect(clippy::missing_errors_doc, reason = "wit/v0.1/memo.wit documents the errors")]
pub trait HostMaking {
    /// Caches these bytes with the note, and returns them as a blob.
    fn finish(self: Box<Self>, note: &[u8], bytes: &[u8]) -> Result<Box<dyn HostBlob>, Error>;
}

/// Resource `transaction`.
#[expect(clippy::missing_errors_doc, reason = "wit/v0.1/records.wit documents the errors")]
pub trait HostTransaction {
    /// Writes a record.
    fn put(&mut self, key: &str, value: &[u8], expect: Expectation, blobs: &[Digest]);
    /// Removes a record.
    fn remove(&mut self, key: &str, expect: Expectation);
    /// Adds a condition on a key.
    fn require(&mut self, key: &str, expect: Expectation);
    /// Lists a version.
    fn show(&mut self, version: &Version);
    /// Removes a version from the listing.
    fn hide(&mut self, id: &VersionId);
    /// Removes a file from the listing.
    fn hide_file(&mut self, id: &VersionId, path: &str);
    /// Stores a statement about a listed version.
    fn attest(&mut self, statement: &Statement);
    /// Attaches a document to a listed version.
    fn document(&mut self, document: &VersionDocument);
    /// Names a package that the change is about.
    fn about_package(&mut self, name: &str);
    /// Applies the change.
    fn commit(self: Box<Self>) -> Result<Outcome, Error>;
}

/// Resource `fetch`.
#[expect(clippy::missing_errors_doc, reason = "wit/v0.1/upstream.wit documents the errors")]
pub trait HostFetch {
    /// Adds a header field.
    fn header(&mut self, name: &str, value: &str);
    /// Sets the body of a `POST`.
    fn body(&mut self, bytes: &[u8]);
    /// Sets how long the response may be served from the cache.
    fn fresh(&mut self, freshness: Freshness);
    /// Sets the expected digest.
    fn expect(&mut self, digest: &Digest);
    /// Limits the size of the response.
    fn limit(&mut self, bytes: u64);
    /// Lists the response as this file of this version.
    fn show_as(&mut self, name: &str, version: &str, path: &str);
    /// Declares that the response belongs to this file of this version.
    fn part_of(&mut self, name: &str, version: &str, path: &str);
    /// Declares that the response is metadata.
    fn metadata(&mut self);
    /// Sends the request.
    fn start(self: Box<Self>, proxy: &dyn HostRepository) -> Result<Box<dyn HostReply>, Error>;
}

/// Resource `reply`.
#[expect(clippy::missing_errors_doc, reason = "wit/v0.1/upstream.wit documents the errors")]
pub trait HostReply {
    /// Returns the status.
    fn status(&self) -> Result<u16, Error>;
    /// Returns the header fields.
    fn headers(&self) -> Result<Pairs, Error>;
    /// Returns the final address after redirects.
    fn address(&self) -> Result<String, Error>;
    /// Sets the expected digest.
    fn expect(&mut self, digest: &Digest);
    /// Returns the body.
    fn body(self: Box<Self>) -> Result<Box<dyn HostBlob>, Error>;
}
