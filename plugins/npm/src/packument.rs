//! The packument: all metadata of a package, in the two forms that clients request. The plugin
//! writes the packument while it reads the versions, so that it holds only one version in memory.

use crate::name::PackageName;
use crate::readme::PackageReadme;
use crate::restrictions::Restrictions;
use crate::version::highest;
use crate::version_content::{PackumentForm, VersionContent};
use crate::version_text::{self, VersionText};
use packhouse_sdk::{Content, Context, Error, Output, PieceParts, Request, Response, Timestamp};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Members of the latest version that the full form repeats at its top level.
const REPEATED: [&str; 8] =
    ["description", "homepage", "keywords", "repository", "contributors", "author", "bugs", "license"];

/// Members of a packument besides its versions. [`Summary::add`] merges the members of several
/// repositories.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    pub(crate) tags: BTreeMap<String, String>,
    /// Time of creation, in ms since 1970; 0 if it is unknown.
    pub(crate) created: u64,
    /// Time of the last change, in ms since 1970; 0 if it is unknown.
    pub(crate) modified: u64,
    pub(crate) maintainers: Vec<Value>,
    pub(crate) readme: Option<PackageReadme>,
    /// The revision that clients send back when they write.
    pub(crate) revision: Option<u64>,
}

impl Summary {
    /// Adds the members of the next repository. A tag, the maintainers and the revision of an
    /// earlier repository stay. The times become the earliest creation and the latest change.
    fn add(&mut self, other: Self) {
        // The readme must come from the same repository as `latest`, because it is the readme of
        // that version.
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

/// A packument that is being rendered.
pub(crate) struct Rendering<'a> {
    out: Output<'a>,
    address: &'a str,
    name: &'a PackageName,
    form: PackumentForm,
    times: BTreeMap<String, u64>,
    /// Numbers of the tagged versions that were added in pieces.
    listed: BTreeSet<String>,
    /// Publication times of the versions in pieces, as members of a JSON object.
    listed_times: String,
    /// Set after the first version was written.
    begun: bool,
    /// The summaries of the repositories, in their order. The tags are checked at the end, because
    /// a repository may fail before all of its versions are added.
    summaries: Vec<Summary>,
    /// Versions that the packument never chooses for `latest`, such as withdrawn versions.
    untagged: BTreeSet<String>,
    /// Members in [`REPEATED`] of each version that may become the latest, by number.
    repeated: BTreeMap<String, Map<String, Value>>,
    restrictions: Restrictions,
}

/// Renders one version as a document of its own.
pub(crate) fn version(
    cx: &Context,
    address: &str,
    name: &PackageName,
    number: &str,
    content: &VersionContent,
) -> Result<Content, Error> {
    let mut out = Output::new(cx);
    out.push(&VersionText { address, name, form: PackumentForm::Full }.manifest(number, content)?)?;
    out.finish()
}

/// Returns the response with a packument. `modified` is the time of its last change in ms since
/// 1970, or 0 if it is unknown.
pub(crate) fn response(form: PackumentForm, modified: u64, content: Content) -> Response {
    let response = Response::ok().content_type(form.content_type()).header("vary", "accept").revalidate();
    let response = response.content(content);
    if modified > 0 { response.modified(modified) } else { response }
}

impl<'a> Rendering<'a> {
    /// Begins the packument of a package.
    ///
    /// # Errors
    /// Errors of the host.
    pub(crate) fn begin(
        cx: &'a Context,
        request: &'a Request,
        name: &'a PackageName,
        form: PackumentForm,
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

    /// Ends the packument after every repository has added its versions, and returns the response.
    ///
    /// # Errors
    /// Errors of the host.
    pub(crate) fn into_response(self) -> Result<Response, Error> {
        let (form, modified) = (self.form, self.modified());
        Ok(response(form, modified, self.end()?))
    }

    /// Ends the packument and returns it as a piece for the host's cache. The note of the piece is
    /// the time of the last change. Returns `None` if the packument is too large for a piece.
    ///
    /// # Errors
    /// Errors of the host.
    pub(crate) fn into_parts(self) -> Result<Option<PieceParts>, Error> {
        let note = self.modified().to_string();
        let Content::Inline(bytes) = self.end()? else { return Ok(None) };
        let body =
            String::from_utf8(bytes).map_err(|_| Error::Other("a packument is not UTF-8".to_owned()))?;
        Ok(Some(PieceParts { note, body }).filter(PieceParts::fits))
    }

    /// Returns true if this form of the packument has a readme. The abbreviated form has none.
    pub(crate) fn shows_readme(&self) -> bool {
        self.form == PackumentForm::Full
    }

    /// Adds a repository's summary, before any of its versions.
    pub(crate) fn summary(&mut self, summary: Summary) {
        self.summaries.push(summary);
    }

    /// Returns the time of the last change in any repository, in ms since 1970, or 0 if no
    /// repository states a time.
    fn modified(&self) -> u64 {
        self.summaries.iter().map(|summary| summary.modified).max().unwrap_or_default()
    }

    /// Adds the versions that policies withhold, with the reasons.
    pub(crate) fn restrict(&mut self, denied: BTreeMap<String, String>) {
        self.restrictions.add(denied);
    }

    /// Adds a version, unless an earlier repository has added it.
    pub(crate) fn add(&mut self, number: &str, content: &VersionContent) -> Result<(), Error> {
        if self.times.contains_key(number) {
            return Ok(());
        }
        self.times.insert(number.to_owned(), content.time);
        if self.repeats().any(|latest| latest == number) {
            self.repeat(number, &content.full)?;
        }
        let member = self.version_text().member(number, content)?;
        self.separate()?;
        self.out.push(&member)
    }

    /// Adds a version like [`Rendering::add`]. The packument never chooses this version for
    /// `latest`.
    pub(crate) fn add_untagged(&mut self, number: &str, content: &VersionContent) -> Result<(), Error> {
        if !self.times.contains_key(number) {
            self.untagged.insert(number.to_owned());
        }
        self.add(number, content)
    }

    /// Returns the versions whose members the full form may repeat at its top level: the latest
    /// version of each repository. The abbreviated form repeats no members.
    pub(crate) fn repeats(&self) -> impl Iterator<Item = &String> {
        let summaries = self.summaries.iter().filter(move |_| self.form == PackumentForm::Full);
        summaries.filter_map(|summary| summary.tags.get("latest"))
    }

    /// Remembers the members in [`REPEATED`] of a version's full manifest, for the top level of the
    /// packument.
    pub(crate) fn repeat(&mut self, number: &str, full: &str) -> Result<(), Error> {
        let all: Map<String, Value> = serde_json::from_str(full)?;
        let repeated = all.into_iter().filter(|(member, _)| REPEATED.contains(&member.as_str()));
        self.repeated.insert(number.to_owned(), repeated.collect());
        Ok(())
    }

    /// Returns the parameters for the text of a version.
    pub(crate) fn version_text(&self) -> VersionText<'a> {
        VersionText { address: self.address, name: self.name, form: self.form }
    }

