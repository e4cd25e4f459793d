//! `DELETE` of a file, a folder, or uploaded metadata. When the last file of a version is deleted,
//! the version disappears from the listing.

use crate::answer::{bad_path, missing, parse};
use crate::hosted::is_folder;
use crate::layout::{
    BadPath, FilePath, METADATA, PREFIXES, PathTarget, VersionFile, join, packages_of_folder,
};
use crate::records::{self, PendingChecksums};
use crate::{busy, index};
use packhouse_sdk::{
    Context, Error, Expectation, Failure, Intent, Outcome, Params, Repository, Request, Response, Step,
    Transaction, VersionId,
};
use std::collections::{BTreeMap, BTreeSet};

/// Number of files that one commit deletes. Each file takes three of the 10,000 changes that a
/// commit may have.
const PAGE: u32 = 1000;

pub(crate) fn plan(request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    let target = parse(request)?;
    let refused = |text: &str| Err(bad_path(BadPath(text.to_owned())));
    match &target {
        PathTarget::Folder(folder) if folder.is_empty() => {
            refused("A repository cannot be deleted here; give the path of a file or folder")
        }
        PathTarget::Prefixes => refused(&format!("{PREFIXES} is generated and cannot be deleted")),
        _ => {
            let packages = match &target {
                PathTarget::Folder(folder) => packages_of_folder(folder),
                target => target.packages(),
            };
            let intent = Intent::delete().subject(target.subject());
            Ok(packages.into_iter().fold(intent, Intent::about_package))
        }
    }
}

pub(crate) fn delete(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let (repository, now) = (cx.target()?, cx.now());
    match parse(request)? {
        PathTarget::Folder(path) => {
            if !folder(repository, &path, now)? {
                return Err(missing(&format!("{path}/")));
            }
        }
        PathTarget::File(path) => file(repository, &path, now)?,
        PathTarget::Metadata(folder) => metadata(repository, &folder, now)?,
        PathTarget::Checksum(of, algorithm) => match *of {
            PathTarget::File(file) => checksum(repository, &file.path, algorithm.name())?,
            of => return Err(generated_checksum(&of.subject())),
        },
        PathTarget::Prefixes => return Err(generated_checksum(PREFIXES)),
    }
    Ok(Response::no_content())
}

fn generated_checksum(subject: &str) -> Failure {
    bad_path(BadPath(format!("Checksums of {subject} are generated and cannot be deleted")))
}

fn file(repository: &Repository, file: &FilePath, now: u64) -> Result<(), Failure> {
    let exists = repository.get(&records::file(&file.path))?.is_some();
    if !exists && repository.get(&records::pending(&file.path))?.is_none() {
        return Err(if is_folder(repository, &file.path)? {
            Failure::not_found(format!("{0} is a folder; to delete it, use {0}/", file.path))
        } else {
            missing(&file.path)
        });
    }
    remove(repository, std::slice::from_ref(file), now)?;
    forget_artifacts(repository, file.item.iter())?;
    Ok(())
}

/// Deletes a checksum that waits for its file. The checksum of a stored file is deleted only
/// together with the file.
fn checksum(repository: &Repository, path: &str, algorithm: &str) -> Result<(), Failure> {
    let key = records::pending(path);
    let removed = repository.update_if_needed(busy, |change| {
        let Some(mut entry) = repository.get_json::<PendingChecksums>(&key)? else {
            return Ok(Step::Done(false));
        };
        if entry.value.sums.remove(algorithm).is_none() {
            return Ok(Step::Done(false));
        }
        let expect = Expectation::Revision(entry.revision);
        if entry.value.sums.is_empty() {
            change.remove(&key, expect);
        } else {
            change.put_json(&key, &entry.value, expect, &[])?;
        }
        Ok(Step::Commit(true))
    })?;
    if removed {
        return Ok(());
    }
    Err(if repository.get(&records::file(path))?.is_some() {
        bad_path(BadPath(format!("A checksum is deleted together with its file; delete {path}")))
    } else {
        missing(&format!("{path}.{algorithm}"))
    })
}

/// Deletes the metadata that clients uploaded for this folder: the document, and the plugins that a
/// group's document named. Metadata that is generated from stored files stays.
fn metadata(repository: &Repository, folder: &str, now: u64) -> Result<(), Failure> {
    if index::metadata(repository, folder)?.is_none() {
        return Err(missing(&join(folder, METADATA)));
    }
    let plugins: Vec<String> = repository.keys(records::plugin(folder, "")).collect::<Result<_, _>>()?;
    for page in plugins.chunks(PAGE as usize) {
        remove_keys(repository, page)?;
    }
    let mut change = repository.begin()?;
    change.remove(&records::metadata(folder), Expectation::Anything);
    change.put(&records::touched(folder), &records::time(now), Expectation::Anything, &[]);
    commit_unconditional(change)?;
    Ok(())
}

