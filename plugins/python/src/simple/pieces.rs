//! The page of a hosted project with many files, made of pieces that the host remembers: the next page after an upload costs the run
//! of files that the new one is in, and not all of them.
//!
//! Runs are cut in the order of the records' keys. In what order files and versions stand in the page is noted with each piece.

use super::order::{self, Item};
use super::{html, json};
use crate::accept::Form;
use crate::index::{File, key_of};
use crate::projects;
use crate::records::{self, FileRecord, VersionRecord};
use crate::status::Status;
use crate::version::Version;
use packhouse_sdk::{
    Content, Context, Entry, Error, Failure, KeyRun, Output, Piece, PieceParts, Repository, Request,
};
use std::collections::BTreeMap;
use std::ops::Range;

/// A page that is asked for.
#[derive(Clone, Copy)]
pub(super) struct Page<'a> {
    pub(super) cx: &'a Context,
    pub(super) request: &'a Request<'a>,
    pub(super) repository: &'a Repository,
    pub(super) project: &'a str,
    pub(super) form: Form,
}

/// A piece.
enum Made {
    /// With the host.
    Remembered(Piece),
    /// Here, because it is too large to be remembered or its text is needed here.
    Here(PieceParts),
}

/// Bytes of a stretch up to which it costs more to have the host append it than to have the text here.
const SHORT: u64 = 2048;

impl Made {
    fn note(&self) -> &str {
        match self {
            Self::Remembered(piece) => piece.note(),
            Self::Here(parts) => &parts.note,
        }
    }

    /// Fetches the text of a piece that stands in the page in so many stretches, where they are short.
    fn fetch_if_scattered(&mut self, stretches: u64) -> Result<(), Error> {
        if let Self::Remembered(piece) = self
            && stretches > 1
            && piece.body_size() / stretches < SHORT
        {
            *self = Self::Here(PieceParts { note: piece.note().to_owned(), body: piece.text()? });
        }
        Ok(())
    }
}

impl Page<'_> {
    pub(super) fn render(self) -> Result<Content, Failure> {
        let Self { cx, repository, project, form, .. } = self;
        let status = repository.get_json(&records::status(project))?.map(|entry| entry.value);
        let is_json = form == Form::Json;
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
            // Before the first item there is none.
            let text = text.start + std::mem::take(&mut first)..text.end;
            match pieces.get(piece) {
                Some(Made::Remembered(piece)) => {
                    out.add(piece.section(text.start as u64, (text.end - text.start) as u64));
                }
                Some(Made::Here(parts)) => out.push(parts.body.get(text).unwrap_or_default())?,
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

    /// What stands between two files.
    fn between(self) -> &'static str {
        if self.form == Form::Json { "," } else { "" }
    }

    /// All versions: each is an item without a text.
    fn versions(self) -> Result<Vec<Made>, Error> {
        let name = format!("versions\n{}", self.project);
        self.pieces(&records::versions(self.project), &name, "", |entry, _| {
            let version = entry.json::<VersionRecord>()?.value.version;
            Ok((order_of(&version), version, String::new()))
        })
    }

    /// All files as they stand in the page.
    fn files(self) -> Result<Vec<Made>, Error> {
        let Self { request, project, form, .. } = self;
        let html = form != Form::Json;
        // Where nothing is yanked no piece has to look for it; else each depends on all that is.
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
            let file = File::of(filename.clone(), record, reason.cloned());
            let text =
                if html { html::link(project, &file, request) } else { json::file(project, &file, request)? };
            Ok((order, filename, text))
        })
    }

    /// What is made of the records below a prefix, in pieces, in which `between` stands before each text. `make` is told whether a record
    /// is the first of its piece, and answers order, name and text.
    fn pieces(
        self,
        prefix: &str,
        name: &str,
        between: &str,
        mut make: impl FnMut(Entry, bool) -> Result<(String, String, String), Error>,
    ) -> Result<Vec<Made>, Error> {
        let runs = self.repository.runs(prefix)?;
        let mut render = |run: &KeyRun| {
            let mut items = Vec::with_capacity(run.count());
            for entry in self.repository.run_records(run) {
                items.push(make(entry?, items.is_empty())?);
            }
            Ok::<_, Error>(parts(items, between))
        };
        let names: Vec<String> = runs.iter().map(|run| [name, "\n\n", &run.place()].concat()).collect();
        let remembered = self.repository.pieces(&names, |at| {
            let rendered = runs.get(at).map(&mut render).transpose()?;
            Ok::<_, Error>(rendered.filter(PieceParts::fits))
        })?;
        let made = |(run, piece): (&KeyRun, Option<Piece>)| {
            Ok(match piece {
                Some(piece) => Made::Remembered(piece),
                None => Made::Here(render(run)?),
            })
        };
        runs.iter().zip(remembered).map(made).collect()
    }
}

/// A piece of these items: order, name and text of each. They stand in it in the order of the page, so that what stands together there
/// mostly does so here.
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

/// What the pieces hold, the lowest version first, then by name.
fn in_order(pieces: &[Made]) -> Vec<Item<'_>> {
    order::in_order(pieces.iter().map(Made::note))
}

/// How many of these are in each piece.
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

/// Texts that follow each other in one piece as in the page, taken together.
fn stretches(items: &[Item<'_>]) -> Vec<(usize, Range<usize>)> {
    let mut found: Vec<(usize, Range<usize>)> = Vec::new();
    for Item { piece, start, end, .. } in items {
        match found.last_mut() {
            Some((last, stretch)) if last == piece && stretch.end == *start => stretch.end = *end,
            _ => found.push((*piece, *start..*end)),
        }
    }
    found
}

/// What is no version stands before all that are.
fn order_of(version: &str) -> String {
    Version::parse(version).map(|version| version.sort_key()).unwrap_or_default()
}
