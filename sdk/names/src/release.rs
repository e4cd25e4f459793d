//! Which releases of an upstream a proxy may offer: the one rule, by which the host judges for every format and the hosts of tests
//! judge as it does.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::glob_match;

/// What is known of a release: of a version, or of one file where a format tells the times of files.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Release {
    /// As the version is shown; empty where that is not known. Age and withdrawal alone decide then.
    pub version: String,
    /// When the upstream says that it was published, in ms since 1970; none where it does not say.
    pub published: Option<u64>,
    /// Whether it was fetched once and has vanished upstream.
    pub withdrawn: bool,
    /// Its licence as the upstream writes it; none where nothing says so.
    pub license: Option<String>,
}

impl Release {
    /// What is known of a version whose licence is not.
    pub fn of(version: impl Into<String>, published: Option<u64>, withdrawn: bool) -> Self {
        Self { version: version.into(), published, withdrawn, license: None }
    }
}

/// What becomes of a release.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ReleaseVerdict {
    /// It may be listed and fetched.
    Offered,
    /// It may be neither.
    Withheld,
    /// It must have an age, and nothing tells when it was published. It is not listed; a fetch of its file is decided by the date of
    /// that file, and where the file has none by when the server first saw the version.
    FileDecides,
}

/// A verdict, and for how long it stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Judgement {
    /// What becomes of it now.
    pub verdict: ReleaseVerdict,
    /// The first moment at which that is different, in ms since 1970; none where time changes nothing.
    pub until: Option<u64>,
}

/// The verdicts on several releases.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct JudgedReleases {
    /// One for each, in their order.
    pub verdicts: Vec<ReleaseVerdict>,
    /// The first moment at which one of them is different, in ms since 1970; none where time changes nothing.
    pub until: Option<u64>,
    /// Why policies withhold some of them, for whoever asks: by place.
    pub because: BTreeMap<usize, String>,
}

/// What a proxy's settings say of releases, read from the JSON object of them all.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct ReleaseRules {
    /// Seconds that have to pass before what was published is offered.
    min_release_age_s: u64,
    /// Patterns of the packages for which that does not hold, in the format's spelling.
    min_release_age_except: Vec<String>,
    /// Whether what vanished upstream is still offered.
    pub keep_withdrawn: bool,
}

/// The same for one package.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PackageRules {
    /// The age in ms that a release must have; none where any will do.
    min_age_ms: Option<u64>,
    keep_withdrawn: bool,
}

impl ReleaseRules {
    /// What holds for this package, named in the format's spelling.
    pub fn for_package(&self, name: &str) -> PackageRules {
        let needs_age = self.min_release_age_s > 0
            && !self.min_release_age_except.iter().any(|pattern| glob_match(pattern, name));
        let min_age_ms = needs_age.then(|| self.min_release_age_s.saturating_mul(1000));
        PackageRules { min_age_ms, keep_withdrawn: self.keep_withdrawn }
    }
}

impl PackageRules {
    /// Judges one release at `now`, in ms since 1970. A release that has the age to the millisecond is offered.
    pub fn judge(&self, release: &Release, now: u64) -> Judgement {
        let for_good = |verdict| Judgement { verdict, until: None };
        if release.withdrawn && !self.keep_withdrawn {
            return for_good(ReleaseVerdict::Withheld);
        }
        match (self.min_age_ms, release.published) {
            (None, _) => for_good(ReleaseVerdict::Offered),
            (Some(_), None) => for_good(ReleaseVerdict::FileDecides),
            (Some(age), Some(published)) if now.saturating_sub(published) >= age => {
                for_good(ReleaseVerdict::Offered)
            }
            (Some(age), Some(published)) => {
                Judgement { verdict: ReleaseVerdict::Withheld, until: Some(published.saturating_add(age)) }
            }
        }
    }

    /// Whether a release must have an age, and its upstream states no time for it.
    pub fn lacks_time(&self, release: &Release) -> bool {
        self.judge(release, 0).verdict == ReleaseVerdict::FileDecides
    }

    /// Judges one release at `now`. If its upstream states no time for it, its age counts from `first_seen`, the moment in ms since
    /// 1970 at which the server first saw it. Until it is old enough by that, its file may still show that it is older.
    pub fn judge_seen(&self, release: &Release, first_seen: Option<u64>, now: u64) -> Judgement {
        let judged = self.judge(release, now);
        if judged.verdict != ReleaseVerdict::FileDecides || first_seen.is_none() {
            return judged;
        }
        let seen = Release { published: first_seen, withdrawn: release.withdrawn, ..Release::default() };
        let Judgement { verdict, until } = self.judge(&seen, now);
        let verdict = if verdict == ReleaseVerdict::Offered { verdict } else { ReleaseVerdict::FileDecides };
        Judgement { verdict, until }
    }

    /// Judges several releases of the package. `first_seen` holds, by version, the moments at which the server first saw those
    /// whose upstream states no time.
    pub fn judge_all(
        &self,
        releases: &[Release],
        first_seen: &BTreeMap<String, u64>,
        now: u64,
    ) -> JudgedReleases {
        let mut judged =
            JudgedReleases { verdicts: Vec::with_capacity(releases.len()), ..JudgedReleases::default() };
        for release in releases {
            let seen = first_seen.get(&release.version).copied();
            let Judgement { verdict, until } = self.judge_seen(release, seen, now);
            judged.verdicts.push(verdict);
            judged.until = earlier(judged.until, until);
        }
        judged
    }
}

