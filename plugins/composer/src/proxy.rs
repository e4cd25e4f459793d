//! A proxy: its upstream's metadata with addresses of its own, and the files, checked against the
//! metadata.
//!
//! Records stand for the versions whose file was fetched: they tell later which of them the upstream
//! lists no longer, and serve a file without the metadata.

use crate::FILE_LIMIT;
use crate::members;
use crate::records::{self, Fetched, LARGEST, file_path};
use crate::upstream::{self, Document, unusable};
use crate::upstream_metadata::{self, Dist, Listed, Listing, Root};
use crate::version::Version;
use packhouse_sdk::{
    Context, Digest, Entry, Error, Expectation, Failure, Found, Freshness, Release, ReleaseVerdict,
    Repository, Response, Version as ShownVersion,
};
use serde_json::Value;
use std::collections::BTreeSet;

/// The document that a Composer repository begins with.
const ROOT: &str = "packages.json";

/// The upstream's versions of a package that may be offered, development versions or the others;
/// none if the upstream has no such package.
pub(crate) fn versions(
    cx: &Context,
    proxy: &Repository,
    name: &str,
    dev: bool,
) -> Result<Option<Vec<Listed>>, Failure> {
    // A root that is not there or refused says nothing about which versions there are.
    let Some(root) = root(cx, proxy)? else { return Ok(None) };
    let (there, listed) = match listed(cx, proxy, root, name, dev)? {
        Found::There(listed) => (true, listed),
        Found::Nothing => (false, Vec::new()),
        Found::Refused => return Ok(None),
    };
    let gone = withdraw(proxy, name, &listed, dev)?;
    let mut all = proxy.offered(name, listed, |one| release(one, false))?;
    all.extend(proxy.offered(name, gone, |one| release(one, true))?);
    Ok((there || !all.is_empty()).then_some(all))
}

/// The upstream's `packages.json`, and what it says.
pub(crate) struct RootDocument {
    pub(crate) root: Root,
    document: Document,
}

/// The versions that the upstream lists, development versions or the others.
fn listed(
    cx: &Context,
    proxy: &Repository,
    RootDocument { root, document }: RootDocument,
    name: &str,
    dev: bool,
) -> Result<Found<Vec<Listed>>, Failure> {
    let document = match root.template {
        None => document,
        Some(template) => {
            let asked = if dev { format!("{name}~dev") } else { name.to_owned() };
            let target = upstream::below(proxy, &template.replace("%package%", &asked))?;
            match upstream::document(cx, proxy, &target)? {
                Found::There(document) => document,
                Found::Nothing => return Ok(Found::Nothing),
                Found::Refused => return Ok(Found::Refused),
            }
        }
    };
    let listing = upstream_metadata::read_listing(&document.text, &document.base, name);
    let listing = listing.map_err(|problem| unusable(&document.path, &problem))?;
    let Some(Listing { mut versions, left_out }) = listing else { return Ok(Found::Nothing) };
    if versions.is_empty() && left_out > 0 {
        return Err(unusable(&document.path, "no version that can be read"));
    }
    cx.log().left_out(name, "versions", left_out);
    versions.retain(|one| one.version.is_dev() == dev);
    Ok(Found::There(versions))
}

/// The upstream's `packages.json`; none if the upstream has none, or refuses it.
///
/// # Errors
/// 502 if it cannot be read.
pub(crate) fn root(cx: &Context, proxy: &Repository) -> Result<Option<RootDocument>, Failure> {
    let Some(document) = upstream::document(cx, proxy, ROOT)?.there() else { return Ok(None) };
    let root = upstream_metadata::read_root(&document.text, &document.base);
    let root = root.ok_or_else(|| unusable(ROOT, "neither a metadata-url nor packages"))?;
    Ok(Some(RootDocument { root, document }))
}

fn release(one: &Listed, withdrawn: bool) -> Release {
    Release::of(&one.text, one.published, withdrawn)
}

/// Notes which fetched versions the upstream lists no longer, or lists again. Returns those that it
/// lists no longer.
fn withdraw(proxy: &Repository, name: &str, listed: &[Listed], dev: bool) -> Result<Vec<Listed>, Failure> {
    let there: BTreeSet<String> = listed.iter().map(|one| one.version.key()).collect();
    let mut gone = Vec::new();
    for entry in proxy.scan(records::all_fetched(name)) {
        let Entry { key, value, revision } = entry?.json::<Fetched>()?;
        let version = Version::parse(&value.version).filter(|version| version.is_dev() == dev);
        let Some(version) = version else { continue };
        let withdrawn = !there.contains(&version.key());
        let noted = value.withdrawn;
        let fetched = Fetched { withdrawn, ..value };
        if withdrawn != noted {
            let mut change = proxy.begin()?;
            change.put_json(&key, &fetched, Expectation::Revision(revision), &[])?;
            let state = if withdrawn { "withdrawn" } else { "" };
            change.show(&shown(name, &fetched.version, fetched.published).state(state));
            // Another request that was faster has noted the same.
            let _stale_is_noted_already = change.commit()?;
        }
        if withdrawn {
            gone.push(listed_again(version, fetched));
        }
    }
    Ok(gone)
}

/// The version as it was listed when its file was fetched.
fn listed_again(version: Version, fetched: Fetched) -> Listed {
    let Fetched { version: text, url, kind, sha1, published, metadata, .. } = fetched;
    let dist = Some(Dist { url, kind, sha1 });
    Listed { version, text, dist, published, members: members::of_raw(&metadata) }
}

