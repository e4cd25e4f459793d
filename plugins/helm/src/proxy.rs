//! A proxy: its upstream's index with addresses of its own, and the files, checked against what the index says of them.
//!
//! The index is fetched and read for each list; the host keeps it as fresh as the repository's settings say. Records stand for the
//! versions whose file was fetched: they tell later what the upstream has no longer, and serve a file without the index.

use crate::listed::{Listed, Listing};
use crate::media_types::{MEDIA_TYPE, PROVENANCE_TYPE};
use crate::provenance;
use crate::records::{self, Fetched};
use crate::{FILE_LIMIT, name, upstream_index};
use packhouse_sdk::address::below;
use packhouse_sdk::{
    Blob, Context, Digest, Entry, Expectation, Failure, Freshness, ReadAt, Release, ReleaseVerdict,
    Repository, Response, Settings, Timestamp, Version,
};

/// Bytes of an index: those of the largest repositories have some millions.
const INDEX: u64 = 16 << 20;
/// Bytes that are read at once.
const PIECE: u32 = 1 << 20;

/// What the upstream has, as far as it may be offered; none where it has no index.
pub(crate) fn listing(cx: &Context, proxy: &Repository) -> Result<Option<Listing>, Failure> {
    let Some(mut listing) = upstream(cx, proxy, None)? else { return Ok(None) };
    let gone = withdraw(proxy, &listing)?;
    for (name, versions) in &mut listing {
        let all = std::mem::take(versions);
        *versions = proxy.offered(name, all, |one| release(one, false))?;
    }
    for one in gone {
        let name = one.chart.name.clone();
        let kept = proxy.offered(&name, vec![one], |one| release(one, true))?;
        listing.entry(name).or_default().extend(kept);
    }
    listing.retain(|_, versions| !versions.is_empty());
    Ok(Some(listing))
}

/// The upstream's index, or what it has of one chart; none where it has no index.
fn upstream(cx: &Context, proxy: &Repository, only: Option<&str>) -> Result<Option<Listing>, Failure> {
    let reply = cx.upstream("GET", "index.yaml").limit(INDEX).metadata().start(proxy)?;
    let Some(reply) = reply.found()? else { return Ok(None) };
    let base = reply.address()?;
    let bytes = whole(&reply.body()?)?;
    let read = upstream_index::read(&bytes, &base, only);
    let read = read.ok_or_else(|| unexpected("it is not an index of charts, for index.yaml"))?;
    let mut names = read.left_out.keys();
    // One line, since a call logs a hundred at most: of one chart, or of several together.
    let (name, count) = match (only, names.next(), names.next()) {
        (Some(only), ..) => (only, read.left_out.get(only).copied().unwrap_or_default()),
        (None, Some(name), None) => (name.as_str(), read.left_out.values().sum()),
        (None, ..) => ("", read.left_out.values().sum()),
    };
    cx.log().left_out(name, "versions", count);
    Ok(Some(read.listing))
}

/// All of an index, in memory that is asked for once: what grows by doubling takes three times as much for a while.
fn whole(body: &Blob) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::with_capacity(usize::try_from(body.size()?).unwrap_or_default());
    loop {
        let piece = body.read_at(bytes.len() as u64, PIECE)?;
        if piece.is_empty() {
            return Ok(bytes);
        }
        bytes.extend_from_slice(&piece);
    }
}

/// 502: what the upstream sent makes no sense here.
fn unexpected(what: &str) -> Failure {
    Failure::unusable_upstream(what)
}

fn release(one: &Listed, withdrawn: bool) -> Release {
    Release::of(&one.chart.version, published(one), withdrawn)
}

/// When it was published, in ms since 1970; none where that is not told.
fn published(one: &Listed) -> Option<u64> {
    Timestamp::parse_rfc3339(&one.created)?.to_ms()
}

/// Notes which fetched versions the upstream's index has no longer, or has again; answers those that are gone.
fn withdraw(proxy: &Repository, listing: &Listing) -> Result<Vec<Listed>, Failure> {
    let mut gone = Vec::new();
    for entry in proxy.scan(records::FETCHED) {
        let entry: Entry<Fetched> = entry?.json()?;
        let chart = &entry.value.listed.chart;
        let versions = listing.get(&chart.name).into_iter().flatten();
        let withdrawn = !versions.into_iter().any(|one| one.chart.version == chart.version);
        if withdrawn != entry.value.withdrawn {
            let changed = Fetched { withdrawn, ..entry.value.clone() };
            let mut change = proxy.begin()?;
            change.put_json(&entry.key, &changed, Expectation::Revision(entry.revision), &[])?;
            change.show(&shown(&changed.listed).state(if withdrawn { "withdrawn" } else { "" }));
            // Whoever else notes it at the same time has noted the same.
            let _stale_is_noted_already = change.commit()?;
        }
        if withdrawn {
            gone.push(entry.value.listed);
        }
    }
    Ok(gone)
}

