//! Checksums that an upstream states for a file, in headers or in files beside it, and the setting
//! for files that do not match.

use super::{encoded, header, is_page};
use crate::checksum::Algorithm;
use crate::layout::FilePath;
use packhouse_sdk::{Blob, Context, Digest, Error, Failure, Freshness, ReadAt, Reply, Repository, Setting};
use serde::Deserialize;

/// Largest checksum file, in bytes.
const SUM_LIMIT: u64 = 4096;

/// Checksums with which the plugin compares a file, in the order in which it looks for them. Nearly
/// every upstream has SHA-1. If SHA-1 is missing, the plugin requests SHA-256 and MD5 in parallel.
const STATED: [&[Algorithm]; 2] = [&[Algorithm::Sha1], &[Algorithm::Sha256, Algorithm::Md5]];

/// The name of the setting.
pub(crate) const POLICY: &str = "checksum_policy";

/// Handling of a file that does not match the checksum of its upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ChecksumPolicy {
    /// The file is neither served nor stored.
    #[default]
    Fail,
    /// The plugin serves the file and logs a warning. It does the same if the checksum cannot be
    /// read.
    Warn,
    /// No checksum is requested.
    Ignore,
}

/// The description of the setting for the host.
pub(crate) fn policy_setting() -> Setting {
    let summary = "Proxies only: a file that does not match the checksum of its upstream is refused (fail), served with a warning \
        in the log (warn), or not noticed, because checksums are never compared (ignore)";
    Setting::choice(&["fail", "warn", "ignore"], summary).title("Checksums").repository_kinds(&["proxy"])
}

impl ChecksumPolicy {
    /// Reads the setting of a repository.
    pub(super) fn of(proxy: &Repository) -> Result<Self, Error> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct ChecksumSettings {
            checksum_policy: ChecksumPolicy,
        }
        proxy.settings::<ChecksumSettings>().map(|settings| settings.checksum_policy)
    }

    /// The first checksum that the upstream states for a file, in a header or else in a file beside
    /// it. `None` if it states none, or if checksums are ignored.
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
            let start =
                |&algorithm: &Algorithm| (algorithm, start_checksum_fetch(cx, proxy, file, algorithm));
            let replies: Vec<_> = algorithms.iter().map(start).collect();
            for (algorithm, reply) in replies {
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

/// Fetches a checksum of a file from the upstream.
pub(super) fn sum(
    cx: &Context,
    proxy: &Repository,
    file: &FilePath,
    algorithm: Algorithm,
) -> Result<Option<String>, Failure> {
    read(start_checksum_fetch(cx, proxy, file, algorithm)?, algorithm)
}

/// Sends the request for a checksum file.
fn start_checksum_fetch(
    cx: &Context,
    proxy: &Repository,
    file: &FilePath,
    algorithm: Algorithm,
) -> Result<Reply, Error> {
    let path = format!("{}.{}", file.path, algorithm.name());
    // The checksum of a file that may change must be as fresh as the file.
    let fresh = if file.may_change() { Freshness::Never } else { Freshness::Immutable };
    let fetch = cx.upstream("GET", &encoded(&path)).fresh(fresh).limit(SUM_LIMIT);
    fetch.metadata().start(proxy)
}

/// Reads the checksum in a reply. `None` if the upstream has no checksum or refuses to serve it:
/// Maven accepts the file in both cases, too.
fn read(reply: Reply, algorithm: Algorithm) -> Result<Option<String>, Failure> {
    let Some(reply) = reply.found()? else { return Ok(None) };
    if is_page(&reply.headers()?, reply.path()) {
        return Ok(None);
    }
    Ok(algorithm.read(&String::from_utf8_lossy(&reply.body()?.read_all(SUM_LIMIT)?)))
}

/// Logs that a file whose checksum could not be read is served.
fn warn_of_unread(cx: &Context, proxy: &Repository, file: &FilePath, failure: &Failure) {
    let (repository, problem) = (proxy.name(), failure.problems.first());
    let reason = problem.map_or("", |problem| problem.message.as_str());
    let fields = [("repository", repository.as_str()), ("file", file.path.as_str()), ("reason", reason)];
    cx.log().warn("served a file whose checksum could not be read", &fields);
}

/// Logs that a file that does not match its stated checksum is served.
pub(super) fn warn_of_mismatch(
    cx: &Context,
    proxy: &Repository,
    file: &FilePath,
    stated: &Digest,
    blob: &Blob,
) -> Result<(), Failure> {
    let received = blob.digest(stated.algorithm())?;
    if received != *stated {
        let (repository, stated, received) = (proxy.name(), stated.to_string(), received.to_string());
        let fields =
            [("repository", &repository), ("file", &file.path), ("stated", &stated), ("received", &received)];
        let fields = fields.map(|(name, value)| (name, value.as_str()));
        cx.log().warn("served a file that does not match the checksum of its upstream", &fields);
    }
    Ok(())
}
