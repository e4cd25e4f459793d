//! Which releases of an upstream a proxy may offer: in the lists that plugins make, and of the files that are fetched for them.

use packhouse_names::{JudgedReleases, Judgement, PackageRules, Release};
use packhouse_runtime::{RepositoryView, ServiceError};
use packhouse_store::{ShownState, now_ms};

use super::settings::ProxySettings;

/// The state of a version that vanished upstream.
const WITHDRAWN: &str = "withdrawn";

/// Judges the releases of a package at `now`, in ms since 1970. `Denied` for a repository that is no proxy, `Other` for settings
/// that cannot be read.
pub fn judge_releases(
    proxy: &RepositoryView,
    package: &str,
    releases: &[Release],
    now: u64,
) -> Result<JudgedReleases, ServiceError> {
    Ok(ProxySettings::of(proxy)?.releases.for_package(package).judge_all(releases, now))
}

/// The release that a fetch is shown as.
pub(crate) struct FetchedRelease {
    rules: PackageRules,
    release: Release,
}

impl FetchedRelease {
    /// As its version is shown at this moment, judged by these rules of its package.
    pub(crate) fn new(rules: PackageRules, version: &str, shown: &ShownState) -> FetchedRelease {
        let release = Release::of(version, shown.published, shown.state == WITHDRAWN);
        FetchedRelease { rules, release }
    }

    /// Judges it by what is shown of it.
    pub(crate) fn judge(&self) -> Judgement {
        self.rules.judge(&self.release, now())
    }

    /// Judges it by the `Last-Modified` of its file, where nothing shown tells its age: without one it is never old enough.
    pub(crate) fn judge_file(&self, last_modified: Option<&str>) -> Judgement {
        let modified = last_modified.and_then(|date| httpdate::parse_http_date(date).ok());
        let at = modified.and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
        let published = at.and_then(|at| u64::try_from(at.as_millis()).ok());
        self.rules.judge(&Release { published, ..self.release.clone() }, now())
    }
}

/// A clock before 1970 is set wrong: then everything is young.
fn now() -> u64 {
    u64::try_from(now_ms()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use packhouse_names::{ReleaseRules, ReleaseVerdict};
    use packhouse_store::RepositoryId;

    use super::*;

    fn rules(text: &str) -> PackageRules {
        serde_json::from_str::<ReleaseRules>(text).unwrap().for_package("a")
    }

    fn shown(published: Option<u64>, state: &str) -> ShownState {
        ShownState { published, state: state.to_owned() }
    }

    #[test]
    fn what_is_shown_of_a_version_decides_before_its_file() {
        let day = rules(r#"{"min_release_age_s": 86400}"#);
        for (shown, verdict) in [
            (shown(Some(0), ""), ReleaseVerdict::Offered),
            (shown(Some(now()), ""), ReleaseVerdict::Withheld),
            (shown(None, ""), ReleaseVerdict::FileDecides),
            (shown(None, "yanked"), ReleaseVerdict::FileDecides),
            (shown(Some(0), "withdrawn"), ReleaseVerdict::Withheld),
        ] {
            assert_eq!(FetchedRelease::new(day, "1", &shown).judge().verdict, verdict, "{shown:?}");
        }
    }

    #[test]
    fn a_file_decides_by_its_date_and_without_one_it_is_young() {
        let release = FetchedRelease::new(rules(r#"{"min_release_age_s": 86400}"#), "1", &shown(None, ""));
        let judged = |date: Option<&str>| release.judge_file(date);
        assert_eq!(judged(Some("Sat, 01 Jan 2000 00:00:00 GMT")).verdict, ReleaseVerdict::Offered);
        for date in [None, Some(""), Some("yesterday"), Some("Wed, 31 Dec 1969 23:59:59 GMT")] {
            assert_ne!(judged(date).verdict, ReleaseVerdict::Offered, "{date:?}");
            assert_eq!(judged(date).until, None, "{date:?}");
        }
        let young = judged(Some("Fri, 31 Dec 9999 23:59:59 GMT"));
        assert_eq!(young.verdict, ReleaseVerdict::Withheld);
        assert_eq!(young.until, Some(253_402_300_799_000 + 86_400_000));
    }

    #[test]
    fn a_repository_without_an_upstream_has_no_releases_to_judge() {
        let view = |kind: &str| RepositoryView {
            id: RepositoryId(1),
            revision: 0,
            name: "r".into(),
            kind: kind.into(),
            settings: "{}".into(),
        };
        for kind in ["hosted", "group"] {
            let judged = judge_releases(&view(kind), "a", &[], 0);
            assert!(matches!(judged, Err(ServiceError::Denied)), "{kind}");
        }
    }
}