fn shown(one: &Listed) -> Version {
    Version { published: published(one), ..records::shown(&one.chart) }
}

/// A chart's file, or the signature that goes with it. None where the upstream has none, or it may not be offered.
pub(crate) fn file(cx: &Context, proxy: &Repository, asked: &str) -> Result<Option<Response>, Failure> {
    let signed = asked.strip_suffix(".prov");
    let file = signed.unwrap_or(asked);
    for (name, version) in name::cuts(file) {
        let known = proxy.get_json::<Fetched>(&records::fetched(name, version))?;
        if let Some(known) = known.map(|entry| entry.value)
            && let Some(response) = serve(cx, proxy, &known.listed, known.withdrawn, signed.is_some())?
        {
            return Ok(Some(response));
        }
    }
    for (name, version) in name::cuts(file) {
        let Some(mut listing) = upstream(cx, proxy, Some(name))? else { return Ok(None) };
        let versions = listing.remove(name).unwrap_or_default();
        if let Some(one) = versions.into_iter().find(|one| one.chart.version == version) {
            return serve(cx, proxy, &one, false, signed.is_some());
        }
    }
    Ok(None)
}

fn serve(
    cx: &Context,
    proxy: &Repository,
    one: &Listed,
    withdrawn: bool,
    signature: bool,
) -> Result<Option<Response>, Failure> {
    let (name, version) = (&one.chart.name, &one.chart.version);
    if proxy.judge_asked(name, &release(one, withdrawn))? != ReleaseVerdict::Offered {
        return Ok(None);
    }
    if signature {
        return provenance(cx, proxy, one);
    }
    remember(proxy, one, withdrawn)?;
    let path = chart_path(name, version);
    let settings = Settings::of(proxy)?;
    let upstream = settings.upstream.as_deref().unwrap_or_default();
    let mut fetch =
        cx.upstream("GET", below(upstream, &one.url)).fresh(Freshness::Immutable).limit(FILE_LIMIT);
    if let Some(hex) = &one.digest {
        fetch = fetch.expect(&Digest::new("sha256", hex)?);
    }
    let reply = fetch.show_as(name, version, &path).start(proxy)?;
    let Some(reply) = reply.found()? else { return Ok(None) };
    Ok(Some(Response::blob(reply.body()?).content_type(MEDIA_TYPE).immutable()))
}

fn chart_path(name: &str, version: &str) -> String {
    format!("charts/{}", name::file(name, version))
}

/// As Helm asks for it: at the chart's address with `.prov` behind its path.
fn provenance(cx: &Context, proxy: &Repository, one: &Listed) -> Result<Option<Response>, Failure> {
    let (path, query) = one.url.split_once('?').map_or((one.url.as_str(), ""), |(path, query)| (path, query));
    let mark = if query.is_empty() { "" } else { "?" };
    let (settings, target) = (Settings::of(proxy)?, format!("{path}.prov{mark}{query}"));
    let upstream = settings.upstream.as_deref().unwrap_or_default();
    let (name, version) = (&one.chart.name, &one.chart.version);
    let fetch = cx.upstream("GET", below(upstream, &target)).limit(provenance::LIMIT);
    let reply = fetch.part_of(name, version, &chart_path(name, version)).start(proxy)?;
    let Some(reply) = reply.found()? else { return Ok(None) };
    Ok(Some(Response::blob(reply.body()?).content_type(PROVENANCE_TYPE).revalidate()))
}

/// What is known of a version whose file is fetched. Whoever is faster has remembered the same.
fn remember(proxy: &Repository, one: &Listed, withdrawn: bool) -> Result<(), Failure> {
    let key = records::fetched(&one.chart.name, &one.chart.version);
    let before = proxy.get_json::<Fetched>(&key)?;
    let fetched = Fetched { listed: one.clone(), withdrawn };
    if before.as_ref().is_some_and(|entry| entry.value == fetched) {
        return Ok(());
    }
    let mut change = proxy.begin()?;
    change.put_json(&key, &fetched, Expectation::unchanged(before.as_ref()), &[])?;
    change.show(&shown(one));
    let _stale_is_remembered_already = change.commit()?;
    Ok(())
}
