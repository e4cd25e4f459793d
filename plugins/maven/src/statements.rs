//! Signatures that lie beside files: `.asc` of OpenPGP, `.sigstore.json` and `.sigstore` of Sigstore. The host is handed each once it and
//! its file are there, whichever came first, and says what it is worth. Of files whose bytes may change nothing is stated.

use crate::hosted::record;
use crate::layout::{FilePath, Item, Kind};
use crate::records;
use packhouse_sdk::{
    Blob, Digest, Expectation, Failure, ReadAt, Repository, Statement, Transaction, VersionId,
};
use serde_json::Value;

pub(crate) const SUFFIXES: [&str; 3] = [".sigstore.json", ".sigstore", ".asc"];

/// How a file stands to signatures.
pub(crate) enum Part<'a> {
    /// It is one, of the file at this path.
    Signature(&'a str),
    /// It may have some.
    File,
    /// Nothing is stated of it.
    Neither,
}

impl<'a> Part<'a> {
    pub(crate) fn of(file: &'a FilePath) -> Self {
        if file.item.as_ref().is_none_or(|item| item.kind == Kind::Moving) {
            return Part::Neither;
        }
        let signed = SUFFIXES.iter().find_map(|suffix| file.path.strip_suffix(suffix));
        signed.map_or(Part::File, Part::Signature)
    }
}

/// The keys of the records of the signatures that a file may have.
pub(crate) fn keys(path: &str) -> impl Iterator<Item = String> {
    SUFFIXES.iter().map(move |suffix| records::file(&format!("{path}{suffix}")))
}

/// Adds to a signature's put what it states, where its file is there; else that it is not, so that the one that comes last sees the other.
pub(crate) fn attest_signature(
    repository: &Repository,
    change: &mut Transaction,
    file: &FilePath,
    signed: &str,
    body: &Blob,
) -> Result<(), Failure> {
    let Some(item) = &file.item else { return Ok(()) };
    match record(repository, signed)? {
        Some(there) => state(change, item, signed, &file.path, there.sha256, body)?,
        None => drop(change.require(&records::file(signed), Expectation::Absent)),
    }
    Ok(())
}

/// Adds to a file's put what signatures state that came before it.
pub(crate) fn attest_file(
    repository: &Repository,
    change: &mut Transaction,
    file: &FilePath,
    digest: &Digest,
) -> Result<(), Failure> {
    let Some(item) = &file.item else { return Ok(()) };
    for suffix in SUFFIXES {
        let path = format!("{}{suffix}", file.path);
        if let Some(there) = record(repository, &path)? {
            let body = repository.recorded_blob(&there.sha256)?;
            state(change, item, &file.path, &path, digest.clone(), &body)?;
        } else {
            change.require(&records::file(&path), Expectation::Absent);
        }
    }
    Ok(())
}

fn state(
    change: &mut Transaction,
    item: &Item,
    signed: &str,
    source: &str,
    subject: Digest,
    body: &Blob,
) -> Result<(), Failure> {
    let fits = body.size()? <= Statement::MAX_BYTES as u64;
    let bytes = if fits { body.read_all(Statement::MAX_BYTES as u64)? } else { Vec::new() };
    change.attest(&statement(item, signed, source, subject, bytes));
    Ok(())
}

/// What the signature at `source` states of the file at `signed`.
pub(crate) fn statement(
    item: &Item,
    signed: &str,
    source: &str,
    subject: Digest,
    bytes: Vec<u8>,
) -> Statement {
    let kind = if source.ends_with(".asc") { Statement::PGP.to_owned() } else { bundle_kind(&bytes) };
    let id = VersionId::new(item.name(), &item.version);
    Statement::new(id, kind, subject, bytes).of_file(signed).at(source)
}

/// As a bundle calls itself.
fn bundle_kind(bytes: &[u8]) -> String {
    let document: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let own = document.get("mediaType").and_then(Value::as_str);
    let own = own.filter(|own| own.starts_with(Statement::BUNDLES) && own.len() <= 200);
    own.unwrap_or(Statement::BUNDLE).to_owned()
}
