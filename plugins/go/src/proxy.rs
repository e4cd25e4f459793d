//! Proxy of another module proxy. A version never changes, so the plugin fetches its files only
//! once. The go command compares the files with the checksums that it knows.

use crate::FILE_LIMIT;
use crate::address::{FileKind, path};
use crate::module::{Module, escape};
use crate::records::{self, Info};
use crate::version::Version;
use packhouse_sdk::{
    Blob, Context, Error, Expectation, Failure, Freshness, ReadAt, Release, ReleaseVerdict, Reply,
    Repository, Response, Version as ListedVersion,
};

/// Maximum bytes of a version list.
const LIST: u64 = 8 << 20;
/// Maximum bytes of a version's information.
const INFO: u64 = 64 << 10;
/// Maximum bytes of a go.mod.
const MOD: u64 = 16 << 20;

/// Returns the versions that the upstream lists and that the proxy may offer. Returns `None` if the
/// upstream does not know the module.
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

/// Returns a version for the host to judge, without a publication time. The upstream states only
/// the time of the commit, which the author can choose. The host therefore measures the age from
/// the time when this server first saw the version.
fn release(version: &str) -> Release {
    Release::of(version, None, false)
}

/// Returns the 502 for an invalid document of the upstream at this path.
fn unusable(path: &str, error: &dyn std::error::Error) -> Failure {
    Failure::unusable_upstream(format!("{error}, for {path}"))
}

fn request_info(
    cx: &Context,
    proxy: &Repository,
    module: &Module,
    version: &Version,
) -> Result<Reply, Error> {
    let target = format!("/{}", path(module, version, FileKind::Info));
    cx.upstream("GET", &target).fresh(Freshness::Immutable).limit(INFO).metadata().start(proxy)
}

fn read_info(reply: Reply) -> Result<Option<Info>, Failure> {
    let path = reply.path().to_owned();
    let Some(body) = found(reply)? else { return Ok(None) };
    let info = serde_json::from_slice(&body.read_all(INFO)?);
    info.map(Some).map_err(|error| unusable(&path, &error))
}

/// Returns information about a version, or `None` if the upstream does not have the version.
fn info(
    cx: &Context,
    proxy: &Repository,
    module: &Module,
    version: &Version,
) -> Result<Option<Info>, Failure> {
    let info = read_info(request_info(cx, proxy, module, version)?)?;
    Ok(info.filter(|info| info.version == version.as_str()))
}

/// Returns information about a requested version, or `None` if it does not exist or may not be
/// offered.
fn requested_info(
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

/// Returns one file of a version, or `None` if the version does not exist or may not be offered.
pub(crate) fn file(
    cx: &Context,
    proxy: &Repository,
    module: &Module,
    version: &Version,
    kind: FileKind,
) -> Result<Option<Response>, Failure> {
    if !version.fits(module) {
        return Ok(None);
    }
    // The plugin requests the information first, so that the host judges only versions that exist.
    let Some(info) = requested_info(cx, proxy, module, version)? else { return Ok(None) };
    let file = path(module, version, kind);
    let fetch = cx.upstream("GET", &format!("/{file}")).fresh(Freshness::Immutable);
    let (fetch, media_type) = match kind {
        FileKind::Info => return Ok(Some(Response::json(&info)?.immutable())),
        FileKind::Mod => {
            let fetch = fetch.limit(MOD).part_of(module.as_str(), version.as_str(), &file);
            (fetch, "text/plain; charset=utf-8")
        }
        FileKind::Zip => {
            record_fetched(proxy, module, version, &info)?;
            let fetch = fetch.limit(FILE_LIMIT).show_as(module.as_str(), version.as_str(), &file);
            (fetch, "application/zip")
        }
    };
    let body = found(fetch.start(proxy)?)?;
    Ok(body.map(|body| Response::blob(body).content_type(media_type).immutable()))
}

/// Returns the version that the upstream calls the latest. If that version may not be offered,
/// returns the highest-ranked listed version that may be offered.
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

/// Returns information about the version to which the upstream resolves a branch, a tag or a
/// commit. Returns `None` if there is no such version, or if it may not be offered.
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

/// Lists a version and stores the information about it, before the plugin fetches its zip. If a
/// concurrent request stores the information first, this commit changes nothing. No data is lost
/// then, because both requests store the same information.
fn record_fetched(
    proxy: &Repository,
    module: &Module,
    version: &Version,
    info: &Info,
) -> Result<(), Failure> {
    let key = records::fetched(module, version);
    if proxy.get(&key)?.is_some() {
        return Ok(());
    }
    let mut change = proxy.begin()?;
    change.put_json(&key, info, Expectation::Absent, &[])?;
    change.show(&ListedVersion::new(module.as_str(), version.as_str()));
    let _stale_if_already_listed = change.commit()?;
    Ok(())
}

/// Returns the body of an upstream's reply, or `None` if the upstream has nothing at this path.
pub(crate) fn found(reply: Reply) -> Result<Option<Blob>, Failure> {
    Ok(reply.found()?.map(Reply::body).transpose()?)
}
