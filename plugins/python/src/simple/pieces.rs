//! Builds the page of a hosted project with many files from cached pieces. A run is a range of
//! adjacent record keys, and each run has one piece. After an upload, the plugin renders only the
//! piece of the run with the new file, and at most the piece of one neighbouring run.
//!
//! The order of record keys differs from the order of a page. The note of each piece therefore
//! lists its items with their sort keys.

use super::order::{self, PageItem};
use super::{html, json};
use crate::accept::IndexFormat;
use crate::index::{ProjectFile, key_of};
use crate::projects;
use crate::records::{self, FileRecord, VersionRecord};
use crate::status::Status;
use crate::version::Version;
use packhouse_sdk::{
    Content, Context, Entry, Error, Failure, KeyRun, Output, Piece, PieceParts, Repository, Request,
};
use std::collections::BTreeMap;
use std::ops::Range;

/// A requested page.
#[derive(Clone, Copy)]
pub(super) struct PiecedPage<'a> {
    pub(super) cx: &'a Context,
    pub(super) request: &'a Request<'a>,
    pub(super) repository: &'a Repository,
    pub(super) project: &'a str,
    pub(super) format: IndexFormat,
}

/// A piece of the page.
enum RenderedPiece {
    /// Cached by the host.
    Cached(Piece),
    /// Held in memory: the piece is too large for the cache, or the plugin needs its text.
    InMemory(PieceParts),
}

/// Average length of a piece's stretches, in bytes, below which the plugin fetches the piece's
/// text. For longer stretches, it is cheaper that the host copies them. A stretch is a part of a
/// piece that the page contains unbroken.
const SHORT: u64 = 2048;

impl RenderedPiece {
    fn note(&self) -> &str {
        match self {
            Self::Cached(piece) => piece.note(),
            Self::InMemory(parts) => &parts.note,
        }
    }

    /// Fetches the text of a piece that occurs in the page in many short stretches.
    fn fetch_if_scattered(&mut self, stretches: u64) -> Result<(), Error> {
        if let Self::Cached(piece) = self
            && stretches > 1
            && piece.body_size() / stretches < SHORT
        {
            *self = Self::InMemory(PieceParts { note: piece.note().to_owned(), body: piece.text()? });
        }
        Ok(())
    }
}

