//! Serves a proxy: the upstream's index with addresses of this server, and the upstream's files,
//! which must match the digests in the index.
//!
//! The plugin requests and parses the index for each list that it serves. The host caches the index
//! for as long as the repository's settings say. The plugin stores a record of each version whose
//! file it fetches. The records later show which versions the upstream has dropped, and let the
//! plugin serve a file without reading the index.

use crate::listed::{ChartListing, ListedChart};
use crate::media_types::{MEDIA_TYPE, PROVENANCE_TYPE};
use crate::provenance;
use crate::records::{self, FetchedChart};
use crate::{FILE_LIMIT, name, upstream_index};
use packhouse_sdk::address::below;
use packhouse_sdk::{
    Blob, Context, Digest, Entry, Expectation, Failure, Freshness, ReadAt, Release, ReleaseVerdict,
    Repository, Response, Settings, Timestamp, Version,
};

/// The largest index, in bytes. The indexes of the largest repositories have several million bytes.
const MAX_INDEX: u64 = 16 << 20;
/// Bytes of the index that the plugin reads in one call.
const PIECE: u32 = 1 << 20;

/// Returns the charts that the proxy may offer: versions in the upstream's index, and fetched
/// versions that the index no longer lists. Returns `None` if the upstream has no index or refuses
/// to send it.
pub(crate) fn listing(cx: &Context, proxy: &Repository) -> Result<Option<ChartListing>, Failure> {
    let Some(mut listing) = fetch_index(cx, proxy, None)? else { return Ok(None) };
    let gone = withdraw(proxy, &listing)?;
    for (name, versions) in &mut listing {
        let all = std::mem::take(versions);
        *versions = proxy.offered(name, all, |one| release(one, false))?;
    }
    for one in gone {
        let name = one.chart.name.clone();
        let offered = proxy.offered(&name, vec![one], |one| release(one, true))?;
        listing.entry(name).or_default().extend(offered);
    }
    listing.retain(|_, versions| !versions.is_empty());
    Ok(Some(listing))
}

/// Fetches the upstream's index. `only` may limit the result to one chart, like in
/// [`upstream_index::read`]. Returns `None` if the upstream has no index or refuses to send it.
fn fetch_index(
    cx: &Context,
    proxy: &Repository,
    only: Option<&str>,
) -> Result<Option<ChartListing>, Failure> {
    let reply = cx.upstream("GET", "index.yaml").limit(MAX_INDEX).metadata().start(proxy)?;
    let Some(reply) = reply.found()? else { return Ok(None) };
    let base = reply.address()?;
    let bytes = read_all(&reply.body()?)?;
    let read = upstream_index::read(&bytes, &base, only);
    let read = read.ok_or_else(|| unusable("it is not an index of charts, for index.yaml"))?;
    let mut names = read.left_out.keys();
    // One log line for all charts together, because a call may log only a hundred lines.
    let (name, count) = match (only, names.next(), names.next()) {
        (Some(only), ..) => (only, read.left_out.get(only).copied().unwrap_or_default()),
        (None, Some(name), None) => (name.as_str(), read.left_out.values().sum()),
        (None, ..) => ("", read.left_out.values().sum()),
    };
    cx.log().left_out(name, "versions", count);
    Ok(Some(read.listing))
}

/// Reads an index into memory that is allocated once. A buffer that grows by doubling would
/// temporarily need three times as much memory.
fn read_all(body: &Blob) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::with_capacity(usize::try_from(body.size()?).unwrap_or_default());
    loop {
        let piece = body.read_at(bytes.len() as u64, PIECE)?;
        if piece.is_empty() {
            return Ok(bytes);
        }
        bytes.extend_from_slice(&piece);
    }
}

/// Creates a 502 for an unusable reply of the upstream.
fn unusable(what: &str) -> Failure {
    Failure::unusable_upstream(what)
}

fn release(one: &ListedChart, withdrawn: bool) -> Release {
    Release::of(&one.chart.version, published(one), withdrawn)
}

/// Returns the publication time in ms since 1970; `None` if the index does not state a valid time.
fn published(one: &ListedChart) -> Option<u64> {
    Timestamp::parse_rfc3339(&one.created)?.to_ms()
}

/// Marks a fetched version as withdrawn if the upstream's index no longer lists it, and removes the
/// mark if the index lists the version again. Returns the withdrawn versions.
fn withdraw(proxy: &Repository, listing: &ChartListing) -> Result<Vec<ListedChart>, Failure> {
    let mut gone = Vec::new();
    for entry in proxy.scan(records::FETCHED) {
        let entry: Entry<FetchedChart> = entry?.json()?;
        let chart = &entry.value.listed.chart;
        let versions = listing.get(&chart.name).into_iter().flatten();
        let withdrawn = !versions.into_iter().any(|one| one.chart.version == chart.version);
        if withdrawn != entry.value.withdrawn {
            let changed = FetchedChart { withdrawn, ..entry.value.clone() };
            let mut change = proxy.begin()?;
            change.put_json(&entry.key, &changed, Expectation::Revision(entry.revision), &[])?;
            change.show(&listed_version(&changed.listed).state(if withdrawn { "withdrawn" } else { "" }));
            // If the commit is stale, a concurrent request has recorded the same.
            let _stale_if_already_recorded = change.commit()?;
        }
        if withdrawn {
            gone.push(entry.value.listed);
        }
    }
    Ok(gone)
}

fn listed_version(one: &ListedChart) -> Version {
    Version { published: published(one), ..records::listed_version(&one.chart) }
}

/// Serves the file of a chart, or its signature. Returns `None` if the upstream does not have the
/// file, or if the host does not allow the proxy to offer the version.
pub(crate) fn file(cx: &Context, proxy: &Repository, file_name: &str) -> Result<Option<Response>, Failure> {
    let signed = file_name.strip_suffix(".prov");
    let file = signed.unwrap_or(file_name);
    for (name, version) in name::splits(file) {
        let known = proxy.get_json::<FetchedChart>(&records::fetched(name, version))?;
        if let Some(known) = known.map(|entry| entry.value)
            && let Some(response) = serve(cx, proxy, &known.listed, known.withdrawn, signed.is_some())?
        {
            return Ok(Some(response));
        }
    }
    for (name, version) in name::splits(file) {
        let Some(mut listing) = fetch_index(cx, proxy, Some(name))? else { return Ok(None) };
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
    one: &ListedChart,
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
    record(proxy, one, withdrawn)?;
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

/// Serves the signature of a chart. Its URL is the chart's URL with `.prov` appended to the path,
/// as in Helm.
fn provenance(cx: &Context, proxy: &Repository, one: &ListedChart) -> Result<Option<Response>, Failure> {
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

/// Stores the record of a version whose file is about to be fetched.
fn record(proxy: &Repository, one: &ListedChart, withdrawn: bool) -> Result<(), Failure> {
    let key = records::fetched(&one.chart.name, &one.chart.version);
    let before = proxy.get_json::<FetchedChart>(&key)?;
    let fetched = FetchedChart { listed: one.clone(), withdrawn };
    if before.as_ref().is_some_and(|entry| entry.value == fetched) {
        return Ok(());
    }
    let mut change = proxy.begin()?;
    change.put_json(&key, &fetched, Expectation::unchanged(before.as_ref()), &[])?;
    change.show(&listed_version(one));
    // If the commit is stale, a concurrent request has recorded the same.
    let _stale_if_already_recorded = change.commit()?;
    Ok(())
}
