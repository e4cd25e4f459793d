//! Handles `PUT` of files, checksums and metadata. Overwrite Protection applies to files, a
//! checksum must match its file, and metadata is stored as sent.

use crate::answer::{bad_path, parse};
use crate::checksum::Algorithm;
use crate::hosted::{file_sum, record};
use crate::layout::{BadPath, FileKind, FilePath, PREFIXES, PathTarget, VersionFile};
use crate::metadata::{self, BadMetadata, MavenMetadata, MavenPlugin};
use crate::records::{self, FileRecord, PendingChecksums, PluginRecord};
use crate::statements::{self, SignatureRole};
use crate::version::is_snapshot;
use crate::{FILE_LIMIT, busy, licence};
use packhouse_sdk::{
    Blob, Context, Digest, Entry, Expectation, Failure, Intent, Outcome, Params, ReadAt, Redeploy,
    Repository, Request, Response, Settings, Step, Transaction, Version, VersionDocument, VersionId,
};

/// Largest checksum file, in bytes. A checksum file needs a few hundred bytes at most, even with a
/// file name after the hex.
const CHECKSUM_LIMIT: u64 = 1024;

/// Most plugins that the metadata of a group may name. Each plugin becomes a record, and one commit
/// writes all of these records.
const PLUGINS: usize = 5000;

pub(crate) fn plan(request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    let target = parse(request)?;
    let intent = target
        .packages()
        .into_iter()
        .fold(Intent::publish().subject(target.subject()), Intent::about_package);
    // Only its content shows whether metadata is that of an artifact or that of a group.
    let intent = if target.is_metadata() { intent.many_packages() } else { intent };
    match &target {
        PathTarget::Folder(_) => {
            Err(bad_path(BadPath("The path of a file must not end with a slash".to_owned())))
        }
        PathTarget::Prefixes => {
            Err(bad_path(BadPath(format!("{PREFIXES} is generated and cannot be uploaded"))))
        }
        PathTarget::Metadata(_) => Ok(intent.body(metadata::LIMIT)),
        PathTarget::Checksum(of, algorithm) => {
            check_checksum_target(of, *algorithm)?;
            Ok(intent.body(CHECKSUM_LIMIT))
        }
        PathTarget::File(file) => {
            check_coordinates(file)?;
            Ok(intent.body(FILE_LIMIT).digests(&["sha1", "md5"]))
        }
    }
}

fn check_checksum_target(of: &PathTarget, algorithm: Algorithm) -> Result<(), Failure> {
    match of {
        PathTarget::File(file) => check_coordinates(file),
        PathTarget::Metadata(_) => Ok(()),
        _ => {
            let text = format!(
                "There cannot be a {} of {}: only files and metadata have checksums",
                algorithm.name(),
                of.subject()
            );
            Err(bad_path(BadPath(text)))
        }
    }
}

fn check_coordinates(file: &FilePath) -> Result<(), Failure> {
    let refused = |BadPath(text)| Failure::new(400, "invalid_coordinates", text);
    file.item.as_ref().map_or(Ok(()), VersionFile::check).map_err(refused)
}

