//! A policy for the minimum age of versions that come through a proxy.
//!
//! Versions that are published here pass. If the setting `hosted` is on, previews judge them like
//! versions from an upstream. The setting `unknown` decides about versions without a known
//! publication time.

use packhouse_policy::{Context, Description, Facts, Policy, Purpose, Ruling, fits, fits_any, one_of};
use serde::Deserialize;

const HOUR: u64 = 60 * 60 * 1000;

/// The settings of an organization.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeastAgeSettings {
    hours: u64,
    #[serde(default)]
    except: Vec<String>,
    #[serde(default)]
    hosted: bool,
    #[serde(default)]
    unknown: Unknown,
}

/// The ruling for a version of unknown age.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Unknown {
    Allow,
    Warn,
    #[default]
    Hold,
}

/// The policy.
pub struct LeastAge;

impl Policy for LeastAge {
    type Settings = LeastAgeSettings;

    fn describe() -> Description {
        let unknown = ["allow", "warn", "hold"];
        Description::new(
            "least-age",
            "1.0.0",
            "Versions from an upstream have a minimum age before they are used here",
        )
        .ignores_provenance()
        .ignores_advisories()
        .setting("hours", "integer", "Minimum hours since the publication of a version", true)
        .packages("except", "Patterns of packages, or of PACKAGE@VERSION, that pass at any age", false)
        .setting("hosted", "boolean", "Whether previews also judge versions that are published here", false)
        .schema(
            "unknown",
            one_of(&unknown, "The ruling for a version without a known publication time; hold by default"),
            false,
        )
    }

    fn check(settings: &LeastAgeSettings) -> Result<(), String> {
        if settings.hours > 24 * 365 * 10 {
            return Err("`hours` must be at most 87600 (ten years)".to_owned());
        }
        Ok(())
    }

    fn judge(settings: &LeastAgeSettings, context: &Context, version: &Facts) -> Ruling {
        let is_own = context.kind != "proxy" && !settings.hosted;
        if context.purpose == Purpose::Publish || is_own || is_except(settings, version) {
            return Ruling::Allow;
        }
        let Some(published) = version.published else { return unknown(settings, context, version) };
        let until = published.saturating_add(settings.hours.saturating_mul(HOUR));
        if until <= context.now {
            return Ruling::Allow;
        }
        let left = until.saturating_sub(context.now).div_ceil(HOUR);
        let sentence =
            format!("{} is younger than {} h: it may be used in {left} h", version.title(), settings.hours);
        Ruling::Hold { sentence, until: Some(until) }
    }
}

fn is_except(settings: &LeastAgeSettings, version: &Facts) -> bool {
    let exact = format!("{}@{}", version.name, version.version);
    fits_any(&settings.except, &version.name) || settings.except.iter().any(|pattern| fits(pattern, &exact))
}

fn unknown(settings: &LeastAgeSettings, context: &Context, version: &Facts) -> Ruling {
    let sentence = || format!("The publication time of {} is unknown", version.title());
    match settings.unknown {
        Unknown::Allow => Ruling::Allow,
        Unknown::Warn => Ruling::Warn(sentence()),
        // A list may lack the time. The policy judges the version again when a client fetches its
        // file, whose date may give the age.
        Unknown::Hold if context.purpose == Purpose::List => Ruling::Allow,
        Unknown::Hold => Ruling::Hold { sentence: sentence(), until: None },
    }
}

packhouse_policy::export_policy!(LeastAge);

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_000 * HOUR;

    fn ruling(settings: &str, published: Option<u64>, purpose: Purpose) -> Ruling {
        let settings = packhouse_policy::settings::<LeastAge>(settings).unwrap();
        let context = Context { purpose, now: NOW, kind: "proxy".to_owned(), ..Context::default() };
        let version =
            Facts { name: "lib".to_owned(), version: "2".to_owned(), published, ..Facts::default() };
        LeastAge::judge(&settings, &context, &version)
    }

    #[test]
    fn a_young_version_is_held_until_it_is_old_enough() {
        let day = r#"{"hours": 24}"#;
        assert_eq!(ruling(day, Some(NOW - 24 * HOUR), Purpose::Fetch), Ruling::Allow);
        let Ruling::Hold { sentence, until } = ruling(day, Some(NOW - HOUR), Purpose::Fetch) else {
            panic!("it is held")
        };
        assert_eq!(
            (until, sentence.as_str()),
            (Some(NOW + 23 * HOUR), "lib 2 is younger than 24 h: it may be used in 23 h")
        );
        assert_eq!(ruling(day, Some(NOW), Purpose::Publish), Ruling::Allow);
    }

    #[test]
    fn exceptions_are_packages_or_versions() {
        for (except, passes) in
            [("lib", true), ("l*", true), ("lib@2", true), ("lib@1", false), ("other", false)]
        {
            let settings = format!(r#"{{"hours": 24, "except": ["{except}"]}}"#);
            assert_eq!(ruling(&settings, Some(NOW), Purpose::Fetch) == Ruling::Allow, passes, "{except}");
        }
    }

    #[test]
    fn an_unknown_age_is_held_when_a_file_is_fetched() {
        let held =
            Ruling::Hold { sentence: "The publication time of lib 2 is unknown".to_owned(), until: None };
        assert_eq!(ruling(r#"{"hours": 1}"#, None, Purpose::Fetch), held);
        assert_eq!(ruling(r#"{"hours": 1}"#, None, Purpose::List), Ruling::Allow);
        assert_eq!(ruling(r#"{"hours": 1, "unknown": "allow"}"#, None, Purpose::Fetch), Ruling::Allow);
    }
}
