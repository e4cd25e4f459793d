//! An upstream's page of a project, read in pieces: the largest have some hundred thousand files.

use super::{html_page, json_page, unexpected};
use crate::index::File;
use crate::status::Status;
use packhouse_sdk::json_scan::{self, Span};
use packhouse_sdk::{Blob, Context, Error, Failure, Found, ReadAt, Reply, Repository, Settings};
use std::ops::ControlFlow;

/// Bytes of a page.
const LIMIT: u64 = 256 << 20;
/// Bytes of what a page says of a project as a whole.
const STATUS: u64 = 64 << 10;
/// What an upstream is asked for.
const ACCEPT: &str =
    "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html; q=0.2, text/html; q=0.1";

/// What becomes of a file of a page; [`ControlFlow::Break`] ends the reading.
pub(super) type Visit<'v> = dyn FnMut(File) -> Result<ControlFlow<()>, Failure> + 'v;

/// A page.
pub(super) struct Page {
    body: Blob,
    /// Bytes of it.
    pub(super) size: u64,
    /// Where it came from.
    base: String,
    form: PageForm,
    /// Where it was asked for.
    target: String,
    pub(super) status: Status,
}

enum PageForm {
    Html,
    /// With the place of the list of files.
    Json(Span),
}

impl Page {
    /// The upstream's page of a project.
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
        // Any server that lists folders can be an index. A page for people that stands there has no file of the project.
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

    /// Hands over one file of the project after the other.
    pub(super) fn each(&self, cx: &Context, name: &str, take: &mut Visit<'_>) -> Result<(), Failure> {
        self.read(cx, name, None, take)
    }

    /// The file of this name.
    pub(super) fn file(&self, cx: &Context, name: &str, filename: &str) -> Result<Option<File>, Failure> {
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

    /// Where one file is `wanted`, others may be passed over.
    fn read(
        &self,
        cx: &Context,
        name: &str,
        wanted: Option<&str>,
        take: &mut Visit<'_>,
    ) -> Result<(), Failure> {
        let Self { body, base, target, .. } = self;
        match self.form {
            PageForm::Html => html_page::each(body, base, name, take),
            PageForm::Json(files) => {
                let source = json_page::Source { body, files, base, target, name, wanted };
                cx.log().left_out(name, "files", source.each(take)?);
                Ok(())
            }
        }
    }
}

/// Where the files of a page in JSON lie, and its status.
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

/// Why a page cannot be used, with where it was asked for.
pub(super) fn unusable(target: &str, error: Error) -> Failure {
    match error {
        Error::Unavailable(why) => unexpected(&why, target),
        other => other.into(),
    }
}