/// Refuses an upload of an existing file before its bytes arrive. If a client may send the same
/// bytes again, this check refuses only a body of another size.
pub(crate) fn check(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<(), Failure> {
    let PathTarget::File(file) = parse(request)? else { return Ok(()) };
    if file.may_change() {
        return Ok(());
    }
    let repository = cx.target()?;
    let Some(existing) = record(repository, &file.path)? else { return Ok(()) };
    let length = request.header("content-length").and_then(|length| length.parse::<u64>().ok());
    let other_size = length.is_some_and(|length| length != existing.size);
    if other_size || !may_repeat(repository, &file)? { Err(already_exists(&file.path)) } else { Ok(()) }
}

pub(crate) fn put(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let target = parse(request)?;
    let body = request.planned_body()?;
    match target {
        PathTarget::File(file) => put_file(cx, &file, &body),
        PathTarget::Metadata(folder) => put_metadata(cx, &folder, &body),
        PathTarget::Checksum(of, algorithm) => match *of {
            PathTarget::File(file) => put_checksum(cx, &file.path, algorithm, &body),
            // The client computed this checksum from the document that it uploaded. The server
            // ignores it, and computes checksums from the document that it serves.
            _ => Ok(Response::created()),
        },
        PathTarget::Folder(_) | PathTarget::Prefixes => {
            Err(Failure::internal("a PUT that the plan must refuse"))
        }
    }
}

fn put_file(cx: &Context, file: &FilePath, body: &Blob) -> Result<Response, Failure> {
    let (repository, now) = (cx.target()?, cx.now());
    let licence = file.item.as_ref().map_or(Ok(String::new()), |item| licence::of_pom(item, body))?;
    let fresh = || Ok::<_, Failure>(FileRecord { licence: licence.clone(), ..FileRecord::of(body, now)? });
    let mut stored = fresh()?;
    let (key, pending_key) = (records::file(&file.path), records::pending(&file.path));
    // Checksums that arrive before their file are rare. The plugin reads them only if the commit
    // fails because some exist.
    let mut pending = None;
    // Signatures that arrive before the file are rare, too, and are read in the same way.
    let (role, mut signed) = (SignatureRole::of(file), false);
    repository.update_if_needed(busy, |change| {
        match change.previous() {
            Some(Outcome::Stale(stale)) if *stale == key => {
                if let Some(existing) = record(repository, &file.path)? {
                    return answer_repeated(repository, file, &existing, &stored).map(Step::Done);
                }
            }
            Some(Outcome::Stale(stale)) if *stale == pending_key => {
                pending = repository.get_json::<PendingChecksums>(&pending_key)?;
                stored = match &pending {
                    Some(pending) => {
                        with_pending(&pending.value.clone().current(now), &file.path, fresh()?, body)?
                    }
                    None => fresh()?,
                };
            }
            Some(Outcome::Stale(stale)) if statements::keys(&file.path).any(|key| key == *stale) => {
                signed = true
            }
            Some(Outcome::UnknownBlobs(_)) => {
                return Err(Failure::internal("the stored body of the request is missing"));
            }
            _ => {}
        }
        let digest = repository.keep(body)?;
        let licence = match &file.item {
            Some(item) if item.tail != licence::POM => {
                licence::of_version(repository, change, item, &file.path)?
            }
            _ => licence.clone(),
        };
        change_file(
            change,
            file,
            &StoredFile { record: &stored, digest, licence: &licence },
            pending.as_ref(),
        )?;
        match role {
            SignatureRole::Signature(of) => statements::attest_signature(repository, change, file, of, body)?,
            SignatureRole::File if signed => {
                statements::attest_file(repository, change, file, &stored.sha256)?
            }
            SignatureRole::File => {
                for key in statements::keys(&file.path) {
                    change.require(&key, Expectation::Absent);
                }
            }
            SignatureRole::Neither => {}
        }
        Ok(Step::Commit(Response::created()))
    })
}

/// The data that is stored for a file.
struct StoredFile<'a> {
    record: &'a FileRecord,
    digest: Digest,
    /// The licence of the version.
    licence: &'a str,
}

/// Adds the file, its version and its listing to one change, which also removes the waiting
/// checksums of the file.
fn change_file(
    change: &mut Transaction,
    file: &FilePath,
    stored: &StoredFile<'_>,
    pending: Option<&Entry<PendingChecksums>>,
) -> Result<(), Failure> {
    let StoredFile { record: stored, digest, licence } = stored;
    let expect = if file.may_change() { Expectation::Anything } else { Expectation::Absent };
    change.put_json(&records::file(&file.path), stored, expect, std::slice::from_ref(digest))?;
    match pending {
        Some(pending) => change.remove(&pending.key, Expectation::Revision(pending.revision)),
        None => change.require(&records::pending(&file.path), Expectation::Absent),
    };
    if let Some(item) = &file.item {
        // The record of the version is written without an expectation, so that concurrent deploys
        // do not conflict. A concurrent deletion finds that the record has changed, and is tried
        // again.
        change.put(&records::version(item), &records::time(stored.time), Expectation::Anything, &[]);
        let listed = listed_version(item, &file.path, stored);
        change.show(&if licence.is_empty() { listed } else { listed.property("license", *licence) });
        if let Some(document) = bill_of_materials(item, &file.path, stored) {
            change.document(&document);
        }
    }
    Ok(())
}

