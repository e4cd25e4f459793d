//! Facts about versions for retention: whether they are pre-releases.

use crate::Composer;
use crate::version::Version;
use packhouse_sdk::{Context, Failure, Retention, VersionFacts, VersionId};

impl Retention for Composer {
    fn judge_versions(_cx: &Context, ids: &[VersionId]) -> Result<Vec<Option<VersionFacts>>, Failure> {
        let judge = |id: &VersionId| VersionFacts {
            prerelease: Version::parse(&id.version).map(|version| version.is_prerelease()),
            ..VersionFacts::default()
        };
        Ok(ids.iter().map(judge).map(Some).collect())
    }
}
