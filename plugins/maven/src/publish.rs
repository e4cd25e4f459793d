//! `PUT`: files under Overwrite Protection, checksums that must be right, metadata that is kept.

use crate::answer::{bad_path, parse};
use crate::checksum::Algorithm;
use crate::hosted::{file_sum, record};
use crate::layout::{BadPath, FilePath, Item, Kind, PREFIXES, Target};
use crate::metadata::{self, BadMetadata, Metadata, Plugin};
use crate::records::{self, FileRecord, Held, PluginRecord};
use crate::statements::{self, Part};
use crate::{FILE_LIMIT, busy, licence};
use packhouse_sdk::{
    Blob, Context, Digest, Entry, Expectation, Failure, Intent, Outcome, Params, ReadAt, Redeploy,
    Repository, Request, Response, Settings, Step, Transaction, Version, VersionDocument, VersionId,
};

/// Bytes of a checksum file: a few hundred at most, with a file's name behind the hex.
const CHECKSUM_LIMIT: u64 = 1024;

/// Plugins that a group's metadata may name: each becomes a record, all in one commit.
const PLUGINS: usize = 5000;

pub(crate) fn plan(request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    let target = parse(request)?;
    let intent = target
        .packages()
        .into_iter()
        .fold(Intent::publish().subject(target.subject()), Intent::about_package);
    match &target {
        Target::Folder(_) => Err(bad_path(BadPath("A file's path does not end with a slash".to_owned()))),
        Target::Prefixes => Err(bad_path(BadPath(format!("{PREFIXES} is made from what is stored")))),
        Target::Metadata(_) => Ok(intent.body(metadata::LIMIT)),
        Target::Checksum(of, algorithm) => {
            check_summed(of, *algorithm)?;
            Ok(intent.body(CHECKSUM_LIMIT))
        }
        Target::File(file) => {
            check_coordinates(file)?;
            Ok(intent.body(FILE_LIMIT).digests(&["sha1", "md5"]))
        }
    }
}

fn check_summed(of: &Target, algorithm: Algorithm) -> Result<(), Failure> {
    match of {
        Target::File(file) => check_coordinates(file),
        Target::Metadata(_) => Ok(()),
        _ => {
            let text = format!("There is no {} of {}, only of files", algorithm.name(), of.subject());
            Err(bad_path(BadPath(text)))
        }
    }
}

fn check_coordinates(file: &FilePath) -> Result<(), Failure> {
    let refused = |BadPath(text)| Failure::new(400, "invalid_coordinates", text);
    file.item.as_ref().map_or(Ok(()), Item::check).map_err(refused)
}

