//! A proxy: its upstream's packuments with addresses of its own in them, and the tarballs that those name.

use crate::dist::from_integrity;
use crate::manifest::license;
use crate::name::Name;
use crate::packument::{Rendering, Summary};
use crate::pieces::MANY;
use crate::readme::Readme;
use crate::upstream_packument::{self, Packument, UpstreamVersion};
use crate::upstream_pieces::UpstreamPieces;
use crate::version::highest;
use crate::version_piece::Piece;
use crate::withdrawn;
use packhouse_sdk::{
    Blob, Content, Context, Denied, Digest, Error, Failure, Found, Freshness, Release, Reply, Repository,
    Response, Settings, SortedOut, Timestamp,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a tarball from elsewhere. Other registries allow more than this one.
const TARBALL: u64 = 2_100_000_000;
/// Bytes of the upstream's other answers.
const ANSWER: u64 = 16 << 20;

/// What an upstream has of a package, as far as it is offered.
pub(crate) struct UpstreamPackage {
    packument: Packument,
    /// When each version that is offered was published, in ms since 1970.
    offered: BTreeMap<String, u64>,
    /// Why policies withhold others.
    denied: BTreeMap<String, String>,
    /// When each version was published, and more, in ms since 1970.
    times: BTreeMap<String, u64>,
    /// All of its versions, offered or not.
    known: BTreeSet<String>,
    /// As far as what they name is offered.
    pub(crate) tags: BTreeMap<String, String>,
    summary: Summary,
}

impl UpstreamPackage {
    /// Asks for a package; none where the upstream has none, or refuses to say.
    ///
    /// # Errors
    /// 502 where the upstream cannot be asked, or answers nonsense.
    pub(crate) fn open(cx: &Context, proxy: &Repository, name: &Name) -> Result<Option<Self>, Failure> {
        let question = cx.upstream("GET", &name.encoded()).header("accept", "application/json");
        let reply = question.limit(upstream_packument::LIMIT).metadata().start(proxy)?;
        let packument = match reply.look()? {
            Found::There(reply) => Packument::open(proxy, reply.body()?, name)?,
            Found::Nothing => {
                // Where the package is no more, none of its versions is.
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
        let Sorted { offered, denied } = sort_out(proxy, name, &known, &times)?;
        let tags = tags(packument.map("dist-tags")?, &offered);
        let maintainers = match packument.member("maintainers")? {
            Some(Value::Array(maintainers)) => maintainers,
            _ => Vec::new(),
        };
        let text = |member: &str| -> Result<String, Error> {
            let value: Option<Value> = packument.member(member)?;
            Ok(value.and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default())
        };
        let readme = Readme::new(&text("readme")?, &text("readmeFilename")?);
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

    /// The version of this number, if it is offered.
    fn version(&self, name: &Name, number: &str) -> Result<Option<UpstreamVersion>, Error> {
        let Some(time) = self.offered.get(number) else { return Ok(None) };
        let found = self.packument.version(name, number)?;
        Ok(found.map(|mut version| {
            version.piece.time = *time;
            version
        }))
    }

    /// Has the host judge a version that is asked for and not offered: by that it knows what to tell who is answered that it is not there.
    fn judge_asked(&self, proxy: &Repository, name: &Name, number: &str) -> Result<(), Failure> {
        let Some(version) = self.packument.version(name, number)? else { return Ok(()) };
        let stated = serde_json::from_str(&version.piece.full).map(|members| license(&members));
        let license = stated.ok().filter(|license| !license.is_empty());
        let release = Release::of(number, self.times.get(number).copied(), false);
        let _it_is_not_offered = proxy.judge_asked(name.as_str(), &Release { license, ..release })?;
        Ok(())
    }
}

/// The body of an upstream's answer to a question for something that it may not have.
fn found(reply: Reply) -> Result<Option<Blob>, Failure> {
    Ok(reply.found()?.map(Reply::body).transpose()?)
}

/// Versions that may be offered.
struct Sorted {
    /// When each was published, in ms since 1970.
    offered: BTreeMap<String, u64>,
    /// Why policies withhold others.
    denied: BTreeMap<String, String>,
}

/// Those versions that may be offered, and why others are not.
fn sort_out(
    proxy: &Repository,
    name: &Name,
    known: &BTreeSet<String>,
    times: &BTreeMap<String, u64>,
) -> Result<Sorted, Failure> {
    let all = known.iter().map(|number| (number, times.get(number).copied())).collect();
    let release = |(number, published): &(&String, Option<u64>)| Release::of(*number, *published, false);
    let SortedOut { offered, denied } = proxy.sorted_out(name.as_str(), all, release)?;
    let offered = offered.into_iter().map(|(number, time)| (number.clone(), time.unwrap_or_default()));
    let denied = denied.into_iter().map(|Denied { one: (number, _), because }| (number.clone(), because));
    Ok(Sorted { offered: offered.collect(), denied: denied.collect() })
}

/// Tags of what is offered. `latest` always names something.
fn tags(all: BTreeMap<String, Value>, offered: &BTreeMap<String, u64>) -> BTreeMap<String, String> {
    let said = all.into_iter().filter_map(|(tag, number)| Some((tag, number.as_str()?.to_owned())));
    let mut tags: BTreeMap<String, String> =
        said.filter(|(_, number)| offered.contains_key(number)).collect();
    if let Some(highest) = highest(offered.keys().map(String::as_str)) {
        tags.entry("latest".to_owned()).or_insert_with(|| highest.to_owned());
    }
    tags
}

/// Adds all versions that are offered to a packument; false where the upstream has no such package.
pub(crate) fn add(
    cx: &Context,
    proxy: &Repository,
    name: &Name,
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
            rendering.add_beside_pieces(&number, &version.piece)?;
        }
        return Ok(true);
    }
    packument.each(name, packument.versions(), &mut |number, mut version| {
        let Some(time) = offered.get(number) else { return Ok(()) };
        version.piece.time = *time;
        rendering.add(number, &version.piece)
    })?;
    cx.log().left_out(name.as_str(), "versions", packument.left_out());
    for (number, version) in withdrawn::find(proxy, name, &upstream.known)? {
        rendering.add_untagged(&number, &version.piece)?;
    }
    Ok(true)
}

/// One version, if it is offered.
pub(crate) fn version(
    cx: &Context,
    proxy: &Repository,
    name: &Name,
    number: &str,
) -> Result<Option<Piece>, Failure> {
    Ok(find(cx, proxy, name, number)?.map(|version| version.piece))
}

fn find(
    cx: &Context,
    proxy: &Repository,
    name: &Name,
    number: &str,
) -> Result<Option<UpstreamVersion>, Failure> {
    let Some(upstream) = UpstreamPackage::open(cx, proxy, name)? else { return Ok(None) };
    if let Some(version) = upstream.version(name, number)? {
        return Ok(Some(version));
    }
    let kept = withdrawn::find(proxy, name, &upstream.known)?.remove(number);
    if kept.is_none() {
        upstream.judge_asked(proxy, name, number)?;
    }
    cx.log().left_out(name.as_str(), "versions", upstream.packument.left_out());
    Ok(kept)
}

/// The tarball of a version, which must be what the packument says of it.
pub(crate) fn tarball(
    cx: &Context,
    proxy: &Repository,
    name: &Name,
    number: &str,
) -> Result<Option<Response>, Failure> {
    let Some(version) = find(cx, proxy, name, number)? else { return Ok(None) };
    let expected = expected(&version).ok_or_else(|| {
        Failure::unusable_upstream(format!("it does not say what {name}@{number} should be"))
    })?;
    withdrawn::remember(cx, proxy, name, number, &version)?;
    let fetch = cx
        .upstream("GET", &version.tarball)
        .fresh(Freshness::Immutable)
        .limit(TARBALL)
        .expect(&expected)
        .show_as(name.as_str(), number, &name.path(number));
    let reply = fetch.start(proxy).map_err(|error| match error {
        Error::Invalid(_) => {
            Failure::unusable_upstream(format!("it does not say where {name}@{number} lies"))
        }
        other => other.into(),
    })?;
    Ok(found(reply)?.map(|blob| Response::blob(blob).immutable()))
}

/// The strongest digest that is said.
fn expected(version: &UpstreamVersion) -> Option<Digest> {
    let said = version.integrity.as_deref().unwrap_or_default();
    let mut digests: Vec<Digest> = said.split_whitespace().filter_map(from_integrity).collect();
    digests.sort_by_key(|digest| digest.hex().len());
    digests.pop().or_else(|| Digest::new("sha1", &version.shasum.as_ref()?.to_ascii_lowercase()).ok())
}

/// What is signed of a version, as the upstream has it; judged as the version's tarball is.
pub(crate) fn attestations(
    cx: &Context,
    proxy: &Repository,
    name: &Name,
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

/// Passes a question on: search and keys.
pub(crate) fn pass_on(cx: &Context, proxy: &Repository, target: &str) -> Result<Option<Content>, Failure> {
    let fetch = cx.upstream("GET", target).header("accept", "application/json").limit(ANSWER);
    let reply = fetch.metadata().start(proxy)?;
    Ok(found(reply)?.map(Content::Blob))
}

/// Sends a `POST` to the upstream.
///
/// # Errors
/// The host's.
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
