//! A proxy: its upstream's metadata with addresses of its own, and the files, checked against what the metadata say of them.
//!
//! Records stand for the versions whose file was fetched: they tell later what the upstream has no longer, and serve a file without the
//! metadata.

use crate::FILE_LIMIT;
use crate::found::Found;
use crate::records::{self, Fetched};
use crate::upstream_metadata::{self, Dist, Listed, Root};
use crate::version::Version;
use packhouse_sdk::address::below;
use packhouse_sdk::{
    Blob, Context, Digest, Entry, Error, Expectation, Failure, Freshness, ReadAt, Release, ReleaseVerdict,
    Reply, Repository, Response, Settings, Version as Shown,
};
use std::collections::BTreeSet;

/// Bytes of `packages.json`, and of a package's metadata.
const DOCUMENT: u64 = 8 << 20;

/// The upstream's versions of a package, as far as they may be offered; none where it has no such package.
pub(crate) fn versions(
    cx: &Context,
    proxy: &Repository,
    name: &str,
    dev: bool,
) -> Result<Option<Vec<Found>>, Failure> {
    let listed = upstream(cx, proxy, name, dev)?;
    let there = listed.is_some();
    let listed = listed.unwrap_or_default();
    let gone = withdraw(proxy, name, &listed, dev)?;
    let mut all = proxy.offered(name, listed, |one| release(one, false))?;
    all.extend(proxy.offered(name, gone, |one| release(one, true))?);
    if !there && all.is_empty() {
        return Ok(None);
    }
    Ok(Some(all.into_iter().map(|one| Found { version: one.version, json: one.json }).collect()))
}

/// What the upstream lists, development versions or the others.
fn upstream(cx: &Context, proxy: &Repository, name: &str, dev: bool) -> Result<Option<Vec<Listed>>, Failure> {
    let reply = cx.upstream("GET", "packages.json").limit(DOCUMENT).start(proxy)?;
    let base = reply.address()?;
    let body = found(reply, "packages.json")?.ok_or_else(|| unexpected("packages.json: not there"))?;
    let bytes = body.read_all(DOCUMENT)?;
    let root = upstream_metadata::root(&bytes, &base)
        .ok_or_else(|| unexpected("packages.json: neither a metadata-url nor packages"))?;
    let (bytes, base, target) = match root {
        Root::Inline => (bytes, base, "packages.json".to_owned()),
        Root::Template(template) => {
            drop(bytes);
            let file = if dev { format!("{name}~dev") } else { name.to_owned() };
            let target = template.replace("%package%", &file);
            let settings = Settings::of(proxy)?;
            let upstream = settings.upstream.as_deref().unwrap_or_default();
            let reply = cx.upstream("GET", below(upstream, &target)).limit(DOCUMENT).start(proxy)?;
            let base = reply.address()?;
            let Some(body) = found(reply, &target)? else { return Ok(None) };
            (body.read_all(DOCUMENT)?, base, target)
        }
    };
    let listed = upstream_metadata::read(&bytes, &base, name);
    let listed = listed.map_err(|fault| unexpected(&format!("{target}: {fault}")))?;
    Ok(listed.map(|all| all.into_iter().filter(|one| one.version.is_dev() == dev).collect()))
}

/// An upstream's answer to a question for something that it may not have.
fn found(reply: Reply, target: &str) -> Result<Option<Blob>, Failure> {
    match reply.status()? {
        200 => Ok(Some(reply.body()?)),
        404 | 410 => Ok(None),
        status => Err(unexpected(&format!("{target}: status {status}"))),
    }
}

/// 502: what the upstream sent makes no sense here.
fn unexpected(what: &str) -> Failure {
    Error::Unavailable(what.to_owned()).into()
}

fn release(one: &Listed, withdrawn: bool) -> Release {
    Release::of(&one.text, one.published, withdrawn)
}

