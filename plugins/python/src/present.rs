//! Presents a version to people: the description and dependencies from one of its files, and the
//! attestations of each file. One file is enough, because the files of a version normally have the
//! same description and dependencies.

use crate::attestation;
use crate::index::key_of;
use crate::metadata::{self, CoreMetadata};
use crate::records::{self, FileRecord};
use crate::{Python, name};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use packhouse_sdk::{
    Attestation, Context, Dependency, Digest, Failure, Present, Presentation, ReadAt, Readme, Repository,
    VersionId,
};
use serde_json::Value;

/// Maximum bytes of a provenance object.
const PROVENANCE: u64 = 4 << 20;

impl Present for Python {
    fn present_version(cx: &Context, id: &VersionId) -> Result<Presentation, Failure> {
        let missing = || Failure::not_found(format!("There is no version {} of {}", id.version, id.name));
        let repository = cx.target()?;
        let project = name::project(&id.name).ok_or_else(missing)?;
        if repository.is_proxy() {
            // The metadata is only inside the upstream's file, which a proxy does not unpack.
            return Ok(Presentation::default());
        }
        let files = files(repository, &project, &key_of(&id.version))?;
        if files.is_empty() {
            return Err(missing());
        }
        let described: Vec<(&str, &Digest)> =
            files.iter().filter_map(|(file, record)| Some((file.as_str(), record.metadata()?))).collect();
        // The metadata of a wheel is preferred, because the dependencies of a source distribution
        // may be unknown until it is built.
        let best = described.iter().find(|(file, _)| file.ends_with(".whl")).or(described.first());
        let metadata = match best {
            Some((_, digest)) => {
                let bytes = repository.recorded_blob(digest)?.read_all(metadata::LIMIT)?;
                CoreMetadata::parse(&bytes).unwrap_or_default()
            }
            None => CoreMetadata::default(),
        };
        let mut attestations = Vec::new();
        for (file, record) in &files {
            attestations.extend(read_attestations(repository, &project, file, record)?);
        }
        Ok(Presentation {
            readme: readme(&metadata),
            dependencies: metadata.all("requires-dist").map(dependency).collect(),
            attestations,
            ..Presentation::default()
        })
    }
}

/// Reads the files of a version.
fn files(repository: &Repository, project: &str, key: &str) -> Result<Vec<(String, FileRecord)>, Failure> {
    let prefix = records::files(project);
    let mut found = Vec::new();
    for entry in repository.scan(&prefix) {
        let entry = entry?.json::<FileRecord>()?;
        if key_of(&entry.value.version) == key {
            found.push((entry.key.get(prefix.len()..).unwrap_or_default().to_owned(), entry.value));
        }
    }
    Ok(found)
}

/// Returns the description: the text after the fields, or else the field `description` of older
/// metadata.
fn readme(metadata: &CoreMetadata) -> Option<Readme> {
    let text = match metadata.description.trim() {
        "" => metadata.get("description").unwrap_or_default(),
        _ => metadata.description.as_str(),
    };
    if text.trim().is_empty() || text.trim() == "UNKNOWN" {
        return None;
    }
    let kind = metadata.get("description-content-type").unwrap_or_default().to_ascii_lowercase();
    Some(match kind.split(';').next().unwrap_or_default().trim() {
        "text/markdown" => Readme::markdown(text),
        "text/plain" => Readme::plain(text),
        // The default is reStructuredText, as the specification of the field says.
        _ => Readme::restructured(text),
    })
}

/// Parses a dependency (PEP 508): a name, extras, versions or a URL, and a marker after a
/// semicolon. A dependency that only an extra needs is in the group of that extra.
fn dependency(text: &str) -> Dependency {
    let (required, marker) = text.split_once(';').unwrap_or((text, ""));
    let required = required.trim();
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let end = required.find(|c| !is_name(c)).unwrap_or(required.len());
    let (name, requirement) = required.split_at(end);
    let requirement = requirement.trim();
    let requirement =
        requirement.strip_prefix('(').and_then(|text| text.strip_suffix(')')).unwrap_or(requirement);
    let (marker, extra) = (marker.trim(), extra(marker));
    // A marker that names only an extra is dropped, because the group says the same.
    let only_extra = extra.is_some() && !marker.contains(" and ") && !marker.contains(" or ");
    let requirement = match marker {
        "" => requirement.to_owned(),
        _ if only_extra => requirement.to_owned(),
        marker => format!("{requirement} ; {marker}").trim().to_owned(),
    };
    Dependency::new(name, requirement, extra.unwrap_or_default())
}

/// Returns the extra that a marker requires, such as `x` in `extra == "x"`.
fn extra(marker: &str) -> Option<&str> {
    let (_, rest) = marker.split_once("extra")?;
    let rest = rest.trim_start().strip_prefix("==")?.trim_start();
    let quote = rest.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    rest.get(1..)?.split(quote).next()
}

/// Reads the attestations of a file (PEP 740), each with its publisher from the provenance object.
fn read_attestations(
    repository: &Repository,
    project: &str,
    file: &str,
    record: &FileRecord,
) -> Result<Vec<Attestation>, Failure> {
    let Some(digest) = &record.provenance else { return Ok(Vec::new()) };
    let bytes = repository.recorded_blob(digest)?.read_all(PROVENANCE)?;
    let document: Value = serde_json::from_slice(&bytes)?;
    let mut found = Vec::new();
    for bundle in document.get("attestation_bundles").and_then(Value::as_array).into_iter().flatten() {
        let publisher = bundle.get("publisher").and_then(Value::as_object).into_iter().flatten();
        let publisher =
            publisher.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
        let publisher: std::collections::BTreeMap<String, String> = publisher.collect();
        for attestation in bundle.get("attestations").and_then(Value::as_array).into_iter().flatten() {
            let statement = attestation.pointer("/envelope/statement").and_then(Value::as_str);
            let statement = statement.and_then(|text| STANDARD.decode(text).ok()).unwrap_or_default();
            let statement: Value = serde_json::from_slice(&statement).unwrap_or_default();
            let kind = statement.get("predicateType").and_then(Value::as_str).unwrap_or_default();
            found.push(Attestation {
                file: file.to_owned(),
                kind: kind.to_owned(),
                publisher: publisher.clone(),
                path: attestation::path(project, &record.version, file),
            });
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_are_read_as_they_are_written() {
        for (text, name, requirement, group) in [
            ("requests", "requests", "", ""),
            ("requests>=2,<3", "requests", ">=2,<3", ""),
            ("requests[socks] (>=2)", "requests", "[socks] (>=2)", ""),
            ("six (>=1)", "six", ">=1", ""),
            ("pytest ; extra == 'test'", "pytest", "", "test"),
            ("a>1; python_version < \"3.9\"", "a", ">1 ; python_version < \"3.9\"", ""),
            ("b; python_version<'3' and extra == \"x\"", "b", "; python_version<'3' and extra == \"x\"", "x"),
            ("c @ https://example.com/c.whl", "c", "@ https://example.com/c.whl", ""),
        ] {
            assert_eq!(dependency(text), Dependency::new(name, requirement, group), "{text}");
        }
    }
}
