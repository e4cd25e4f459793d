//! `DELETE` of a file, or of everything below a folder.

use crate::path::{self, PathTarget, bad};
use crate::publish::overwrites;
use crate::records::{self, FileRecord};
use crate::{busy, hosted, missing};
use packhouse_sdk::{
    Context, Expectation, Failure, Intent, Params, Repository, Request, Response, Step, Transaction,
};

/// Maximum number of files that one commit deletes. Each file takes up to three of the 10,000
/// changes that a commit may have.
const PAGE: u32 = 1000;

pub(crate) fn plan(request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    let target = PathTarget::parse(&request.path)?;
    if target == PathTarget::Folder(String::new()) {
        return Err(bad("A repository cannot be deleted here; give the path of a file or folder"));
    }
    let intent = Intent::delete().subject(target.subject());
    Ok(match &target {
        PathTarget::File(file) => intent.about_package(path::package(path::split(file).0)),
        // The folder may contain further folders, each of which is a package.
        PathTarget::Folder(_) => intent,
    })
}

pub(crate) fn delete(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let repository = cx.target()?;
    match PathTarget::parse(&request.path)? {
        PathTarget::File(path) => {
            if !file(repository, &path)? {
                return Err(match hosted::is_folder(repository, &path)? {
                    true => Failure::not_found(format!("{path} is a folder; to delete it, use {path}/")),
                    false => missing(&path),
                });
            }
        }
        PathTarget::Folder(path) => {
            if !folder(repository, &path)? {
                return Err(missing(&format!("{path}/")));
            }
        }
    }
    Ok(Response::no_content())
}

/// Removes a file. Returns false if there is no such file.
pub(crate) fn file(repository: &Repository, path: &str) -> Result<bool, Failure> {
    let overwrite = overwrites(repository)?;
    repository.update_if_needed(busy, |change| {
        let Some(existing) = FileRecord::find(repository, path)? else { return Ok(Step::Done(false)) };
        remove(change, path, Expectation::Revision(existing.revision), overwrite);
        Ok(Step::Commit(true))
    })
}

/// Removes everything below a folder, a thousand files at a time. Each commit is atomic. If a
/// deletion is interrupted, the client can repeat it. Returns false if nothing is stored below the
/// folder.
fn folder(repository: &Repository, folder: &str) -> Result<bool, Failure> {
    let (overwrite, prefix) = (overwrites(repository)?, records::files_in(folder));
    let mut found = false;
    loop {
        let keys = repository.keys(&prefix).page(PAGE).take(PAGE as usize);
        let keys: Vec<String> = keys.collect::<Result<_, _>>()?;
        if keys.is_empty() {
            return Ok(found);
        }
        found = true;
        repository.update(busy, |change| {
            for key in &keys {
                remove(change, key.get(2..).unwrap_or_default(), Expectation::Anything, overwrite);
            }
            Ok(())
        })?;
    }
}

/// Adds the removal of a file to a commit. If `overwrite` is false, also records the deletion:
/// `put` then refuses uploads to this path, unless the setting `republish_deleted` is true.
fn remove(change: &mut Transaction, path: &str, expect: Expectation, overwrite: bool) {
    change.remove(&records::file(path), expect);
    if !overwrite {
        change.put(&records::deleted(path), b"", Expectation::Anything, &[]);
    }
    change.hide_file(&path::id(path), path);
}
