//! A proxy of another module proxy. What it has of a version never changes: it is fetched once, and the go command compares it with what
//! it knows of it.

use crate::FILE_LIMIT;
use crate::address::{Part, path};
use crate::module::{Module, escape};
use crate::records::{self, Info};
use crate::version::Version;
use packhouse_sdk::{
    Blob, Context, Error, Expectation, Failure, Freshness, ReadAt, Release, ReleaseVerdict, Reply,
    Repository, Response, Version as Shown,
};

/// Bytes of a list, and of what is said of a version.
const LIST: u64 = 8 << 20;
const INFO: u64 = 64 << 10;
/// Bytes of a go.mod.
const MOD: u64 = 16 << 20;

/// The versions that the upstream lists and that may be offered; none where it does not know the module.
pub(crate) fn versions(
    cx: &Context,
    proxy: &Repository,
    module: &Module,
) -> Result<Option<Vec<Version>>, Failure> {
    let target = format!("/{}/@v/list", module.escaped());
    let Some(body) = found(cx.upstream("GET", &target).limit(LIST).metadata().start(proxy)?)? else {
        return Ok(None);
    };
    let text = String::from_utf8(body.read_all(LIST)?).map_err(|error| unusable(&target, &error))?;
    let words: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let mut all: Vec<Version> = words.iter().filter_map(|word| Version::new(word)).collect();
    cx.log().left_out(module.as_str(), "versions", words.len() - all.len());
    all.retain(|version| version.fits(module));
    Ok(Some(proxy.offered(module.as_str(), all, |version| release(version.as_str()))?))
}

/// A version as the host judges it. The time that an upstream tells is that of the author's commit, who can choose it, so that none is
/// stated: the age counts from when the server first saw the version.
fn release(version: &str) -> Release {
    Release::of(version, None, false)
}

/// 502: what stands at a path cannot be read.
fn unusable(path: &str, error: &dyn std::error::Error) -> Failure {
    Failure::unusable_upstream(format!("{error}, for {path}"))
}

fn ask_info(cx: &Context, proxy: &Repository, module: &Module, version: &Version) -> Result<Reply, Error> {
    let target = format!("/{}", path(module, version, Part::Info));
    cx.upstream("GET", &target).fresh(Freshness::Immutable).limit(INFO).metadata().start(proxy)
}

fn read_info(reply: Reply) -> Result<Option<Info>, Failure> {
    let path = reply.path().to_owned();
    let Some(body) = found(reply)? else { return Ok(None) };
    let info = serde_json::from_slice(&body.read_all(INFO)?);
    info.map(Some).map_err(|error| unusable(&path, &error))
}

/// What is said of a version; none where it is not there.
fn info(
    cx: &Context,
    proxy: &Repository,
    module: &Module,
    version: &Version,
) -> Result<Option<Info>, Failure> {
    let info = read_info(ask_info(cx, proxy, module, version)?)?;
    Ok(info.filter(|info| info.version == version.as_str()))
}

/// What is said of a version that somebody asks for; none where it may not be offered, or is not there.
fn asked(
    cx: &Context,
    proxy: &Repository,
    module: &Module,
    version: &Version,
) -> Result<Option<Info>, Failure> {
    let Some(info) = info(cx, proxy, module, version)? else { return Ok(None) };
    let verdict = proxy.judge_asked(module.as_str(), &release(&info.version));
    Ok(verdict.is_ok_and(|verdict| verdict == ReleaseVerdict::Offered).then_some(info))
}

fn is_offered(proxy: &Repository, module: &Module, info: &Info) -> bool {
    let verdict = proxy.judge_release(module.as_str(), release(&info.version));
    verdict.is_ok_and(|verdict| verdict == ReleaseVerdict::Offered)
}

/// A file of a version.
pub(crate) fn file(
    cx: &Context,
    proxy: &Repository,
    module: &Module,
    version: &Version,
    part: Part,
) -> Result<Option<Response>, Failure> {
    if !version.fits(module) {
        return Ok(None);
    }
    // What is said of it comes first: only a version that is there is judged.
    let Some(info) = asked(cx, proxy, module, version)? else { return Ok(None) };
    let file = path(module, version, part);
    let fetch = cx.upstream("GET", &format!("/{file}")).fresh(Freshness::Immutable);
    let (fetch, kind) = match part {
        Part::Info => return Ok(Some(Response::json(&info)?.immutable())),
        Part::Mod => {
            let part = fetch.limit(MOD).part_of(module.as_str(), version.as_str(), &file);
            (part, "text/plain; charset=utf-8")
        }
        Part::Zip => {
            remember(proxy, module, version, &info)?;
            let shown = fetch.limit(FILE_LIMIT).show_as(module.as_str(), version.as_str(), &file);
            (shown, "application/zip")
        }
    };
    let body = found(fetch.start(proxy)?)?;
    Ok(body.map(|body| Response::blob(body).content_type(kind).immutable()))
}

/// What the upstream calls the latest, or where that may not be offered the best of what may.
pub(crate) fn latest(cx: &Context, proxy: &Repository, module: &Module) -> Result<Option<Info>, Failure> {
    let target = format!("/{}/@latest", module.escaped());
    if let Some(info) = read_info(cx.upstream("GET", &target).limit(INFO).metadata().start(proxy)?)?
        && Version::new(&info.version).is_some_and(|version| version.fits(module))
        && is_offered(proxy, module, &info)
    {
        return Ok(Some(info));
    }
    let all = versions(cx, proxy, module)?.unwrap_or_default();
    match all.iter().max_by(|one, other| one.rank().cmp(&other.rank())) {
        Some(best) => Ok(info(cx, proxy, module, best)?.filter(|info| is_offered(proxy, module, info))),
        None => Ok(None),
    }
}

/// What the upstream makes of a branch or a commit.
pub(crate) fn query(
    cx: &Context,
    proxy: &Repository,
    module: &Module,
    query: &str,
) -> Result<Option<Response>, Failure> {
    let target = format!("/{}/@v/{}.info", module.escaped(), escape(query));
    let Some(info) = read_info(cx.upstream("GET", &target).limit(INFO).metadata().start(proxy)?)? else {
        return Ok(None);
    };
    let fits = Version::new(&info.version).is_some_and(|version| version.fits(module));
    if !fits || !is_offered(proxy, module, &info) {
        return Ok(None);
    }
    Ok(Some(Response::json(&info)?.revalidate()))
}

/// Shows a version whose file is fetched, and keeps what is said of it. Whoever is faster has shown the same.
fn remember(proxy: &Repository, module: &Module, version: &Version, info: &Info) -> Result<(), Failure> {
    let key = records::fetched(module, version);
    if proxy.get(&key)?.is_some() {
        return Ok(());
    }
    let mut change = proxy.begin()?;
    change.put_json(&key, info, Expectation::Absent, &[])?;
    change.show(&Shown::new(module.as_str(), version.as_str()));
    let _stale_is_shown_already = change.commit()?;
    Ok(())
}

/// The body of an upstream's answer; none where it has nothing there.
pub(crate) fn found(reply: Reply) -> Result<Option<Blob>, Failure> {
    Ok(reply.found()?.map(Reply::body).transpose()?)
}
