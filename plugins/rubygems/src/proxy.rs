//! Serves a proxy: the upstream's compact index and gems. The index omits versions that must not be
//! offered. The gems must match the checksums in the index.
//!
//! The plugin stores a record of each version whose file it fetches. The records later show which
//! versions the upstream has dropped, and let the plugin serve a file without reading the index.

use crate::compact::{self, UpstreamVersion};
use crate::records::{self, FetchedVersion};
use crate::{FILE_LIMIT, name};
use packhouse_sdk::{
    Blob, Context, Digest, Entry, Error, Expectation, Failure, Found, Freshness, ReadAt, Release,
    ReleaseVerdict, Reply, Repository, Response, Version,
};
use std::collections::BTreeSet;

/// Largest `info`, in bytes. The largest in practice have several hundred thousand bytes.
const INFO: u64 = 8 << 20;
/// Largest `versions`, in bytes. The `versions` of rubygems.org has tens of millions of bytes.
const VERSIONS: u64 = 128 << 20;
/// Largest compressed specification, in bytes.
const QUICK: u64 = 4 << 20;
/// Bytes of `versions` that the plugin reads in one call.
const PIECE: u32 = 512 << 10;

/// Returns the versions of a gem that the proxy may offer: versions in the upstream's index, and
/// fetched versions that the index no longer lists. Returns `None` if there are no such versions,
/// or if the upstream refuses the request.
pub(crate) fn offered(
    cx: &Context,
    proxy: &Repository,
    gem: &str,
) -> Result<Option<Vec<UpstreamVersion>>, Failure> {
    let listed = match upstream(cx, proxy, gem)? {
        Found::There(listed) => listed,
        Found::Nothing => Vec::new(),
        Found::Refused => return Ok(None),
    };
    let gone = withdraw(proxy, gem, &listed)?;
    let mut all = proxy.offered(gem, listed, |one| release(one, false))?;
    all.extend(proxy.offered(gem, gone, |one| release(one, true))?);
    Ok(if all.is_empty() { None } else { Some(all) })
}

/// Fetches the versions of a gem from the upstream's index.
fn upstream(cx: &Context, proxy: &Repository, gem: &str) -> Result<Found<Vec<UpstreamVersion>>, Failure> {
    let target = format!("info/{gem}");
    let reply = cx.upstream("GET", &target).limit(INFO).metadata().start(proxy)?;
    reply.look()?.try_map(|reply| {
        let (versions, left_out) = read_info(&reply.body()?, &target)?;
        cx.log().left_out(gem, "versions", left_out);
        Ok(versions)
    })
}

/// Reads an `info`. Returns the versions and the number of unreadable lines.
fn read_info(body: &Blob, target: &str) -> Result<(Vec<UpstreamVersion>, usize), Failure> {
    let text = body.text(INFO).map_err(|error| match error {
        Error::Invalid(_) => Error::Unavailable(format!("it is not UTF-8, for {target}")),
        other => other,
    })?;
    compact::read_info(&text).ok_or_else(|| unusable(&format!("it is not a compact index, for {target}")))
}

/// Returns the body of a reply; `None` if the upstream does not have the file.
fn body_if_found(reply: Reply) -> Result<Option<Blob>, Failure> {
    Ok(reply.found()?.map(Reply::body).transpose()?)
}

/// Creates a 502 for an unusable reply of the upstream.
fn unusable(what: &str) -> Failure {
    Failure::unusable_upstream(what)
}

fn release(one: &UpstreamVersion, withdrawn: bool) -> Release {
    Release::of(&one.number, one.published, withdrawn)
}

/// Marks a fetched version as withdrawn if the upstream's index no longer lists it, and removes the
/// mark if the index lists the version again. Returns the withdrawn versions.
fn withdraw(
    proxy: &Repository,
    gem: &str,
    listed: &[UpstreamVersion],
) -> Result<Vec<UpstreamVersion>, Failure> {
    let numbers: BTreeSet<&str> = listed.iter().map(|one| one.number.as_str()).collect();
    let prefix = records::all_fetched(gem);
    let mut gone = Vec::new();
    for entry in proxy.scan(&prefix) {
        let entry: Entry<FetchedVersion> = entry?.json()?;
        let number = entry.key.get(prefix.len()..).unwrap_or_default().to_owned();
        let withdrawn = !numbers.contains(number.as_str());
        if withdrawn != entry.value.withdrawn {
            let changed = FetchedVersion { withdrawn, ..entry.value.clone() };
            let mut change = proxy.begin()?;
            change.put_json(&entry.key, &changed, Expectation::Revision(entry.revision), &[])?;
            let state = if withdrawn { "withdrawn" } else { "" };
            change.show(&listed_version(gem, &number, changed.published).state(state));
            // If the commit is stale, a concurrent request has recorded the same.
            let _stale_if_already_recorded = change.commit()?;
        }
        if withdrawn {
            gone.extend(compact::read_line(&entry.value.line));
        }
    }
    Ok(gone)
}

fn listed_version(gem: &str, number: &str, published: Option<u64>) -> Version {
    Version { published, ..Version::new(gem, number) }
}

/// The version whose file a request names, and the name of its gem.
struct KnownVersion {
    gem: String,
    one: UpstreamVersion,
    withdrawn: bool,
}

