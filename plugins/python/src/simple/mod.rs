//! The Simple API, version 1.4: the list of projects, and the files of each project, in HTML and
//! JSON.

mod html;
mod json;
mod order;
mod pieces;

use crate::accept::IndexFormat;
use crate::answer::{document, moved, no_project};
use crate::sources::Sources;
use crate::{name, projects};
use packhouse_sdk::{Content, Context, Failure, Intent, Output, Params, PieceParts, Request, Response};

/// The version that the documents state.
const API_VERSION: &str = "1.4";

/// Returns the intent for a project. Publishing clients first read the page to check whether their
/// file exists, so a credential that may only publish is accepted here too.
pub(crate) fn plan(_request: &Request, params: &Params<'_>) -> Result<Intent, Failure> {
    Ok(name::about(Intent::read().subject(params.segment("project")).for_publish(), params))
}

/// Returns the intent for the list of all projects.
pub(crate) fn plan_list(_request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    Ok(Intent::read().subject("").for_publish().many_packages())
}

pub(crate) fn to_list(_cx: &Context, _request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    Ok(moved("simple/".to_owned()))
}

pub(crate) fn list(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let format = IndexFormat::of(request)?;
    let names = projects::names(cx)?;
    let mut out = Output::new(cx);
    match format {
        IndexFormat::Json => json::list(&mut out, &names)?,
        IndexFormat::Html | IndexFormat::HtmlV1 => html::list(&mut out, &names)?,
    }
    Ok(document(out.finish()?, format.media_type()))
}

pub(crate) fn to_project(
    _cx: &Context,
    _request: &Request,
    params: &Params<'_>,
) -> Result<Response, Failure> {
    let requested = params.segment("project");
    let name = name::project(requested).ok_or_else(|| no_project(requested))?;
    Ok(moved(format!("{name}/")))
}

pub(crate) fn project(cx: &Context, request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    let requested = params.segment("project");
    let name = name::project(requested).ok_or_else(|| no_project(requested))?;
    if name != requested {
        return Ok(moved(format!("../{name}/")));
    }
    let format = IndexFormat::of(request)?;
    let content = match cached_page(cx, request, &name, format)? {
        Some(page) => page,
        None => match projects::only_large(cx, &name)? {
            Some(repository) => {
                pieces::PiecedPage { cx, request, repository, project: &name, format }.render()?
            }
            None => page(cx, request, &name, format)?,
        },
    };
    Ok(document(content, format.media_type()))
}

/// Returns the cached page of a hosted project, or renders and caches it. `None` if the repository
/// is not hosted, if the project has many files, or if the page is too large for the cache.
fn cached_page(
    cx: &Context,
    request: &Request,
    name: &str,
    format: IndexFormat,
) -> Result<Option<Content>, Failure> {
    let repository = cx.target()?;
    if !repository.is_hosted() {
        return Ok(None);
    }
    let piece_name = format!("page\n{}\n{}\n{name}", format == IndexFormat::Json, request.address());
    let made = repository.piece(&piece_name, || {
        if projects::has_many(repository, name)? {
            return Ok::<_, Failure>(None);
        }
        let Content::Inline(bytes) = page(cx, request, name, format)? else { return Ok(None) };
        let body = String::from_utf8(bytes).map_err(|_| Failure::internal("a page is not UTF-8"))?;
        Ok(Some(PieceParts { note: String::new(), body }).filter(PieceParts::fits))
    })?;
    Ok(made.map(|piece| piece.into_body()).transpose()?.map(Content::Blob))
}

/// Renders a project's page from all repositories that have it.
fn page(cx: &Context, request: &Request, name: &str, format: IndexFormat) -> Result<Content, Failure> {
    let sources = Sources::open(cx, name)?;
    let status = sources.status()?.unwrap_or_default();
    let is_json = format == IndexFormat::Json;
    let mut out = Output::new(cx);
    match is_json {
        true => json::begin_project(&mut out, name, &status)?,
        false => html::begin_project(&mut out, name, &status)?,
    }
    let mut between = "";
    let versions = sources.each(&mut |file, _| {
        if !status.offers_files() {
            return Ok(());
        }
        if is_json {
            out.push(std::mem::replace(&mut between, ","))?;
            return Ok(out.push(&json::file(name, &file, request)?)?);
        }
        Ok(out.push(&html::link(name, &file, request))?)
    })?;
    let versions = versions.ok_or_else(|| no_project(name))?;
    match is_json {
        true => json::end_project(&mut out, &versions)?,
        false => out.push(html::END)?,
    }
    Ok(out.finish()?)
}

/// Returns a file's URL relative to its project's page. Lock files record this URL, so it must
/// never change.
fn address(project: &str, version: &str, filename: &str) -> String {
    // A version may contain `+` and `!`, which need no encoding in a path.
    format!("../../packages/{project}/{version}/{filename}")
}

/// Returns the URL of a file's provenance object. The URL is absolute, as PEP 740 requires in both
/// formats.
fn provenance(request: &Request, project: &str, version: &str, filename: &str) -> String {
    request.link(&format!("integrity/{project}/{version}/{filename}/provenance"))
}
