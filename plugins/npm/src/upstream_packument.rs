//! An upstream's packument. The largest have some ten megabytes, and each question for a tarball needs one version of them: so
//! the whole is passed over once to find what lies where, and only what is wanted is read as JSON.

use crate::document::{Bounded, MEMBER_LIMIT, deprecation};
use crate::manifest::{self, ABBREVIATED};
use crate::name::Name;
use crate::version_piece::Piece;
use packhouse_sdk::json_scan::{self, Member, Outline, Span};
use packhouse_sdk::{Blob, Digest, Error, PieceParts, ReadAt, Repository};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of an upstream's packument. The largest that are known have a fifth of it.
pub(crate) const LIMIT: u64 = 256 << 20;
/// Bytes of one of its members that is no version: the times of 20,000 versions have one million.
const HEAD_LIMIT: u64 = 4 << 20;
/// Bytes of a packument in which it is remembered what lies where.
const LARGE: u64 = 256 << 10;
/// Bytes that are read at a time when one version is wanted after the other.
const WINDOW: u64 = 512 << 10;

/// Characters of a version's number, as semantic versions have them; of a longer one nobody can ask.
const NUMBER: usize = 256;

/// An upstream's packument.
pub(crate) struct Packument {
    body: Blob,
    pub(crate) digest: Digest,
    outline: Outline,
    /// The numbers of those versions that could not be read so far.
    unreadable: RefCell<BTreeSet<String>>,
}

/// Finds what lies where in a document, unless that was found before: the pass over the largest takes longer than all else that a
/// question for one of their versions costs.
fn outline(proxy: &Repository, body: &Blob, digest: &Digest) -> Result<Outline, Error> {
    let find = || json_scan::outline(body, "versions")?.ok_or_else(|| no_packument("not a JSON object"));
    if body.size()? < LARGE {
        return find();
    }
    let known = proxy.piece(&format!("outline\n{digest}"), || {
        let parts = PieceParts { note: serde_json::to_string(&find()?)?, body: String::new() };
        Ok::<_, Error>(Some(parts).filter(PieceParts::fits))
    })?;
    match known {
        Some(piece) => Ok(serde_json::from_str(piece.note())?),
        None => find(),
    }
}

/// A version of an upstream's.
#[derive(Debug, Default)]
pub(crate) struct UpstreamVersion {
    pub(crate) piece: Piece,
    /// Where its tarball lies.
    pub(crate) tarball: String,
    /// What its tarball must be: `integrity`, or the SHA-1 of `shasum`.
    pub(crate) integrity: Option<String>,
    pub(crate) shasum: Option<String>,
}

impl Packument {
    /// Finds what lies where.
    ///
    /// # Errors
    /// [`Error::Unavailable`] for what is no packument of this package: an object that says something else is not one without
    /// versions.
    pub(crate) fn open(proxy: &Repository, body: Blob, name: &Name) -> Result<Self, Error> {
        let digest = body.sha256()?;
        let outline = outline(proxy, &body, &digest)?;
        let packument = Self { body, digest, outline, unreadable: RefCell::default() };
        match packument.member::<Value>("name")? {
            Some(Value::String(said)) if said == name.as_str() => Ok(packument),
            _ => Err(no_packument("it does not say that it is of this package")),
        }
    }

    /// The numbers of its versions.
    pub(crate) fn numbers(&self) -> BTreeSet<String> {
        self.outline.inner.iter().map(|version| version.name.clone()).collect()
    }

    /// One of its members that is an object; empty without it.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where it is none.
    pub(crate) fn map(&self, name: &str) -> Result<BTreeMap<String, Value>, Error> {
        Ok(self.member::<Option<Bounded<Value>>>(name)?.flatten().map(|map| map.0).unwrap_or_default())
    }

    /// Another of its members.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where it cannot be read.
    pub(crate) fn member<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, Error> {
        let Some(span) = self.outline.member(name) else { return Ok(None) };
        let bytes = self.body.read_exact_at(span.start, bounded(span, HEAD_LIMIT)?)?;
        serde_json::from_slice(&bytes).map(Some).map_err(|error| no_packument(&format!("{name}: {error}")))
    }

    /// One version, if it is of this package.
    ///
    /// # Errors
    /// [`Error::Unavailable`] for what is no manifest.
    pub(crate) fn version(&self, name: &Name, number: &str) -> Result<Option<UpstreamVersion>, Error> {
        let Some(span) = self.outline.inner(number) else { return Ok(None) };
        let bytes = self.body.read_exact_at(span.start, bounded(span, MEMBER_LIMIT)?)?;
        self.read(name, number, &bytes)
    }

    fn read(&self, name: &Name, number: &str, bytes: &[u8]) -> Result<Option<UpstreamVersion>, Error> {
        let version = read_version(name, number, bytes)?;
        if version.is_none() {
            self.unreadable.borrow_mut().insert(number.to_owned());
        }
        Ok(version)
    }

    /// How many of its versions could not be read so far.
    pub(crate) fn left_out(&self) -> usize {
        self.unreadable.borrow().len()
    }

    /// Its versions, in their order.
    pub(crate) fn versions(&self) -> &[Member] {
        &self.outline.inner
    }

