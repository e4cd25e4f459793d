//! `GET` and `HEAD`: packuments, version documents, tarballs, attestations.

use crate::address::{self, Address};
use crate::name::Name;
use crate::packument::{self, Form};
use crate::records::{self, Package, Version};
use crate::version::clean;
use packhouse_sdk::{Content, Context, Failure, Intent, Params, Repository, Request, Response};

/// Commands of npm's that read a package before they write it.
const WRITING: [&str; 4] = ["publish", "unpublish", "deprecate", "dist-tag"];

pub(crate) fn plan(request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    let address = Address::parse(&request.path)?;
    let intent = Intent::read().subject(address.subject());
    Ok(if matches!(address, Address::Package(_)) && is_part_of_publish(request) {
        intent.for_publish()
    } else {
        intent
    })
}

/// Whether a client reads in order to write, which is within a write credential's rights.
pub(crate) fn is_part_of_publish(request: &Request) -> bool {
    let writes = request.header("npm-command").is_some_and(|command| WRITING.contains(&command));
    writes || asks_to_write(request)
}

fn asks_to_write(request: &Request) -> bool {
    request.query("write") == Some("true")
}

pub(crate) fn get(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let repository = cx.target()?;
    match Address::parse(&request.path)? {
        Address::Package(name) => package(cx, repository, request, &name),
        Address::Version(name, wanted) => version(cx, repository, request, &name, &wanted),
        Address::Tarball(name, number) => tarball(repository, &name, &number),
        Address::AtRevision(..) | Address::TarballAtRevision(..) => {
            Err(Failure::not_found("A package is not read at a revision: leave out what follows its name"))
        }
    }
}

fn package(
    cx: &Context,
    repository: &Repository,
    request: &Request,
    name: &Name,
) -> Result<Response, Failure> {
    let package = Package::get(repository, name)?;
    if !asks_to_write(request) {
        let form = Form::wanted(request.header("accept"));
        return Ok(packument::render(cx, repository, &request.address, name, &package, form)?);
    }
    // What a change is made from: whole, with the revision that it is checked against, and never from a cache.
    let response = packument::render(cx, repository, &request.address, name, &package, Form::Full)?;
    let headers = response.headers.into_iter().filter(|(name, _)| name != "cache-control").collect();
    Ok(Response { headers, ..response }.header("cache-control", "no-store"))
}

/// By number or by tag.
fn version(
    cx: &Context,
    repository: &Repository,
    request: &Request,
    name: &Name,
    wanted: &str,
) -> Result<Response, Failure> {
    let package = Package::get(repository, name)?;
    let number = package.value.tags.get(wanted).cloned().or_else(|| clean(wanted)).unwrap_or_default();
    let missing = || Failure::not_found(format!("version not found: {wanted}"));
    let version = Version::find(repository, name, &number)?.ok_or_else(missing)?;
    let deprecated = records::deprecated(repository, name, &number)?;
    let content = packument::version(cx, &request.address, name, &number, &version, deprecated.as_deref())?;
    Ok(Response::ok().content_type("application/json").revalidate().content(content))
}

fn tarball(repository: &Repository, name: &Name, number: &str) -> Result<Response, Failure> {
    let facts = Version::get(repository, name, number)?.facts;
    let blob = repository.blob(&facts.sha256)?;
    let blob =
        blob.ok_or_else(|| Failure::internal(format!("a record names {}, which is not held", facts.sha256)))?;
    Ok(Response::blob(blob).immutable().modified(facts.time))
}

/// `/-/npm/v1/attestations/name@version`.
pub(crate) fn attestations(
    cx: &Context,
    _request: &Request,
    params: &Params<'_>,
) -> Result<Response, Failure> {
    let of = params.joined("of");
    let (name, number) = of.rsplit_once('@').unwrap_or((&of, ""));
    let path: Vec<String> = name.split('/').map(str::to_owned).collect();
    let (name, _) = address::name(&path)?;
    let key = records::attestations(&name, number);
    let missing = || Failure::not_found(format!("There are no attestations of {name}@{number}"));
    let entry = cx.target()?.get(key.get(..1024).unwrap_or(&key))?.ok_or_else(missing)?;
    Ok(Response::ok().content_type("application/json").revalidate().content(Content::Inline(entry.value)))
}
