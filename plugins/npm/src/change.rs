//! Changes of a package that is there: deprecations, maintainers, tags, and versions that are left out. Clients send the whole
//! packument as they read it, altered; what counts is how it differs from what is stored.

use crate::document::{Document, Versions, check_tag, invalid};
use crate::name::Name;
use crate::records::{self, Facts, Package, Version};
use crate::revision::{self, answer, stale};
use crate::{busy, hosted, remove};
use packhouse_sdk::{
    self as sdk, Context, Entry, Expectation, Failure, Outcome, Repository, Response, Transaction,
};
use std::collections::BTreeMap;

/// Changes of versions in one commit: each is a record and what is shown.
const PAGE: usize = 2000;
/// Bytes of what a deprecation says.
const REASON: usize = 4 << 10;

/// `PUT /name` without attachments: `npm deprecate`, and owners as yarn changes them.
pub(crate) fn put(cx: &Context, name: &Name, document: Document) -> Result<Response, Failure> {
    let repository = cx.target()?;
    let package = Package::get(repository, name)?;
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
    name: &Name,
    revision: &str,
    document: Document,
) -> Result<Response, Failure> {
    let repository = cx.target()?;
    let package = Package::get(repository, name)?;
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

/// Puts what differs. Nobody else's change gets lost: where one came in between, this one is refused.
fn apply(
    cx: &Context,
    name: &Name,
    mut package: Entry<Package>,
    document: Document,
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

/// Versions of which something else is said than what is stored.
fn differing(
    repository: &Repository,
    name: &Name,
    versions: Option<Versions>,
) -> Result<Vec<Deprecation>, Failure> {
    let Some(versions) = versions else { return Ok(Vec::new()) };
    let (stored, mut said) = (hosted::deprecations(repository, name)?, versions.deprecations);
    let mut differing = Vec::new();
    for number in remove::numbers(repository, name)? {
        let Some(text) = said.remove(&number) else { continue };
        if text.as_ref() != stored.get(&number) {
            differing.push((number, checked(text)?));
        }
    }
    Ok(differing)
}

fn checked(text: Option<String>) -> Result<Option<String>, Failure> {
    if text.as_ref().is_some_and(|text| text.len() > REASON) {
        Err(invalid(&format!("a deprecation has at most {REASON} bytes")))
    } else {
        Ok(text)
    }
}

/// The tags as the client has them, as far as their versions are there. `latest` always names one.
fn retagged(
    repository: &Repository,
    name: &Name,
    before: &BTreeMap<String, String>,
    said: BTreeMap<String, Option<String>>,
) -> Result<BTreeMap<String, String>, Failure> {
    let mut tags = BTreeMap::new();
    for (tag, number) in said.into_iter().filter_map(|(tag, number)| Some((tag, number?))) {
        if before.get(&tag) != Some(&number) {
            check_tag(&tag)?;
            Version::get(repository, name, &number)?;
        }
        tags.insert(tag, number);
    }
    if let Some(latest) = before.get("latest") {
        tags.entry("latest".to_owned()).or_insert_with(|| latest.clone());
    }
    Ok(tags)
}

/// Adds to a change the package, and what is said of these versions.
fn put_page(
    repository: &Repository,
    change: &mut Transaction,
    name: &Name,
    package: &Entry<Package>,
    page: &[Deprecation],
) -> Result<(), Failure> {
    change.put_json(&records::package(name), &package.value, Expectation::Revision(package.revision), &[])?;
    for (number, text) in page {
        let key = records::deprecation(name, number);
        match text {
            Some(text) => change.put(&key, text.as_bytes(), Expectation::Anything, &[]),
            None => change.remove(&key, Expectation::Anything),
        };
        let facts = Version::get(repository, name, number)?.facts;
        change.show(&shown(name, number, &facts, text.as_deref()));
    }
    Ok(())
}

/// Marks one version, or takes the mark back.
pub(crate) fn deprecate(
    cx: &Context,
    name: &Name,
    number: &str,
    text: Option<String>,
) -> Result<(), Failure> {
    let repository = cx.target()?;
    let page = [(number.to_owned(), checked(text)?)];
    repository.update(busy, |change| {
        let mut package = Package::get(repository, name)?;
        Version::get(repository, name, number)?;
        package.value.modified = cx.now();
        put_page(repository, change, name, &package, &page)
    })?;
    Ok(())
}

/// What people and policies see of a version, without its files.
pub(crate) fn shown(name: &Name, number: &str, facts: &Facts, deprecated: Option<&str>) -> sdk::Version {
    let mut shown = sdk::Version::new(name.as_str(), number).summary(&facts.summary);
    if !facts.keywords.is_empty() {
        shown = shown.property("keywords", &facts.keywords);
    }
    if !facts.license.is_empty() {
        shown = shown.property("license", &facts.license);
    }
    match deprecated {
        Some(reason) => shown.state("deprecated").property("reason", reason),
        None => shown,
    }
}
