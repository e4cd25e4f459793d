//! Attestations of an upstream's version, as statements for the host.

use crate::attestation;
use crate::dist::from_integrity;
use crate::name::PackageName;
use crate::upstream_packument::UpstreamVersion;
use packhouse_sdk::{Context, ReadAt, Repository, Statement, VersionId};

/// Maximum number of bytes of an upstream's response.
const ANSWER: u64 = 16 << 20;

/// Returns the upstream's statements about a version's tarball. Returns `None` if the upstream
/// fails; the proxy serves the tarball nevertheless.
pub(crate) fn statements(
    cx: &Context,
    proxy: &Repository,
    name: &PackageName,
    number: &str,
    version: &UpstreamVersion,
) -> Option<Vec<Statement>> {
    let integrity = version.integrity.as_deref().unwrap_or_default();
    let mut digests = integrity.split_whitespace().filter_map(from_integrity);
    let Some(sha512) = digests.find(|digest| digest.algorithm() == "sha512") else { return Some(Vec::new()) };
    let target = format!("-/npm/v1/attestations/{}@{number}", name.encoded());
    let fetch = cx.upstream("GET", &target).header("accept", "application/json").limit(ANSWER);
    let reply = fetch.metadata().start(proxy).ok()?;
    match reply.status().ok()? {
        200 => {}
        404 | 410 | 451 => return Some(Vec::new()),
        _ => return None,
    }
    let answer = reply.body().ok()?.read_all(ANSWER).ok()?;
    let statement = |(kind, bundle): (String, Vec<u8>)| {
        let id = VersionId::new(name.as_str(), number);
        let statement = Statement::new(id, kind, sha512.clone(), bundle);
        statement.of_file(name.path(number)).at(attestation::path(name, number))
    };
    Some(attestation::of_upstream(&answer, sha512.hex()).into_iter().map(statement).collect())
}