fn shown(name: &str, version: &str, published: Option<u64>) -> ShownVersion {
    ShownVersion { published, ..ShownVersion::new(name, version) }
}

/// The file that a request names.
pub(crate) struct AskedFile<'a> {
    pub(crate) name: &'a str,
    pub(crate) version: &'a Version,
    pub(crate) kind: &'a str,
    /// The state of a branch, in the words of `dist.reference`.
    pub(crate) reference: Option<&'a str>,
}

impl AskedFile<'_> {
    /// Whether the version is in the state that the request names, if it names one.
    fn is_state(&self, one: &Listed) -> bool {
        self.reference.is_none_or(|asked| reference(&one.members).as_deref() == Some(asked))
    }
}

/// The reference of a version's file.
pub(crate) fn reference(members: &members::Members) -> Option<String> {
    let dist = members::object(members, "dist")?;
    dist.get("reference").and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
}

/// A version's file; none if the upstream has none, or it may not be offered.
pub(crate) fn file(
    cx: &Context,
    proxy: &Repository,
    asked: &AskedFile<'_>,
) -> Result<Option<Response>, Failure> {
    let AskedFile { name, version, .. } = *asked;
    let record = proxy.get_json::<Fetched>(&records::fetched(name, &version.key()))?;
    let known = record.map(|Entry { value, .. }| (value.withdrawn, listed_again(version.clone(), value)));
    let known = known.filter(|(_, one)| asked.is_state(one));
    // A branch moves: only its metadata tell which file it has now.
    let moves = version.is_dev() && asked.reference.is_none();
    let mut tried = None;
    if let Some((withdrawn, one)) = known.as_ref().filter(|_| !moves) {
        let response = serve(cx, proxy, asked, one, *withdrawn)?;
        if response.is_some() {
            return Ok(response);
        }
        tried = one.dist.as_ref().filter(|_| !withdrawn);
    }
    let found = match root(cx, proxy)? {
        Some(root) => listed(cx, proxy, root, name, version.is_dev())?,
        None => Found::Refused,
    };
    let is_refused = matches!(found, Found::Refused);
    let listed = found.there().unwrap_or_default();
    let key = version.key();
    let one = listed.iter().find(|one| one.version.key() == key && asked.is_state(one));
    match (one, &known) {
        // The upstream has answered already that this file is not there.
        (Some(one), _) if tried.is_some() && one.dist.as_ref() == tried => Ok(None),
        (Some(one), _) => serve(cx, proxy, asked, one, false),
        (None, Some((withdrawn, one))) if moves => serve(cx, proxy, asked, one, !is_refused || *withdrawn),
        (None, _) => Ok(None),
    }
}

fn serve(
    cx: &Context,
    proxy: &Repository,
    asked: &AskedFile<'_>,
    one: &Listed,
    withdrawn: bool,
) -> Result<Option<Response>, Failure> {
    let AskedFile { name, kind, .. } = *asked;
    let Some(dist) = one.dist.as_ref().filter(|dist| dist.kind == kind) else { return Ok(None) };
    if proxy.judge_asked(name, &release(one, withdrawn))? != ReleaseVerdict::Offered {
        return Ok(None);
    }
    remember(proxy, name, one, dist, withdrawn)?;
    let target = upstream::below(proxy, &dist.url)?;
    let path = file_path(name, &one.text, kind);
    let mut fetch = cx.upstream("GET", &target).limit(FILE_LIMIT).show_as(name, &one.text, &path);
    if is_fixed(one, dist) {
        fetch = fetch.fresh(Freshness::Immutable);
    }
    if let Some(sha1) = &dist.sha1 {
        fetch = fetch.expect(&Digest::new("sha1", sha1)?);
    }
    let Some(body) = upstream::found(fetch.start(proxy)?)? else { return Ok(None) };
    let response = Response::blob(body).content_type(media_type(kind));
    let settled = !one.version.is_dev() || asked.reference.is_some();
    Ok(Some(if settled { response.immutable() } else { response.revalidate() }))
}

/// Whether the file at this address is always the same. At the address of a branch there is another
/// one when the branch moves, unless the address or a checksum names the state of the branch.
fn is_fixed(one: &Listed, dist: &Dist) -> bool {
    let named = || reference(&one.members).is_some_and(|reference| dist.url.contains(&reference));
    !one.version.is_dev() || dist.sha1.is_some() || named()
}

fn media_type(kind: &str) -> &'static str {
    match kind {
        "zip" => "application/zip",
        "tar" => "application/x-tar",
        _ => "application/octet-stream",
    }
}

/// Remembers a version whose file is fetched. Another request that was faster has remembered the
/// same.
fn remember(
    proxy: &Repository,
    name: &str,
    one: &Listed,
    dist: &Dist,
    withdrawn: bool,
) -> Result<(), Failure> {
    let key = records::fetched(name, &one.version.key());
    let before = proxy.get(&key)?;
    let Dist { url, kind, sha1 } = dist.clone();
    let (version, published) = (one.text.clone(), one.published);
    let metadata = members::to_raw(&one.members)?;
    let fetched = Fetched { kind, metadata, published, sha1, url, version, withdrawn };
    let value = serde_json::to_vec(&fetched).map_err(Error::from)?;
    let is_known = before.as_ref().is_some_and(|entry| entry.value == value);
    if is_known || value.len() > LARGEST {
        return Ok(());
    }
    let mut change = proxy.begin()?;
    change.put(&key, &value, Expectation::unchanged(before.as_ref()), &[]);
    change.show(&shown(name, &one.text, one.published));
    let _stale_is_remembered_already = change.commit()?;
    Ok(())
}
