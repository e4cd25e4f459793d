//! The Simple API, version 1.4: the list of projects, and each project's files, in HTML and JSON.

mod html;
mod json;
mod order;
mod pieces;

use crate::accept::Form;
use crate::answer::{document, moved, no_project};
use crate::sources::Sources;
use crate::{name, projects};
use packhouse_sdk::{Content, Context, Failure, Intent, Output, Params, PieceParts, Request, Response};

/// What the documents say of themselves.
const API_VERSION: &str = "1.4";

/// Who publishes looks first whether the file is there: a credential that may only write can do that much.
pub(crate) fn plan(_request: &Request, params: &Params<'_>) -> Result<Intent, Failure> {
    Ok(name::about(Intent::read().subject(params.segment("project")).for_publish(), params))
}

/// All projects.
pub(crate) fn plan_list(_request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    Ok(Intent::read().subject("").for_publish().many_packages())
}

pub(crate) fn to_list(_cx: &Context, _request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    Ok(moved("simple/".to_owned()))
}

pub(crate) fn list(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let form = Form::of(request)?;
    let names = projects::names(cx)?;
    let mut out = Output::new(cx);
    match form {
        Form::Json => json::list(&mut out, &names)?,
        Form::Html | Form::HtmlV1 => html::list(&mut out, &names)?,
    }
    Ok(document(out.finish()?, form.media_type()))
}

pub(crate) fn to_project(
    _cx: &Context,
    _request: &Request,
    params: &Params<'_>,
) -> Result<Response, Failure> {
    let asked = params.segment("project");
    let name = name::project(asked).ok_or_else(|| no_project(asked))?;
    Ok(moved(format!("{name}/")))
}

pub(crate) fn project(cx: &Context, request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    let asked = params.segment("project");
    let name = name::project(asked).ok_or_else(|| no_project(asked))?;
    if name != asked {
        return Ok(moved(format!("../{name}/")));
    }
    let form = Form::of(request)?;
    let content = match remembered(cx, request, &name, form)? {
        Some(page) => page,
        None => match projects::only_large(cx, &name)? {
            Some(repository) => pieces::Page { cx, request, repository, project: &name, form }.render()?,
            None => page(cx, request, &name, form)?,
        },
    };
    Ok(document(content, form.media_type()))
}

/// The page of a hosted project as the host remembers it; none of one that has so many files that it is put together of runs of them,
/// and of one that others have as well.
fn remembered(cx: &Context, request: &Request, name: &str, form: Form) -> Result<Option<Content>, Failure> {
    let repository = cx.target()?;
    if !repository.is_hosted() {
        return Ok(None);
    }
    let piece_name = format!("page\n{}\n{}\n{name}", form == Form::Json, request.address());
    let made = repository.piece(&piece_name, || {
        if projects::has_many(repository, name)? {
            return Ok::<_, Failure>(None);
        }
        let Content::Inline(bytes) = page(cx, request, name, form)? else { return Ok(None) };
        let body = String::from_utf8(bytes).map_err(|_| Failure::internal("a page is not UTF-8"))?;
        Ok(Some(PieceParts { note: String::new(), body }).filter(PieceParts::fits))
    })?;
    Ok(made.map(|piece| piece.into_body()).transpose()?.map(Content::Blob))
}

/// The page of a project, made of all that is known of it.
fn page(cx: &Context, request: &Request, name: &str, form: Form) -> Result<Content, Failure> {
    let sources = Sources::open(cx, name)?;
    let status = sources.status()?.unwrap_or_default();
    let is_json = form == Form::Json;
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

/// A file's address, relative to its project's page: lock files record it, so that it never changes.
fn address(project: &str, version: &str, filename: &str) -> String {
    // A version may hold `+` and `!`, which stand for themselves in a path.
    format!("../../packages/{project}/{version}/{filename}")
}

/// Where a file's provenance is: absolute, as PEP 740 asks in both forms.
fn provenance(request: &Request, project: &str, version: &str, filename: &str) -> String {
    request.link(&format!("integrity/{project}/{version}/{filename}/provenance"))
}
