//! The packument: all that is known of a package, in the two forms that clients ask for. It is written while the versions are
//! read, from whatever repositories they come, so that no more than one of them is in memory.

use crate::name::Name;
use crate::readme::Readme;
use crate::restrictions::Restrictions;
use crate::version::highest;
use crate::version_piece::{Form, Piece};
use crate::version_text::{self, VersionText};
use packhouse_sdk::{Content, Context, Error, Output, PieceParts, Request, Response, Timestamp};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// What the full form repeats of the latest version.
const OF_LATEST: [&str; 8] =
    ["description", "homepage", "keywords", "repository", "contributors", "author", "bugs", "license"];

/// What a packument says besides its versions. Of several repositories the first that says something is heard.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    pub(crate) tags: BTreeMap<String, String>,
    /// Ms since 1970; 0 where nobody says so.
    pub(crate) created: u64,
    /// Ms since 1970; 0 where nobody says so.
    pub(crate) modified: u64,
    pub(crate) maintainers: Vec<Value>,
    pub(crate) readme: Option<Readme>,
    /// What clients send back when they write.
    pub(crate) revision: Option<u64>,
}

impl Summary {
    /// Adds what the next repository says.
    fn add(&mut self, other: Self) {
        // It is of the version that `latest` names.
        if !self.tags.contains_key("latest") && (self.readme.is_none() || other.tags.contains_key("latest")) {
            self.readme = other.readme;
        }
        for (tag, number) in other.tags {
            self.tags.entry(tag).or_insert(number);
        }
        self.created = if self.created == 0 { other.created } else { self.created.min(other.created) };
        self.modified = self.modified.max(other.modified);
        if self.maintainers.is_empty() {
            self.maintainers = other.maintainers;
        }
        self.revision = self.revision.or(other.revision);
    }
}

/// A packument on its way to the client.
pub(crate) struct Rendering<'a> {
    out: Output<'a>,
    address: &'a str,
    name: &'a Name,
    form: Form,
    times: BTreeMap<String, u64>,
    /// Of what came in pieces: numbers that have a tag, and as members of an object when each was published.
    listed: BTreeSet<String>,
    listed_times: String,
    /// Whether it has a version.
    begun: bool,
    /// The summaries of the repositories, in their order. Which of their tags lead to a version is known
    /// at the end: a repository may fail while its versions are read.
    summaries: Vec<Summary>,
    /// Versions that `latest` never falls back on.
    untagged: BTreeSet<String>,
    /// What the full form repeats of its latest version, by number, while it is not known which that is.
    repeated: BTreeMap<String, Map<String, Value>>,
    restrictions: Restrictions,
}

/// One version as a document of its own.
pub(crate) fn version(
    cx: &Context,
    address: &str,
    name: &Name,
    number: &str,
    piece: &Piece,
) -> Result<Content, Error> {
    let mut out = Output::new(cx);
    out.push(&VersionText { address, name, form: Form::Full }.manifest(number, piece)?)?;
    out.finish()
}

/// The answer with a packument, which was changed last at `modified`, in ms since 1970; 0 where nobody says so.
pub(crate) fn response(form: Form, modified: u64, content: Content) -> Response {
    let response = Response::ok().content_type(form.content_type()).header("vary", "accept").revalidate();
    let response = response.content(content);
    if modified > 0 { response.modified(modified) } else { response }
}

impl<'a> Rendering<'a> {
    /// Begins the packument of a package.
    ///
    /// # Errors
    /// The host's.
    pub(crate) fn begin(
        cx: &'a Context,
        request: &'a Request,
        name: &'a Name,
        form: Form,
    ) -> Result<Self, Error> {
        let mut out = Output::new(cx);
        out.push("{\"name\":")?;
        out.json(name.as_str())?;
        out.push(",\"versions\":{")?;
        Ok(Self {
            out,
            address: request.address(),
            name,
            form,
            times: BTreeMap::new(),
            listed: BTreeSet::new(),
            listed_times: String::new(),
            begun: false,
            summaries: Vec::new(),
            untagged: BTreeSet::new(),
            repeated: BTreeMap::new(),
            restrictions: Restrictions::default(),
        })
    }