    /// Adds a piece. The body of a piece has versions as members of an object, each with a comma
    /// before it. The note has the publication times of these versions as members of another
    /// object. The caller must add the pieces in their order, and must not use [`Rendering::add`]
    /// for the same packument.
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

    /// Adds one version beside the pieces, such as a version that is too large for a piece.
    pub(crate) fn add_beside_pieces(&mut self, number: &str, content: &VersionContent) -> Result<(), Error> {
        let member = self.version_text().member(number, content)?;
        if content.time > 0 {
            version_text::add_time(&mut self.listed_times, number, content.time)?;
        }
        self.separate()?;
        self.out.push(&member)
    }

    /// Returns the numbers of the versions that have a tag.
    pub(crate) fn tagged(&self) -> BTreeSet<String> {
        self.summaries.iter().flat_map(|summary| summary.tags.values()).cloned().collect()
    }

    /// Sets which of the tagged versions were added in pieces.
    pub(crate) fn listed(&mut self, numbers: BTreeSet<String>) {
        self.listed = numbers;
    }

    fn separate(&mut self) -> Result<(), Error> {
        if std::mem::replace(&mut self.begun, true) { self.out.push(",") } else { Ok(()) }
    }

    /// Merges the summaries. Leaves out the tags of versions that were not added. If this leaves
    /// out every `latest`, `latest` names the highest added version.
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
        // One repository may offer a version that another one withholds. The packument then has the
        // version without a restriction.
        let restrictions = std::mem::take(&mut self.restrictions);
        if let Some(restrictions) = restrictions.into_json(self.name, |it| self.times.contains_key(it)) {
            member(&mut self.out, "policyRestrictions", &restrictions)?;
        }
        match self.form {
            PackumentForm::Abbreviated if modified == 0 => {}
            PackumentForm::Abbreviated => {
                member(&mut self.out, "modified", &Timestamp::from_ms(modified).to_rfc3339())?
            }
            PackumentForm::Full => self.rest(summary)?,
        }
        self.out.push("}")?;
        self.out.finish()
    }

    /// Writes the publication times. Leaves out unknown times: clients that require a minimum age
    /// treat a version without a time as new.
    fn time(&mut self, created: u64, modified: u64) -> Result<(), Error> {
        let of_versions = self.times.iter().map(|(number, time)| (number.as_str(), *time));
        let all = of_versions.chain([("created", created), ("modified", modified)]);
        let known: BTreeMap<&str, u64> = all.filter(|(_, time)| *time > 0).collect();
        let mut members = std::mem::take(&mut self.listed_times);
        known.into_iter().try_for_each(|(name, time)| version_text::add_time(&mut members, name, time))?;
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
        let PackageReadme { text, file } = summary.readme.unwrap_or_default();
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
