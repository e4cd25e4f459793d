//! What an upstream states of a file's bytes, in its headers or in files beside it, and what becomes of a file that is not that.

use super::{encoded, header, is_page, refused};
use crate::checksum::Algorithm;
use crate::layout::FilePath;
use packhouse_sdk::{Blob, Context, Digest, Error, Failure, Freshness, ReadAt, Repository, Setting};
use serde::Deserialize;

/// Bytes of a checksum's file.
const SUM_LIMIT: u64 = 4096;

/// Checksums that a file is compared with, in the order in which they are looked for: nearly every upstream has the first.
const STATED: [Algorithm; 3] = [Algorithm::Sha1, Algorithm::Sha256, Algorithm::Md5];

/// The name of the setting.
pub(crate) const POLICY: &str = "checksum_policy";

/// What becomes of a file that is not what its upstream's checksum says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Policy {
    /// It is neither served nor kept.
    #[default]
    Fail,
    /// It is served, and the log says so.
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
        for algorithm in STATED {
            let stated = header(headers, &format!("x-checksum-{}", algorithm.name()));
            if let Some(hex) = stated.and_then(|hex| algorithm.read(hex)) {
                return Ok(Some(Digest::new(algorithm.name(), &hex)?));
            }
        }
        for algorithm in STATED {
            if let Some(hex) = sum(cx, proxy, file, algorithm)? {
                return Ok(Some(Digest::new(algorithm.name(), &hex)?));
            }
        }
        Ok(None)
    }
}

/// A checksum as the upstream's file beside a file has it. One that nobody may see is a 404 here: Maven, too, then takes the file.
pub(super) fn sum(
    cx: &Context,
    proxy: &Repository,
    file: &FilePath,
    algorithm: Algorithm,
) -> Result<Option<String>, Failure> {
    let path = format!("{}.{}", file.path, algorithm.name());
    // That of bytes that may change must be of the same moment as they.
    let fresh = if file.may_change() { Freshness::Never } else { Freshness::Immutable };
    let fetch = cx.upstream("GET", &encoded(&path)).fresh(fresh).limit(SUM_LIMIT);
    let reply = fetch.metadata().start(proxy)?;
    match reply.status()? {
        200 if is_page(&reply.headers()?, &path) => Ok(None),
        200 => Ok(algorithm.read(&String::from_utf8_lossy(&reply.body()?.read_all(SUM_LIMIT)?))),
        404 | 410 => Ok(None),
        status => Err(refused(status, &path)),
    }
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
