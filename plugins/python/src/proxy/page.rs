//! Reads an upstream's page of a project in pieces. The largest pages have several hundred thousand
//! files.

use super::{html_page, json_page, unexpected};
use crate::index::ProjectFile;
use crate::status::Status;
use packhouse_sdk::json_scan::{self, Span};
use packhouse_sdk::{Blob, Context, Error, Failure, Found, ReadAt, Reply, Repository, Settings};
use std::ops::ControlFlow;

/// Maximum bytes of a page.
const LIMIT: u64 = 256 << 20;
/// Maximum bytes of a page's project status.
const STATUS: u64 = 64 << 10;
/// The `Accept` header for the upstream.
const ACCEPT: &str =
    "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html; q=0.2, text/html; q=0.1";

/// Callback for each file of a page. [`ControlFlow::Break`] ends the iteration.
pub(super) type PageVisitor<'v> = dyn FnMut(ProjectFile) -> Result<ControlFlow<()>, Failure> + 'v;

/// A fetched page.
pub(super) struct UpstreamPage {
    body: Blob,
    /// Size of the body in bytes.
    pub(super) size: u64,
    /// The page's URL after redirects.
    base: String,
    form: PageForm,
    /// The requested target, for messages.
    target: String,
    pub(super) status: Status,
}

enum PageForm {
    Html,
    /// The position of the list of files.
    Json(Span),
}

impl UpstreamPage {
    /// Fetches the upstream's page of a project, from `simple/NAME/` or from `NAME/`.
    pub(super) fn find(cx: &Context, proxy: &Repository, name: &str) -> Result<Found<Self>, Failure> {
        let settings = Settings::of(proxy)?;
        let upstream = settings.upstream.as_deref().unwrap_or_default().trim_end_matches('/');
        let folder = format!("{name}/");
        if upstream.ends_with("/simple") || upstream.ends_with("/+simple") {
            return Self::at(cx, proxy, &folder);
        }
        let index = Self::at(cx, proxy, &format!("simple/{folder}"));
        if matches!(index, Ok(Found::There(_))) {
            return index;
        }
        // Any web server that lists folders can be an index, so the plugin also tries the folder
        // `NAME/`. It ignores a page there that lists no file of the project: such a page is for
        // people.
        match (Self::at(cx, proxy, &folder), index) {
            (Ok(Found::There(page)), _) if page.has_files(cx, name).unwrap_or_default() => {
                Ok(Found::There(page))
            }
            (Ok(Found::Refused), Ok(Found::Nothing)) => Ok(Found::Refused),
            (_, index) => index,
        }
    }

    fn at(cx: &Context, proxy: &Repository, target: &str) -> Result<Found<Self>, Failure> {
        let fetch = cx.upstream("GET", target).header("accept", ACCEPT).limit(LIMIT);
        fetch.metadata().start(proxy)?.look()?.try_map(|reply| Self::read_head(reply, target))
    }

    fn read_head(reply: Reply, target: &str) -> Result<Self, Failure> {
        let stated = reply.header("content-type")?.unwrap_or_default();
        let is_json = match stated.split(';').next().unwrap_or_default().trim() {
            "application/vnd.pypi.simple.v1+json" => true,
            "application/vnd.pypi.simple.v1+html" | "text/html" => false,
            other => return Err(unexpected(&format!("it has the content type {other:?}"), target)),
        };
        let base = reply.address()?;
        let body = reply.body()?;
        let size = body.size().map_err(|error| unusable(target, error))?;
        let (form, status) = match is_json {
            true => json_form(&body, target)?,
            false => (PageForm::Html, Status::default()),
        };
        Ok(Self { body, size, base, form, target: target.to_owned(), status })
    }

    /// Passes each file of the project to `take`.
    pub(super) fn each(&self, cx: &Context, name: &str, take: &mut PageVisitor<'_>) -> Result<(), Failure> {
        self.read(cx, name, None, take)
    }

    /// Finds the file of this name.
    pub(super) fn file(
        &self,
        cx: &Context,
        name: &str,
        filename: &str,
    ) -> Result<Option<ProjectFile>, Failure> {
        let mut found = None;
        self.read(cx, name, Some(filename), &mut |file| {
            Ok(if file.filename == filename {
                found = Some(file);
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            })
        })?;
        Ok(found)
    }

    fn has_files(&self, cx: &Context, name: &str) -> Result<bool, Failure> {
        let mut found = false;
        self.each(cx, name, &mut |_| {
            found = true;
            Ok(ControlFlow::Break(()))
        })?;
        Ok(found)
    }

    /// Passes the project's files to `take`. If `required` names a file, the function may skip
    /// other files.
    fn read(
        &self,
        cx: &Context,
        name: &str,
        required: Option<&str>,
        take: &mut PageVisitor<'_>,
    ) -> Result<(), Failure> {
        let Self { body, base, target, .. } = self;
        match self.form {
            PageForm::Html => html_page::each(body, base, name, take),
            PageForm::Json(files) => {
                let list = json_page::FileList { body, files, base, target, name, required };
                cx.log().left_out(name, "files", list.each(take)?);
                Ok(())
            }
        }
    }
}

/// Finds the list of files in a JSON page, and the project's status.
fn json_form(body: &Blob, target: &str) -> Result<(PageForm, Status), Failure> {
    let outline = json_scan::outline(body, "").map_err(|error| unusable(target, error))?;
    let outline = outline.ok_or_else(|| unexpected("it is not a JSON object", target))?;
    let files = outline.member("files").ok_or_else(|| unexpected("it has no list of files", target))?;
    let status = match outline.member("project-status") {
        Some(span) if span.end - span.start <= STATUS => {
            let bytes = body.read_exact_at(span.start, span.end - span.start)?;
            serde_json::from_slice(&bytes).unwrap_or_default()
        }
        _ => Status::default(),
    };
    Ok((PageForm::Json(files), status))
}

/// Creates the error for an unusable page, with the requested target.
pub(super) fn unusable(target: &str, error: Error) -> Failure {
    match error {
        Error::Unavailable(why) => unexpected(&why, target),
        other => other.into(),
    }
}
