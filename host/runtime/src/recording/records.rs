//! Serialized form of the contract's records and variants in a recording.

use super::trace_value::{records, variants};
use crate::bindings::packhouse::format::{
    blobs, http, identity, memo, records, releases, signing, types, upstream,
};
use crate::host_error::GuestError;

records! {
    types::Header { name, value }
    http::Part { name, filename, headers, body }
    http::Response { status, headers, content, options }
    http::Problem { code, message, detail }
    http::Failure { status, headers, problems }
    blobs::Section { of, offset, length }
    memo::Noted { note, body, size }
    records::Entry { key, value, revision }
    records::Version { name, version, files, published, summary, properties, state }
    records::File { path, digest, size }
    records::VersionId { name, version }
    records::Statement { id, path, source, kind, subject, bundle }
    records::Document { id, path, source, title, form, media_type, digest, size }
    records::Matches { names, total }
    records::Run { last, count }
    records::RunList { runs, more }
    identity::Login { id, url }
    identity::Token { id, name, hint, scope, created, expires }
    releases::Release { published, withdrawn }
    releases::KnownVersion { version, published, withdrawn, license }
    releases::ReasonedVerdict { verdict, because }
    signing::PublicKey { id, kind, key, expires }
    signing::Signature { key_id, value }
}

variants! {
    blobs::Part { ; Bytes, Section }
    http::Content { None; Inline, Blob }
    records::Expectation { Anything, Absent, Present; Revision }
    records::Outcome { ; Applied, Stale, UnknownBlobs }
    identity::LoginState { Gone; Waiting, Granted }
    releases::Verdict { Offered, Withheld, FileDecides; }
    upstream::Freshness { Immutable, Never; Seconds }
    GuestError { Denied; Invalid, TooLarge, Unavailable, Other }
}