/// Notes which fetched versions the upstream lists no longer, or lists again; answers those that are gone.
fn withdraw(proxy: &Repository, name: &str, listed: &[Listed], dev: bool) -> Result<Vec<Listed>, Failure> {
    let there: BTreeSet<String> = listed.iter().map(|one| one.version.key()).collect();
    let mut gone = Vec::new();
    for entry in proxy.scan(records::all_fetched(name)) {
        let entry: Entry<Fetched> = entry?.json()?;
        let Some(version) = Version::parse(&entry.value.version).filter(|version| version.is_dev() == dev)
        else {
            continue;
        };
        let withdrawn = !there.contains(&version.key());
        if withdrawn != entry.value.withdrawn {
            let changed = Fetched { withdrawn, ..entry.value.clone() };
            let mut change = proxy.begin()?;
            change.put_json(&entry.key, &changed, Expectation::Revision(entry.revision), &[])?;
            let state = if withdrawn { "withdrawn" } else { "" };
            change.show(&shown(name, &changed.version, changed.published).state(state));
            // Whoever else notes it at the same time has noted the same.
            let _stale_is_noted_already = change.commit()?;
        }
        if withdrawn {
            gone.push(listed_again(version, &entry.value)?);
        }
    }
    Ok(gone)
}

/// As it was listed when its file was fetched.
fn listed_again(version: Version, fetched: &Fetched) -> Result<Listed, Error> {
    let Fetched { version: text, url, kind, sha1, published, metadata, .. } = fetched.clone();
    let json = serde_json::to_string(&metadata)?;
    Ok(Listed { version, text, dist: Some(Dist { url, kind, sha1 }), published, json })
}

fn shown(name: &str, version: &str, published: Option<u64>) -> Shown {
    Shown { published, ..Shown::new(name, version) }
}

/// A version's file. None where the upstream has none, or it may not be offered.
pub(crate) fn file(
    cx: &Context,
    proxy: &Repository,
    name: &str,
    version: &Version,
    kind: &str,
) -> Result<Option<Response>, Failure> {
    let known = proxy.get_json::<Fetched>(&records::fetched(name, &version.key()))?;
    if let Some(known) = known.map(|entry| entry.value) {
        let one = listed_again(version.clone(), &known)?;
        if let Some(response) = serve(cx, proxy, name, &one, known.withdrawn, kind)? {
            return Ok(Some(response));
        }
    }
    let listed = upstream(cx, proxy, name, version.is_dev())?.unwrap_or_default();
    match listed.into_iter().find(|one| one.version.key() == version.key()) {
        Some(one) => serve(cx, proxy, name, &one, false, kind),
        None => Ok(None),
    }
}

fn serve(
    cx: &Context,
    proxy: &Repository,
    name: &str,
    one: &Listed,
    withdrawn: bool,
    kind: &str,
) -> Result<Option<Response>, Failure> {
    let Some(dist) = one.dist.as_ref().filter(|dist| dist.kind == kind) else { return Ok(None) };
    if proxy.judge_asked(name, &release(one, withdrawn))? != ReleaseVerdict::Offered {
        return Ok(None);
    }
    remember(proxy, name, one, dist, withdrawn)?;
    let settings = Settings::of(proxy)?;
    let upstream = settings.upstream.as_deref().unwrap_or_default();
    let mut fetch =
        cx.upstream("GET", below(upstream, &dist.url)).fresh(Freshness::Immutable).limit(FILE_LIMIT);
    if let Some(hex) = &dist.sha1 {
        fetch = fetch.expect(&Digest::new("sha1", hex)?);
    }
    let path = records::file(name, &one.text, kind);
    let reply = fetch.show_as(name, &one.text, &path).start(proxy)?;
    let media_type = if kind == "zip" { "application/zip" } else { "application/x-tar" };
    Ok(found(reply, &dist.url)?.map(|body| Response::blob(body).content_type(media_type).immutable()))
}

/// What is known of a version whose file is fetched. Whoever is faster has remembered the same.
fn remember(
    proxy: &Repository,
    name: &str,
    one: &Listed,
    dist: &Dist,
    withdrawn: bool,
) -> Result<(), Failure> {
    let key = records::fetched(name, &one.version.key());
    let before = proxy.get_json::<Fetched>(&key)?;
    let fetched = Fetched {
        version: one.text.clone(),
        url: dist.url.clone(),
        kind: dist.kind.clone(),
        sha1: dist.sha1.clone(),
        published: one.published,
        metadata: serde_json::from_str(&one.json)?,
        withdrawn,
    };
    if before.as_ref().is_some_and(|entry| entry.value == fetched) {
        return Ok(());
    }
    let mut change = proxy.begin()?;
    change.put_json(&key, &fetched, Expectation::unchanged(before.as_ref()), &[])?;
    change.show(&shown(name, &one.text, one.published));
    let _stale_is_remembered_already = change.commit()?;
    Ok(())
}
