//! `GET` and `HEAD`: packuments, version documents, tarballs, attestations.

use crate::address::{self, PackageAddress};
use crate::merge;
use crate::name::PackageName;
use crate::packument::{self, Rendering};
use crate::pieces;
use crate::proxy;
use crate::records::{self, VersionRecord, missing_version};
use crate::version::clean;
use crate::version_content::PackumentForm;
use packhouse_sdk::{Content, Context, Failure, Intent, Params, Repository, Request, Response};

/// npm commands that read a package before they change it.
const WRITING: [&str; 4] = ["publish", "unpublish", "deprecate", "dist-tag"];

pub(crate) fn plan(request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    let address = PackageAddress::parse(&request.path)?;
    let intent = Intent::read().subject(address.subject()).about_package(address.name().as_str());
    Ok(if matches!(address, PackageAddress::Package(_)) && is_part_of_publish(request) {
        intent.for_publish()
    } else {
        intent
    })
}

/// Returns true if a client reads in order to write. A write credential permits such reads.
pub(crate) fn is_part_of_publish(request: &Request) -> bool {
    let writes = request.header("npm-command").is_some_and(|command| WRITING.contains(&command));
    writes || asks_to_write(request)
}

fn asks_to_write(request: &Request) -> bool {
    request.query("write") == Some("true")
}

pub(crate) fn get(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    match PackageAddress::parse(&request.path)? {
        PackageAddress::Package(name) => package(cx, request, &name),
        PackageAddress::Version(name, requested) => version(cx, request, &name, &requested),
        PackageAddress::Tarball(name, number) => tarball(cx, &name, &number),
        PackageAddress::AtRevision(..) | PackageAddress::TarballAtRevision(..) => Err(Failure::not_found(
            "A package cannot be read at a revision; leave out the path after its name",
        )),
    }
}

fn package(cx: &Context, request: &Request, name: &PackageName) -> Result<Response, Failure> {
    if !asks_to_write(request) {
        return render(cx, request, name, PackumentForm::requested(request.header("accept")));
    }
    // The client alters this packument and sends it back. The packument therefore is complete, has
    // the revision against which the server checks the change, and is never cached.
    let response = render(cx, request, name, PackumentForm::Full)?;
    let headers = response.headers.into_iter().filter(|(name, _)| name != "cache-control").collect();
    Ok(Response { headers, ..response }.header("cache-control", "no-store"))
}

/// Renders the packument from the repositories that have the package. The host caches the packument
/// of a hosted repository as one piece, that is, a text with a name. If the package has many
/// versions, the host instead caches several pieces, each with some neighbouring versions. The
/// module `pieces` renders these.
fn render(
    cx: &Context,
    request: &Request,
    name: &PackageName,
    form: PackumentForm,
) -> Result<Response, Failure> {
    if let Ok(repository) = cx.target()
        && repository.is_hosted()
    {
        let piece_name = format!("packument\n{form:?}\n{}\n{name}", request.address());
        let whole = repository.piece(&piece_name, || {
            if pieces::are_many(repository, name)? {
                return Ok::<_, Failure>(None);
            }
            let mut rendering = Rendering::begin(cx, request, name, form)?;
            merge::each(cx, name, &mut rendering)?;
            Ok(rendering.into_parts()?)
        })?;
        if let Some(piece) = whole {
            let modified = piece.note().parse().unwrap_or_default();
            return Ok(packument::response(form, modified, Content::Blob(piece.into_body()?)));
        }
    }
    let mut rendering = Rendering::begin(cx, request, name, form)?;
    merge::each(cx, name, &mut rendering)?;
    Ok(rendering.into_response()?)
}

/// Returns the document of one version, requested by its number or by a tag.
fn version(
    cx: &Context,
    request: &Request,
    name: &PackageName,
    requested: &str,
) -> Result<Response, Failure> {
    let tagged = merge::tags(cx, name)?.remove(requested);
    let number = tagged.or_else(|| clean(requested)).unwrap_or_default();
    let missing = || Failure::not_found(format!("version not found: {requested}"));
    let version = merge::version(cx, name, &number)?.ok_or_else(missing)?;
    let content = packument::version(cx, request.address(), name, &number, &version)?;
    Ok(Response::ok().content_type("application/json").revalidate().content(content))
}

/// Returns the tarball from the first repository that has the version.
fn tarball(cx: &Context, name: &PackageName, number: &str) -> Result<Response, Failure> {
    let found = cx.first(|repository| {
        if repository.is_proxy() {
            proxy::tarball(cx, repository, name, number)
        } else {
            stored(repository, name, number)
        }
    })?;
    found.ok_or_else(|| missing_version(name, number))
}

fn stored(repository: &Repository, name: &PackageName, number: &str) -> Result<Option<Response>, Failure> {
    let Some(version) = VersionRecord::find(repository, name, number)? else { return Ok(None) };
    let facts = version.facts;
    let blob = repository.recorded_blob(&facts.sha256)?;
    Ok(Some(Response::blob(blob).immutable().modified(facts.time)))
}

/// Returns the intent of `GET /-/npm/v1/attestations/name@version`.
pub(crate) fn plan_attestations(_request: &Request, params: &Params<'_>) -> Result<Intent, Failure> {
    let (name, number) = attested(params)?;
    Ok(Intent::read().subject(format!("{name}@{number}")).about_package(name.as_str()))
}

fn attested(params: &Params<'_>) -> Result<(PackageName, String), Failure> {
    let id = params.joined("of");
    let (name, number) = id.rsplit_once('@').unwrap_or((&id, ""));
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
