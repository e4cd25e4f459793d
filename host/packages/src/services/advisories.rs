//! Advisories for plugins, and the refusal of malware in hosted repositories.

use std::collections::BTreeSet;

use packhouse_advisories::Advisory;
use packhouse_identity::access::RepositoryKind;
use packhouse_runtime::{JudgedReleases, MAX_ADVISORY_BYTES, Release, ReleaseVerdict, ServiceError};
use packhouse_store::RepositoryId;

use super::CallServices;

/// Returns the advisories about these packages, by package, as the JSON object that the contract
/// defines. Fails with `TooLarge` if the object exceeds the limit of the contract.
pub(super) async fn find(services: &CallServices, names: Vec<String>) -> Result<String, ServiceError> {
    let Some(plugin) = services.app.runtime.plugin(&services.format) else { return Ok("{}".to_owned()) };
    let mut text = String::new();
    for name in names.into_iter().collect::<BTreeSet<String>>() {
        let known = services.app.advisories.of_package(plugin.description(), &name).await?;
        if known.is_empty() {
            continue;
        }
        let advisories: Vec<&Advisory> = known.iter().map(|advisory| &**advisory).collect();
        text.push(if text.is_empty() { '{' } else { ',' });
        text.push_str(&json(&name)?);
        text.push(':');
        text.push_str(&json(&advisories)?);
        if text.len() > MAX_ADVISORY_BYTES {
            return Err(ServiceError::TooLarge(text.len() as u64));
        }
    }
    text.push_str(if text.is_empty() { "{}" } else { "}" });
    Ok(text)
}

fn json(value: &impl serde::Serialize) -> Result<String, ServiceError> {
    serde_json::to_string(value).map_err(|error| ServiceError::Other(error.to_string()))
}

/// Withholds malware among the releases. Does not judge releases without a version.
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

/// Returns the reason to refuse a publish of malware, if any. Clients may publish a version again
/// that the repository already contains: only then can it be marked or deleted. If no advisory
/// calls the package malware, the function runs no statement.
pub(super) async fn refusal(
    services: &CallServices,
    repository: RepositoryId,
    versions: Vec<(String, String)>,
) -> Result<Option<String>, ServiceError> {
    let app = &services.app;
    let hosted = services.caller.principal.facts.repository.as_ref();
    let hosted =
        hosted.filter(|row| row.id == repository && RepositoryKind::of(&row.kind) == RepositoryKind::Hosted);
    let (Some(_), Some(plugin)) = (hosted, app.runtime.plugin(&services.format)) else { return Ok(None) };
    for (name, version) in versions {
        let found = app.advisories.malware(&plugin, &name, std::slice::from_ref(&version)).await?;
        let Some(advisory) = found.into_iter().flatten().next() else { continue };
        if app.store.version_details(repository, &name, &version).await?.is_none() {
            let Advisory { id, summary, .. } = &*advisory;
            return Ok(Some(format!("{name} {version} is malware and cannot be published: {id}, {summary}")));
        }
    }
    Ok(None)
}