/// Returns the version's document if the name of the file is that of a bill of materials. The build
/// plugins of CycloneDX and SPDX attach such files.
fn bill_of_materials(item: &VersionFile, path: &str, stored: &FileRecord) -> Option<VersionDocument> {
    let media_type = VersionDocument::media_type_of(path)?;
    let form = VersionDocument::form_of(media_type)?;
    let id = VersionId::new(item.name(), &item.version);
    let document = VersionDocument::new(id, form, media_type, stored.sha256.clone(), stored.size);
    Some(document.at(path).titled(path.rsplit('/').next().unwrap_or_default()))
}

fn listed_version(item: &VersionFile, path: &str, stored: &FileRecord) -> Version {
    Version::new(item.name(), &item.version)
        .file(path, stored.sha256.clone(), stored.size)
        .summary(format!("{}:{}", item.name(), item.version))
        .property("group", &item.group)
        .property("artifact", &item.artifact)
}

/// Answers an upload of an existing file. The same bytes may be accepted; other bytes never are.
fn answer_repeated(
    repository: &Repository,
    file: &FilePath,
    existing: &FileRecord,
    sent: &FileRecord,
) -> Result<Response, Failure> {
    if existing.sha256 == sent.sha256 && may_repeat(repository, file)? {
        Ok(Response::created())
    } else {
        Err(already_exists(&file.path))
    }
}

/// Returns true if the same bytes may be sent again. The files of a snapshot's build may be sent
/// again, because such an upload is a retry. For any other file, the setting `redeploy` decides.
fn may_repeat(repository: &Repository, file: &FilePath) -> Result<bool, Failure> {
    match &file.item {
        Some(VersionFile { kind: FileKind::Unique(_), .. }) => Ok(true),
        _ => Ok(Settings::of(repository)?.redeploy == Redeploy::Identical),
    }
}

fn already_exists(path: &str) -> Failure {
    Failure::already_exists(format!(
        "{path} is published already and cannot be replaced; publish a new version"
    ))
}

/// Adds the checksums that arrived before a file to its record. Each of them must match the file.
fn with_pending(
    pending: &PendingChecksums,
    path: &str,
    mut stored: FileRecord,
    body: &Blob,
) -> Result<FileRecord, Failure> {
    for (algorithm, text) in pending.sums() {
        let actual = match stored.known(algorithm) {
            Some(hex) => hex.to_owned(),
            None => body.digest(algorithm.name())?.hex().to_owned(),
        };
        match algorithm.read(text) {
            Some(stated) if stated == actual => stored.remember_stated(algorithm, text, &actual),
            stated => return Err(mismatch(path, algorithm, stated.as_deref().unwrap_or(text), &actual)),
        };
    }
    Ok(stored)
}

fn mismatch(path: &str, algorithm: Algorithm, stated: &str, actual: &str) -> Failure {
    let name = algorithm.name();
    let text =
        format!("{path}.{name} states {stated}, but the {name} of the file is {actual}; send both again");
    Failure::new(400, "checksum_mismatch", text)
}

/// Stores an uploaded checksum. If the file exists, the checksum must match it; otherwise the
/// checksum waits for the file. Clients later read the same text.
fn put_checksum(cx: &Context, path: &str, algorithm: Algorithm, body: &Blob) -> Result<Response, Failure> {
    let (repository, now) = (cx.target()?, cx.now());
    let invalid = || {
        let text = format!("{path}.{name} does not contain a {name} in hex", name = algorithm.name());
        Failure::new(400, "invalid_checksum", text)
    };
    let text = String::from_utf8(body.read_all(CHECKSUM_LIMIT)?).map_err(|_| invalid())?;
    let stated = algorithm.read(&text).ok_or_else(invalid)?;
    repository.update_if_needed(busy, |change| {
        let Some(existing) = repository.get_json::<FileRecord>(&records::file(path))? else {
            store_pending(repository, change, path, ChecksumText { algorithm, text: &text }, now)?;
            return Ok(Step::Commit(Response::created()));
        };
        let actual = file_sum(repository, &existing.value, algorithm)?;
        if stated != actual {
            return Err(mismatch(path, algorithm, &stated, &actual));
        }
        let changes = remember(change, existing, ChecksumText { algorithm, text: &text }, actual)?;
        Ok(if changes { Step::Commit(Response::created()) } else { Step::Done(Response::created()) })
    })
}