/// Refuses before the bytes what is there already. A file that may be put again is let through, unless its size tells.
pub(crate) fn check(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<(), Failure> {
    let Target::File(file) = parse(request)? else { return Ok(()) };
    if file.may_change() {
        return Ok(());
    }
    let repository = cx.target()?;
    let Some(there) = record(repository, &file.path)? else { return Ok(()) };
    let length = request.header("content-length").and_then(|length| length.parse::<u64>().ok());
    let other_size = length.is_some_and(|length| length != there.size);
    if other_size || !same_bytes_pass(repository, &file)? { Err(exists(&file.path)) } else { Ok(()) }
}

pub(crate) fn put(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let target = parse(request)?;
    let body = request.planned_body()?;
    match target {
        Target::File(file) => put_file(cx, &file, &body),
        Target::Metadata(folder) => put_metadata(cx, &folder, &body),
        Target::Checksum(of, algorithm) => match *of {
            Target::File(file) => put_checksum(cx, &file.path, algorithm, &body),
            // It is of the client's own bytes; ours is always of those that are served.
            _ => Ok(Response::created()),
        },
        Target::Folder(_) | Target::Prefixes => Err(Failure::internal("a PUT that the plan refuses")),
    }
}

fn put_file(cx: &Context, file: &FilePath, body: &Blob) -> Result<Response, Failure> {
    let (repository, now) = (cx.target()?, cx.now());
    let licence = file.item.as_ref().map_or(Ok(String::new()), |item| licence::of_pom(item, body))?;
    let fresh = || Ok::<_, Failure>(FileRecord { licence: licence.clone(), ..FileRecord::of(body, now)? });
    let mut stored = fresh()?;
    let (key, held_key) = (records::file(&file.path), records::held(&file.path));
    // Sums that came before their file are rare: they are read when the commit says that there are some.
    let mut held = None;
    // So are signatures that came before it.
    let (part, mut signed) = (Part::of(file), false);
    repository.update_if_needed(busy, |change| {
        match change.previous() {
            Some(Outcome::Stale(stale)) if *stale == key => {
                if let Some(there) = record(repository, &file.path)? {
                    return again(repository, file, &there, &stored).map(Step::Done);
                }
            }
            Some(Outcome::Stale(stale)) if *stale == held_key => {
                held = repository.get_json::<Held>(&held_key)?;
                stored = match &held {
                    Some(held) => with_held(&held.value.clone().current(now), &file.path, fresh()?, body)?,
                    None => fresh()?,
                };
            }
            Some(Outcome::Stale(stale)) if statements::keys(&file.path).any(|key| key == *stale) => {
                signed = true
            }
            Some(Outcome::UnknownBlobs(_)) => {
                return Err(Failure::internal("a body that was kept is not held"));
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
        change_file(change, file, &Stored { record: &stored, digest, licence: &licence }, held.as_ref())?;
        match part {
            Part::Signature(of) => statements::attest_signature(repository, change, file, of, body)?,
            Part::File if signed => statements::attest_file(repository, change, file, &stored.sha256)?,
            Part::File => {
                for key in statements::keys(&file.path) {
                    change.require(&key, Expectation::Absent);
                }
            }
            Part::Neither => {}
        }
        Ok(Step::Commit(Response::created()))
    })
}

/// What is kept of a file.
struct Stored<'a> {
    record: &'a FileRecord,
    digest: Digest,
    /// Of its version.
    licence: &'a str,
}

/// The file, its version and what is shown of it appear together, and what was held for it goes.
fn change_file(
    change: &mut Transaction,
    file: &FilePath,
    stored: &Stored<'_>,
    held: Option<&Entry<Held>>,
) -> Result<(), Failure> {
    let Stored { record: stored, digest, licence } = stored;
    let expect = if file.may_change() { Expectation::Anything } else { Expectation::Absent };
    change.put_json(&records::file(&file.path), stored, expect, std::slice::from_ref(digest))?;
    match held {
        Some(held) => change.remove(&held.key, Expectation::Revision(held.revision)),
        None => change.require(&records::held(&file.path), Expectation::Absent),
    };
    if let Some(item) = &file.item {
        // Put each time, whatever is there: so no deploy waits for another, and a deletion sees that it was too late.
        change.put(&records::version(item), &records::time(stored.time), Expectation::Anything, &[]);
        let shown = shown(item, &file.path, stored);
        change.show(&if licence.is_empty() { shown } else { shown.property("license", *licence) });
        if let Some(document) = bill_of_materials(item, &file.path, stored) {
            change.document(&document);
        }
    }
    Ok(())
}

/// What the file is of the version that it is published with, where its name says that it is a bill of materials: the build plugins of
/// CycloneDX and SPDX attach one so.
fn bill_of_materials(item: &Item, path: &str, stored: &FileRecord) -> Option<VersionDocument> {
    let media_type = VersionDocument::media_type_of(path)?;
    let form = VersionDocument::form_of(media_type)?;
    let id = VersionId::new(item.name(), &item.version);
    let document = VersionDocument::new(id, form, media_type, stored.sha256.clone(), stored.size);
    Some(document.at(path).titled(path.rsplit('/').next().unwrap_or_default()))
}

fn shown(item: &Item, path: &str, stored: &FileRecord) -> Version {
    Version::new(item.name(), &item.version)
        .file(path, stored.sha256.clone(), stored.size)
        .summary(format!("{}:{}", item.name(), item.version))
        .property("group", &item.group)
        .property("artifact", &item.artifact)
}

/// The file is there: the same bytes may pass, others never.
fn again(
    repository: &Repository,
    file: &FilePath,
    there: &FileRecord,
    sent: &FileRecord,
) -> Result<Response, Failure> {
    if there.sha256 == sent.sha256 && same_bytes_pass(repository, file)? {
        Ok(Response::created())
    } else {
        Err(exists(&file.path))
    }
}

/// A build of a snapshot that is sent again is a retry; of a release the repository's setting decides.
fn same_bytes_pass(repository: &Repository, file: &FilePath) -> Result<bool, Failure> {
    match &file.item {
        Some(Item { kind: Kind::Unique(_), .. }) => Ok(true),
        _ => Ok(Settings::of(repository)?.redeploy == Redeploy::Identical),
    }
}

fn exists(path: &str) -> Failure {
    Failure::already_exists(format!(
        "{path} is published already and cannot be replaced; publish a new version"
    ))
}

/// The record of a file whose checksums came before it and say the same.
fn with_held(held: &Held, path: &str, mut stored: FileRecord, body: &Blob) -> Result<FileRecord, Failure> {
    for (algorithm, text) in held.sums() {
        let is = match stored.known(algorithm) {
            Some(hex) => hex.to_owned(),
            None => body.digest(algorithm.name())?.hex().to_owned(),
        };
        match algorithm.read(text) {
            Some(said) if said == is => stored.remember_stated(algorithm, text, &is),
            said => return Err(mismatch(path, algorithm, said.as_deref().unwrap_or(text), &is)),
        };
    }
    Ok(stored)
}

fn mismatch(path: &str, algorithm: Algorithm, said: &str, is: &str) -> Failure {
    let name = algorithm.name();
    let text = format!("{path}.{name} says {said}, but the {name} of the file is {is}; send both again");
    Failure::new(400, "checksum_mismatch", text)
}

/// Of a file that is there, it must be right; else it is held until the file comes. What says the same as the store is served as
/// it was put.
fn put_checksum(cx: &Context, path: &str, algorithm: Algorithm, body: &Blob) -> Result<Response, Failure> {
    let (repository, now) = (cx.target()?, cx.now());
    let none = || {
        let text = format!("{path}.{name} holds no {name} in hex", name = algorithm.name());
        Failure::new(400, "invalid_checksum", text)
    };
    let text = String::from_utf8(body.read_all(CHECKSUM_LIMIT)?).map_err(|_| none())?;
    let said = algorithm.read(&text).ok_or_else(none)?;
    repository.update_if_needed(busy, |change| {
        let Some(there) = repository.get_json::<FileRecord>(&records::file(path))? else {
            hold(repository, change, path, Sum { algorithm, text: &text }, now)?;
            return Ok(Step::Commit(Response::created()));
        };
        let is = file_sum(repository, &there.value, algorithm)?;
        if said != is {
            return Err(mismatch(path, algorithm, &said, &is));
        }
        let changes = remember(change, there, Sum { algorithm, text: &text }, is)?;
        Ok(if changes { Step::Commit(Response::created()) } else { Step::Done(Response::created()) })
    })
}

/// A checksum file: its algorithm, and the text in which it says the checksum.
#[derive(Clone, Copy)]
struct Sum<'a> {
    algorithm: Algorithm,
    text: &'a str,
}

/// The text is kept with the file, and a digest that took a pass over the bytes. False where all of it is kept already.
fn remember(
    change: &mut Transaction,
    there: Entry<FileRecord>,
    sum: Sum<'_>,
    hex: String,
) -> Result<bool, Failure> {
    let mut record = there.value;
    let is_new = record.remember_stated(sum.algorithm, sum.text, &hex);
    let passed = sum.algorithm == Algorithm::Sha512 && record.sha512.is_none();
    if !is_new && !passed {
        return Ok(false);
    }
    if passed {
        record.sha512 = Some(hex);
    }
    let expect = Expectation::Revision(there.revision);
    change.put_json(&there.key, &record, expect, std::slice::from_ref(&record.sha256))?;
    Ok(true)
}

fn hold(
    repository: &Repository,
    change: &mut Transaction,
    path: &str,
    sum: Sum<'_>,
    now: u64,
) -> Result<(), Failure> {
    let key = records::held(path);
    let before = repository.get_json::<Held>(&key)?;
    let expect = Expectation::unchanged(before.as_ref());
    let mut held = before.map(|entry| entry.value.current(now)).unwrap_or_default();
    held.time = now;
    held.sums.insert(sum.algorithm.name().to_owned(), sum.text.to_owned());
    change.put_json(&key, &held, expect, &[])?;
    change.require(&records::file(path), Expectation::Absent);
    Ok(())
}

/// The bytes are kept, to be served while they say the same as the store. The plugins of a group are known from nowhere else:
/// those that it names join those that are known.
fn put_metadata(cx: &Context, folder: &str, body: &Blob) -> Result<Response, Failure> {
    let (repository, now) = (cx.target()?, cx.now());
    let bytes = body.read_all(metadata::LIMIT)?;
    let sent = Metadata::read(&bytes).map_err(|BadMetadata(text)| bad_metadata(&text))?;
    if sent.plugins.len() > PLUGINS {
        return Err(bad_metadata(&format!("it names more than {PLUGINS} plugins")));
    }
    let mut change = repository.begin()?;
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

fn check_plugin(folder: &str, plugin: &Plugin) -> Result<(), Failure> {
    let Plugin { artifact, prefix, .. } = plugin;
    let fits = !artifact.is_empty()
        && !prefix.is_empty()
        && folder.len() + artifact.len() <= crate::layout::PATH_LIMIT;
    if fits && !artifact.contains('/') && !artifact.contains(char::is_control) {
        Ok(())
    } else {
        Err(bad_metadata("it names a plugin without a good `artifactId` and `prefix`"))
    }
}

fn bad_metadata(text: &str) -> Failure {
    Failure::new(400, "invalid_metadata", format!("This is not a maven-metadata.xml: {text}"))
}
