//! Tells the host which versions are pre-releases (semver), for retention rules.

use crate::{Helm, name};
use packhouse_sdk::{Context, Failure, Retention, VersionFacts, VersionId};

impl Retention for Helm {
    fn judge_versions(_cx: &Context, ids: &[VersionId]) -> Result<Vec<Option<VersionFacts>>, Failure> {
        let judge = |id: &VersionId| VersionFacts {
            prerelease: name::version(&id.version).map(|version| !version.pre.is_empty()),
            ..VersionFacts::default()
        };
        Ok(ids.iter().map(judge).map(Some).collect())
    }
}
