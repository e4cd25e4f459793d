//! Packuments of upstreams. The largest have tens of megabytes, but a request for a tarball needs
//! only one of their versions. This module therefore scans a packument once for the positions of
//! its members, and parses only the members that it needs.

use crate::document::{Bounded, MEMBER_LIMIT, deprecation};
use crate::manifest::{self, ABBREVIATED};
use crate::name::PackageName;
use crate::version_content::VersionContent;
use packhouse_sdk::json_scan::{self, Member, Outline, Span};
use packhouse_sdk::{Blob, Digest, Error, PieceParts, ReadAt, Repository};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of bytes of an upstream's packument. The largest known packuments have a fifth of
/// this size.
pub(crate) const LIMIT: u64 = 256 << 20;
/// Maximum number of bytes of a member that is not a version. The times of 20,000 versions take one
/// million bytes.
const HEAD_LIMIT: u64 = 4 << 20;
/// Size of a packument, in bytes, from which its outline is cached.
const LARGE: u64 = 256 << 10;
/// Number of bytes that the plugin requests in one read when a caller reads many versions.
const WINDOW: u64 = 512 << 10;

/// Maximum number of characters of a version number, as in semver. Clients cannot request a longer
/// one.
const NUMBER: usize = 256;

/// An upstream's packument.
pub(crate) struct Packument {
    body: Blob,
    pub(crate) digest: Digest,
    outline: Outline,
    /// Numbers of the versions whose manifest turned out to be unusable so far.
    unreadable: RefCell<BTreeSet<String>>,
}

/// Returns the positions of a document's members. The host caches the positions of a large
/// document, because a request for one version would otherwise spend most of its time on the scan.
fn outline(proxy: &Repository, body: &Blob, digest: &Digest) -> Result<Outline, Error> {
    let find =
        || json_scan::outline(body, "versions")?.ok_or_else(|| bad_packument("it is not a JSON object"));
    if body.size()? < LARGE {
        return find();
    }
    let cached = proxy.piece(&format!("outline\n{digest}"), || {
        let parts = PieceParts { note: serde_json::to_string(&find()?)?, body: String::new() };
        Ok::<_, Error>(Some(parts).filter(PieceParts::fits))
    })?;
    match cached {
        Some(piece) => Ok(serde_json::from_str(piece.note())?),
        None => find(),
    }
}

/// A version in an upstream's packument.
#[derive(Debug, Default)]
pub(crate) struct UpstreamVersion {
    pub(crate) content: VersionContent,
    /// Address of the tarball.
    pub(crate) tarball: String,
    /// Expected digests of the tarball; `shasum` is a SHA-1.
    pub(crate) integrity: Option<String>,
    pub(crate) shasum: Option<String>,
}

impl Packument {
    /// Scans a packument.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the body is not a packument of this package. A JSON object without
    /// the package's name is an error too. It does not count as a packument without versions.
    pub(crate) fn open(proxy: &Repository, body: Blob, name: &PackageName) -> Result<Self, Error> {
        let digest = body.sha256()?;
        let outline = outline(proxy, &body, &digest)?;
        let packument = Self { body, digest, outline, unreadable: RefCell::default() };
        match packument.member::<Value>("name")? {
            Some(Value::String(stated)) if stated == name.as_str() => Ok(packument),
            _ => Err(bad_packument("it does not have the name of this package")),
        }
    }

    /// Returns the numbers of all versions.
    pub(crate) fn numbers(&self) -> BTreeSet<String> {
        self.outline.inner.iter().map(|version| version.name.clone()).collect()
    }

    /// Returns the members of an object at the top level. The map is empty if the object is
    /// missing.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the value is not an object.
    pub(crate) fn map(&self, name: &str) -> Result<BTreeMap<String, Value>, Error> {
        Ok(self.member::<Option<Bounded<Value>>>(name)?.flatten().map(|map| map.0).unwrap_or_default())
    }