impl PiecedPage<'_> {
    pub(super) fn render(self) -> Result<Content, Failure> {
        let Self { cx, repository, project, format, .. } = self;
        let status = repository.get_json(&records::status(project))?.map(|entry| entry.value);
        let is_json = format == IndexFormat::Json;
        let status: Status = status.unwrap_or_default();
        let mut out = Output::new(cx);
        if is_json {
            json::begin_project(&mut out, project, &status)?;
        } else {
            html::begin_project(&mut out, project, &status)?;
        }
        let mut pieces = if status.offers_files() { self.files()? } else { Vec::new() };
        let stretches = stretches(&in_order(&pieces));
        for (piece, count) in pieces.iter_mut().zip(counts(&stretches)) {
            piece.fetch_if_scattered(count)?;
        }
        let mut first = self.between().len();
        for (piece, text) in stretches {
            // The first item has no separator before it.
            let text = text.start + std::mem::take(&mut first)..text.end;
            match pieces.get(piece) {
                Some(RenderedPiece::Cached(piece)) => {
                    out.add(piece.section(text.start as u64, (text.end - text.start) as u64));
                }
                Some(RenderedPiece::InMemory(parts)) => out.push(parts.body.get(text).unwrap_or_default())?,
                None => {}
            }
        }
        if is_json {
            let versions = self.versions()?;
            let versions: Vec<&str> = in_order(&versions).into_iter().map(|item| item.name).collect();
            json::end_project(&mut out, &versions)?;
        } else {
            out.push(html::END)?;
        }
        Ok(out.finish()?)
    }

    /// Returns the separator between two files.
    fn between(self) -> &'static str {
        if self.format == IndexFormat::Json { "," } else { "" }
    }

    /// Returns the pieces of all versions. Their items have no text, because the page needs only
    /// the names.
    fn versions(self) -> Result<Vec<RenderedPiece>, Error> {
        let name = format!("versions\n{}", self.project);
        self.pieces(&records::versions(self.project), &name, "", |entry, _| {
            let version = entry.json::<VersionRecord>()?.value.version;
            Ok((order_of(&version), version, String::new()))
        })
    }

    /// Returns the pieces of all files, with the texts that the page contains.
    fn files(self) -> Result<Vec<RenderedPiece>, Error> {
        let Self { request, project, format, .. } = self;
        let html = format != IndexFormat::Json;
        // The host drops a cached piece when a record changes that the plugin read for it. The
        // plugin therefore reads the yanks only if a version is yanked. Each piece then depends on
        // all yanks.
        let any_yanked =
            self.repository.keys(records::all_yanked(project)).page(1).next().transpose()?.is_some();
        let name = format!("files\n{html}\n{any_yanked}\n{}\n{project}", request.address());
        let prefix = records::files(project);
        let mut yanked: Option<BTreeMap<String, String>> = None;
        self.pieces(&prefix, &name, self.between(), |entry, is_first| {
            if any_yanked && (is_first || yanked.is_none()) {
                yanked = Some(projects::yanked(self.repository, project)?);
            }
            let filename = entry.key.get(prefix.len()..).unwrap_or_default().to_owned();
            let record = entry.json::<FileRecord>()?.value;
            let reason = yanked.as_ref().and_then(|yanked| yanked.get(&key_of(&record.version)));
            let order = order_of(&record.version);
            let file = ProjectFile::of(filename.clone(), record, reason.cloned());
            let text =
                if html { html::link(project, &file, request) } else { json::file(project, &file, request)? };
            Ok((order, filename, text))
        })
    }

    /// Returns the pieces of all records whose keys start with `prefix`: cached, or newly rendered.
    /// `between` precedes each text. `make` receives a record, and true for the first record of a
    /// piece. It returns the record's sort key, name and text.
    fn pieces(
        self,
        prefix: &str,
        name: &str,
        between: &str,
        mut make: impl FnMut(Entry, bool) -> Result<(String, String, String), Error>,
    ) -> Result<Vec<RenderedPiece>, Error> {
        let runs = self.repository.runs(prefix)?;
        let mut render = |run: &KeyRun| {
            let mut items = Vec::with_capacity(run.count());
            for entry in self.repository.run_records(run) {
                items.push(make(entry?, items.is_empty())?);
            }
            Ok::<_, Error>(parts(items, between))
        };
        let names: Vec<String> = runs.iter().map(|run| [name, "\n\n", &run.place()].concat()).collect();
        let cached = self.repository.pieces(&names, |at| {
            let rendered = runs.get(at).map(&mut render).transpose()?;
            Ok::<_, Error>(rendered.filter(PieceParts::fits))
        })?;
        let made = |(run, piece): (&KeyRun, Option<Piece>)| {
            Ok(match piece {
                Some(piece) => RenderedPiece::Cached(piece),
                None => RenderedPiece::InMemory(render(run)?),
            })
        };
        runs.iter().zip(cached).map(made).collect()
    }
}

/// Makes a piece of these items, each with its sort key, name and text. Sorts the items like the
/// page, so that neighbours in the page are usually neighbours in the piece too.
fn parts(mut items: Vec<(String, String, String)>, between: &str) -> PieceParts {
    items.sort_unstable();
    let mut parts = PieceParts::default();
    for (order, name, text) in items {
        order::note(&mut parts.note, &order, &name, between.len() + text.len());
        parts.body += between;
        parts.body += &text;
    }
    parts
}

/// Returns the items of the pieces, sorted by version, then by name.
fn in_order(pieces: &[RenderedPiece]) -> Vec<PageItem<'_>> {
    order::in_order(pieces.iter().map(RenderedPiece::note))
}

/// Counts the stretches of each piece.
fn counts(stretches: &[(usize, Range<usize>)]) -> Vec<u64> {
    let mut counts = Vec::new();
    for (piece, _) in stretches {
        counts.resize(counts.len().max(piece + 1), 0);
        if let Some(count) = counts.get_mut(*piece) {
            *count += 1;
        }
    }
    counts
}

/// Returns the stretches of the page, each with the index of its piece. Joins the texts of items
/// that are adjacent both in one piece and in the page.
fn stretches(items: &[PageItem<'_>]) -> Vec<(usize, Range<usize>)> {
    let mut found: Vec<(usize, Range<usize>)> = Vec::new();
    for PageItem { piece, start, end, .. } in items {
        match found.last_mut() {
            Some((last, stretch)) if last == piece && stretch.end == *start => stretch.end = *end,
            _ => found.push((*piece, *start..*end)),
        }
    }
    found
}

/// Returns the sort key of a version. Invalid versions come before all valid ones.
fn order_of(version: &str) -> String {
    Version::parse(version).map(|version| version.sort_key()).unwrap_or_default()
}
