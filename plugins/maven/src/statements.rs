//! Signatures in files beside the signed file: `.asc` of OpenPGP, `.sigstore.json` and `.sigstore`
//! of Sigstore. The plugin states a signature to the host when both the signature and its file
//! exist, whichever arrived first. The host judges the signature. The plugin states nothing about
//! files whose bytes may change.

use crate::hosted::record;
use crate::layout::{FileKind, FilePath, VersionFile};
use crate::records;
use packhouse_sdk::{
    Blob, Digest, Expectation, Failure, ReadAt, Repository, Statement, Transaction, VersionId,
};
use serde_json::Value;

pub(crate) const SUFFIXES: [&str; 3] = [".sigstore.json", ".sigstore", ".asc"];

/// The role of a file with regard to signatures.
pub(crate) enum SignatureRole<'a> {
    /// The file is a signature of the file at this path.
    Signature(&'a str),
    /// The file may have signatures.
    File,
    /// The file belongs to no version, or its bytes may change, so its signatures are not stated.
    Neither,
}

impl<'a> SignatureRole<'a> {
    pub(crate) fn of(file: &'a FilePath) -> Self {
        if file.item.as_ref().is_none_or(|item| item.kind == FileKind::Moving) {
            return SignatureRole::Neither;
        }
        let signed = SUFFIXES.iter().find_map(|suffix| file.path.strip_suffix(suffix));
        signed.map_or(SignatureRole::File, SignatureRole::Signature)
    }
}

/// Keys of the records of the signatures that a file may have.
pub(crate) fn keys(path: &str) -> impl Iterator<Item = String> {
    SUFFIXES.iter().map(move |suffix| records::file(&format!("{path}{suffix}")))
}

/// Adds the statement of a signature to its upload, if the signed file exists. Otherwise the change
/// requires that the file stays absent. If a file and its signature arrive at the same time, the
/// later commit therefore sees the earlier one.
pub(crate) fn attest_signature(
    repository: &Repository,
    change: &mut Transaction,
    file: &FilePath,
    signed: &str,
    body: &Blob,
) -> Result<(), Failure> {
    let Some(item) = &file.item else { return Ok(()) };
    match record(repository, signed)? {
        Some(existing) => add_statement(change, item, signed, &file.path, existing.sha256, body)?,
        None => drop(change.require(&records::file(signed), Expectation::Absent)),
    }
    Ok(())
}

/// Adds statements to the upload of a file: one for each signature that arrived before the file.
pub(crate) fn attest_file(
    repository: &Repository,
    change: &mut Transaction,
    file: &FilePath,
    digest: &Digest,
) -> Result<(), Failure> {
    let Some(item) = &file.item else { return Ok(()) };
    for suffix in SUFFIXES {
        let path = format!("{}{suffix}", file.path);
        if let Some(existing) = record(repository, &path)? {
            let body = repository.recorded_blob(&existing.sha256)?;
            add_statement(change, item, &file.path, &path, digest.clone(), &body)?;
        } else {
            change.require(&records::file(&path), Expectation::Absent);
        }
    }
    Ok(())
}

fn add_statement(
    change: &mut Transaction,
    item: &VersionFile,
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

/// The statement of the signature at `source` about the file at `signed`.
pub(crate) fn statement(
    item: &VersionFile,
    signed: &str,
    source: &str,
    subject: Digest,
    bytes: Vec<u8>,
) -> Statement {
    let kind = if source.ends_with(".asc") { Statement::PGP.to_owned() } else { bundle_kind(&bytes) };
    let id = VersionId::new(item.name(), &item.version);
    Statement::new(id, kind, subject, bytes).of_file(signed).at(source)
}

/// The media type that a bundle of Sigstore declares, or otherwise the general media type of
/// bundles.
fn bundle_kind(bytes: &[u8]) -> String {
    let document: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let declared = document.get("mediaType").and_then(Value::as_str);
    let declared = declared.filter(|kind| kind.starts_with(Statement::BUNDLES) && kind.len() <= 200);
    declared.unwrap_or(Statement::BUNDLE).to_owned()
}