/// Finds the version whose file name has this stem: first among the fetched versions, and then in
/// the upstream's index.
fn find_known(cx: &Context, proxy: &Repository, stem: &str) -> Result<Option<KnownVersion>, Failure> {
    for (gem, number) in name::splits(stem) {
        let record = proxy.get_json::<FetchedVersion>(&records::fetched(gem, number))?;
        let Some(FetchedVersion { line, withdrawn, .. }) = record.map(|entry| entry.value) else { continue };
        if let Some(one) = compact::read_line(&line) {
            return Ok(Some(KnownVersion { gem: gem.to_owned(), one, withdrawn }));
        }
    }
    for (gem, number) in name::splits(stem) {
        let listed = upstream(cx, proxy, gem)?.there().unwrap_or_default();
        if let Some(one) = listed.into_iter().find(|one| one.number == number) {
            return Ok(Some(KnownVersion { gem: gem.to_owned(), one, withdrawn: false }));
        }
    }
    Ok(None)
}

/// Serves a gem. Returns `None` if the upstream does not have the gem, or if the host does not
/// allow the proxy to offer it.
pub(crate) fn file(cx: &Context, proxy: &Repository, stem: &str) -> Result<Option<Response>, Failure> {
    let Some(known) = find_known(cx, proxy, stem)? else { return Ok(None) };
    let KnownVersion { gem, one, withdrawn } = &known;
    if proxy.judge_asked(gem, &release(one, *withdrawn))? != ReleaseVerdict::Offered {
        return Ok(None);
    }
    record_fetched(proxy, &known)?;
    let path = format!("gems/{stem}.gem");
    let mut fetch = cx.upstream("GET", &path).fresh(Freshness::Immutable).limit(FILE_LIMIT);
    if let Some(hex) = &one.sha256 {
        fetch = fetch.expect(&Digest::new("sha256", hex)?);
    }
    let reply = fetch.show_as(gem, &one.number, &path).start(proxy)?;
    Ok(body_if_found(reply)?.map(|body| Response::blob(body).immutable()))
}

/// Serves a compressed specification from the upstream. Returns `None` like [`file`].
pub(crate) fn quick(cx: &Context, proxy: &Repository, stem: &str) -> Result<Option<Response>, Failure> {
    let Some(KnownVersion { gem, one, withdrawn }) = find_known(cx, proxy, stem)? else { return Ok(None) };
    if proxy.judge_asked(&gem, &release(&one, withdrawn))? != ReleaseVerdict::Offered {
        return Ok(None);
    }
    let target = format!("quick/Marshal.4.8/{stem}.gemspec.rz");
    let fetch = cx.upstream("GET", &target).fresh(Freshness::Immutable).limit(QUICK);
    let reply = fetch.part_of(&gem, &one.number, &format!("gems/{stem}.gem")).start(proxy)?;
    Ok(body_if_found(reply)?.map(|body| Response::blob(body).revalidate()))
}

/// Stores the record of a version whose file is about to be fetched. If the commit is stale, a
/// concurrent request has recorded the same.
fn record_fetched(proxy: &Repository, known: &KnownVersion) -> Result<(), Failure> {
    let KnownVersion { gem, one, withdrawn } = known;
    let key = records::fetched(gem, &one.number);
    let before = proxy.get_json::<FetchedVersion>(&key)?;
    let fetched = FetchedVersion {
        sha256: one.sha256.clone(),
        published: one.published,
        line: one.line.clone(),
        withdrawn: *withdrawn,
    };
    if before.as_ref().is_some_and(|entry| entry.value == fetched) {
        return Ok(());
    }
    let mut change = proxy.begin()?;
    change.put_json(&key, &fetched, Expectation::unchanged(before.as_ref()), &[])?;
    change.show(&listed_version(gem, &one.number, one.published));
    let _stale_if_already_recorded = change.commit()?;
    Ok(())
}

/// A reader of the lines of an upstream's `versions`. It reads the document piece by piece, because
/// the document can be larger than the memory of a plugin.
pub(crate) struct VersionLines {
    body: Blob,
    at: u64,
    rest: Vec<u8>,
    has_begun: bool,
    has_ended: bool,
}

impl VersionLines {
    /// Requests the document. Returns `None` if the upstream has no compact index or refuses to
    /// send it.
    ///
    /// # Errors
    /// 502 if the upstream does not answer, or if its index is too large.
    pub(crate) fn open(cx: &Context, proxy: &Repository) -> Result<Option<Self>, Failure> {
        let reply = cx.upstream("GET", "versions").limit(VERSIONS).metadata().start(proxy)?;
        let Some(body) = body_if_found(reply)? else { return Ok(None) };
        // This call waits until the whole document has arrived and is verified.
        body.size()?;
        Ok(Some(Self { body, at: 0, rest: Vec::new(), has_begun: false, has_ended: false }))
    }

    /// Reads the next lines, without the head of the document. Returns `None` at the end.
    ///
    /// # Errors
    /// 502 if the document is not a `versions`.
    pub(crate) fn page(&mut self) -> Result<Option<Vec<String>>, Failure> {
        if self.has_ended {
            return Ok(None);
        }
        let piece = self.body.read_at(self.at, PIECE)?;
        self.at += piece.len() as u64;
        self.has_ended = piece.is_empty();
        self.rest.extend(piece);
        let end = if self.has_ended {
            self.rest.len()
        } else {
            self.rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
        };
        if end == 0 && self.rest.len() > 4 << 20 {
            return Err(unusable("it has a line of more than 4 MiB, for versions"));
        }
        let whole: Vec<u8> = self.rest.drain(..end).collect();
        let whole = String::from_utf8(whole).map_err(|_| unusable("it is not UTF-8, for versions"))?;
        let mut lines: Vec<String> = whole.lines().map(str::to_owned).collect();
        if !self.has_begun {
            let head = lines.iter().position(|line| line == "---");
            if let Some(head) = head {
                lines.drain(..=head);
                self.has_begun = true;
            } else if self.has_ended || lines.len() > 10 {
                return Err(unusable("it is not a compact index, for versions"));
            } else {
                lines.clear();
            }
        }
        Ok(Some(lines))
    }
}
