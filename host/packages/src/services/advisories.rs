//! What a plugin is told of advisories, and what a hosted repository does not take in because of one.

use std::collections::BTreeSet;

use packhouse_advisories::Advisory;
use packhouse_identity::access::Kind;
use packhouse_runtime::{JudgedReleases, MAX_TOLD_BYTES, Release, ReleaseVerdict, ServiceError};
use packhouse_store::RepositoryId;

use super::CallServices;

/// The advisories about these packages, by package, as the contract's JSON object. `TooLarge` as soon as it is longer than a plugin is told.
pub(super) async fn find(services: &CallServices, names: Vec<String>) -> Result<String, ServiceError> {
    let Some(plugin) = services.app.runtime.plugin(&services.format) else { return Ok("{}".to_owned()) };
    let mut told = String::new();
    for name in names.into_iter().collect::<BTreeSet<String>>() {
        let known = services.app.advisories.of_package(plugin.description(), &name).await?;
        if known.is_empty() {
            continue;
        }
        let advisories: Vec<&Advisory> = known.iter().map(|advisory| &**advisory).collect();
        told.push(if told.is_empty() { '{' } else { ',' });
        told.push_str(&json(&name)?);
        told.push(':');
        told.push_str(&json(&advisories)?);
        if told.len() > MAX_TOLD_BYTES {
            return Err(ServiceError::TooLarge(told.len() as u64));
        }
    }
    told.push_str(if told.is_empty() { "{}" } else { "}" });
    Ok(told)
}

fn json(value: &impl serde::Serialize) -> Result<String, ServiceError> {
    serde_json::to_string(value).map_err(|error| ServiceError::Other(error.to_string()))
}

/// The same verdicts, with malware withheld. Of releases whose version is not named nothing is known.
pub(super) async fn without_malware(
    services: &CallServices,
    package: &str,
    releases: &[Release],
    mut judged: JudgedReleases,
) -> Result<JudgedReleases, ServiceError> {
    let app = &services.app;
    let Some(plugin) = app.runtime.plugin(&services.format).filter(|_| app.advisories.number() != 0) else {
        return Ok(judged);
    };
    let versions: Vec<String> = releases.iter().map(|release| release.version.clone()).collect();
    let found = app.advisories.malware(&plugin, package, &versions).await?;
    let named = versions.iter().zip(found).map(|(version, found)| !version.is_empty() && found.is_some());
    for (verdict, is_malware) in judged.verdicts.iter_mut().zip(named) {
        if is_malware {
            *verdict = ReleaseVerdict::Withheld;
        }
    }
    Ok(judged)
}

/// A sentence for whoever would publish malware: of a version that is not shown there yet, since what is there can be marked or taken away
/// only if it can be written. No statement is run where no advisory calls the package malware.
pub(super) async fn refusal(
    services: &CallServices,
    repository: RepositoryId,
    versions: Vec<(String, String)>,
) -> Result<Option<String>, ServiceError> {
    let app = &services.app;
    let hosted = services.caller.principal.facts.repository.as_ref();
    let hosted = hosted.filter(|row| row.id == repository && Kind::of(&row.kind) == Kind::Hosted);
    let (Some(_), Some(plugin)) = (hosted, app.runtime.plugin(&services.format)) else { return Ok(None) };
    for (name, version) in versions {
        let found = app.advisories.malware(&plugin, &name, std::slice::from_ref(&version)).await?;
        let Some(advisory) = found.into_iter().flatten().next() else { continue };
        if app.store.version_details(repository, &name, &version).await?.is_none() {
            let Advisory { id, summary, .. } = &*advisory;
            return Ok(Some(format!("{name} {version} is malware and is not taken in: {id}, {summary}")));
        }
    }
    Ok(None)
}
