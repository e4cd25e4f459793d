//! `DELETE` of a file, or of all that is below a folder.

use crate::path::{self, Target, bad};
use crate::publish::overwrites;
use crate::records::{self, FileRecord};
use crate::{busy, hosted, missing};
use packhouse_sdk::{
    Context, Expectation, Failure, Intent, Params, Repository, Request, Response, Step, Transaction,
};

/// Files that go in one commit: each is three changes of the 10,000 that one may have.
const PAGE: u32 = 1000;

pub(crate) fn plan(request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    let target = Target::parse(&request.path)?;
    if target == Target::Folder(String::new()) {
        return Err(bad("The repository itself is not deleted here: name a file or folder"));
    }
    Ok(Intent::delete().subject(target.subject()))
}

pub(crate) fn delete(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let repository = cx.target()?;
    match Target::parse(&request.path)? {
        Target::File(path) => {
            if !file(repository, &path)? {
                return Err(match hosted::is_folder(repository, &path)? {
                    true => Failure::not_found(format!("{path} is a folder; to delete it, ask for {path}/")),
                    false => missing(&path),
                });
            }
        }
        Target::Folder(path) => {
            if !folder(repository, &path)? {
                return Err(missing(&format!("{path}/")));
            }
        }
    }
    Ok(Response::no_content())
}

/// Removes a file. False where there is none.
pub(crate) fn file(repository: &Repository, path: &str) -> Result<bool, Failure> {
    let overwrite = overwrites(repository)?;
    repository.update_if_needed(busy, |change| {
        let Some(there) = FileRecord::find(repository, path)? else { return Ok(Step::Done(false)) };
        remove(change, path, Expectation::Revision(there.revision), overwrite);
        Ok(Step::Commit(true))
    })
}

/// Everything below a folder, a thousand files at a time: each step is whole, and a deletion that broke off can be asked for again.
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

/// Where files may not be replaced, what is deleted leaves word that it was there.
fn remove(change: &mut Transaction, path: &str, expect: Expectation, overwrite: bool) {
    change.remove(&records::file(path), expect);
    if !overwrite {
        change.put(&records::deleted(path), b"", Expectation::Anything, &[]);
    }
    change.hide_file(&path::id(path), path);
}
