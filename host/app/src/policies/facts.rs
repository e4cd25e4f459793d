//! Facts about a version for policies.
//!
//! Provenance and advisories are stored in records of their own, and are added separately.

use std::collections::{BTreeMap, BTreeSet};

use packhouse_advisories::{Advisory, Severity};
use packhouse_runtime::{Plugin, PolicyAdvisory, PolicyFacts, PolicyFile, PolicyProvenance};
use packhouse_store::{
    Attestation, AttestedFacts, Digest, RepositoryId, SignedStatement, StoreError, Verdict, Version,
    VersionFactsRow, VersionFile,
};

use super::{PublishedVersions, Question};
use crate::App;

/// Indexes of the versions for which provenance or advisories are needed, because a rule that
/// judges them uses these facts.
#[derive(Debug, Default)]
pub(super) struct RequiredFacts {
    pub(super) provenance: BTreeSet<usize>,
    pub(super) advisories: BTreeSet<usize>,
}

/// Property in which formats list the licence that the author states.
const LICENCE: &str = "license";
/// Maximum number of files of a version that policies receive.
const FILES: usize = 200;
/// Maximum number of properties that policies receive, and maximum size of one value in bytes.
const PROPERTIES: usize = 50;
const VALUE: usize = 1_000;

/// Returns the facts about a version from its format's listing. `published` is in ms since 1970.
#[must_use]
pub fn of_version(version: &Version, published: Option<u64>) -> PolicyFacts {
    let cut = |text: &str| text.get(..text.floor_char_boundary(VALUE)).unwrap_or_default().to_owned();
    let properties: Vec<(String, String)> =
        version.properties.iter().take(PROPERTIES).map(|(name, value)| (name.clone(), cut(value))).collect();
    let license = properties.iter().find(|(name, value)| name == LICENCE && !value.is_empty());
    let files = version.files.iter().take(FILES).map(|file| PolicyFile {
        path: file.path.clone(),
        size: file.size,
        digest: file.digest.to_string(),
    });
    PolicyFacts {
        name: version.name.clone(),
        version: version.version.clone(),
        published,
        state: version.state.clone(),
        license: license.map(|(_, value)| value.clone()),
        files: files.collect(),
        properties,
        provenance: Vec::new(),
        advisories: Vec::new(),
    }
}

/// Returns the facts about a version of which only the name is known.
#[must_use]
pub fn of_name(name: &str, version: &str) -> PolicyFacts {
    let version = Version { name: name.to_owned(), version: version.to_owned(), ..Version::default() };
    of_version(&version, None)
}

/// Returns the facts about a stored version.
#[must_use]
pub fn of_row(row: &VersionFactsRow) -> PolicyFacts {
    of_version(&row.version, row.published)
}

/// Estimates the size of a version in a call, in bytes.
pub(super) fn weight(facts: &PolicyFacts) -> usize {
    let files: usize = facts.files.iter().map(|file| file.path.len() + 150).sum();
    let properties: usize = facts.properties.iter().map(|(name, value)| name.len() + value.len() + 50).sum();
    let signed = facts.provenance.len() * 1_000 + facts.advisories.len() * 500;
    facts.name.len() + facts.version.len() + 200 + files + properties + signed
}

/// Adds provenance and advisories to the facts about versions in a repository, where `required`
/// asks for them. For a version that is being published, the provenance comes from the statements
/// in the publish.
pub(super) async fn complete(
    app: &App,
    question: &Question,
    published: Option<&PublishedVersions<'_>>,
    required: &RequiredFacts,
    versions: &mut [PolicyFacts],
) -> Result<(), StoreError> {
    let repository = question.place.repository;
    match published {
        Some(PublishedVersions { versions: listed, statements }) => {
            for at in &required.provenance {
                if let (Some(facts), Some(version)) = (versions.get_mut(*at), listed.get(*at)) {
                    facts.provenance = provenance_of_publish(app, repository, version, statements).await?;
                }
            }
        }
        None => {
            for (name, places) in by_name(&required.provenance, versions) {
                add_provenance(app, question, &name, &places, versions).await?;
            }
        }
    }
    if let Some(plugin) = app.runtime.plugin(&question.place.format) {
        for (name, places) in by_name(&required.advisories, versions) {
            add_advisories(app, &plugin, &name, &places, versions).await?;
        }
    }
    Ok(())
}

/// Groups the indexes by the package name of their versions.
fn by_name(places: &BTreeSet<usize>, versions: &[PolicyFacts]) -> BTreeMap<String, Vec<usize>> {
    let mut by_name: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for at in places {
        if let Some(facts) = versions.get(*at) {
            by_name.entry(facts.name.clone()).or_default().push(*at);
        }
    }
    by_name
}