/// A checksum file: its algorithm and its text.
#[derive(Clone, Copy)]
struct ChecksumText<'a> {
    algorithm: Algorithm,
    text: &'a str,
}

/// Adds the text of a checksum to the record of its file. Also adds a SHA-512, which was just
/// computed from the file. Returns false if the record already has both.
fn remember(
    change: &mut Transaction,
    existing: Entry<FileRecord>,
    sum: ChecksumText<'_>,
    hex: String,
) -> Result<bool, Failure> {
    let mut record = existing.value;
    let is_new = record.remember_stated(sum.algorithm, sum.text, &hex);
    let passed = sum.algorithm == Algorithm::Sha512 && record.sha512.is_none();
    if !is_new && !passed {
        return Ok(false);
    }
    if passed {
        record.sha512 = Some(hex);
    }
    let expect = Expectation::Revision(existing.revision);
    change.put_json(&existing.key, &record, expect, std::slice::from_ref(&record.sha256))?;
    Ok(true)
}

fn store_pending(
    repository: &Repository,
    change: &mut Transaction,
    path: &str,
    sum: ChecksumText<'_>,
    now: u64,
) -> Result<(), Failure> {
    let key = records::pending(path);
    let before = repository.get_json::<PendingChecksums>(&key)?;
    let expect = Expectation::unchanged(before.as_ref());
    let mut pending = before.map(|entry| entry.value.current(now)).unwrap_or_default();
    pending.time = now;
    pending.sums.insert(sum.algorithm.name().to_owned(), sum.text.to_owned());
    change.put_json(&key, &pending, expect, &[])?;
    change.require(&records::file(path), Expectation::Absent);
    Ok(())
}

/// Stores an uploaded document, which is served as long as it agrees with the stored files. The
/// plugins of a group are known only from uploaded documents. Each plugin that the document names
/// therefore gets a record, too. A document that is not a group's belongs to the folder's artifact.
fn put_metadata(cx: &Context, folder: &str, body: &Blob) -> Result<Response, Failure> {
    let (repository, now) = (cx.target()?, cx.now());
    let bytes = body.read_all(metadata::LIMIT)?;
    let sent = MavenMetadata::read(&bytes).map_err(|BadMetadata(text)| bad_metadata(&text))?;
    if sent.plugins.len() > PLUGINS {
        return Err(bad_metadata(&format!("it names more than {PLUGINS} plugins")));
    }
    let is_of_group = sent.is_of_group() && may_be_group(repository, folder)?;
    let mut change = repository.begin()?;
    if !is_of_group {
        for artifact in PathTarget::Metadata(folder.to_owned()).packages() {
            change.about_package(&artifact);
        }
    }
    change.put(&records::metadata(folder), &bytes, Expectation::Anything, &[]);
    change.put(&records::touched(folder), &records::time(now), Expectation::Anything, &[]);
    for plugin in &sent.plugins {
        check_plugin(folder, plugin)?;
        let key = records::plugin(folder, &plugin.artifact);
        change.put_json(&key, &PluginRecord::of(plugin), Expectation::Anything, &[])?;
    }
    match change.commit()? {
        Outcome::Applied(_) => Ok(Response::created()),
        _ => Err(busy()),
    }
}

/// Returns false for the folder of an artifact with versions, and for that of a snapshot: their
/// metadata belongs to the artifact, whatever the document says.
fn may_be_group(repository: &Repository, folder: &str) -> Result<bool, Failure> {
    let name = folder.rsplit('/').next().unwrap_or_default();
    let mut versions = repository.keys(records::versions(folder)).page(1);
    Ok(!is_snapshot(name) && versions.next().transpose()?.is_none())
}

fn check_plugin(folder: &str, plugin: &MavenPlugin) -> Result<(), Failure> {
    let MavenPlugin { artifact, prefix, .. } = plugin;
    let fits = !artifact.is_empty()
        && !prefix.is_empty()
        && folder.len() + artifact.len() <= crate::layout::PATH_LIMIT;
    if fits && !artifact.contains('/') && !artifact.contains(char::is_control) {
        Ok(())
    } else {
        Err(bad_metadata("it names a plugin without a valid `artifactId` and `prefix`"))
    }
}

fn bad_metadata(text: &str) -> Failure {
    Failure::new(400, "invalid_metadata", format!("This is not a maven-metadata.xml: {text}"))
}