    /// Hands over these of its versions, one after the other.
    ///
    /// # Errors
    /// [`Error::Unavailable`] for what is no packument; else what `take` fails with.
    pub(crate) fn each(
        &self,
        name: &Name,
        versions: &[Member],
        take: &mut dyn FnMut(&str, UpstreamVersion) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (mut start, mut window) = (0, Vec::new());
        for Member { name: number, span } in versions {
            let length = bounded(*span, MEMBER_LIMIT)?;
            if span.end > start + window.len() as u64 {
                let rest = self.body.size()?.saturating_sub(span.start);
                window = self.body.read_exact_at(span.start, rest.min(WINDOW.max(length)))?;
                start = span.start;
            }
            let from = usize::try_from(span.start - start).unwrap_or(usize::MAX);
            let bytes = window.get(from..).and_then(|rest| rest.get(..usize::try_from(length).ok()?));
            let bytes = bytes.ok_or_else(|| no_packument("it ends too soon"))?;
            if let Some(version) = self.read(name, number, bytes)? {
                take(number, version)?;
            }
        }
        Ok(())
    }
}

fn bounded(span: Span, limit: u64) -> Result<u64, Error> {
    let length = span.end - span.start;
    let fits = (length <= limit).then_some(length);
    fits.ok_or_else(|| no_packument(&format!("{length} bytes in one member, where {limit} are enough")))
}

fn no_packument(why: &str) -> Error {
    Error::Unavailable(format!("the upstream sent no packument: {why}"))
}

/// A manifest in its two forms, as it stands there but for what this registry says itself. None where it is of something else,
/// says something twice, or names no tarball.
fn read_version(name: &Name, number: &str, bytes: &[u8]) -> Result<Option<UpstreamVersion>, Error> {
    // What is sent on as it came must be JSON.
    serde_json::from_slice::<IgnoredAny>(bytes)
        .map_err(|error| no_packument(&format!("version {number}: {error}")))?;
    let text = core::str::from_utf8(bytes).map_err(|error| no_packument(&error.to_string()))?;
    let Some(members) = json_scan::members(bytes) else { return Ok(None) };
    let members = Members { text, members };
    if members.text("name").as_deref() != Some(name.as_str())
        || members.text("version").as_deref() != Some(number)
        || number.len() > NUMBER
    {
        return Ok(None);
    }
    let Some(Value::Object(mut dist)) = members.value("dist") else { return Ok(None) };
    let Some(Value::String(tarball)) = dist.remove("tarball") else { return Ok(None) };
    let attestations = match dist.remove("attestations") {
        Some(Value::Object(attestations)) => Some(attestations),
        _ => None,
    };
    let said = |member: &str| dist.get(member).and_then(Value::as_str).map(str::to_owned);
    let (integrity, shasum) = (said("integrity"), said("shasum"));
    let (abbreviated, full) = members.forms();
    let deprecated = members.value("deprecated").as_ref().and_then(deprecation);
    let piece =
        Piece { abbreviated, full, dist: Value::Object(dist).to_string(), deprecated, attestations, time: 0 };
    Ok(Some(UpstreamVersion { piece, tarball, integrity, shasum }))
}

/// A manifest that was read as far as knowing where what lies.
struct Members<'a> {
    text: &'a str,
    members: Vec<Member>,
}

impl<'a> Members<'a> {
    fn raw(&self, span: Span) -> &'a str {
        let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        self.text.get(place(span.start)..place(span.end)).unwrap_or_default().trim_end()
    }

    fn value(&self, name: &str) -> Option<Value> {
        let member = self.members.iter().find(|member| member.name == name)?;
        serde_json::from_str(self.raw(member.span)).ok()
    }

    fn text(&self, name: &str) -> Option<String> {
        match self.value(name)? {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// Without `dist` and `deprecated`, abbreviated and full.
    fn forms(&self) -> (String, String) {
        let (mut abbreviated, mut full) = (String::from("{"), String::from("{"));
        for Member { name, span } in &self.members {
            if matches!(name.as_str(), "dist" | "deprecated") {
                continue;
            }
            append(&mut full, name, self.raw(*span));
            if ABBREVIATED.contains(&name.as_str()) {
                append(&mut abbreviated, name, self.raw(*span));
            }
        }
        if self.value("hasInstallScript").is_none() && self.runs_scripts() {
            append(&mut full, "hasInstallScript", "true");
            append(&mut abbreviated, "hasInstallScript", "true");
        }
        abbreviated.push('}');
        full.push('}');
        (abbreviated, full)
    }

    /// Many registries leave it to the client to see that from the full form.
    fn runs_scripts(&self) -> bool {
        let known = ["scripts", "gypfile"].into_iter();
        let members: Map<String, Value> =
            known.filter_map(|name| Some((name.to_owned(), self.value(name)?))).collect();
        manifest::runs_scripts(&members)
    }
}

fn append(object: &mut String, name: &str, value: &str) {
    if object.len() > 1 {
        object.push(',');
    }
    object.push_str(&Value::from(name).to_string());
    object.push(':');
    object.push_str(value);
}
