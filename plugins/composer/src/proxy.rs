//! Reads through a proxy: metadata and files. In the metadata, addresses of this server replace the
//! upstream's. Each file must match the checksum in the metadata.
//!
//! The plugin stores a record for each version whose file it fetched. With this record, the plugin
//! can later detect that the upstream no longer lists the version. It can also serve the file
//! without the upstream's metadata.

use crate::FILE_LIMIT;
use crate::members;
use crate::records::{self, FetchedVersion, MAX_RECORD, file_path};
use crate::upstream::{self, UpstreamDocument, unusable};
use crate::upstream_metadata::{self, Dist, Root, UpstreamListing, UpstreamVersion};
use crate::version::Version;
use packhouse_sdk::{
    Context, Digest, Entry, Error, Expectation, Failure, Found, Freshness, Release, ReleaseVerdict,
    Repository, Response, Version as ListedVersion,
};
use serde_json::Value;
use std::collections::BTreeSet;

/// The path of the root document of a Composer repository.
const ROOT: &str = "packages.json";

/// Returns the versions of a package at the upstream that the proxy may offer: development versions
/// if `dev` is true, and otherwise all other versions. `None` if the upstream does not have the
/// package.
pub(crate) fn versions(
    cx: &Context,
    proxy: &Repository,
    name: &str,
    dev: bool,
) -> Result<Option<Vec<UpstreamVersion>>, Failure> {
    // Without the root document, the plugin does not know which versions the upstream has, so it
    // marks no version as withdrawn.
    let Some(root) = root(cx, proxy)? else { return Ok(None) };
    let (exists, listed) = match listed(cx, proxy, root, name, dev)? {
        Found::There(listed) => (true, listed),
        Found::Nothing => (false, Vec::new()),
        Found::Refused => return Ok(None),
    };
    let gone = withdraw(proxy, name, &listed, dev)?;
    let mut all = proxy.offered(name, listed, |one| release(one, false))?;
    all.extend(proxy.offered(name, gone, |one| release(one, true))?);
    Ok((exists || !all.is_empty()).then_some(all))
}

/// The upstream's `packages.json`, as text and parsed.
pub(crate) struct RootDocument {
    pub(crate) root: Root,
    document: UpstreamDocument,
}

/// Returns the versions that the upstream lists: development versions if `dev` is true, and
/// otherwise all other versions.
fn listed(
    cx: &Context,
    proxy: &Repository,
    RootDocument { root, document }: RootDocument,
    name: &str,
    dev: bool,
) -> Result<Found<Vec<UpstreamVersion>>, Failure> {
    let document = match root.template {
        None => document,
        Some(template) => {
            let package = if dev { format!("{name}~dev") } else { name.to_owned() };
            let target = upstream::below(proxy, &template.replace("%package%", &package))?;
            match upstream::document(cx, proxy, &target)? {
                Found::There(document) => document,
                Found::Nothing => return Ok(Found::Nothing),
                Found::Refused => return Ok(Found::Refused),
            }
        }
    };
    let listing = upstream_metadata::read_listing(&document.text, &document.base, name);
    let listing = listing.map_err(|problem| unusable(&document.path, &problem))?;
    let Some(UpstreamListing { mut versions, left_out }) = listing else { return Ok(Found::Nothing) };
    if versions.is_empty() && left_out > 0 {
        return Err(unusable(&document.path, "it lists no version that Composer can read"));
    }
    cx.log().left_out(name, "versions", left_out);
    versions.retain(|one| one.version.is_dev() == dev);
    Ok(Found::There(versions))
}

/// The upstream's `packages.json`; `None` if it does not exist or the upstream refuses the request.
///
/// # Errors
/// 502 if the document cannot be read.
pub(crate) fn root(cx: &Context, proxy: &Repository) -> Result<Option<RootDocument>, Failure> {
    let Some(document) = upstream::document(cx, proxy, ROOT)?.there() else { return Ok(None) };
    let root = upstream_metadata::read_root(&document.text, &document.base);
    let root = root.ok_or_else(|| unusable(ROOT, "it has neither a metadata-url nor packages"))?;
    Ok(Some(RootDocument { root, document }))
}

fn release(one: &UpstreamVersion, withdrawn: bool) -> Release {
    Release::of(&one.text, one.published, withdrawn)
}

/// Updates the records of fetched versions that the upstream no longer lists, or lists again.
/// Returns the fetched versions that the upstream no longer lists.
fn withdraw(
    proxy: &Repository,
    name: &str,
    listed: &[UpstreamVersion],
    dev: bool,
) -> Result<Vec<UpstreamVersion>, Failure> {
    let current: BTreeSet<String> = listed.iter().map(|one| one.version.key()).collect();
    let mut gone = Vec::new();
    for entry in proxy.scan(records::all_fetched(name)) {
        let Entry { key, value, revision } = entry?.json::<FetchedVersion>()?;
        let version = Version::parse(&value.version).filter(|version| version.is_dev() == dev);
        let Some(version) = version else { continue };
        let withdrawn = !current.contains(&version.key());
        let was_withdrawn = value.withdrawn;
        let fetched = FetchedVersion { withdrawn, ..value };
        if withdrawn != was_withdrawn {
            let mut change = proxy.begin()?;
            change.put_json(&key, &fetched, Expectation::Revision(revision), &[])?;
            let state = if withdrawn { "withdrawn" } else { "" };
            change.show(&listed_version(name, &fetched.version, fetched.published).state(state));
            // If the commit is stale, a concurrent request has recorded the same.
            let _stale_if_already_recorded = change.commit()?;
        }
        if withdrawn {
            gone.push(last_listed(version, fetched));
        }
    }
    Ok(gone)
}

