//! `DELETE` of a version's tarball, or of a package. The plugin records the numbers of removed
//! versions, so that clients cannot publish them again.

use crate::address::PackageAddress;
use crate::name::PackageName;
use crate::records::{self, PackageRecord};
use crate::revision::{self, stale};
use crate::version::highest;
use packhouse_sdk::{
    Context, Entry, Error, Expectation, Failure, Intent, Outcome, Params, Repository, Request, Response,
    VersionId,
};
use serde_json::json;

/// Maximum number of versions that one commit removes. Each version takes six of the 10,000 changes
/// that a commit may have.
const PAGE: usize = 1500;

pub(crate) fn plan(request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    let address = PackageAddress::parse(&request.path)?;
    match &address {
        PackageAddress::AtRevision(..) | PackageAddress::TarballAtRevision(..) => {
            Ok(Intent::delete().subject(address.subject()).about_package(address.name().as_str()))
        }
        PackageAddress::Package(name) => Err(Failure::invalid(format!(
            "To remove {name}, add the revision that was read: /{name}/-rev/REVISION"
        ))),
        _ => Err(Failure::method_not_allowed("GET, HEAD")),
    }
}

pub(crate) fn delete(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let repository = cx.target()?;
    let address = PackageAddress::parse(&request.path)?;
    let name = address.name();
    let package = PackageRecord::get(repository, name)?;
    let all = numbers(repository, name)?;
    let (gone, left): (Vec<String>, Vec<String>) = match &address {
        PackageAddress::AtRevision(_, revision) => {
            revision::check(name, &package, revision)?;
            (all, Vec::new())
        }
        PackageAddress::TarballAtRevision(_, number, revision) => {
            revision::check(name, &package, revision)?;
            all.into_iter().partition(|one| one == number)
        }
        _ => return Err(Failure::internal("a DELETE that the plan refuses")),
    };
    // npm removes a version in two requests. The first one sends the package without the version,
    // which removes the version and its tarball. The second one deletes the tarball, which is gone
    // by then.
    if !gone.is_empty() || left.is_empty() {
        versions(cx, repository, name, package, &gone, &left)?.ok_or_else(|| stale(name))?;
    }
    Ok(Response::json(&json!({"ok": true}))?)
}

/// Returns the numbers of a package's versions.
pub(crate) fn numbers(repository: &Repository, name: &PackageName) -> Result<Vec<String>, Error> {
    let prefix = records::versions(name);
    repository
        .keys(&prefix)
        .map(|key| key.map(|key| key.get(prefix.len()..).unwrap_or_default().to_owned()))
        .collect()
}

/// Removes the versions in `gone`; `left` has the remaining versions. Removes the package too if no
/// version remains. Returns the new revision, or `None` if another request changed the package in
/// the meantime.
pub(crate) fn versions(
    cx: &Context,
    repository: &Repository,
    name: &PackageName,
    mut package: Entry<PackageRecord>,
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

/// Removes the tags of removed versions. If `latest` is removed too, it moves to the highest
/// remaining version.
fn retag(package: &mut PackageRecord, left: &[String]) {
    package.tags.retain(|_, number| left.contains(number));
    if let Some(latest) = highest(left.iter().map(String::as_str)) {
        package.tags.entry("latest".to_owned()).or_insert_with(|| latest.to_owned());
    }
}

fn commit(
    cx: &Context,
    repository: &Repository,
    name: &PackageName,
    package: &Entry<PackageRecord>,
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
        // This commit does not remove the package's readme. It names the readme so that the trash
        // stores a copy with the removed versions. The host then restores the readme with such a
        // version, even if the package was removed in the meantime.
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
