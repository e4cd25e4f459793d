//! Presentation of a version to people: the content of its POM.

use crate::Maven;
use crate::layout::{FilePath, folder_of};
use crate::pom::{self, Pom, PomDependency};
use crate::records::{self, FileRecord};
use crate::version::is_snapshot;
use packhouse_sdk::{
    Context, Dependency, Failure, Present, Presentation, ReadAt, Readme, Repository, VersionId,
};

impl Present for Maven {
    fn present_version(cx: &Context, id: &VersionId) -> Result<Presentation, Failure> {
        let missing = || Failure::not_found(format!("There is no version {} of {}", id.version, id.name));
        let folder = folder_of(&id.name, &id.version).ok_or_else(missing)?;
        let repository = cx.target()?;
        let Some(record) = pom(repository, &folder)? else { return Ok(Presentation::default()) };
        let bytes = match record.size {
            0..=pom::LIMIT => repository.recorded_blob(&record.sha256)?.read_all(pom::LIMIT)?,
            _ => return Ok(Presentation::default()),
        };
        let pom = Pom::read(&bytes);
        let lines = [pom.name.as_str(), pom.description.as_str(), pom.url.as_str()];
        let lines: Vec<&str> = lines.into_iter().filter(|line| !line.is_empty()).collect();
        Ok(Presentation {
            readme: (!pom.description.is_empty()).then(|| Readme::plain(lines.join("\n\n"))),
            dependencies: pom.dependencies.into_iter().map(dependency).collect(),
            ..Presentation::default()
        })
    }
}

/// Finds the POM of a version; for a snapshot, the newest POM.
pub(crate) fn pom(repository: &Repository, folder: &str) -> Result<Option<FileRecord>, Failure> {
    // The path of a release's POM is known, so the files of the release need not be scanned.
    if let Some((above, version)) = folder.rsplit_once('/').filter(|(_, version)| !is_snapshot(version)) {
        let artifact = above.rsplit('/').next().unwrap_or_default();
        let key = records::file(&format!("{folder}/{artifact}-{version}.pom"));
        return Ok(repository.get_json::<FileRecord>(&key)?.map(|entry| entry.value));
    }
    let mut newest: Option<FileRecord> = None;
    for entry in repository.scan(records::files_in(folder)) {
        let entry = entry?;
        let path = entry.key.strip_prefix("f/").unwrap_or_default();
        if FilePath::stored(path).item.is_none_or(|item| item.tail != ".pom") {
            continue;
        }
        let record = entry.json::<FileRecord>()?.value;
        if newest.as_ref().is_none_or(|known| known.time <= record.time) {
            newest = Some(record);
        }
    }
    Ok(newest)
}

fn dependency(dependency: PomDependency) -> Dependency {
    let PomDependency { group, artifact, version, scope, optional } = dependency;
    let scope = if scope == "compile" { String::new() } else { scope };
    let of = match (scope.is_empty(), optional) {
        (_, false) => scope,
        (true, true) => "optional".to_owned(),
        (false, true) => format!("{scope}, optional"),
    };
    Dependency::new(format!("{group}:{artifact}"), version, of)
}
