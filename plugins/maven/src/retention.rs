//! Facts about versions for retention: whether they are pre-releases, and which POMs they need.

use crate::Maven;
use crate::layout::folder_of;
use crate::pom::{self, Pom, PomDependency};
use crate::present;
use crate::version::MavenVersion;
use packhouse_sdk::{Context, Failure, Needed, ReadAt, Repository, Retention, VersionFacts, VersionId};

/// Maximum number of versions that are reported as needed by one POM.
const MAX_NEEDED: usize = 500;

impl Retention for Maven {
    fn judge_versions(cx: &Context, ids: &[VersionId]) -> Result<Vec<Option<VersionFacts>>, Failure> {
        let repository = cx.target()?;
        ids.iter().map(|id| judge(repository, id)).collect()
    }
}

fn judge(repository: &Repository, id: &VersionId) -> Result<Option<VersionFacts>, Failure> {
    let Some(folder) = folder_of(&id.name, &id.version) else { return Ok(None) };
    Ok(Some(VersionFacts {
        prerelease: Some(MavenVersion::new(&id.version).is_prerelease()),
        needs: needs(repository, &folder)?,
        ..VersionFacts::default()
    }))
}

/// Returns the parent and the imported POMs of a version. Builds that use the version need them.
fn needs(repository: &Repository, folder: &str) -> Result<Vec<Needed>, Failure> {
    let Some(record) = present::pom(repository, folder)? else { return Ok(Vec::new()) };
    if record.size > pom::LIMIT {
        return Ok(Vec::new());
    }
    let pom = Pom::read(&repository.recorded_blob(&record.sha256)?.read_all(pom::LIMIT)?);
    let named = pom.imports.into_iter().chain(pom.parent);
    let whole = |one: &PomDependency| {
        [&one.group, &one.artifact, &one.version].iter().all(|text| !text.is_empty() && !text.contains("${"))
    };
    let needed = |one: PomDependency| Needed::new(format!("{}:{}", one.group, one.artifact), one.version);
    Ok(named.filter(whole).take(MAX_NEEDED).map(needed).collect())
}