    /// Ends it, once every repository has added what it has.
    ///
    /// # Errors
    /// The host's.
    pub(crate) fn into_response(self) -> Result<Response, Error> {
        let (form, modified) = (self.form, self.modified());
        Ok(response(form, modified, self.end()?))
    }

    /// Ends it as a piece, whose note is when it was changed last; none where it is too large to be one.
    ///
    /// # Errors
    /// The host's.
    pub(crate) fn into_parts(self) -> Result<Option<PieceParts>, Error> {
        let note = self.modified().to_string();
        let Content::Inline(bytes) = self.end()? else { return Ok(None) };
        let body =
            String::from_utf8(bytes).map_err(|_| Error::Other("a packument is not UTF-8".to_owned()))?;
        Ok(Some(PieceParts { note, body }).filter(PieceParts::fits))
    }

    /// Whether it says what the package says of itself at length: the abbreviated form does not.
    pub(crate) fn shows_readme(&self) -> bool {
        self.form == Form::Full
    }

    /// Says what a repository says of the package besides its versions, before any of them is added.
    pub(crate) fn summary(&mut self, summary: Summary) {
        self.summaries.push(summary);
    }

    /// The time of the last change in any repository, in ms since 1970; 0 if none states it.
    fn modified(&self) -> u64 {
        self.summaries.iter().map(|summary| summary.modified).max().unwrap_or_default()
    }

    /// Says which versions policies withhold, and why.
    pub(crate) fn restrict(&mut self, denied: BTreeMap<String, String>) {
        self.restrictions.add(denied);
    }

    /// Adds a version, unless a repository before had it.
    pub(crate) fn add(&mut self, number: &str, piece: &Piece) -> Result<(), Error> {
        if self.times.contains_key(number) {
            return Ok(());
        }
        self.times.insert(number.to_owned(), piece.time);
        if self.repeats().any(|latest| latest == number) {
            self.repeat(number, &piece.full)?;
        }
        let member = self.version_text().member(number, piece)?;
        self.separate()?;
        self.out.push(&member)
    }

    /// Like [`Rendering::add`], for a version that `latest` never falls back on.
    pub(crate) fn add_untagged(&mut self, number: &str, piece: &Piece) -> Result<(), Error> {
        if !self.times.contains_key(number) {
            self.untagged.insert(number.to_owned());
        }
        self.add(number, piece)
    }

    /// The versions of which it may repeat something: the latest of each repository. The abbreviated form
    /// repeats nothing.
    pub(crate) fn repeats(&self) -> impl Iterator<Item = &String> {
        let summaries = self.summaries.iter().filter(move |_| self.form == Form::Full);
        summaries.filter_map(|summary| summary.tags.get("latest"))
    }

    /// Says what the full manifest of that version is.
    pub(crate) fn repeat(&mut self, number: &str, full: &str) -> Result<(), Error> {
        let all: Map<String, Value> = serde_json::from_str(full)?;
        let kept = all.into_iter().filter(|(member, _)| OF_LATEST.contains(&member.as_str()));
        self.repeated.insert(number.to_owned(), kept.collect());
        Ok(())
    }

