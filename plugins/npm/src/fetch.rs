//! `GET` and `HEAD`: packuments, version documents, tarballs, attestations.

use crate::address::{self, Address};
use crate::merge;
use crate::name::Name;
use crate::packument::{self, Rendering};
use crate::pieces;
use crate::proxy;
use crate::records::{self, Version, missing_version};
use crate::version::clean;
use crate::version_piece::Form;
use packhouse_sdk::{Content, Context, Failure, Intent, Params, Repository, Request, Response};

/// Commands of npm's that read a package before they write it.
const WRITING: [&str; 4] = ["publish", "unpublish", "deprecate", "dist-tag"];

pub(crate) fn plan(request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    let address = Address::parse(&request.path)?;
    let intent = Intent::read().subject(address.subject()).about_package(address.name().as_str());
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
    match Address::parse(&request.path)? {
        Address::Package(name) => package(cx, request, &name),
        Address::Version(name, wanted) => version(cx, request, &name, &wanted),
        Address::Tarball(name, number) => tarball(cx, &name, &number),
        Address::AtRevision(..) | Address::TarballAtRevision(..) => {
            Err(Failure::not_found("A package is not read at a revision: leave out what follows its name"))
        }
    }
}

fn package(cx: &Context, request: &Request, name: &Name) -> Result<Response, Failure> {
    if !asks_to_write(request) {
        return render(cx, request, name, Form::wanted(request.header("accept")));
    }
    // What a change is made from: whole, with the revision that it is checked against, and never from a cache.
    let response = render(cx, request, name, Form::Full)?;
    let headers = response.headers.into_iter().filter(|(name, _)| name != "cache-control").collect();
    Ok(Response { headers, ..response }.header("cache-control", "no-store"))
}

/// The packument, from the repositories that the package is in. Of one hosted repository alone the whole of it is remembered, unless
/// it has so many versions that it is put together of runs of them.
fn render(cx: &Context, request: &Request, name: &Name, form: Form) -> Result<Response, Failure> {
    if let Ok(repository) = cx.target()
        && repository.is_hosted()
    {
        let piece_name = format!("packument\n{form:?}\n{}\n{name}", request.address());
        let made = repository.piece(&piece_name, || {
            if pieces::are_many(repository, name)? {
                return Ok::<_, Failure>(None);
            }
            let mut rendering = Rendering::begin(cx, request, name, form)?;
            merge::each(cx, name, &mut rendering)?;
            Ok(rendering.into_parts()?)
        })?;
        if let Some(piece) = made {
            let modified = piece.note().parse().unwrap_or_default();
            return Ok(packument::response(form, modified, Content::Blob(piece.into_body()?)));
        }
    }
    let mut rendering = Rendering::begin(cx, request, name, form)?;
    merge::each(cx, name, &mut rendering)?;
    Ok(rendering.into_response()?)
}

/// By number or by tag.
fn version(cx: &Context, request: &Request, name: &Name, wanted: &str) -> Result<Response, Failure> {
    let tagged = merge::tags(cx, name)?.remove(wanted);
    let number = tagged.or_else(|| clean(wanted)).unwrap_or_default();
    let missing = || Failure::not_found(format!("version not found: {wanted}"));
    let piece = merge::version(cx, name, &number)?.ok_or_else(missing)?;
    let content = packument::version(cx, request.address(), name, &number, &piece)?;
    Ok(Response::ok().content_type("application/json").revalidate().content(content))
}

/// From the first repository that has the version.
fn tarball(cx: &Context, name: &Name, number: &str) -> Result<Response, Failure> {
    let found = cx.first(|repository| {
        if repository.is_proxy() {
            proxy::tarball(cx, repository, name, number)
        } else {
            stored(repository, name, number)
        }
    })?;
    found.ok_or_else(|| missing_version(name, number))
}

fn stored(repository: &Repository, name: &Name, number: &str) -> Result<Option<Response>, Failure> {
    let Some(version) = Version::find(repository, name, number)? else { return Ok(None) };
    let facts = version.facts;
    let blob = repository.recorded_blob(&facts.sha256)?;
    Ok(Some(Response::blob(blob).immutable().modified(facts.time)))
}

/// `/-/npm/v1/attestations/name@version`.
pub(crate) fn plan_attestations(_request: &Request, params: &Params<'_>) -> Result<Intent, Failure> {
    let (name, number) = attested(params)?;
    Ok(Intent::read().subject(format!("{name}@{number}")).about_package(name.as_str()))
}

fn attested(params: &Params<'_>) -> Result<(Name, String), Failure> {
    let of = params.joined("of");
    let (name, number) = of.rsplit_once('@').unwrap_or((&of, ""));
    let path: Vec<String> = name.split('/').map(str::to_owned).collect();
    Ok((address::name(&path)?.0, number.to_owned()))
}

pub(crate) fn attestations(
    cx: &Context,
    _request: &Request,
    params: &Params<'_>,
) -> Result<Response, Failure> {
    let (name, number) = attested(params)?;
    let content = cx.first(|repository| {
        if repository.is_proxy() {
            return proxy::attestations(cx, repository, &name, &number);
        }
        let key = records::attestations(&name, &number);
        let entry = if key.len() > 1024 { None } else { repository.get(&key)? };
        Ok(entry.map(|entry| Content::Inline(entry.value)))
    })?;
    let content =
        content.ok_or_else(|| Failure::not_found(format!("There are no attestations of {name}@{number}")))?;
    Ok(Response::ok().content_type("application/json").revalidate().content(content))
}
