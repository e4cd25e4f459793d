//! A policy: how long a version has been in the world at least before it passes a proxy.
//!
//! What is published here is as old as the publish: only what others publish is held back. Where nobody says when a version came into the
//! world, the settings decide.

use packhouse_policy::{Context, Description, Facts, Policy, Purpose, Ruling, fits, fits_any, one_of};
use serde::Deserialize;

const HOUR: u64 = 60 * 60 * 1000;

/// What an organization sets.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    hours: u64,
    #[serde(default)]
    except: Vec<String>,
    #[serde(default)]
    hosted: bool,
    #[serde(default)]
    unknown: Unknown,
}

/// What becomes of a version of an age that nobody knows.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Unknown {
    Allow,
    Warn,
    #[default]
    Hold,
}

/// See the module.
pub struct LeastAge;

impl Policy for LeastAge {
    type Settings = Settings;

    fn describe() -> Description {
        let unknown = ["allow", "warn", "hold"];
        Description::new(
            "least-age",
            "1.0.0",
            "What others publish is in the world for some time before it is used here",
        )
        .ignores_provenance()
        .ignores_advisories()
        .setting("hours", "integer", "Hours since its publication", true)
        .packages("except", "Patterns of packages that pass at once, or of PACKAGE@VERSION", false)
        .setting("hosted", "boolean", "Whether previews judge what is published here too", false)
        .schema(
            "unknown",
            one_of(
                &unknown,
                "What becomes of a version of which nobody says when it was published; hold by default",
            ),
            false,
        )
    }

    fn check(settings: &Settings) -> Result<(), String> {
        if settings.hours > 24 * 365 * 10 {
            return Err("`hours` is at most ten years".to_owned());
        }
        Ok(())
    }

    fn judge(settings: &Settings, context: &Context, version: &Facts) -> Ruling {
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

fn is_except(settings: &Settings, version: &Facts) -> bool {
    let exact = format!("{}@{}", version.name, version.version);
    fits_any(&settings.except, &version.name) || settings.except.iter().any(|pattern| fits(pattern, &exact))
}

fn unknown(settings: &Settings, context: &Context, version: &Facts) -> Ruling {
    let sentence = || format!("Nobody says when {} was published", version.title());
    match settings.unknown {
        Unknown::Allow => Ruling::Allow,
        Unknown::Warn => Ruling::Warn(sentence()),
        // A list may not tell what the file's date will.
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
    fn what_is_young_is_held_until_it_is_old_enough() {
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
    fn an_unknown_age_is_held_where_a_file_is_fetched() {
        let held = Ruling::Hold { sentence: "Nobody says when lib 2 was published".to_owned(), until: None };
        assert_eq!(ruling(r#"{"hours": 1}"#, None, Purpose::Fetch), held);
        assert_eq!(ruling(r#"{"hours": 1}"#, None, Purpose::List), Ruling::Allow);
        assert_eq!(ruling(r#"{"hours": 1, "unknown": "allow"}"#, None, Purpose::Fetch), Ruling::Allow);
    }
}
