//! Deleting files and versions: what is left without a file is no longer listed. A file's name stays used.

use crate::files::missing;
use crate::index::key_of;
use crate::part::Part;
use crate::records::{self, FileRecord, VersionRecord};
use crate::{busy, name};
use packhouse_sdk::{
    Context, Entry, Error, Expectation, Failure, Intent, Params, Repository, Request, Response, Step,
    VersionId,
};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) fn plan(_request: &Request, params: &Params<'_>) -> Result<Intent, Failure> {
    Ok(Intent::delete().subject(params.segment("file")))
}

pub(crate) fn delete(cx: &Context, _request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    let (file, version) = (params.segment("file"), params.segment("version"));
    if Part::of(file).1 != Part::File {
        return Err(Failure::invalid("What goes with a file is deleted with it: name the file itself"));
    }
    let project = name::project(params.segment("project")).ok_or_else(|| missing(file))?;
    let this = |filename: &str, record: &FileRecord| filename == file && record.version == version;
    if files(cx.target()?, &project, this)? { Ok(Response::no_content()) } else { Err(missing(file)) }
}

/// Removes those of a project's files that `goes` names, with all that is left empty. Whether there were any.
pub(crate) fn files(
    repository: &Repository,
    project: &str,
    goes: impl Fn(&str, &FileRecord) -> bool,
) -> Result<bool, Failure> {
    repository.update_if_needed(busy, |change| {
        // Read before the files are: an upload in between puts them anew, and then this is taken again.
        let Some(project_record) = repository.get(&records::project(project))? else {
            return Ok(Step::Done(false));
        };
        let versions = versions(repository, project)?;
        let all = all(repository, project)?;
        let (gone, left): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(name, entry)| goes(name, &entry.value));
        if gone.is_empty() {
            return Ok(Step::Done(false));
        }
        let left: BTreeSet<String> = left.iter().map(|(_, entry)| key_of(&entry.value.version)).collect();
        for (filename, entry) in &gone {
            let (version, key) = (&entry.value.version, key_of(&entry.value.version));
            change.remove(&entry.key, Expectation::Revision(entry.revision));
            let path = format!("packages/{project}/{version}/{filename}");
            let Some(record) = versions.get(&key) else { continue };
            change.hide_file(&VersionId::new(project, &record.value.version), &path);
            if !left.contains(&key) {
                change.remove(&record.key, Expectation::Revision(record.revision));
                change.remove(&records::yanked(project, &key), Expectation::Anything);
            }
        }
        if left.is_empty() {
            change.remove(&project_record.key, Expectation::Revision(project_record.revision));
        } else {
            // Comes back with the version, should the project be gone by then.
            change.require(&project_record.key, Expectation::Anything);
        }
        Ok(Step::Commit(true))
    })
}

/// A project's files by name.
fn all(repository: &Repository, project: &str) -> Result<Vec<(String, Entry<FileRecord>)>, Error> {
    let prefix = records::files(project);
    let entries = repository.scan(&prefix).map(|entry| {
        let entry = entry?.json::<FileRecord>()?;
        Ok((entry.key.get(prefix.len()..).unwrap_or_default().to_owned(), entry))
    });
    entries.collect()
}

/// A project's versions by their keys.
fn versions(repository: &Repository, project: &str) -> Result<BTreeMap<String, Entry<VersionRecord>>, Error> {
    let prefix = records::versions(project);
    let entries = repository.scan(&prefix).map(|entry| {
        let entry = entry?.json::<VersionRecord>()?;
        Ok((entry.key.get(prefix.len()..).unwrap_or_default().to_owned(), entry))
    });
    entries.collect()
}
