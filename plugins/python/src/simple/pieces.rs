//! The page of a hosted project with many files, made of pieces that the host remembers: the next page after an upload costs the run
//! of files that the new one is in, and not all of them.
//!
//! Runs are cut in the order of the records' keys. In what order files and versions stand in the page is noted with each piece.

use super::{html, json};
use crate::accept::Form;
use crate::index::{File, Project, key_of};
use crate::projects;
use crate::records::{self, FileRecord, VersionRecord};
use crate::version::Version;
use packhouse_sdk::{Content, Context, Entry, Error, Failure, Output, PieceParts, Repository, Request, runs};
use std::collections::BTreeMap;

/// A page that is asked for.
#[derive(Clone, Copy)]
pub(super) struct Page<'a> {
    pub(super) cx: &'a Context,
    pub(super) request: &'a Request<'a>,
    pub(super) repository: &'a Repository,
    pub(super) project: &'a str,
    pub(super) form: Form,
}

/// Something that stands in a list of the page.
struct Item<'a> {
    /// Its version, as texts can be compared.
    order: &'a str,
    name: &'a str,
    text: &'a str,
}

impl Page<'_> {
    pub(super) fn render(self) -> Result<Content, Failure> {
        let Self { cx, repository, project, form, .. } = self;
        let status = repository.get_json(&records::status(project))?.map(|entry| entry.value);
        let is_json = form == Form::Json;
        let versions = if is_json { self.versions()? } else { Vec::new() };
        let page = Project {
            name: project.to_owned(),
            status: status.unwrap_or_default(),
            versions,
            ..Project::default()
        };
        let mut out = Output::new(cx);
        if is_json {
            json::begin_project(&mut out, &page)?;
        } else {
            html::begin_project(&mut out, &page)?;
        }
        let pieces = if page.status.offers_files() { self.files()? } else { Vec::new() };
        let (mut before, between, end) = if is_json { ("[", ",", "]}") } else { ("", "", html::END) };
        for item in in_order(&pieces) {
            out.push(before)?;
            out.push(item.text)?;
            before = between;
        }
        if before == "[" {
            out.push(before)?;
        }
        out.push(end)?;
        Ok(out.finish()?)
    }

    /// All versions, the lowest first.
    fn versions(self) -> Result<Vec<String>, Error> {
        let name = format!("versions\n{}", self.project);
        let pieces = self.pieces(&records::versions(self.project), &name, |entry, _| {
            let version = entry.json::<VersionRecord>()?.value.version;
            Ok((order(&version), version, String::new()))
        })?;
        Ok(in_order(&pieces).into_iter().map(|item| item.name.to_owned()).collect())
    }

    /// All files as they stand in the page.
    fn files(self) -> Result<Vec<PieceParts>, Error> {
        let Self { request, project, form, .. } = self;
        let html = form != Form::Json;
        // Where nothing is yanked no piece has to look for it; else each depends on all that is.
        let any_yanked =
            self.repository.keys(records::all_yanked(project)).page(1).next().transpose()?.is_some();
        let name = format!("files\n{html}\n{any_yanked}\n{}\n{project}", request.address);
        let prefix = records::files(project);
        let mut yanked: Option<BTreeMap<String, String>> = None;
        self.pieces(&prefix, &name, |entry, is_first| {
            if any_yanked && (is_first || yanked.is_none()) {
                yanked = Some(projects::yanked(self.repository, project)?);
            }
            let filename = entry.key.get(prefix.len()..).unwrap_or_default().to_owned();
            let record = entry.json::<FileRecord>()?.value;
            let reason = yanked.as_ref().and_then(|yanked| yanked.get(&key_of(&record.version)));
            let order = order(&record.version);
            let file = File::of(filename.clone(), record, reason.cloned());
            let text =
                if html { html::link(project, &file, request) } else { json::file(project, &file, request)? };
            Ok((order, filename, text))
        })
    }

    /// What is made of the records below a prefix, in pieces. `make` is told whether a record is the first of its piece, and answers
    /// order, name and text.
    fn pieces(
        self,
        prefix: &str,
        name: &str,
        mut make: impl FnMut(Entry, bool) -> Result<(String, String, String), Error>,
    ) -> Result<Vec<PieceParts>, Error> {
        let keys = self.repository.keys(prefix).collect::<Result<Vec<_>, _>>()?;
        let mut pieces = Vec::new();
        for run in runs(&keys, String::as_str) {
            let before = run.start.checked_sub(1).and_then(|at| keys.get(at)).map(String::as_str);
            let keys = keys.get(run).unwrap_or_default();
            let mut render = || {
                let (mut parts, mut is_first) = (PieceParts::default(), true);
                for entry in self.repository.neighbours(prefix, before, keys) {
                    let (order, name, text) = make(entry?, is_first)?;
                    parts.note += &format!("{order}\t{}\t{name}\n", text.len());
                    parts.body += &text;
                    is_first = false;
                }
                Ok::<_, Error>(parts)
            };
            let named = |key: &String| key.get(prefix.len()..).unwrap_or_default().to_owned();
            let name = format!("{name}\n\n{}", keys.iter().map(named).collect::<Vec<_>>().join("\n"));
            let piece =
                self.repository.piece(&name, || Ok::<_, Error>(Some(render()?).filter(PieceParts::fits)))?;
            pieces.push(match piece {
                Some(piece) => piece.parts()?,
                None => render()?,
            });
        }
        Ok(pieces)
    }
}

/// What the pieces hold, the lowest version first, then by name.
fn in_order(pieces: &[PieceParts]) -> Vec<Item<'_>> {
    let mut items = Vec::new();
    for PieceParts { note, body } in pieces {
        let mut rest = body.as_str();
        for line in note.lines() {
            let mut fields = line.splitn(3, '\t');
            let (Some(order), Some(length), Some(name)) = (fields.next(), fields.next(), fields.next())
            else {
                continue;
            };
            let length = length.parse().unwrap_or(rest.len());
            let (text, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
            rest = after;
            items.push(Item { order, name, text });
        }
    }
    items.sort_by_key(|item| (item.order, item.name));
    items
}

/// What is no version stands before all that are.
fn order(version: &str) -> String {
    Version::parse(version).map(|version| version.sort_key()).unwrap_or_default()
}
