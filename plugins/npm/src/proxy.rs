//! Proxy repositories. They serve the upstream's tarballs, and its packuments with the proxy's own
//! addresses.

use crate::dist::from_integrity;
use crate::manifest::license;
use crate::name::PackageName;
use crate::packument::{Rendering, Summary};
use crate::pieces::MANY;
use crate::readme::PackageReadme;
use crate::upstream_packument::{self, Packument, UpstreamVersion};
use crate::upstream_pieces::UpstreamPieces;
use crate::version::highest;
use crate::version_content::VersionContent;
use crate::withdrawn;
use packhouse_sdk::{
    Blob, Content, Context, Denied, Digest, Error, Failure, Found, Freshness, Release, Reply, Repository,
    Response, Settings, SortedOut, Timestamp,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of bytes of an upstream's tarball. Other registries allow larger tarballs than
/// this server.
const TARBALL: u64 = 2_100_000_000;
/// Maximum number of bytes of the upstream's other responses.
const ANSWER: u64 = 16 << 20;

/// An upstream's package, with the versions that the proxy offers.
pub(crate) struct UpstreamPackage {
    packument: Packument,
    /// Publication time of each offered version, in ms since 1970.
    offered: BTreeMap<String, u64>,
    /// Reasons why policies withhold the other versions, by number.
    denied: BTreeMap<String, String>,
    /// The upstream's `time`: publication times of all versions, `created` and `modified`, in ms
    /// since 1970.
    times: BTreeMap<String, u64>,
    /// All versions, offered or not.
    known: BTreeSet<String>,
    /// The tags of offered versions.
    pub(crate) tags: BTreeMap<String, String>,
    summary: Summary,
}

impl UpstreamPackage {
    /// Requests a package; `None` if the upstream does not have it or refuses the request.
    ///
    /// # Errors
    /// 502 if the upstream cannot be reached, or if its response is invalid.
    pub(crate) fn open(
        cx: &Context,
        proxy: &Repository,
        name: &PackageName,
    ) -> Result<Option<Self>, Failure> {
        let fetch = cx.upstream("GET", &name.encoded()).header("accept", "application/json");
        let reply = fetch.limit(upstream_packument::LIMIT).metadata().start(proxy)?;
        let packument = match reply.look()? {
            Found::There(reply) => Packument::open(proxy, reply.body()?, name)?,
            Found::Nothing => {
                // The call marks all fetched versions as withdrawn, because the upstream no longer
                // has the package.
                withdrawn::find(proxy, name, &BTreeSet::new())?;
                return Ok(None);
            }
            Found::Refused => return Ok(None),
        };
        let times: BTreeMap<String, u64> = packument
            .map("time")?
            .into_iter()
            .filter_map(|(number, time)| Some((number, Timestamp::parse_rfc3339(time.as_str()?)?.to_ms()?)))
            .collect();
        let known = packument.numbers();
        let SortedVersions { offered, denied } = sort_out(proxy, name, &known, &times)?;
        let tags = tags(packument.map("dist-tags")?, &offered);
        let maintainers = match packument.member("maintainers")? {
            Some(Value::Array(maintainers)) => maintainers,
            _ => Vec::new(),
        };
        let text = |member: &str| -> Result<String, Error> {
            let value: Option<Value> = packument.member(member)?;
            Ok(value.and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default())
        };
        let readme = PackageReadme::new(&text("readme")?, &text("readmeFilename")?);
        let time = |member: &str| times.get(member).copied();
        let newest = offered.values().max().copied().unwrap_or_default();
        let summary = Summary {
            tags: tags.clone(),
            created: time("created").unwrap_or_default(),
            modified: time("modified").unwrap_or(newest),
            maintainers,
            readme,
            revision: None,
        };
        Ok(Some(Self { packument, offered, denied, times, known, tags, summary }))
    }

    /// Returns the version with this number, if it is offered.
    fn version(&self, name: &PackageName, number: &str) -> Result<Option<UpstreamVersion>, Error> {
        let Some(time) = self.offered.get(number) else { return Ok(None) };
        let found = self.packument.version(name, number)?;
        Ok(found.map(|mut version| {
            version.content.time = *time;
            version
        }))
    }

    /// Makes the host judge a requested version that is not offered. The host then replaces the
    /// client's 404 by a response with the reason.
    fn judge_requested(&self, proxy: &Repository, name: &PackageName, number: &str) -> Result<(), Failure> {
        let Some(version) = self.packument.version(name, number)? else { return Ok(()) };
        let stated = serde_json::from_str(&version.content.full).map(|members| license(&members));
        let license = stated.ok().filter(|license| !license.is_empty());
        let release = Release::of(number, self.times.get(number).copied(), false);
        let _it_is_not_offered = proxy.judge_asked(name.as_str(), &Release { license, ..release })?;
        Ok(())
    }
}

/// Returns the body of an upstream's reply, or `None` if the upstream does not have the requested
/// resource.
fn found(reply: Reply) -> Result<Option<Blob>, Failure> {
    Ok(reply.found()?.map(Reply::body).transpose()?)
}

/// An upstream's versions, divided into offered and withheld versions.
struct SortedVersions {
    /// Publication time of each offered version, in ms since 1970.
    offered: BTreeMap<String, u64>,
    /// Reasons why policies withhold the other versions, by number.
    denied: BTreeMap<String, String>,
}

/// Lets the host decide which versions may be offered.
fn sort_out(
    proxy: &Repository,
    name: &PackageName,
    known: &BTreeSet<String>,
    times: &BTreeMap<String, u64>,
) -> Result<SortedVersions, Failure> {
    let all = known.iter().map(|number| (number, times.get(number).copied())).collect();
    let release = |(number, published): &(&String, Option<u64>)| Release::of(*number, *published, false);
    let SortedOut { offered, denied } = proxy.sorted_out(name.as_str(), all, release)?;
    let offered = offered.into_iter().map(|(number, time)| (number.clone(), time.unwrap_or_default()));
    let denied = denied.into_iter().map(|Denied { one: (number, _), because }| (number.clone(), because));
    Ok(SortedVersions { offered: offered.collect(), denied: denied.collect() })
}

/// Returns the upstream's tags of offered versions. If none of them is `latest`, adds a `latest`
/// for the highest offered version.
fn tags(all: BTreeMap<String, Value>, offered: &BTreeMap<String, u64>) -> BTreeMap<String, String> {
    let stated = all.into_iter().filter_map(|(tag, number)| Some((tag, number.as_str()?.to_owned())));
    let mut tags: BTreeMap<String, String> =
        stated.filter(|(_, number)| offered.contains_key(number)).collect();
    if let Some(highest) = highest(offered.keys().map(String::as_str)) {
        tags.entry("latest".to_owned()).or_insert_with(|| highest.to_owned());
    }
    tags
}

/// Adds all offered versions to a packument. `alone` is true if no other repository adds versions
/// to it. Returns false if the upstream does not have the package.
pub(crate) fn add(
    cx: &Context,
    proxy: &Repository,
    name: &PackageName,
    alone: bool,
    rendering: &mut Rendering<'_>,
) -> Result<bool, Failure> {
    let Some(mut upstream) = UpstreamPackage::open(cx, proxy, name)? else { return Ok(false) };
    rendering.summary(std::mem::take(&mut upstream.summary));
    rendering.restrict(std::mem::take(&mut upstream.denied));
    let UpstreamPackage { packument, offered, .. } = &upstream;
    if alone && packument.versions().len() >= MANY {
        let withdrawn = withdrawn::find(proxy, name, &upstream.known)?;
        UpstreamPieces { proxy, name, packument, offered }.add(rendering)?;
        cx.log().left_out(name.as_str(), "versions", packument.left_out());
        for (number, version) in withdrawn {
            rendering.add_beside_pieces(&number, &version.content)?;
        }
        return Ok(true);
    }
    packument.each(name, packument.versions(), &mut |number, mut version| {
        let Some(time) = offered.get(number) else { return Ok(()) };
        version.content.time = *time;
        rendering.add(number, &version.content)
    })?;
    cx.log().left_out(name.as_str(), "versions", packument.left_out());
    for (number, version) in withdrawn::find(proxy, name, &upstream.known)? {
        rendering.add_untagged(&number, &version.content)?;
    }
    Ok(true)
}

/// Returns one version, if it is offered.
pub(crate) fn version(
    cx: &Context,
    proxy: &Repository,
    name: &PackageName,
    number: &str,
) -> Result<Option<VersionContent>, Failure> {
    Ok(find(cx, proxy, name, number)?.map(|version| version.content))
}

fn find(
    cx: &Context,
    proxy: &Repository,
    name: &PackageName,
    number: &str,
) -> Result<Option<UpstreamVersion>, Failure> {
    let Some(upstream) = UpstreamPackage::open(cx, proxy, name)? else { return Ok(None) };
    if let Some(version) = upstream.version(name, number)? {
        return Ok(Some(version));
    }
    let withdrawn = withdrawn::find(proxy, name, &upstream.known)?.remove(number);
    if withdrawn.is_none() {
        upstream.judge_requested(proxy, name, number)?;
    }
    cx.log().left_out(name.as_str(), "versions", upstream.packument.left_out());
    Ok(withdrawn)
}

/// Returns the tarball of a version. The host checks it against the digest in the packument.
pub(crate) fn tarball(
    cx: &Context,
    proxy: &Repository,
    name: &PackageName,
    number: &str,
) -> Result<Option<Response>, Failure> {
    let Some(version) = find(cx, proxy, name, number)? else { return Ok(None) };
    let expected = expected(&version).ok_or_else(|| {
        Failure::unusable_upstream(format!("its packument has no valid digest of {name}@{number}"))
    })?;
    withdrawn::remember(cx, proxy, name, number, &version)?;
    let fetch = cx
        .upstream("GET", &version.tarball)
        .fresh(Freshness::Immutable)
        .limit(TARBALL)
        .expect(&expected)
        .show_as(name.as_str(), number, &name.path(number));
    let reply = fetch.start(proxy).map_err(|error| match error {
        Error::Invalid(_) => Failure::unusable_upstream(format!(
            "its packument has no valid tarball address of {name}@{number}"
        )),
        other => other.into(),
    })?;
    Ok(found(reply)?.map(|blob| Response::blob(blob).immutable()))
}

/// Returns the strongest digest that the packument states for the tarball.
fn expected(version: &UpstreamVersion) -> Option<Digest> {
    let integrity = version.integrity.as_deref().unwrap_or_default();
    let mut digests: Vec<Digest> = integrity.split_whitespace().filter_map(from_integrity).collect();
    digests.sort_by_key(|digest| digest.hex().len());
    digests.pop().or_else(|| Digest::new("sha1", &version.shasum.as_ref()?.to_ascii_lowercase()).ok())
}

/// Returns the upstream's attestations of a version. The host serves them under the same conditions
/// as the version's tarball.
pub(crate) fn attestations(
    cx: &Context,
    proxy: &Repository,
    name: &PackageName,
    number: &str,
) -> Result<Option<Content>, Failure> {
    if Settings::of(proxy)?.judged_by_policies
        && let Some(version) = find(cx, proxy, name, number)?
    {
        withdrawn::remember(cx, proxy, name, number, &version)?;
    }
    let target = format!("-/npm/v1/attestations/{}@{number}", name.encoded());
    let fetch = cx.upstream("GET", &target).header("accept", "application/json").limit(ANSWER);
    let reply = fetch.part_of(name.as_str(), number, &name.path(number)).start(proxy)?;
    Ok(found(reply)?.map(Content::Blob))
}

/// Passes a search or a request for keys on to the upstream.
pub(crate) fn pass_on(cx: &Context, proxy: &Repository, target: &str) -> Result<Option<Content>, Failure> {
    let fetch = cx.upstream("GET", target).header("accept", "application/json").limit(ANSWER);
    let reply = fetch.metadata().start(proxy)?;
    Ok(found(reply)?.map(Content::Blob))
}

/// Sends a `POST` to the upstream. The host revalidates a cached response each time.
///
/// # Errors
/// Errors of the host.
pub(crate) fn ask<'a>(
    cx: &Context,
    proxy: &Repository,
    target: &str,
    headers: impl IntoIterator<Item = (&'a str, &'a str)>,
    body: &[u8],
) -> Result<Reply, Error> {
    let fetch = cx.upstream("POST", target).header("accept", "application/json").limit(ANSWER);
    let fetch = headers.into_iter().fold(fetch, |fetch, (name, value)| fetch.header(name, value));
    fetch.fresh(Freshness::Never).body(body).metadata().start(proxy)
}
