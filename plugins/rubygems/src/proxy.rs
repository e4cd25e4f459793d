//! A proxy: its upstream's compact index, as far as it may be offered, and the gems, checked against what the index says of them.
//!
//! Records stand for the versions whose file was fetched: they tell later what the upstream has no longer, and serve a file without the
//! index.

use crate::compact::{self, Offered};
use crate::records::{self, Fetched};
use crate::{FILE_LIMIT, name};
use packhouse_sdk::{
    Blob, Context, Digest, Entry, Error, Expectation, Failure, Found, Freshness, ReadAt, Release,
    ReleaseVerdict, Reply, Repository, Response, Version,
};
use std::collections::BTreeSet;

/// Bytes of an `info`: the largest have some hundred thousand.
const INFO: u64 = 8 << 20;
/// Bytes of `versions`: that of rubygems.org has some ten millions.
const VERSIONS: u64 = 128 << 20;
/// Bytes of a compressed specification.
const QUICK: u64 = 4 << 20;
/// Bytes that are read at once.
const PIECE: u32 = 512 << 10;

/// What the upstream has of a gem, as far as it may be offered; none where it has no such gem.
pub(crate) fn offered(cx: &Context, proxy: &Repository, gem: &str) -> Result<Option<Vec<Offered>>, Failure> {
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

/// The versions of a gem in the upstream's index.
fn upstream(cx: &Context, proxy: &Repository, gem: &str) -> Result<Found<Vec<Offered>>, Failure> {
    let target = format!("info/{gem}");
    let reply = cx.upstream("GET", &target).limit(INFO).metadata().start(proxy)?;
    reply.look()?.try_map(|reply| {
        let (versions, left_out) = listed(&reply.body()?, &target)?;
        cx.log().left_out(gem, "versions", left_out);
        Ok(versions)
    })
}

/// The versions that the `info` at this address lists, and how many lines cannot be read.
fn listed(body: &Blob, target: &str) -> Result<(Vec<Offered>, usize), Failure> {
    let text = body.text(INFO).map_err(|error| match error {
        Error::Invalid(_) => Error::Unavailable(format!("it is not UTF-8, for {target}")),
        other => other,
    })?;
    compact::read(&text).ok_or_else(|| unexpected(&format!("it is not a compact index, for {target}")))
}

/// The body of an upstream's answer to a question for something that it may not have.
fn found(reply: Reply) -> Result<Option<Blob>, Failure> {
    Ok(reply.found()?.map(Reply::body).transpose()?)
}

/// 502: what the upstream sent makes no sense here.
fn unexpected(what: &str) -> Failure {
    Failure::unusable_upstream(what)
}

fn release(one: &Offered, withdrawn: bool) -> Release {
    Release::of(&one.number, one.published, withdrawn)
}

/// Notes which fetched versions the upstream's index has no longer, or has again; answers those that are gone.
fn withdraw(proxy: &Repository, gem: &str, listed: &[Offered]) -> Result<Vec<Offered>, Failure> {
    let there: BTreeSet<&str> = listed.iter().map(|one| one.number.as_str()).collect();
    let prefix = records::all_fetched(gem);
    let mut gone = Vec::new();
    for entry in proxy.scan(&prefix) {
        let entry: Entry<Fetched> = entry?.json()?;
        let number = entry.key.get(prefix.len()..).unwrap_or_default().to_owned();
        let withdrawn = !there.contains(number.as_str());
        if withdrawn != entry.value.withdrawn {
            let changed = Fetched { withdrawn, ..entry.value.clone() };
            let mut change = proxy.begin()?;
            change.put_json(&entry.key, &changed, Expectation::Revision(entry.revision), &[])?;
            let state = if withdrawn { "withdrawn" } else { "" };
            change.show(&shown(gem, &number, changed.published).state(state));
            // Whoever else notes it at the same time has noted the same.
            let _stale_is_noted_already = change.commit()?;
        }
        if withdrawn {
            gone.extend(compact::offered(&entry.value.line));
        }
    }
    Ok(gone)
}

fn shown(gem: &str, number: &str, published: Option<u64>) -> Version {
    Version { published, ..Version::new(gem, number) }
}

/// A gem and the version of it that has the file of this stem.
struct Known {
    gem: String,
    one: Offered,
    withdrawn: bool,
}

/// What was fetched under this stem before; else what the upstream lists.
fn known(cx: &Context, proxy: &Repository, stem: &str, anew: bool) -> Result<Option<Known>, Failure> {
    for (gem, number) in name::cuts(stem).into_iter().filter(|_| !anew) {
        let record = proxy.get_json::<Fetched>(&records::fetched(gem, number))?;
        let Some(Fetched { line, withdrawn, .. }) = record.map(|entry| entry.value) else { continue };
        if let Some(one) = compact::offered(&line) {
            return Ok(Some(Known { gem: gem.to_owned(), one, withdrawn }));
        }
    }
    for (gem, number) in name::cuts(stem) {
        let listed = upstream(cx, proxy, gem)?.there().unwrap_or_default();
        if let Some(one) = listed.into_iter().find(|one| one.number == number) {
            return Ok(Some(Known { gem: gem.to_owned(), one, withdrawn: false }));
        }
    }
    Ok(None)
}

/// A gem. None where the upstream has none, or it may not be offered.
pub(crate) fn file(cx: &Context, proxy: &Repository, stem: &str) -> Result<Option<Response>, Failure> {
    let Some(known) = known(cx, proxy, stem, false)? else { return Ok(None) };
    let Known { gem, one, withdrawn } = &known;
    if proxy.judge_asked(gem, &release(one, *withdrawn))? != ReleaseVerdict::Offered {
        return Ok(None);
    }
    remember(proxy, &known)?;
    let path = format!("gems/{stem}.gem");
    let mut fetch = cx.upstream("GET", &path).fresh(Freshness::Immutable).limit(FILE_LIMIT);
    if let Some(hex) = &one.sha256 {
        fetch = fetch.expect(&Digest::new("sha256", hex)?);
    }
    let reply = fetch.show_as(gem, &one.number, &path).start(proxy)?;
    Ok(found(reply)?.map(|body| Response::blob(body).immutable()))
}

/// A compressed specification, as the upstream has it.
pub(crate) fn quick(cx: &Context, proxy: &Repository, stem: &str) -> Result<Option<Response>, Failure> {
    let Some(Known { gem, one, withdrawn }) = known(cx, proxy, stem, false)? else { return Ok(None) };
    if proxy.judge_asked(&gem, &release(&one, withdrawn))? != ReleaseVerdict::Offered {
        return Ok(None);
    }
    let target = format!("quick/Marshal.4.8/{stem}.gemspec.rz");
    let fetch = cx.upstream("GET", &target).fresh(Freshness::Immutable).limit(QUICK);
    let reply = fetch.part_of(&gem, &one.number, &format!("gems/{stem}.gem")).start(proxy)?;
    Ok(found(reply)?.map(|body| Response::blob(body).revalidate()))
}

/// What is known of a version whose file is fetched. Whoever is faster has remembered the same.
fn remember(proxy: &Repository, known: &Known) -> Result<(), Failure> {
    let Known { gem, one, withdrawn } = known;
    let key = records::fetched(gem, &one.number);
    let before = proxy.get_json::<Fetched>(&key)?;
    let fetched = Fetched {
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
    change.show(&shown(gem, &one.number, one.published));
    let _stale_is_remembered_already = change.commit()?;
    Ok(())
}

/// The lines of an upstream's `versions`, read piece by piece: it is larger than a plugin's memory may be.
pub(crate) struct VersionLines {
    body: Blob,
    at: u64,
    rest: Vec<u8>,
    begun: bool,
    ended: bool,
}

impl VersionLines {
    /// Asks for it; none where the upstream has no compact index.
    ///
    /// # Errors
    /// 502 where the upstream cannot be asked, or its index is too large.
    pub(crate) fn open(cx: &Context, proxy: &Repository) -> Result<Option<Self>, Failure> {
        let reply = cx.upstream("GET", "versions").limit(VERSIONS).metadata().start(proxy)?;
        let Some(body) = found(reply)? else { return Ok(None) };
        // Waits until all of it is there, and right.
        body.size()?;
        Ok(Some(Self { body, at: 0, rest: Vec::new(), begun: false, ended: false }))
    }

    /// Some more lines, of those behind the head; none at the end.
    ///
    /// # Errors
    /// 502 for what is no such document.
    pub(crate) fn page(&mut self) -> Result<Option<Vec<String>>, Failure> {
        if self.ended {
            return Ok(None);
        }
        let piece = self.body.read_at(self.at, PIECE)?;
        self.at += piece.len() as u64;
        self.ended = piece.is_empty();
        self.rest.extend(piece);
        let end = if self.ended {
            self.rest.len()
        } else {
            self.rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
        };
        if end == 0 && self.rest.len() > 4 << 20 {
            return Err(unexpected("it has a line of more than 4 MiB, for versions"));
        }
        let whole: Vec<u8> = self.rest.drain(..end).collect();
        let whole = String::from_utf8(whole).map_err(|_| unexpected("it is not UTF-8, for versions"))?;
        let mut lines: Vec<String> = whole.lines().map(str::to_owned).collect();
        if !self.begun {
            let head = lines.iter().position(|line| line == "---");
            if let Some(head) = head {
                lines.drain(..=head);
                self.begun = true;
            } else if self.ended || lines.len() > 10 {
                return Err(unexpected("it is not a compact index, for versions"));
            } else {
                lines.clear();
            }
        }
        Ok(Some(lines))
    }
}
