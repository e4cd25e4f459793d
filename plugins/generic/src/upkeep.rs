//! Interfaces for the management API, for retention and for the portal.

use crate::records::FileRecord;
use crate::{Generic, delete, path};
use packhouse_sdk::{
    Context, Entry, Error, Failure, Present, Presentation, ReadAt, Readme, Repository, Retention, Upkeep,
    VersionFacts, VersionId,
};

/// Maximum number of bytes of a README that the portal shows.
const README: u64 = 1 << 20;

impl Upkeep for Generic {
    fn delete_version(cx: &Context, id: &VersionId) -> Result<(), Failure> {
        let path = path::of(id).ok_or_else(|| missing(id))?;
        if delete::file(cx.target()?, &path)? { Ok(()) } else { Err(missing(id)) }
    }

    fn mark_version(_cx: &Context, _id: &VersionId, _state: &str, _reason: &str) -> Result<(), Failure> {
        let text = "A file cannot be marked: clients that download it would not see the mark";
        Err(Failure::new(405, "not_supported", text))
    }
}

impl Retention for Generic {
    /// Returns empty facts for each existing file, because files have no tags and are never
    /// pre-releases. Retention judges a file by its age, its use and its rank among the files of
    /// its folder.
    fn judge_versions(cx: &Context, ids: &[VersionId]) -> Result<Vec<Option<VersionFacts>>, Failure> {
        let repository = cx.target()?;
        let judge = |id: &VersionId| Ok(find(repository, id)?.map(|_| VersionFacts::default()));
        ids.iter().map(judge).collect()
    }
}

impl Present for Generic {
    /// Presents the README in the file's folder.
    fn present_version(cx: &Context, id: &VersionId) -> Result<Presentation, Failure> {
        let repository = cx.target()?;
        if repository.is_hosted() && find(repository, id)?.is_none() {
            return Err(missing(id));
        }
        let candidates = [
            ("README.md", Readme::markdown as fn(String) -> Readme),
            ("README.txt", Readme::plain),
            ("README", Readme::plain),
        ];
        for (name, readme) in candidates {
            let Some(record) = find(repository, &VersionId::new(&id.name, name))? else { continue };
            if record.value.size > README {
                continue;
            }
            let bytes = repository.recorded_blob(&record.value.sha256)?.read_all(README)?;
            let readme = Some(readme(String::from_utf8_lossy(&bytes).into_owned()));
            return Ok(Presentation { readme, ..Presentation::default() });
        }
        Ok(Presentation::default())
    }
}

fn find(repository: &Repository, id: &VersionId) -> Result<Option<Entry<FileRecord>>, Error> {
    path::of(id).map_or(Ok(None), |path| FileRecord::find(repository, &path))
}

fn missing(id: &VersionId) -> Failure {
    Failure::not_found(format!("There is no file {} in {}", id.version, id.name))
}