/// The earlier of two moments, where none is never.
fn earlier(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).min()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{JudgedReleases, Judgement, PackageRules, Release, ReleaseRules, ReleaseVerdict};
    use ReleaseVerdict::{FileDecides, Offered, Withheld};

    const NOW: u64 = 100_000;

    fn rules(min_release_age_s: u64, keep_withdrawn: bool) -> ReleaseRules {
        let min_release_age_except = vec!["@own/*".to_owned(), "lib".to_owned()];
        ReleaseRules { min_release_age_s, min_release_age_except, keep_withdrawn }
    }

    fn published(at: u64) -> Release {
        Release::of("", Some(at), false)
    }

    fn withdrawn(published: Option<u64>) -> Release {
        Release::of("", published, true)
    }

    #[test]
    fn a_release_waits_for_its_age_unless_it_is_excepted() {
        let rules = rules(10, false);
        for (name, release, verdict, until) in [
            ("other", published(90_000), Offered, None),
            ("other", published(90_001), Withheld, Some(100_001)),
            ("other", published(NOW + 5), Withheld, Some(110_005)),
            ("other", published(u64::MAX), Withheld, Some(u64::MAX)),
            ("other", Release::default(), FileDecides, None),
            ("lib", published(99_999), Offered, None),
            ("library", published(99_999), Withheld, Some(109_999)),
            ("@own/a", Release::default(), Offered, None),
        ] {
            let judged = rules.for_package(name).judge(&release, NOW);
            assert_eq!(judged, Judgement { verdict, until }, "{name} {release:?}");
        }
    }

    #[test]
    fn a_verdict_changes_at_the_moment_that_it_names() {
        let rules = rules(10, false).for_package("other");
        let until = rules.judge(&published(95_000), NOW).until.unwrap_or_default();
        assert_eq!(rules.judge(&published(95_000), until - 1).verdict, Withheld);
        assert_eq!(rules.judge(&published(95_000), until), Judgement { verdict: Offered, until: None });
    }

    #[test]
    fn without_an_age_nothing_waits() {
        for release in [published(NOW), published(u64::MAX), Release::default()] {
            assert_eq!(rules(0, false).for_package("a").judge(&release, NOW).verdict, Offered);
        }
    }

    #[test]
    fn what_was_withdrawn_is_offered_only_where_it_is_kept_and_then_needs_its_age() {
        for (keep, age, release, verdict) in [
            (false, 0, withdrawn(Some(0)), Withheld),
            (false, 10, withdrawn(None), Withheld),
            (true, 0, withdrawn(None), Offered),
            (true, 10, withdrawn(Some(0)), Offered),
            (true, 10, withdrawn(Some(NOW)), Withheld),
            (true, 10, withdrawn(None), FileDecides),
        ] {
            let judged = rules(age, keep).for_package("other").judge(&release, NOW);
            assert_eq!(judged.verdict, verdict, "{keep} {age} {release:?}");
        }
    }

    #[test]
    fn of_several_the_first_that_changes_counts() {
        let rules: PackageRules = rules(10, false).for_package("other");
        let all = [published(0), published(99_000), published(95_000), withdrawn(None), Release::default()];
        let verdicts = vec![Offered, Withheld, Withheld, Withheld, FileDecides];
        assert_eq!(
            rules.judge_all(&all, &BTreeMap::new(), NOW),
            JudgedReleases { verdicts, until: Some(105_000), ..JudgedReleases::default() }
        );
        assert_eq!(rules.judge_all(&[], &BTreeMap::new(), NOW), JudgedReleases::default());
    }

    #[test]
    fn a_release_without_a_time_is_as_old_as_its_first_sight() {
        let rules = rules(10, false).for_package("other");
        for (release, first_seen, verdict, until) in [
            (Release::default(), Some(90_000), Offered, None),
            (Release::default(), Some(90_001), FileDecides, Some(100_001)),
            (Release::default(), None, FileDecides, None),
            // A time that is stated counts, whatever was seen.
            (published(99_000), Some(0), Withheld, Some(109_000)),
            (published(0), Some(NOW), Offered, None),
            (withdrawn(None), Some(0), Withheld, None),
        ] {
            let judged = rules.judge_seen(&release, first_seen, NOW);
            assert_eq!(judged, Judgement { verdict, until }, "{release:?} {first_seen:?}");
        }
        let all = ["1", "2", "3"].map(|version| Release::of(version, None, false));
        let first_seen = BTreeMap::from([("1".to_owned(), 0), ("2".to_owned(), 95_000)]);
        let judged = rules.judge_all(&all, &first_seen, NOW);
        assert_eq!(judged.verdicts, [Offered, FileDecides, FileDecides]);
        assert_eq!(judged.until, Some(105_000));
    }

    #[test]
    fn only_a_release_that_needs_an_age_lacks_a_time() {
        let lacks = |age, name, release: &Release| rules(age, false).for_package(name).lacks_time(release);
        assert!(lacks(10, "other", &Release::default()));
        for (age, name, release) in [
            (0, "other", Release::default()),
            (10, "lib", Release::default()),
            (10, "other", published(NOW)),
            (10, "other", withdrawn(None)),
        ] {
            assert!(!lacks(age, name, &release), "{age} {name} {release:?}");
        }
    }
}
