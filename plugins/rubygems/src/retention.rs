//! Tells the host which versions are pre-releases, for retention rules.

use crate::{RubyGems, name, version};
use packhouse_sdk::{Context, Failure, Retention, VersionFacts, VersionId};

impl Retention for RubyGems {
    fn judge_versions(_cx: &Context, ids: &[VersionId]) -> Result<Vec<Option<VersionFacts>>, Failure> {
        let judge = |id: &VersionId| VersionFacts {
            prerelease: name::parts(&id.version).map(|(version, _)| version::is_prerelease(version)),
            ..VersionFacts::default()
        };
        Ok(ids.iter().map(judge).map(Some).collect())
    }
}
