//! `DELETE` of a file, of a folder, or of kept metadata; a version without a file is no longer listed.

use crate::answer::{bad_path, missing, parse};
use crate::hosted::is_folder;
use crate::layout::{BadPath, FilePath, Item, METADATA, PREFIXES, Target, join};
use crate::records::{self, Held};
use crate::{busy, index};
use packhouse_sdk::{
    Context, Error, Expectation, Failure, Intent, Outcome, Params, Repository, Request, Response, Step,
    Transaction, VersionId,
};
use std::collections::{BTreeMap, BTreeSet};

/// Files that go in one commit: each is three changes of the 10,000 that one may have.
const PAGE: u32 = 1000;

pub(crate) fn plan(request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    let target = parse(request)?;
    let refused = |text: &str| Err(bad_path(BadPath(text.to_owned())));
    match &target {
        Target::Folder(folder) if folder.is_empty() => {
            refused("The repository itself is not deleted here: name a file or folder")
        }
        Target::Prefixes => refused(&format!("{PREFIXES} is made from what is stored")),
        _ => Ok(target
            .packages()
            .into_iter()
            .fold(Intent::delete().subject(target.subject()), Intent::about_package)),
    }
}

pub(crate) fn delete(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let (repository, now) = (cx.target()?, cx.now());
    match parse(request)? {
        Target::Folder(path) => {
            if !folder(repository, &path, now)? {
                return Err(missing(&format!("{path}/")));
            }
        }
        Target::File(path) => file(repository, &path, now)?,
        Target::Metadata(folder) => metadata(repository, &folder, now)?,
        Target::Checksum(of, algorithm) => match *of {
            Target::File(file) => checksum(repository, &file.path, algorithm.name())?,
            of => return Err(made(&of.subject())),
        },
        Target::Prefixes => return Err(made(PREFIXES)),
    }
    Ok(Response::no_content())
}

fn made(of: &str) -> Failure {
    bad_path(BadPath(format!("Checksums of {of} are computed, and cannot be deleted")))
}

fn file(repository: &Repository, file: &FilePath, now: u64) -> Result<(), Failure> {
    let there = repository.get(&records::file(&file.path))?.is_some();
    if !there && repository.get(&records::held(&file.path))?.is_none() {
        return Err(if is_folder(repository, &file.path)? {
            Failure::not_found(format!("{0} is a folder; to delete it, ask for {0}/", file.path))
        } else {
            missing(&file.path)
        });
    }
    remove(repository, std::slice::from_ref(file), now)?;
    forget_artifacts(repository, file.item.iter())?;
    Ok(())
}

/// A checksum that is held; one of a file that is there goes with the file.
fn checksum(repository: &Repository, path: &str, algorithm: &str) -> Result<(), Failure> {
    let key = records::held(path);
    let removed = repository.update_if_needed(busy, |change| {
        let Some(mut entry) = repository.get_json::<Held>(&key)? else { return Ok(Step::Done(false)) };
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
        bad_path(BadPath(format!("A checksum goes with its file; delete {path}")))
    } else {
        missing(&format!("{path}.{algorithm}"))
    })
}

/// What clients put goes: the kept bytes, and the plugins that a group named. What the store says itself stays.
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
    applied(change)?;
    Ok(())
}

/// Everything below a folder, a thousand files at a time: each step is whole, and a deletion that broke off can be asked for
/// again. Whether there was anything.
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

/// Removes these files. Their versions go where no file of them is left; should one be put at the same time, its version's
/// record has changed, and the step is taken again.
fn remove(repository: &Repository, files: &[FilePath], now: u64) -> Result<(), Failure> {
    let paths: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    let versions: BTreeMap<String, &Item> = files
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
    change.remove(&records::held(&file.path), Expectation::Anything);
    if let Some(item) = &file.item {
        change.hide_file(&VersionId::new(item.name(), &item.version), &file.path);
    }
}

fn remove_version(change: &mut Transaction, key: &str, item: &Item, expect: Expectation, now: u64) {
    let folder = item.version_folder();
    match expect {
        // It was never there: a deletion that broke off, or a file older than its version's record.
        Expectation::Absent => change.require(key, expect),
        _ => change.remove(key, expect),
    };
    change.remove(&records::metadata(&folder), Expectation::Anything);
    change.remove(&records::touched(&folder), Expectation::Anything);
    change.put(&records::touched(&item.folder), &records::time(now), Expectation::Anything, &[]);
}

/// Whether the version has a file besides these.
fn has_others(repository: &Repository, item: &Item, paths: &BTreeSet<&str>) -> Result<bool, Failure> {
    let folder = item.version_folder();
    for key in repository.keys(records::files_in(&folder)) {
        let key = key?;
        let path = key.get(2..).unwrap_or_default();
        let same = |other: Item| other.version_folder() == folder;
        if !paths.contains(path) && FilePath::stored(path).item.is_some_and(same) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What else was remembered of a folder and of those below it: checksums that were held, metadata. Versions have gone with
/// their files.
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

/// An artifact without a version is nothing: its kept metadata goes, and its prefix in its group's.
fn forget_artifacts<'a>(
    repository: &Repository,
    items: impl Iterator<Item = &'a Item>,
) -> Result<(), Failure> {
    for item in items {
        let group = item.group.replace('.', "/");
        // Read first: a deploy of the plugin meanwhile puts it again, and then it stays.
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
    applied(change)
}

/// Of a change that expects nothing.
fn applied(change: Transaction) -> Result<(), Failure> {
    match change.commit()? {
        Outcome::Applied(_) => Ok(()),
        outcome => Err(Error::Other(format!("a change without expectations ended as {outcome:?}")).into()),
    }
}
