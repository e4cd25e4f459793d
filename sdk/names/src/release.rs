//! Rules that decide which releases of an upstream a proxy may offer. The host and the test hosts
//! apply them to every format.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::glob_match;

/// Facts about a release: a version, or a single file if the format knows times of files.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Release {
    /// Version as it is listed; empty if it is unknown. The host then checks only age and
    /// withdrawal.
    pub version: String,
    /// Publication time that the upstream states, as Unix time in ms; `None` if it states no time.
    pub published: Option<u64>,
    /// True if the release was fetched once and the upstream no longer has it.
    pub withdrawn: bool,
    /// Licence as the upstream states it; `None` if it is unknown.
    pub license: Option<String>,
}

impl Release {
    /// Creates the facts about a version of unknown licence.
    pub fn of(version: impl Into<String>, published: Option<u64>, withdrawn: bool) -> Self {
        Self { version: version.into(), published, withdrawn, license: None }
    }
}

/// Verdict on a release.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ReleaseVerdict {
    /// The release may be listed and fetched.
    Offered,
    /// The release may be neither listed nor fetched.
    Withheld,
    /// A minimum age applies, and the publication time is unknown. The release is not listed. When
    /// a client fetches its file, the age begins at the date of the file. If the file has no date,
    /// the age begins when the server first saw the version.
    FileDecides,
}

/// Verdict with the time until which it holds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Judgement {
    /// Current verdict.
    pub verdict: ReleaseVerdict,
    /// Unix time in ms at which the verdict changes; `None` if the verdict does not depend on time.
    pub until: Option<u64>,
}

/// Verdicts on several releases.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct JudgedReleases {
    /// Verdicts in the order of the releases.
    pub verdicts: Vec<ReleaseVerdict>,
    /// Unix time in ms at which the first of the verdicts changes; `None` if none depends on time.
    pub until: Option<u64>,
    /// Reasons why policies withhold releases, as sentences for the client, by index.
    pub because: BTreeMap<usize, String>,
}

/// Settings of a proxy about releases, parsed from the JSON object of all its settings.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct ReleaseRules {
    /// Minimum age in seconds before a release is offered.
    min_release_age_s: u64,
    /// Patterns of the packages that are exempt from the minimum age, in the format's spelling.
    min_release_age_except: Vec<String>,
    /// True if releases that the upstream no longer has are still offered.
    pub keep_withdrawn: bool,
}

/// Rules for the releases of one package.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PackageRules {
    /// Minimum age of a release in ms; `None` without one.
    min_age_ms: Option<u64>,
    keep_withdrawn: bool,
}

impl ReleaseRules {
    /// Returns the rules for this package, named in the format's spelling.
    pub fn for_package(&self, name: &str) -> PackageRules {
        let needs_age = self.min_release_age_s > 0
            && !self.min_release_age_except.iter().any(|pattern| glob_match(pattern, name));
        let min_age_ms = needs_age.then(|| self.min_release_age_s.saturating_mul(1000));
        PackageRules { min_age_ms, keep_withdrawn: self.keep_withdrawn }
    }
}

impl PackageRules {
    /// Judges a release at `now`, a Unix time in ms. A release of exactly the minimum age is
    /// offered.
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

    /// True if a minimum age applies to the release and its upstream states no time.
    pub fn lacks_time(&self, release: &Release) -> bool {
        self.judge(release, 0).verdict == ReleaseVerdict::FileDecides
    }

    /// Judges a release at `now`. If its upstream states no time, its age begins at `first_seen`,
    /// the Unix time in ms at which the server first saw the release. While this age is too low,
    /// the verdict is `FileDecides`: the date of the file may prove a higher age.
    pub fn judge_seen(&self, release: &Release, first_seen: Option<u64>, now: u64) -> Judgement {
        let judged = self.judge(release, now);
        if judged.verdict != ReleaseVerdict::FileDecides || first_seen.is_none() {
            return judged;
        }
        let dated = Release { published: first_seen, withdrawn: release.withdrawn, ..Release::default() };
        let Judgement { verdict, until } = self.judge(&dated, now);
        let verdict = if verdict == ReleaseVerdict::Offered { verdict } else { ReleaseVerdict::FileDecides };
        Judgement { verdict, until }
    }

    /// Judges several releases of the package. `first_seen` maps each version without a stated time
    /// to the Unix time in ms at which the server first saw it.
    pub fn judge_all(
        &self,
        releases: &[Release],
        first_seen: &BTreeMap<String, u64>,
        now: u64,
    ) -> JudgedReleases {
        let mut judged =
            JudgedReleases { verdicts: Vec::with_capacity(releases.len()), ..JudgedReleases::default() };
        for release in releases {
            let first_seen = first_seen.get(&release.version).copied();
            let Judgement { verdict, until } = self.judge_seen(release, first_seen, now);
            judged.verdicts.push(verdict);
            judged.until = earlier(judged.until, until);
        }
        judged
    }
}

/// Returns the earlier of two times; `None` stands for never.
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
    fn a_withdrawn_release_is_offered_only_if_configured_and_old_enough() {
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
    fn the_earliest_change_of_several_verdicts_counts() {
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
            // A stated time takes precedence over the time of the first sight.
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