    /// Returns a member at the top level, or `None` if it is missing.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the member cannot be read.
    pub(crate) fn member<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, Error> {
        let Some(span) = self.outline.member(name) else { return Ok(None) };
        let bytes = self.body.read_exact_at(span.start, bounded(span, HEAD_LIMIT)?)?;
        serde_json::from_slice(&bytes).map(Some).map_err(|error| bad_packument(&format!("{name}: {error}")))
    }

    /// Returns one version, or `None` if it does not exist or [`read_version`] finds its manifest
    /// unusable.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if its manifest is too large or is not valid JSON.
    pub(crate) fn version(&self, name: &PackageName, number: &str) -> Result<Option<UpstreamVersion>, Error> {
        let Some(span) = self.outline.inner(number) else { return Ok(None) };
        let bytes = self.body.read_exact_at(span.start, bounded(span, MEMBER_LIMIT)?)?;
        self.read(name, number, &bytes)
    }

    fn read(&self, name: &PackageName, number: &str, bytes: &[u8]) -> Result<Option<UpstreamVersion>, Error> {
        let version = read_version(name, number, bytes)?;
        if version.is_none() {
            self.unreadable.borrow_mut().insert(number.to_owned());
        }
        Ok(version)
    }

    /// Returns the number of versions whose manifest turned out to be unusable so far.
    pub(crate) fn left_out(&self) -> usize {
        self.unreadable.borrow().len()
    }

    /// Returns the positions of all versions, in the order of the document.
    pub(crate) fn versions(&self) -> &[Member] {
        &self.outline.inner
    }

    /// Reads these versions and passes them to `take` one after the other. Skips versions whose
    /// manifest is unusable.
    ///
    /// # Errors
    /// [`Error::Unavailable`] for an invalid packument, and the errors of `take`.
    pub(crate) fn each(
        &self,
        name: &PackageName,
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
            let bytes = bytes.ok_or_else(|| bad_packument("it is incomplete"))?;
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
    fits.ok_or_else(|| bad_packument(&format!("a member has {length} bytes; at most {limit} are allowed")))
}

fn bad_packument(why: &str) -> Error {
    Error::Unavailable(format!("the upstream did not send a valid packument: {why}"))
}

/// Parses a version's manifest. The abbreviated and the full form keep the upstream's text, except
/// for the members that this server sets. Returns `None` if the manifest is of another package or
/// version, has a member twice, or has no tarball address.
fn read_version(name: &PackageName, number: &str, bytes: &[u8]) -> Result<Option<UpstreamVersion>, Error> {
    // Clients get these bytes unchanged, so the bytes must be JSON.
    serde_json::from_slice::<IgnoredAny>(bytes)
        .map_err(|error| bad_packument(&format!("version {number}: {error}")))?;
    let text = core::str::from_utf8(bytes).map_err(|error| bad_packument(&error.to_string()))?;
    let Some(members) = json_scan::members(bytes) else { return Ok(None) };
    let members = ScannedManifest { text, members };
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
    let text = |member: &str| dist.get(member).and_then(Value::as_str).map(str::to_owned);
    let (integrity, shasum) = (text("integrity"), text("shasum"));
    let (abbreviated, full) = members.forms();
    let deprecated = members.value("deprecated").as_ref().and_then(deprecation);
    let content = VersionContent {
        abbreviated,
        full,
        dist: Value::Object(dist).to_string(),
        deprecated,
        attestations,
        time: 0,
    };
    Ok(Some(UpstreamVersion { content, tarball, integrity, shasum }))
}

/// A manifest with the positions of its members.
struct ScannedManifest<'a> {
    text: &'a str,
    members: Vec<Member>,
}

impl<'a> ScannedManifest<'a> {
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

    /// Returns the abbreviated and the full form, without `dist` and `deprecated`.
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

    /// Returns true if the package runs scripts when it is installed. Many registries do not set
    /// `hasInstallScript`, so their clients must derive it from the full form. The proxy adds it to
    /// both forms.
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
