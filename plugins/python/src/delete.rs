//! Deletes files and versions. A version or a project without files is no longer listed. The name
//! of a deleted file stays reserved.

use crate::files::missing;
use crate::index::key_of;
use crate::part::FilePart;
use crate::records::{self, FileRecord, VersionRecord};
use crate::{busy, name};
use packhouse_sdk::{
    Context, Entry, Error, Expectation, Failure, Intent, Params, Repository, Request, Response, Step,
    VersionId,
};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) fn plan(_request: &Request, params: &Params<'_>) -> Result<Intent, Failure> {
    Ok(name::about(Intent::delete().subject(params.segment("file")), params))
}

pub(crate) fn delete(cx: &Context, _request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    let (file, version) = (params.segment("file"), params.segment("version"));
    if FilePart::of(file).1 != FilePart::File {
        return Err(Failure::invalid(
            "Signatures, metadata and provenance are deleted with their file; delete the file itself",
        ));
    }
    let project = name::project(params.segment("project")).ok_or_else(|| missing(file))?;
    let is_this = |filename: &str, record: &FileRecord| filename == file && record.version == version;
    if remove_files(cx.target()?, &project, is_this)? {
        Ok(Response::no_content())
    } else {
        Err(missing(file))
    }
}

/// Removes the files of a project that `is_removed` selects. If a version or the project has no
/// files left, also removes its records. Returns false if `is_removed` selects no file.
pub(crate) fn remove_files(
    repository: &Repository,
    project: &str,
    is_removed: impl Fn(&str, &FileRecord) -> bool,
) -> Result<bool, Failure> {
    repository.update_if_needed(busy, |change| {
        // The project record is read before the files. An upload between the two reads rewrites the
        // project record. The commit below is then stale, and the closure runs again.
        let Some(project_record) = repository.get(&records::project(project))? else {
            return Ok(Step::Done(false));
        };
        let versions = versions_by_key(repository, project)?;
        let all = files_by_name(repository, project)?;
        let (gone, left): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(name, entry)| is_removed(name, &entry.value));
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
            // The project may be removed later. If a user then undoes this deletion, the host also
            // restores the project record, because this change names its key.
            change.require(&project_record.key, Expectation::Anything);
        }
        Ok(Step::Commit(true))
    })
}

/// Reads a project's files, by name.
fn files_by_name(repository: &Repository, project: &str) -> Result<Vec<(String, Entry<FileRecord>)>, Error> {
    let prefix = records::files(project);
    let entries = repository.scan(&prefix).map(|entry| {
        let entry = entry?.json::<FileRecord>()?;
        Ok((entry.key.get(prefix.len()..).unwrap_or_default().to_owned(), entry))
    });
    entries.collect()
}

/// Reads a project's versions, by key.
fn versions_by_key(
    repository: &Repository,
    project: &str,
) -> Result<BTreeMap<String, Entry<VersionRecord>>, Error> {
    let prefix = records::versions(project);
    let entries = repository.scan(&prefix).map(|entry| {
        let entry = entry?.json::<VersionRecord>()?;
        Ok((entry.key.get(prefix.len()..).unwrap_or_default().to_owned(), entry))
    });
    entries.collect()
}
