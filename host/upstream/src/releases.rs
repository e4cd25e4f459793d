//! Decides which releases of an upstream a proxy may offer, both in plugins' lists and as fetched
//! files.
//!
//! The age of a release begins at the time that the upstream states. Without such a time, it begins
//! when the server first saw the version: at its first judgement, or when the upstream first sent
//! its file.

use std::collections::BTreeSet;

use packhouse_names::{JudgedReleases, Judgement, PackageRules, Release};
use packhouse_runtime::{RepositoryView, ServiceError};
use packhouse_store::{CatalogState, RepositoryId, Store, StoreError, now_ms};

use super::settings::ProxySettings;
use crate::boxed;

/// State of a version that has vanished from the upstream.
const WITHDRAWN: &str = "withdrawn";

/// Start of a release's age if a list states no time for it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum UnstatedTime {
    /// Time when the server first saw the release.
    FirstSight,
    /// Date of the release's file, which is not known yet.
    FileDate,
}

/// Judges the releases of a package at `now`, in ms since 1970. Also returns the releases. With
/// [`UnstatedTime::FirstSight`], releases to which a minimum age applies and that have no stated
/// time get the time when the server first saw them. New ones are recorded. `Denied` if the
/// repository is not a proxy, `Other` if its settings cannot be read.
#[boxed]
pub async fn judge_releases(
    store: &Store,
    proxy: &RepositoryView,
    package: &str,
    mut releases: Vec<Release>,
    unstated: UnstatedTime,
    now: u64,
) -> Result<(JudgedReleases, Vec<Release>), ServiceError> {
    let rules = ProxySettings::of(proxy)?.releases.for_package(package);
    let counts_from_sight = |release: &&Release| {
        unstated != UnstatedTime::FileDate && !release.version.is_empty() && rules.lacks_time(release)
    };
    let versions: BTreeSet<String> =
        releases.iter().filter(counts_from_sight).map(|release| release.version.clone()).collect();
    let first_seen = store.note_first_seen(proxy.id, package, versions).await?;
    let judged = rules.judge_all(&releases, &first_seen, now);
    for release in &mut releases {
        release.published = release.published.or_else(|| first_seen.get(&release.version).copied());
    }
    Ok((judged, releases))
}

/// The release that a fetched file belongs to.
pub(crate) struct FetchedRelease {
    rules: PackageRules,
    release: Release,
    /// Time when the server first saw the version, in ms since 1970. None if the time is unknown or
    /// does not matter.
    first_seen: Option<u64>,
}

impl FetchedRelease {
    /// Reads the listed state of a version, to be judged by its package's rules.
    pub(crate) async fn find(
        store: &Store,
        rules: PackageRules,
        repository: RepositoryId,
        (name, version): (&str, &str),
    ) -> Result<FetchedRelease, StoreError> {
        let shown = store.catalog_state(repository, name, version).await?;
        let mut found = FetchedRelease::new(rules, version, &shown);
        if rules.lacks_time(&found.release) {
            found.first_seen = store.find_first_seen(repository, name, version).await?;
        }
        Ok(found)
    }

    fn new(rules: PackageRules, version: &str, shown: &CatalogState) -> FetchedRelease {
        let release = Release::of(version, shown.published, shown.state == WITHDRAWN);
        FetchedRelease { rules, release, first_seen: None }
    }

    /// Judges the release by its listed state and the time when the server first saw it.
    pub(crate) fn judge(&self) -> Judgement {
        self.rules.judge_seen(&self.release, self.first_seen, now())
    }

    /// Returns the start of the release's age once its file has arrived: the file's
    /// `Last-Modified`, else the time when the server first saw the version.
    pub(crate) fn counts_from(&self, last_modified: Option<&str>) -> Option<u64> {
        last_modified.and_then(modified).or(self.first_seen)
    }

    /// Judges the release as if its age counted from this time, in ms since 1970.
    pub(crate) fn judge_from(&self, time: u64) -> Judgement {
        self.rules.judge(&Release { published: Some(time), ..self.release.clone() }, now())
    }
}

/// Parses a `Last-Modified` date into ms since 1970.
fn modified(date: &str) -> Option<u64> {
    let at = httpdate::parse_http_date(date).ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    u64::try_from(at.as_millis()).ok()
}

/// Returns the current time in ms since 1970. A clock that shows a time before 1970 is wrong: the
/// result is 0, and all releases count as new.
pub(crate) fn now() -> u64 {
    u64::try_from(now_ms()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use packhouse_names::{ReleaseRules, ReleaseVerdict};

    use super::*;

    fn rules(text: &str) -> PackageRules {
        serde_json::from_str::<ReleaseRules>(text).unwrap().for_package("a")
    }

    fn shown(published: Option<u64>, state: &str) -> CatalogState {
        CatalogState { published, state: state.to_owned() }
    }

    #[test]
    fn listed_state_and_first_sight_decide_before_the_file() {
        let day = rules(r#"{"min_release_age_s": 86400}"#);
        for (shown, first_seen, verdict) in [
            (shown(Some(0), ""), None, ReleaseVerdict::Offered),
            (shown(Some(now()), ""), Some(0), ReleaseVerdict::Withheld),
            (shown(None, ""), None, ReleaseVerdict::FileDecides),
            (shown(None, ""), Some(now()), ReleaseVerdict::FileDecides),
            (shown(None, "yanked"), Some(0), ReleaseVerdict::Offered),
            (shown(Some(0), "withdrawn"), None, ReleaseVerdict::Withheld),
        ] {
            let release = FetchedRelease { first_seen, ..FetchedRelease::new(day, "1", &shown) };
            assert_eq!(release.judge().verdict, verdict, "{shown:?} {first_seen:?}");
        }
    }

    #[test]
    fn the_age_counts_from_the_files_date_or_the_first_sight() {
        let release = FetchedRelease::new(rules(r#"{"min_release_age_s": 86400}"#), "1", &shown(None, ""));
        let old = release.counts_from(Some("Sat, 01 Jan 2000 00:00:00 GMT")).unwrap();
        assert_eq!(release.judge_from(old).verdict, ReleaseVerdict::Offered);
        let seen = FetchedRelease {
            first_seen: Some(7),
            ..FetchedRelease::new(release.rules, "1", &shown(None, ""))
        };
        for date in [None, Some(""), Some("yesterday"), Some("Wed, 31 Dec 1969 23:59:59 GMT")] {
            assert_eq!((release.counts_from(date), seen.counts_from(date)), (None, Some(7)), "{date:?}");
        }
        let young = seen.counts_from(Some("Fri, 31 Dec 9999 23:59:59 GMT")).unwrap();
        let until = Some(253_402_300_799_000 + 86_400_000);
        assert_eq!(seen.judge_from(young), Judgement { verdict: ReleaseVerdict::Withheld, until });
    }

    #[test]
    fn a_repository_without_an_upstream_has_no_settings_of_one() {
        let view = |kind: &str| RepositoryView {
            id: RepositoryId(1),
            revision: 0,
            name: "r".into(),
            kind: kind.into(),
            settings: "{}".into(),
        };
        for kind in ["hosted", "group"] {
            assert!(matches!(ProxySettings::of(&view(kind)), Err(ServiceError::Denied)), "{kind}");
        }
    }
}
