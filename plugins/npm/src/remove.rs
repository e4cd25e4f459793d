//! `DELETE`: a version's tarball, or a package. A number that was given once is remembered, so that it is not given again.

use crate::address::Address;
use crate::name::Name;
use crate::records::{self, Package};
use crate::revision::{self, stale};
use crate::version::highest;
use packhouse_sdk::{
    Context, Entry, Error, Expectation, Failure, Intent, Outcome, Params, Repository, Request, Response,
    VersionId,
};
use serde_json::json;

/// Versions that go in one commit: each is six changes of the 10,000 that one may have.
const PAGE: usize = 1500;

pub(crate) fn plan(request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    let address = Address::parse(&request.path)?;
    match &address {
        Address::AtRevision(..) | Address::TarballAtRevision(..) => {
            Ok(Intent::delete().subject(address.subject()).about_package(address.name().as_str()))
        }
        Address::Package(name) => Err(Failure::invalid(format!(
            "To remove {name}, say which revision of it was read: /{name}/-rev/REVISION"
        ))),
        _ => Err(Failure::method_not_allowed("GET, HEAD")),
    }
}

pub(crate) fn delete(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let repository = cx.target()?;
    let address = Address::parse(&request.path)?;
    let name = address.name();
    let package = Package::get(repository, name)?;
    let all = numbers(repository, name)?;
    let (gone, left): (Vec<String>, Vec<String>) = match &address {
        Address::AtRevision(_, revision) => {
            revision::check(name, &package, revision)?;
            (all, Vec::new())
        }
        Address::TarballAtRevision(_, number, revision) => {
            revision::check(name, &package, revision)?;
            all.into_iter().partition(|one| one == number)
        }
        _ => return Err(Failure::internal("a DELETE that the plan refuses")),
    };
    // The version went already when the package was put without it: its tarball with it.
    if !gone.is_empty() || left.is_empty() {
        versions(cx, repository, name, package, &gone, &left)?.ok_or_else(|| stale(name))?;
    }
    Ok(Response::json(&json!({"ok": true}))?)
}

/// The numbers of a package's versions.
pub(crate) fn numbers(repository: &Repository, name: &Name) -> Result<Vec<String>, Error> {
    let prefix = records::versions(name);
    repository
        .keys(&prefix)
        .map(|key| key.map(|key| key.get(prefix.len()..).unwrap_or_default().to_owned()))
        .collect()
}

/// Removes these versions and leaves those; with the last version goes the package. The new revision; none where others have
/// changed the package meanwhile.
pub(crate) fn versions(
    cx: &Context,
    repository: &Repository,
    name: &Name,
    mut package: Entry<Package>,
    gone: &[String],
    left: &[String],
) -> Result<Option<u64>, Failure> {
    retag(&mut package.value, left);
    package.value.modified = cx.now();
    let mut pages: Vec<&[String]> = gone.chunks(PAGE).collect();
    if pages.is_empty() {
        pages.push(&[]);
    }
    let last = pages.len() - 1;
    for (at, page) in pages.into_iter().enumerate() {
        let whole = at == last && left.is_empty();
        match commit(cx, repository, name, &package, page, whole)? {
            Outcome::Applied(revision) => package.revision = revision,
            _ => return Ok(None),
        }
    }
    Ok(Some(package.revision))
}

/// No tag names what is gone; `latest` always names something.
fn retag(package: &mut Package, left: &[String]) {
    package.tags.retain(|_, number| left.contains(number));
    if let Some(latest) = highest(left.iter().map(String::as_str)) {
        package.tags.entry("latest".to_owned()).or_insert_with(|| latest.to_owned());
    }
}

fn commit(
    cx: &Context,
    repository: &Repository,
    name: &Name,
    package: &Entry<Package>,
    page: &[String],
    whole: bool,
) -> Result<Outcome, Failure> {
    let expect = Expectation::Revision(package.revision);
    let mut change = repository.begin()?;
    if whole {
        change
            .remove(&records::package(name), expect)
            .remove(&records::package_readme(name), Expectation::Anything)
    } else {
        // Comes back with the version, should the package be gone by then.
        change.require(&records::package_readme(name), Expectation::Anything);
        change.put_json(&records::package(name), &package.value, expect, &[])?
    };
    for number in page {
        change.remove(&records::version(name, number), Expectation::Anything);
        change.remove(&records::deprecation(name, number), Expectation::Anything);
        change.remove(&records::attestations(name, number), Expectation::Anything);
        change.remove(&records::readme(name, number), Expectation::Anything);
        change.put(
            &records::removed(name, number),
            cx.now().to_string().as_bytes(),
            Expectation::Anything,
            &[],
        );
        change.hide(&VersionId::new(name.as_str(), number));
    }
    Ok(change.commit()?)
}