    /// How versions are written in it.
    pub(crate) fn version_text(&self) -> VersionText<'a> {
        VersionText { address: self.address, name: self.name, form: self.form }
    }

    /// Adds versions that were written as members before, each with a comma before it, with a note of their times as members of another
    /// object. All versions are added in such a way, in their order, or none.
    pub(crate) fn add_piece(&mut self, piece: &packhouse_sdk::Piece) {
        if !piece.note().is_empty() && !self.listed_times.is_empty() {
            self.listed_times.push(',');
        }
        self.listed_times += piece.note();
        if piece.body_size() > 0 {
            let comma = u64::from(!std::mem::replace(&mut self.begun, true));
            self.out.add(piece.section(comma, piece.body_size() - comma));
        }
    }

    /// The same of one version that is too large for a piece.
    pub(crate) fn add_beside_pieces(&mut self, number: &str, piece: &Piece) -> Result<(), Error> {
        let member = self.version_text().member(number, piece)?;
        if piece.time > 0 {
            version_text::add_time(&mut self.listed_times, number, piece.time)?;
        }
        self.separate()?;
        self.out.push(&member)
    }

    /// The versions that have a tag.
    pub(crate) fn tagged(&self) -> BTreeSet<String> {
        self.summaries.iter().flat_map(|summary| summary.tags.values()).cloned().collect()
    }

    /// Says which of the versions that have a tag came in pieces.
    pub(crate) fn listed(&mut self, numbers: BTreeSet<String>) {
        self.listed = numbers;
    }

    fn separate(&mut self) -> Result<(), Error> {
        if std::mem::replace(&mut self.begun, true) { self.out.push(",") } else { Ok(()) }
    }

    /// The summaries as one. Its tags lead to versions that are there. If no repository's `latest` does,
    /// `latest` is the highest version.
    fn merged(&mut self) -> Summary {
        let (mut merged, mut has_latest) = (Summary::default(), false);
        for mut summary in std::mem::take(&mut self.summaries) {
            has_latest |= summary.tags.contains_key("latest");
            summary.tags.retain(|_, number| self.times.contains_key(number) || self.listed.contains(number));
            merged.add(summary);
        }
        let offered = self.times.keys().filter(|number| !self.untagged.contains(*number));
        if has_latest
            && !merged.tags.contains_key("latest")
            && let Some(highest) = highest(offered.map(String::as_str))
        {
            merged.tags.insert("latest".to_owned(), highest.to_owned());
        }
        merged
    }

    fn end(mut self) -> Result<Content, Error> {
        self.out.push("}")?;
        let summary = self.merged();
        let modified = summary.modified;
        self.time(summary.created, modified)?;
        member(&mut self.out, "dist-tags", &summary.tags)?;
        // Of several repositories one may have what another does not let through.
        if let Some(told) =
            std::mem::take(&mut self.restrictions).told(self.name, |it| self.times.contains_key(it))
        {
            member(&mut self.out, "policyRestrictions", &told)?;
        }
        match self.form {
            Form::Abbreviated if modified == 0 => {}
            Form::Abbreviated => {
                member(&mut self.out, "modified", &Timestamp::from_ms(modified).to_rfc3339())?
            }
            Form::Full => self.rest(summary)?,
        }
        self.out.push("}")?;
        self.out.finish()
    }

    /// A time that nobody knows is left out: to whoever waits until a version has some age, it is not old.
    fn time(&mut self, created: u64, modified: u64) -> Result<(), Error> {
        let of_versions = self.times.iter().map(|(number, time)| (number.as_str(), *time));
        let all = of_versions.chain([("created", created), ("modified", modified)]);
        let known: BTreeMap<&str, u64> = all.filter(|(_, time)| *time > 0).collect();
        let mut members = std::mem::take(&mut self.listed_times);
        known.into_iter().try_for_each(|(of, time)| version_text::add_time(&mut members, of, time))?;
        self.out.push(",\"time\":{")?;
        self.out.push(&members)?;
        self.out.push("}")
    }

    fn rest(&mut self, summary: Summary) -> Result<(), Error> {
        member(&mut self.out, "_id", &self.name.as_str())?;
        if let Some(revision) = summary.revision {
            member(&mut self.out, "_rev", &revision.to_string())?;
        }
        member(&mut self.out, "maintainers", &summary.maintainers)?;
        let latest = summary.tags.get("latest").and_then(|latest| self.repeated.remove(latest));
        for (name, value) in latest.unwrap_or_default() {
            member(&mut self.out, &name, &value)?;
        }
        let Readme { text, file } = summary.readme.unwrap_or_default();
        member(&mut self.out, "readme", &text)?;
        member(&mut self.out, "readmeFilename", &file)
    }
}

fn member(out: &mut Output<'_>, name: &str, value: &impl serde::Serialize) -> Result<(), Error> {
    out.push(",")?;
    out.json(name)?;
    out.push(":")?;
    out.json(value)
}