async fn add_provenance(
    app: &App,
    question: &Question,
    name: &str,
    places: &[usize],
    versions: &mut [PolicyFacts],
) -> Result<(), StoreError> {
    let repository = question.place.repository;
    if let [at] = places
        && let Some(facts) = versions.get_mut(*at)
    {
        let stated = crate::attestations::judged_of(app, repository, name, &facts.version).await?;
        let about = |one: &&Attestation| {
            question.file.as_ref().is_none_or(|file| file.is_subject(&one.path, &one.subject))
        };
        facts.provenance.extend(stated.iter().filter(about).map(provenance));
        return Ok(());
    }
    let stated = app.store.attestations_of_package(repository, name).await?;
    for at in places {
        let Some(facts) = versions.get_mut(*at) else { continue };
        facts.provenance.extend(stated.get(&facts.version).into_iter().flatten().map(provenance));
    }
    Ok(())
}

/// Adds advisories to the facts. Does not query the database if advisories were never imported.
async fn add_advisories(
    app: &App,
    plugin: &Plugin,
    name: &str,
    places: &[usize],
    versions: &mut [PolicyFacts],
) -> Result<(), StoreError> {
    let numbers: Vec<String> =
        places.iter().filter_map(|at| versions.get(*at).map(|facts| facts.version.clone())).collect();
    let known = app.advisories.of_versions(plugin, name, &numbers).await?;
    for (at, known) in places.iter().zip(known) {
        if let Some(facts) = versions.get_mut(*at) {
            facts.advisories.extend(known.iter().map(|advisory| policy_advisory(advisory)));
        }
    }
    Ok(())
}

fn policy_advisory(advisory: &Advisory) -> PolicyAdvisory {
    let severity = match advisory.severity {
        Severity::Unknown => "",
        Severity::Low => "low",
        Severity::Moderate => "medium",
        Severity::High => "high",
        Severity::Critical => "critical",
    };
    PolicyAdvisory {
        id: advisory.id.clone(),
        severity: severity.to_owned(),
        malware: advisory.malware,
        summary: advisory.summary.clone(),
    }
}

fn provenance(stated: &Attestation) -> PolicyProvenance {
    claimed(&stated.facts, &stated.subject, stated.verdict)
}

fn claimed(facts: &AttestedFacts, subject: &Digest, verdict: Verdict) -> PolicyProvenance {
    PolicyProvenance {
        identity: facts.identity.clone(),
        issuer: facts.issuer.clone(),
        source_repository: facts.source.clone(),
        commit: facts.commit.clone(),
        digest: subject.to_string(),
        verified: verdict == Verdict::Verified,
    }
}

/// Returns the provenance of a version that is being published. It comes from the statements in the
/// publish, which are verified now.
///
/// Statements from earlier publishes are used only if the publish adds no file. Otherwise a new
/// file could pass because another signer made a statement about other files.
async fn provenance_of_publish(
    app: &App,
    repository: RepositoryId,
    version: &Version,
    statements: &[&SignedStatement],
) -> Result<Vec<PolicyProvenance>, StoreError> {
    let (name, number) = (&version.name, &version.version);
    let mut found = Vec::new();
    for stated in statements {
        if (&stated.name, &stated.version) != (name, number) {
            continue;
        }
        let judged = crate::attestations::judge_one(app, stated).await?;
        found.push(claimed(&judged.facts, &stated.subject, judged.verdict));
    }
    let known = app.store.version_details(repository, name, number).await?;
    let known = known.map(|known| known.version.files).unwrap_or_default();
    let is_known = |file: &VersionFile| {
        known.iter().any(|known| (&known.path, &known.digest) == (&file.path, &file.digest))
    };
    if version.files.iter().all(is_known) {
        let stated = app.store.attestations_of(repository, name, number).await?;
        found.extend(stated.iter().map(provenance));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_licence_is_the_property_of_that_name() {
        let properties = [("keywords", "a"), ("license", "MIT")];
        let properties = properties.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let version = Version { name: "a".to_owned(), properties, ..Version::default() };
        let facts = of_version(&version, Some(1));
        assert_eq!(
            (facts.license.as_deref(), facts.published, facts.properties.len()),
            (Some("MIT"), Some(1), 2)
        );
        assert_eq!(of_name("a", "1").license, None);
        let long = vec![("x".to_owned(), "é".repeat(VALUE))];
        let cut = of_version(&Version { properties: long, ..Version::default() }, None);
        assert!(cut.properties[0].1.len() <= VALUE);
    }
}
