//! Tells the host which versions are pre-releases (PEP 440), for retention rules.

use crate::Python;
use crate::version::Version;
use packhouse_sdk::{Context, Failure, Retention, VersionFacts, VersionId};

impl Retention for Python {
    fn judge_versions(_cx: &Context, ids: &[VersionId]) -> Result<Vec<Option<VersionFacts>>, Failure> {
        let judge = |id: &VersionId| VersionFacts {
            prerelease: Version::parse(&id.version).map(|version| version.is_prerelease()),
            ..VersionFacts::default()
        };
        Ok(ids.iter().map(judge).map(Some).collect())
    }
}
