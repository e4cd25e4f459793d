//! The parts of the format that serve the management API, retention and the portal.

use crate::line::UpstreamLine;
use crate::metadata::{CrateMetadata, PublishedDependency};
use crate::name::Name;
use crate::records::{self, VersionRecord, missing, missing_version};
use crate::{Cargo, remove, yank};
use packhouse_sdk::{
    Context, Dependency, Failure, Present, Presentation, ReadAt, Readme, Retention, Upkeep, VersionFacts,
    VersionId,
};
use semver::Version;

impl Upkeep for Cargo {
    fn delete_version(cx: &Context, id: &VersionId) -> Result<(), Failure> {
        remove::version(cx.target()?, &name(id)?, &id.version)
    }

    fn mark_version(cx: &Context, id: &VersionId, state: &str, reason: &str) -> Result<(), Failure> {
        let yanked = match state {
            "" => false,
            "yanked" => true,
            other => {
                let text = format!("Cargo has no state {other:?}; the only state is `yanked`");
                return Err(Failure::new(405, "not_supported", text));
            }
        };
        yank::mark(cx.target()?, &name(id)?, &id.version, yanked, reason)
    }
}

impl Retention for Cargo {
    fn judge_versions(cx: &Context, ids: &[VersionId]) -> Result<Vec<Option<VersionFacts>>, Failure> {
        let repository = cx.target()?;
        let judge = |id: &VersionId| {
            let Some(name) = Name::new(&id.name) else { return Ok(None) };
            if VersionRecord::find(repository, &name, &id.version)?.is_none() {
                return Ok(None);
            }
            let prerelease = Version::parse(&id.version).ok().map(|version| !version.pre.is_empty());
            Ok(Some(VersionFacts { prerelease, ..VersionFacts::default() }))
        };
        ids.iter().map(judge).collect()
    }
}

impl Present for Cargo {
    fn present_version(cx: &Context, id: &VersionId) -> Result<Presentation, Failure> {
        let (repository, name) = (cx.target()?, name(id)?);
        let Some(entry) = VersionRecord::find(repository, &name, &id.version)? else {
            return present_fetched(cx, &name, id);
        };
        let blob = repository.recorded_blob(&entry.value.metadata)?;
        let metadata = CrateMetadata::read(&blob.read_all(blob.size()?)?)?;
        let plain = metadata.readme_file.as_deref().is_some_and(|file| file.ends_with(".txt"));
        let readme = |text: String| if plain { Readme::plain(text) } else { Readme::markdown(text) };
        let dependencies = metadata.deps.iter().map(dependency).collect();
        Ok(Presentation { readme: metadata.readme.map(readme), dependencies, ..Presentation::default() })
    }
}

/// Presents a version that a proxy fetched. Only its dependencies are known, from its line in the
/// upstream's index.
fn present_fetched(cx: &Context, name: &Name, id: &VersionId) -> Result<Presentation, Failure> {
    #[derive(serde::Deserialize)]
    struct FetchedLine {
        line: String,
    }
    let gone = || missing_version(&id.name, &id.version);
    let version = Version::parse(&id.version).map_err(|_| gone())?;
    let key = format!("{}{}", records::fetched(name), crate::line::without_build(&version));
    let record = cx.target()?.get_json::<FetchedLine>(&key)?.ok_or_else(gone)?.value;
    let dependencies = UpstreamLine::dependencies(&record.line);
    let dependency = |one: crate::line::IndexDependency| {
        let name = one.package.unwrap_or(one.name);
        Dependency::new(name, one.req, group(one.kind.as_deref(), one.optional))
    };
    Ok(Presentation {
        dependencies: dependencies.into_iter().map(dependency).collect(),
        ..Presentation::default()
    })
}

fn dependency(one: &PublishedDependency) -> Dependency {
    Dependency::new(&one.name, &one.version_req, group(one.kind.as_deref(), one.optional))
}

/// The group of a dependency.
fn group(kind: Option<&str>, optional: bool) -> String {
    match (kind, optional) {
        (Some("dev"), _) => "development",
        (Some("build"), false) => "build",
        (Some("build"), true) => "build, optional",
        (_, true) => "optional",
        (_, false) => "",
    }
    .to_owned()
}

/// The name of the crate. 404 if it is not a valid name.
fn name(id: &VersionId) -> Result<Name, Failure> {
    Name::new(&id.name).ok_or_else(|| missing(&id.name))
}
