//! Changes of an existing package: deprecations, maintainers, tags, and removed versions. Clients
//! read the whole packument, alter it and send it back. The plugin commits the difference to the
//! stored package.

use crate::document::{DocumentVersions, RequestDocument, check_tag, invalid};
use crate::name::PackageName;
use crate::records::{self, PackageRecord, VersionMetadata, VersionRecord};
use crate::revision::{self, answer, stale};
use crate::{busy, hosted, remove};
use packhouse_sdk::{
    self as sdk, Context, Entry, Expectation, Failure, Outcome, Repository, Response, Transaction,
};
use std::collections::BTreeMap;

/// Maximum number of versions that one commit changes. Each version takes two of the 10,000 changes
/// that a commit may have: its record and its published version.
const PAGE: usize = 2000;
/// Maximum number of bytes of a deprecation message.
const REASON: usize = 4 << 10;

/// `PUT /name` without attachments: `npm deprecate`, and yarn's changes of owners.
pub(crate) fn put(cx: &Context, name: &PackageName, document: RequestDocument) -> Result<Response, Failure> {
    let repository = cx.target()?;
    let package = PackageRecord::get(repository, name)?;
    if let Some(revision) = &document.revision {
        revision::check(name, &package, revision)?;
    }
    if document.versions.is_none() && document.maintainers.is_none() && document.tags.is_none() {
        return Err(invalid("it changes nothing that can be changed here"));
    }
    apply(cx, name, package, document)
}

/// `PUT /name/-rev/REVISION`: `npm unpublish` of one version, and `npm owner`.
pub(crate) fn at_revision(
    cx: &Context,
    name: &PackageName,
    revision: &str,
    document: RequestDocument,
) -> Result<Response, Failure> {
    let repository = cx.target()?;
    let package = PackageRecord::get(repository, name)?;
    revision::check(name, &package, revision)?;
    let Some(versions) = &document.versions else {
        return if document.maintainers.is_some() || document.tags.is_some() {
            apply(cx, name, package, document)
        } else {
            Err(invalid("it changes nothing that can be changed here"))
        };
    };
    let stored = remove::numbers(repository, name)?;
    let (left, gone): (Vec<_>, Vec<_>) =
        stored.into_iter().partition(|number| versions.deprecations.contains_key(number));
    if gone.is_empty() {
        return apply(cx, name, package, document);
    }
    let mut package = package;
    if let Some(tags) = document.tags {
        package.value.tags.extend(tags.0.into_iter().filter_map(|(tag, number)| Some((tag, number?))));
    }
    match remove::versions(cx, repository, name, package, &gone, &left)? {
        Some(revision) => answer(name, revision),
        None => Err(stale(name)),
    }
}

/// Commits the differences to the stored package. If another request changed the package in the
/// meantime, refuses this change, so that no change is lost.
fn apply(
    cx: &Context,
    name: &PackageName,
    mut package: Entry<PackageRecord>,
    document: RequestDocument,
) -> Result<Response, Failure> {
    let repository = cx.target()?;
    let differing = differing(repository, name, document.versions)?;
    let before = package.value.clone();
    if let Some(maintainers) = document.maintainers.filter(|all| !all.is_empty()) {
        package.value.maintainers = maintainers;
    }
    if let Some(tags) = document.tags.filter(|_| document.revision.is_some()) {
        package.value.tags = retagged(repository, name, &package.value.tags, tags.0)?;
    }
    if differing.is_empty() && package.value == before {
        return answer(name, package.revision);
    }
    package.value.modified = cx.now();
    let pages: Vec<_> = if differing.is_empty() { vec![&[][..]] } else { differing.chunks(PAGE).collect() };
    for page in pages {
        let mut change = repository.begin()?;
        put_page(repository, &mut change, name, &package, page)?;
        package.revision = match change.commit()? {
            Outcome::Applied(revision) => revision,
            _ => return Err(stale(name)),
        };
    }
    answer(name, package.revision)
}

