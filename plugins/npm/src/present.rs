//! Presentation of a version in the portal: its README, dependencies and attestations.

use crate::attestation;
use crate::name::PackageName;
use crate::readme::PackageReadme;
use crate::records::{self, VersionRecord, missing_version};
use crate::{Npm, upkeep, withdrawn};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use packhouse_sdk::{
    Attestation, Context, Dependency, Error, Failure, Present, Presentation, Readme, Repository, VersionId,
};
use serde_json::{Map, Value};

/// Members of a manifest that name dependencies, each with the portal's name for this group.
const GROUPS: [(&str, &str); 4] = [
    ("dependencies", ""),
    ("peerDependencies", "peer"),
    ("optionalDependencies", "optional"),
    ("devDependencies", "development"),
];

impl Present for Npm {
    fn present_version(cx: &Context, id: &VersionId) -> Result<Presentation, Failure> {
        let (repository, name) = (cx.target()?, upkeep::name(id)?);
        let full = match VersionRecord::find(repository, &name, &id.version)? {
            Some(version) => version.full,
            None => withdrawn::manifest(repository, &name, &id.version)?
                .ok_or_else(|| missing_version(&name, &id.version))?,
        };
        let manifest: Map<String, Value> = serde_json::from_str(&full)?;
        let readme = PackageReadme::find(repository, &name, &id.version)?;
        Ok(Presentation {
            readme: readme.map(presented),
            dependencies: dependencies(&manifest),
            attestations: attestations(repository, &name, &id.version)?,
            ..Presentation::default()
        })
    }
}

/// Converts a README for the portal. The file name determines the format: reStructuredText for
/// `.rst`, plain text for `.txt` or a name without a dot. All other READMEs are Markdown.
fn presented(readme: PackageReadme) -> Readme {
    let file = readme.file.to_ascii_lowercase();
    let plain = file.ends_with(".txt") || (!file.is_empty() && !file.contains('.'));
    match () {
        () if file.ends_with(".rst") => Readme::restructured(readme.text),
        () if plain => Readme::plain(readme.text),
        () => Readme::markdown(readme.text),
    }
}

/// Returns the dependencies of a manifest. An optional dependency that is also in `dependencies` is
/// listed only as optional.
fn dependencies(manifest: &Map<String, Value>) -> Vec<Dependency> {
    let member_of = |member: &str| manifest.get(member).and_then(Value::as_object);
    let optional = member_of("optionalDependencies");
    let mut found = Vec::new();
    for (member, group) in GROUPS {
        for (name, requirement) in member_of(member).into_iter().flatten() {
            let twice = member == "dependencies" && optional.is_some_and(|all| all.contains_key(name));
            if !twice {
                found.push(Dependency::new(name, requirement.as_str().unwrap_or_default(), group));
            }
        }
    }
    found
}

/// Returns the stored attestations of a version, each with the facts that it states about the
/// build.
fn attestations(
    repository: &Repository,
    name: &PackageName,
    number: &str,
) -> Result<Vec<Attestation>, Error> {
    let Some(entry) = repository.get(&records::attestations(name, number))? else { return Ok(Vec::new()) };
    let document: Value = serde_json::from_slice(&entry.value)?;
    let all = document.get("attestations").and_then(Value::as_array);
    let text = |value: &Value, at: &str| value.pointer(at).and_then(Value::as_str).map(str::to_owned);
    let attestation = |one: &Value| {
        let payload = one.pointer("/bundle/dsseEnvelope/payload").and_then(Value::as_str);
        let statement = payload.and_then(|payload| STANDARD.decode(payload).ok());
        let statement: Value =
            statement.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        let workflow = "/predicate/buildDefinition/externalParameters/workflow";
        let facts = [
            ("repository", text(&statement, &format!("{workflow}/repository"))),
            ("workflow", text(&statement, &format!("{workflow}/path"))),
            ("ref", text(&statement, &format!("{workflow}/ref"))),
            ("builder", text(&statement, "/predicate/runDetails/builder/id")),
        ];
        let facts = facts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        Attestation {
            file: String::new(),
            kind: text(one, "/predicateType").unwrap_or_default(),
            publisher: facts.collect(),
            path: attestation::path(name, number),
        }
    };
    Ok(all.into_iter().flatten().map(attestation).collect())
}
