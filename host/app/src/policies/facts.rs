//! What is known of a version, put together for policies.
//!
//! Provenance and advisories come from records of their own.

use std::collections::{BTreeMap, BTreeSet};

use packhouse_advisories::{Advisory, Severity};
use packhouse_runtime::{MAX_BATCH, Plugin, PolicyAdvisory, PolicyFacts, PolicyFile, PolicyProvenance};
use packhouse_store::{
    Attestation, AttestedFacts, Digest, RepositoryId, SignedStatement, StoreError, Verdict, Version,
    VersionFactsRow, VersionFile,
};

use super::{Published, Question};
use crate::App;

/// Where among the versions those stand of which more has to be read, since a rule that is asked about them looks at it.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    pub(super) provenance: BTreeSet<usize>,
    pub(super) advisories: BTreeSet<usize>,
}

/// Bytes of facts of one call at most, about.
const MAX_BATCH_BYTES: usize = 4 << 20;

/// The property in which formats show the licence that an author states.
const LICENCE: &str = "license";
/// Files that policies are told at most.
const FILES: usize = 200;
/// Properties that policies are told at most, and bytes of the value of one.
const PROPERTIES: usize = 50;
const VALUE: usize = 1_000;

/// The facts of what a format shows of a version; `published` in ms since 1970.
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

/// The facts of a version of which nothing is known but its name.
#[must_use]
pub fn of_name(name: &str, version: &str) -> PolicyFacts {
    let version = Version { name: name.to_owned(), version: version.to_owned(), ..Version::default() };
    of_version(&version, None)
}

/// The same of what the store has of it.
#[must_use]
pub fn of_row(row: &VersionFactsRow) -> PolicyFacts {
    of_version(&row.version, row.published)
}

/// Bytes that a version takes where it is handed over, about.
fn weight(facts: &PolicyFacts) -> usize {
    let files: usize = facts.files.iter().map(|file| file.path.len() + 150).sum();
    let properties: usize = facts.properties.iter().map(|(name, value)| name.len() + value.len() + 50).sum();
    let signed = facts.provenance.len() * 1_000 + facts.advisories.len() * 500;
    facts.name.len() + facts.version.len() + 200 + files + properties + signed
}

/// What is asked in one call each: no more versions than one may be asked about, and no more bytes than its memory holds with ease.
pub(super) fn batches(asked: &[usize], versions: &[PolicyFacts]) -> Vec<Vec<usize>> {
    let mut batches: Vec<Vec<usize>> = Vec::new();
    let (mut batch, mut bytes) = (Vec::new(), 0_usize);
    for at in asked {
        let own = versions.get(*at).map_or(0, weight);
        if !batch.is_empty() && (batch.len() == MAX_BATCH || bytes.saturating_add(own) > MAX_BATCH_BYTES) {
            batches.push(std::mem::take(&mut batch));
            bytes = 0;
        }
        batch.push(*at);
        bytes = bytes.saturating_add(own);
    }
    if !batch.is_empty() {
        batches.push(batch);
    }
    batches
}

/// Adds to the facts of a repository's versions what records of their own say of them, as far as it is wanted. What is signed of a version
/// that is published is what comes with it.
pub(super) async fn complete(
    app: &App,
    question: &Question,
    published: Option<&Published<'_>>,
    wanted: &Wanted,
    versions: &mut [PolicyFacts],
) -> Result<(), StoreError> {
    let repository = question.place.repository;
    match published {
        Some(Published { versions: shown, statements }) => {
            for at in &wanted.provenance {
                if let (Some(facts), Some(version)) = (versions.get_mut(*at), shown.get(*at)) {
                    facts.provenance = provenance_of_publish(app, repository, version, statements).await?;
                }
            }
        }
        None => {
            for (name, places) in by_name(&wanted.provenance, versions) {
                add_provenance(app, question, &name, &places, versions).await?;
            }
        }
    }
    if let Some(plugin) = app.runtime.plugin(&question.place.format) {
        for (name, places) in by_name(&wanted.advisories, versions) {
            add_advisories(app, &plugin, &name, &places, versions).await?;
        }
    }
    Ok(())
}

/// These places by the name of the package that stands there.
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

/// Nothing is asked of the database where no advisory was ever brought in.
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
            facts.advisories.extend(known.iter().map(|advisory| told(advisory)));
        }
    }
    Ok(())
}

fn told(advisory: &Advisory) -> PolicyAdvisory {
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

/// What is signed of a version that is about to be shown: what comes with it, judged now. What was signed of it before counts only
/// where no file is new, so that none comes in by what another's signer said.
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

    #[test]
    fn a_call_is_asked_about_no_more_than_it_can_hold() {
        let small = vec![of_name("a", "1"); 2_500];
        let asked: Vec<usize> = (0..small.len()).collect();
        let sizes = |batches: Vec<Vec<usize>>| batches.iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(sizes(batches(&asked, &small)), [1_000, 1_000, 500]);
        let mut large = of_name("a", "1");
        large.properties = vec![("x".to_owned(), "y".repeat(3 << 20))];
        assert_eq!(sizes(batches(&[0, 1, 2], &vec![large; 3])), [1, 1, 1]);
        assert!(batches(&[], &small).is_empty());
    }
}