type Deprecation = (String, Option<String>);

/// Returns the versions whose deprecation differs from the stored one, each with the new message.
fn differing(
    repository: &Repository,
    name: &PackageName,
    versions: Option<DocumentVersions>,
) -> Result<Vec<Deprecation>, Failure> {
    let Some(versions) = versions else { return Ok(Vec::new()) };
    let (stored, mut sent) = (hosted::deprecations(repository, name)?, versions.deprecations);
    let mut differing = Vec::new();
    for number in remove::numbers(repository, name)? {
        let Some(text) = sent.remove(&number) else { continue };
        if text.as_ref() != stored.get(&number) {
            differing.push((number, checked(text)?));
        }
    }
    Ok(differing)
}

fn checked(text: Option<String>) -> Result<Option<String>, Failure> {
    if text.as_ref().is_some_and(|text| text.len() > REASON) {
        Err(invalid(&format!("a deprecation message must have at most {REASON} bytes")))
    } else {
        Ok(text)
    }
}

/// Returns the tags that the client sent. If the client did not send `latest`, adds the stored
/// `latest`. A new or moved tag must name an existing version.
fn retagged(
    repository: &Repository,
    name: &PackageName,
    before: &BTreeMap<String, String>,
    sent: BTreeMap<String, Option<String>>,
) -> Result<BTreeMap<String, String>, Failure> {
    let mut tags = BTreeMap::new();
    for (tag, number) in sent.into_iter().filter_map(|(tag, number)| Some((tag, number?))) {
        if before.get(&tag) != Some(&number) {
            check_tag(&tag)?;
            VersionRecord::get(repository, name, &number)?;
        }
        tags.insert(tag, number);
    }
    if let Some(latest) = before.get("latest") {
        tags.entry("latest".to_owned()).or_insert_with(|| latest.clone());
    }
    Ok(tags)
}

/// Adds the package and the deprecations of these versions to a commit.
fn put_page(
    repository: &Repository,
    change: &mut Transaction,
    name: &PackageName,
    package: &Entry<PackageRecord>,
    page: &[Deprecation],
) -> Result<(), Failure> {
    change.put_json(&records::package(name), &package.value, Expectation::Revision(package.revision), &[])?;
    for (number, text) in page {
        let key = records::deprecation(name, number);
        match text {
            Some(text) => change.put(&key, text.as_bytes(), Expectation::Anything, &[]),
            None => change.remove(&key, Expectation::Anything),
        };
        let facts = VersionRecord::get(repository, name, number)?.facts;
        change.show(&published(name, number, &facts, text.as_deref()));
    }
    Ok(())
}

/// Marks one version as deprecated, or removes the mark if `text` is `None`.
pub(crate) fn deprecate(
    cx: &Context,
    name: &PackageName,
    number: &str,
    text: Option<String>,
) -> Result<(), Failure> {
    let repository = cx.target()?;
    let page = [(number.to_owned(), checked(text)?)];
    repository.update(busy, |change| {
        let mut package = PackageRecord::get(repository, name)?;
        VersionRecord::get(repository, name, number)?;
        package.value.modified = cx.now();
        put_page(repository, change, name, &package, &page)
    })?;
    Ok(())
}

/// Returns the version that browsing, search and policies use, without its files.
pub(crate) fn published(
    name: &PackageName,
    number: &str,
    facts: &VersionMetadata,
    deprecated: Option<&str>,
) -> sdk::Version {
    let mut version = sdk::Version::new(name.as_str(), number).summary(&facts.summary);
    if !facts.keywords.is_empty() {
        version = version.property("keywords", &facts.keywords);
    }
    if !facts.license.is_empty() {
        version = version.property("license", &facts.license);
    }
    match deprecated {
        Some(reason) => version.state("deprecated").property("reason", reason),
        None => version,
    }
}
