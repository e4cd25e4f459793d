//! Checks of a commit before it joins a batch: a commit that the database would reject must not
//! make its whole batch fail.

use std::collections::HashMap;

use crate::attestations::statement::{MAX_KIND_BYTES, MAX_STATEMENT_BYTES, SignedStatement};
use crate::cached_answers::AnswerChange;
use crate::catalog::{CatalogChange, Version};
use crate::documents::document::{MAX_FORM_BYTES, VersionDocument};
use crate::error::StoreError;
use crate::records::{Change, Commit, MAX_CHANGES, MAX_COMMIT_BYTES, MAX_KEY_BYTES, MAX_VALUE_BYTES};

/// Maximum length of name, version and path of a file together, in bytes. Together they form one
/// key of an index, whose size the database limits.
const MAX_CATALOG_KEY_BYTES: usize = 2500;

/// Checks a commit and reduces it to the last change of each key. `Invalid` if it exceeds a limit.
pub(crate) fn checked(commit: Commit) -> Result<Commit, StoreError> {
    for change in &commit.changes {
        check_change(change)?;
    }
    for change in &commit.catalog {
        check_catalog(change)?;
    }
    commit.answers.iter().try_for_each(check_answer)?;
    let mut commit = commit;
    commit.changes = last_of_each_key(commit.changes);
    if commit.changes.len() + commit.catalog.len() > MAX_CHANGES {
        return Err(StoreError::Invalid(format!("a commit may have at most {MAX_CHANGES} changes")));
    }
    if bytes(&commit) > MAX_COMMIT_BYTES {
        return Err(StoreError::Invalid(format!(
            "a commit may have at most {MAX_COMMIT_BYTES} bytes of values"
        )));
    }
    Ok(commit)
}

/// Total bytes of the values.
pub(super) fn bytes(commit: &Commit) -> usize {
    let value = |change: &Change| match change {
        Change::Put { value, .. } => value.len(),
        Change::Remove { .. } | Change::Require { .. } => 0,
    };
    commit.changes.iter().map(value).sum()
}

fn last_of_each_key(changes: Vec<Change>) -> Vec<Change> {
    let last: HashMap<String, usize> =
        changes.iter().enumerate().map(|(index, change)| (change.key().to_owned(), index)).collect();
    if last.len() == changes.len() {
        return changes;
    }
    let is_last = |(index, change): &(usize, Change)| last.get(change.key()) == Some(index);
    changes.into_iter().enumerate().filter(is_last).map(|(_, change)| change).collect()
}

fn check_change(change: &Change) -> Result<(), StoreError> {
    let key = change.key();
    if key.is_empty() || key.len() > MAX_KEY_BYTES || key.contains('\0') {
        return Err(StoreError::Invalid(format!("a key must have 1 to {MAX_KEY_BYTES} bytes without NUL")));
    }
    match change {
        Change::Put { value, .. } if value.len() > MAX_VALUE_BYTES => Err(StoreError::Invalid(format!(
            "a value may have at most {MAX_VALUE_BYTES} bytes: store larger data as a blob"
        ))),
        _ => Ok(()),
    }
}

fn check_answer(change: &AnswerChange) -> Result<(), StoreError> {
    match change {
        AnswerChange::Put(answer) if answer.target.contains('\0') || answer.address.contains('\0') => {
            Err(StoreError::Invalid("an upstream's address must not contain NUL".to_owned()))
        }
        AnswerChange::Put(_) | AnswerChange::Remove(_) => Ok(()),
    }
}

fn check_catalog(change: &CatalogChange) -> Result<(), StoreError> {
    match change {
        CatalogChange::Show(version) => check_version(version),
        CatalogChange::ShowFile(file) => check_names(&file.name, &file.version, &file.path),
        CatalogChange::Attest(statement) => check_statement(statement),
        CatalogChange::Document(document) => check_document(document),
        CatalogChange::Hide { name, version } => check_names(name, version, ""),
        CatalogChange::HideFile { name, version, path } => check_names(name, version, path),
    }
}

fn check_statement(one: &SignedStatement) -> Result<(), StoreError> {
    check_names(&one.name, &one.version, &one.path)?;
    check_names(&one.name, &one.version, &one.source)?;
    if one.kind.is_empty() || one.kind.len() > MAX_KIND_BYTES || one.kind.contains('\0') {
        return Err(StoreError::Invalid(format!(
            "the kind of a statement must have 1 to {MAX_KIND_BYTES} bytes without NUL"
        )));
    }
    if one.bundle.len() > MAX_STATEMENT_BYTES {
        return Err(StoreError::Invalid(format!("a statement may have at most {MAX_STATEMENT_BYTES} bytes")));
    }
    Ok(())
}

fn check_document(one: &VersionDocument) -> Result<(), StoreError> {
    check_names(&one.name, &one.version, &[one.path.as_str(), &one.source, &one.title].concat())?;
    for text in [&one.form, &one.media_type] {
        if text.is_empty() || text.len() > MAX_FORM_BYTES || text.contains('\0') {
            let limit = format!(
                "the form and the media type of a document must have 1 to {MAX_FORM_BYTES} bytes without NUL"
            );
            return Err(StoreError::Invalid(limit));
        }
    }
    Ok(())
}

fn check_version(version: &Version) -> Result<(), StoreError> {
    check_names(&version.name, &version.version, "")?;
    for file in &version.files {
        check_names(&version.name, &version.version, &file.path)?;
    }
    let properties = version.properties.iter().flat_map(|(name, value)| [name, value]);
    if properties.chain([&version.summary, &version.state]).any(|text| text.contains('\0')) {
        return Err(StoreError::Invalid("the listed fields of a version must not contain NUL".to_owned()));
    }
    Ok(())
}

fn check_names(name: &str, version: &str, path: &str) -> Result<(), StoreError> {
    let long = name.len() + version.len() + path.len() > MAX_CATALOG_KEY_BYTES;
    if long || name.is_empty() || [name, version, path].iter().any(|text| text.contains('\0')) {
        let limit = format!(
            "name, version and path together may have at most {MAX_CATALOG_KEY_BYTES} bytes without NUL"
        );
        return Err(StoreError::Invalid(limit));
    }
    Ok(())
}
