//! What an upstream states of a file's bytes, in its headers or in files beside it, and what becomes of a file that is not that.

use super::{encoded, header, is_page};
use crate::checksum::Algorithm;
use crate::layout::FilePath;
use packhouse_sdk::{Blob, Context, Digest, Error, Failure, Freshness, ReadAt, Reply, Repository, Setting};
use serde::Deserialize;

/// Bytes of a checksum's file.
const SUM_LIMIT: u64 = 4096;

/// Checksums that a file is compared with, in the order in which they are looked for. Nearly every upstream
/// has the first. If it has not, the others are asked for at the same time.
const STATED: [&[Algorithm]; 2] = [&[Algorithm::Sha1], &[Algorithm::Sha256, Algorithm::Md5]];

/// The name of the setting.
pub(crate) const POLICY: &str = "checksum_policy";

/// What becomes of a file that is not what its upstream's checksum says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Policy {
    /// It is neither served nor kept.
    #[default]
    Fail,
    /// It is served, and the log says so. The same goes for a file whose checksum cannot be read.
    Warn,
    /// No checksum is asked for.
    Ignore,
}

/// As it is described to the host.
pub(crate) fn policy_setting() -> Setting {
    let summary = "What becomes of a file of a proxy that is not what its upstream's checksum says: it is refused, served with a \
        line in the log, or never compared";
    Setting::choice(&["fail", "warn", "ignore"], summary)
}

impl Policy {
    /// As a repository has it.
    pub(super) fn of(proxy: &Repository) -> Result<Self, Error> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Own {
            checksum_policy: Policy,
        }
        proxy.settings::<Own>().map(|own| own.checksum_policy)
    }

    /// The first checksum that the upstream states of a file: in a header, else in a file beside it. None where it states none, or where
    /// none matters.
    pub(super) fn stated(
        self,
        cx: &Context,
        proxy: &Repository,
        file: &FilePath,
        headers: &[(String, String)],
    ) -> Result<Option<Digest>, Failure> {
        if self == Self::Ignore {
            return Ok(None);
        }
        for &algorithm in STATED.into_iter().flatten() {
            let stated = header(headers, &format!("x-checksum-{}", algorithm.name()));
            if let Some(hex) = stated.and_then(|hex| algorithm.read(hex)) {
                return Ok(Some(Digest::new(algorithm.name(), &hex)?));
            }
        }
        for algorithms in STATED {
            let start = |&algorithm: &Algorithm| (algorithm, ask(cx, proxy, file, algorithm));
            let asked: Vec<_> = algorithms.iter().map(start).collect();
            for (algorithm, reply) in asked {
                match reply.map_err(Failure::from).and_then(|reply| read(reply, algorithm)) {
                    Ok(Some(hex)) => return Ok(Some(Digest::new(algorithm.name(), &hex)?)),
                    Ok(None) => {}
                    Err(failure) if self == Self::Warn => warn_of_unread(cx, proxy, file, &failure),
                    Err(failure) => return Err(failure),
                }
            }
        }
        Ok(None)
    }
}

/// A checksum as the upstream's file beside a file has it.
pub(super) fn sum(
    cx: &Context,
    proxy: &Repository,
    file: &FilePath,
    algorithm: Algorithm,
) -> Result<Option<String>, Failure> {
    read(ask(cx, proxy, file, algorithm)?, algorithm)
}

/// Sends the request for a checksum's file.
fn ask(cx: &Context, proxy: &Repository, file: &FilePath, algorithm: Algorithm) -> Result<Reply, Error> {
    let path = format!("{}.{}", file.path, algorithm.name());
    // That of bytes that may change must be of the same moment as they.
    let fresh = if file.may_change() { Freshness::Never } else { Freshness::Immutable };
    let fetch = cx.upstream("GET", &encoded(&path)).fresh(fresh).limit(SUM_LIMIT);
    fetch.metadata().start(proxy)
}

/// The checksum that a file states. One that nobody may see is not there: Maven, too, then takes the file.
fn read(reply: Reply, algorithm: Algorithm) -> Result<Option<String>, Failure> {
    let Some(reply) = reply.found()? else { return Ok(None) };
    if is_page(&reply.headers()?, reply.path()) {
        return Ok(None);
    }
    Ok(algorithm.read(&String::from_utf8_lossy(&reply.body()?.read_all(SUM_LIMIT)?)))
}

/// Tells of a file whose checksum cannot be read.
fn warn_of_unread(cx: &Context, proxy: &Repository, file: &FilePath, failure: &Failure) {
    let (repository, problem) = (proxy.name(), failure.problems.first());
    let reason = problem.map_or("", |problem| problem.message.as_str());
    let fields = [("repository", repository.as_str()), ("file", file.path.as_str()), ("reason", reason)];
    cx.log().warn("a file whose checksum cannot be read is served", &fields);
}

/// Tells of a file that is not what was stated of it.
pub(super) fn warn_of_another(
    cx: &Context,
    proxy: &Repository,
    file: &FilePath,
    stated: &Digest,
    blob: &Blob,
) -> Result<(), Failure> {
    let is = blob.digest(stated.algorithm())?;
    if is != *stated {
        let (repository, stated, is) = (proxy.name(), stated.to_string(), is.to_string());
        let fields =
            [("repository", &repository), ("file", &file.path), ("stated", &stated), ("received", &is)];
        let fields = fields.map(|(name, value)| (name, value.as_str()));
        cx.log().warn("a file is not what its upstream's checksum says, and is served", &fields);
    }
    Ok(())
}