/// Returns the version as the upstream listed it when the proxy fetched its file.
fn last_listed(version: Version, fetched: FetchedVersion) -> UpstreamVersion {
    let FetchedVersion { version: text, url, kind, sha1, published, metadata, .. } = fetched;
    let dist = Some(Dist { url, kind, sha1 });
    UpstreamVersion { version, text, dist, published, members: members::of_raw(&metadata) }
}

fn listed_version(name: &str, version: &str, published: Option<u64>) -> ListedVersion {
    ListedVersion { published, ..ListedVersion::new(name, version) }
}

/// The file that a request names.
pub(crate) struct RequestedFile<'a> {
    pub(crate) name: &'a str,
    pub(crate) version: &'a Version,
    pub(crate) kind: &'a str,
    /// The requested state of a branch: the value of `dist.reference`.
    pub(crate) reference: Option<&'a str>,
}

impl RequestedFile<'_> {
    /// Returns true if the request names no state, or names the state of this version.
    fn matches_state(&self, one: &UpstreamVersion) -> bool {
        self.reference.is_none_or(|state| reference(&one.members).as_deref() == Some(state))
    }
}

/// The value of `dist.reference`, unless it is empty.
pub(crate) fn reference(members: &members::Members) -> Option<String> {
    let dist = members::object(members, "dist")?;
    dist.get("reference").and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Fetches the file of a version. `None` if the upstream does not have the file, or if the proxy
/// must not offer the version.
pub(crate) fn file(
    cx: &Context,
    proxy: &Repository,
    requested: &RequestedFile<'_>,
) -> Result<Option<Response>, Failure> {
    let RequestedFile { name, version, .. } = *requested;
    let record = proxy.get_json::<FetchedVersion>(&records::fetched(name, &version.key()))?;
    let known = record.map(|Entry { value, .. }| (value.withdrawn, last_listed(version.clone(), value)));
    let known = known.filter(|(_, one)| requested.matches_state(one));
    // A branch moves, so only the current metadata tell which file the branch has.
    let moves = version.is_dev() && requested.reference.is_none();
    let mut tried = None;
    if let Some((withdrawn, one)) = known.as_ref().filter(|_| !moves) {
        let response = serve(cx, proxy, requested, one, *withdrawn)?;
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
    let one = listed.iter().find(|one| one.version.key() == key && requested.matches_state(one));
    match (one, &known) {
        // The upstream has already answered that it does not have this file.
        (Some(one), _) if tried.is_some() && one.dist.as_ref() == tried => Ok(None),
        (Some(one), _) => serve(cx, proxy, requested, one, false),
        (None, Some((withdrawn, one))) if moves => {
            serve(cx, proxy, requested, one, !is_refused || *withdrawn)
        }
        (None, _) => Ok(None),
    }
}

fn serve(
    cx: &Context,
    proxy: &Repository,
    requested: &RequestedFile<'_>,
    one: &UpstreamVersion,
    withdrawn: bool,
) -> Result<Option<Response>, Failure> {
    let RequestedFile { name, kind, .. } = *requested;
    let Some(dist) = one.dist.as_ref().filter(|dist| dist.kind == kind) else { return Ok(None) };
    if proxy.judge_asked(name, &release(one, withdrawn))? != ReleaseVerdict::Offered {
        return Ok(None);
    }
    record(proxy, name, one, dist, withdrawn)?;
    let target = upstream::below(proxy, &dist.url)?;
    let path = file_path(name, &one.text, kind);
    let mut fetch = cx.upstream("GET", &target).limit(FILE_LIMIT).show_as(name, &one.text, &path);
    if is_immutable(one, dist) {
        fetch = fetch.fresh(Freshness::Immutable);
    }
    if let Some(sha1) = &dist.sha1 {
        fetch = fetch.expect(&Digest::new("sha1", sha1)?);
    }
    let Some(body) = upstream::body_if_found(fetch.start(proxy)?)? else { return Ok(None) };
    let response = Response::blob(body).content_type(media_type(kind));
    let is_fixed = !one.version.is_dev() || requested.reference.is_some();
    Ok(Some(if is_fixed { response.immutable() } else { response.revalidate() }))
}

/// True if the file at the upstream's address never changes. The file of a branch changes when the
/// branch moves, unless the address or a checksum identifies the state of the branch.
fn is_immutable(one: &UpstreamVersion, dist: &Dist) -> bool {
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

/// Records a version whose file is fetched.
fn record(
    proxy: &Repository,
    name: &str,
    one: &UpstreamVersion,
    dist: &Dist,
    withdrawn: bool,
) -> Result<(), Failure> {
    let key = records::fetched(name, &one.version.key());
    let before = proxy.get(&key)?;
    let Dist { url, kind, sha1 } = dist.clone();
    let (version, published) = (one.text.clone(), one.published);
    let metadata = members::to_raw(&one.members)?;
    let fetched = FetchedVersion { kind, metadata, published, sha1, url, version, withdrawn };
    let value = serde_json::to_vec(&fetched).map_err(Error::from)?;
    let is_known = before.as_ref().is_some_and(|entry| entry.value == value);
    if is_known || value.len() > MAX_RECORD {
        return Ok(());
    }
    let mut change = proxy.begin()?;
    change.put(&key, &value, Expectation::unchanged(before.as_ref()), &[]);
    change.show(&listed_version(name, &one.text, one.published));
    // If the commit is stale, a concurrent request has recorded the same.
    let _stale_if_already_recorded = change.commit()?;
    Ok(())
}