/// Removes everything below a folder, a thousand files at a time. Each of these steps is atomic. If
/// a deletion is interrupted, the client can repeat it. Returns false if nothing is stored below
/// the folder.
pub(crate) fn folder(repository: &Repository, folder: &str, now: u64) -> Result<bool, Failure> {
    let mut artifacts = BTreeMap::new();
    let mut after = records::files_in(folder);
    let mut found = false;
    loop {
        let keys = repository.keys(records::files_in(folder)).after(&after).page(PAGE);
        let keys: Vec<String> = keys.take(PAGE as usize).collect::<Result<_, _>>()?;
        let Some(last) = keys.last() else { break };
        after.clone_from(last);
        found = true;
        let files: Vec<FilePath> =
            keys.iter().map(|key| FilePath::stored(key.get(2..).unwrap_or_default())).collect();
        remove(repository, &files, now)?;
        artifacts
            .extend(files.into_iter().filter_map(|file| file.item).map(|item| (item.folder.clone(), item)));
    }
    found |= remove_rest(repository, folder)?;
    forget_artifacts(repository, artifacts.values())?;
    Ok(found)
}

/// Removes these files, and each of their versions that has no other file. A concurrent upload
/// changes the record of its version. The commit of this deletion is then stale and is tried again.
fn remove(repository: &Repository, files: &[FilePath], now: u64) -> Result<(), Failure> {
    let paths: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    let versions: BTreeMap<String, &VersionFile> = files
        .iter()
        .filter_map(|file| file.item.as_ref())
        .map(|item| (records::version(item), item))
        .collect();
    repository.update(busy, |change| {
        for file in files {
            remove_file(change, file);
        }
        for (key, item) in &versions {
            let expect = Expectation::unchanged(repository.get(key)?.as_ref());
            if has_others(repository, item, &paths)? {
                change.put(key, &records::time(now), expect, &[]);
            } else {
                remove_version(change, key, item, expect, now);
            }
        }
        Ok(())
    })?;
    Ok(())
}

fn remove_file(change: &mut Transaction, file: &FilePath) {
    change.remove(&records::file(&file.path), Expectation::Anything);
    change.remove(&records::pending(&file.path), Expectation::Anything);
    if let Some(item) = &file.item {
        change.hide_file(&VersionId::new(item.name(), &item.version), &file.path);
    }
}

fn remove_version(change: &mut Transaction, key: &str, item: &VersionFile, expect: Expectation, now: u64) {
    let folder = item.version_folder();
    match expect {
        // The version has no record: an earlier deletion was interrupted, or an older release
        // without version records stored the file.
        Expectation::Absent => change.require(key, expect),
        _ => change.remove(key, expect),
    };
    change.remove(&records::metadata(&folder), Expectation::Anything);
    change.remove(&records::touched(&folder), Expectation::Anything);
    change.put(&records::touched(&item.folder), &records::time(now), Expectation::Anything, &[]);
}

/// Returns true if the version has files other than `paths`.
fn has_others(repository: &Repository, item: &VersionFile, paths: &BTreeSet<&str>) -> Result<bool, Failure> {
    let folder = item.version_folder();
    for key in repository.keys(records::files_in(&folder)) {
        let key = key?;
        let path = key.get(2..).unwrap_or_default();
        let same = |other: VersionFile| other.version_folder() == folder;
        if !paths.contains(path) && FilePath::stored(path).item.is_some_and(same) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Removes the records that remain for a folder and the folders below it: checksums that wait for
/// their file, and metadata. The caller has already removed the version records with their files.
/// Returns true if a client had uploaded any of the removed records.
fn remove_rest(repository: &Repository, folder: &str) -> Result<bool, Failure> {
    let mut found = false;
    for kind in ["c/", "a/"] {
        let keys = repository.keys(records::below(kind, folder));
        let keys = keys.filter(|key| !key.as_ref().is_ok_and(|key| key.contains("//v/")));
        let keys: Vec<String> = keys.collect::<Result<_, _>>()?;
        found |= keys.iter().any(|key| !key.ends_with("//t"));
        for page in keys.chunks(PAGE as usize) {
            remove_keys(repository, page)?;
        }
    }
    Ok(found)
}

/// Removes the records of artifacts that have no version left: the uploaded metadata, and the
/// plugin's entry in the metadata of its group.
fn forget_artifacts<'a>(
    repository: &Repository,
    items: impl Iterator<Item = &'a VersionFile>,
) -> Result<(), Failure> {
    for item in items {
        let group = item.group.replace('.', "/");
        // The record of the plugin is read before its versions. If a client deploys the plugin
        // meanwhile, the revision changes, so the commit is stale and the record stays.
        let plugin = repository.get(&records::plugin(&group, &item.artifact))?;
        if repository.keys(records::versions(&item.folder)).page(1).next().transpose()?.is_some() {
            continue;
        }
        let mut change = repository.begin()?;
        change.remove(&records::metadata(&item.folder), Expectation::Anything);
        if let Some(plugin) = plugin {
            change.remove(&plugin.key, Expectation::Revision(plugin.revision));
        }
        let _stays_when_stale = change.commit()?;
    }
    Ok(())
}

fn remove_keys(repository: &Repository, keys: &[String]) -> Result<(), Failure> {
    let mut change = repository.begin()?;
    for key in keys {
        change.remove(key, Expectation::Anything);
    }
    commit_unconditional(change)
}

/// Commits a change without expectations, which always applies.
fn commit_unconditional(change: Transaction) -> Result<(), Failure> {
    match change.commit()? {
        Outcome::Applied(_) => Ok(()),
        outcome => {
            Err(Error::Other(format!("a commit without expectations was not applied: {outcome:?}")).into())
        }
    }
}
