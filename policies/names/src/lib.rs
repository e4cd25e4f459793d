//! A policy: which names packages may have.
//!
//! Names that an organization claims come from nowhere else; names that look like one in use are refused, since whoever mistypes a name
//! finds what somebody put there for him; and what is published has a name of the organization's own.

mod distance;

use distance::is_within;
use packhouse_policy::{Context, Description, Facts, Policy, Purpose, Ruling, fits, fits_any};
use serde::Deserialize;

/// What an organization sets.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    claimed: Vec<String>,
    publish: Vec<String>,
    distance: usize,
    known: Vec<String>,
    except: Vec<String>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            claimed: Vec::new(),
            publish: Vec::new(),
            distance: 1,
            known: Vec::new(),
            except: Vec::new(),
        }
    }
}

/// Letters and digits of a name at least that is compared: below it too many honest names are neighbours.
const SHORTEST: usize = 4;

/// See the module.
pub struct Names;

impl Policy for Names {
    type Settings = Settings;

    fn describe() -> Description {
        Description::new(
            "names",
            "1.0.0",
            "Packages have names that are the organization's own, or nobody's lookalike",
        )
        .wants_names()
        .ignores_provenance()
        .ignores_advisories()
        .packages("claimed", "Names that never come through a proxy, by patterns", false)
        .packages("publish", "Names that may be published, by patterns; empty: all", false)
        .setting(
            "distance",
            "integer",
            "Changed letters by which a name is a lookalike of one in use: 0 to 3, 1 by default",
            false,
        )
        .packages("known", "Names that count as in use besides", false)
        .packages("except", "Names that are no lookalikes, by patterns", false)
    }

    fn check(settings: &Settings) -> Result<(), String> {
        if settings.distance > 3 {
            return Err("`distance` is 0 to 3".to_owned());
        }
        Ok(())
    }

    fn judge(settings: &Settings, context: &Context, version: &Facts) -> Ruling {
        let name = version.name.as_str();
        let is_proxy = context.kind == "proxy";
        if is_proxy && fits_any(&settings.claimed, name) {
            return Ruling::deny(format!(
                "The name {name} is the organization's own: it does not come from elsewhere"
            ));
        }
        let is_published =
            context.purpose == Purpose::Publish || context.purpose == Purpose::Preview && !is_proxy;
        if is_published {
            if settings.publish.is_empty() || fits_any(&settings.publish, name) {
                return Ruling::Allow;
            }
            return Ruling::deny(format!(
                "{name} may not be published here: its name must match {}",
                settings.publish.join(" or ")
            ));
        }
        if settings.distance == 0 || settings.except.iter().any(|pattern| fits(pattern, name)) {
            return Ruling::Allow;
        }
        match lookalike(settings, context, name) {
            Some(other) => Ruling::deny(format!(
                "{name} looks like {other}, which is in use here: it may be a trap for whoever mistypes"
            )),
            None => Ruling::Allow,
        }
    }
}

/// The name in use that this one looks like; none where it is in use itself.
fn lookalike<'a>(settings: &'a Settings, context: &'a Context, name: &str) -> Option<&'a str> {
    let folded = folded(name);
    let in_use = || settings.known.iter().chain(&context.names_in_use).map(String::as_str);
    if folded.chars().count() < SHORTEST || in_use().any(|known| known == name) {
        return None;
    }
    in_use().find(|known| {
        let known = self::folded(known);
        known.chars().count() >= SHORTEST && is_within(&folded, &known, settings.distance)
    })
}

/// What the eye does not tell apart is one.
fn folded(name: &str) -> String {
    let lower = name.to_lowercase();
    lower
        .chars()
        .filter(|c| !matches!(c, '-' | '_' | '.'))
        .map(|c| match c {
            '0' => 'o',
            '1' => 'l',
            other => other,
        })
        .collect()
}

packhouse_policy::export_policy!(Names);

#[cfg(test)]
mod tests {
    use super::*;

    fn ruling(settings: &str, name: &str, kind: &str, purpose: Purpose) -> Ruling {
        let settings = packhouse_policy::settings::<Names>(settings).unwrap();
        let names_in_use = ["requests", "lodash", "left-pad"].map(str::to_owned).to_vec();
        let context = Context { purpose, kind: kind.to_owned(), names_in_use, ..Context::default() };
        Names::judge(&settings, &context, &Facts { name: name.to_owned(), ..Facts::default() })
    }

    #[test]
    fn a_lookalike_of_a_name_in_use_does_not_pass_a_proxy() {
        for (name, passes) in [
            ("requests", true),
            ("reqeusts", false),
            ("request", false),
            ("requests2", false),
            ("l0dash", false),
            ("left_pad", false),
            ("numpy", true),
            ("abc", true),
        ] {
            assert_eq!(ruling("{}", name, "proxy", Purpose::Fetch) == Ruling::Allow, passes, "{name}");
            assert_eq!(ruling(r#"{"distance": 0}"#, name, "proxy", Purpose::Fetch), Ruling::Allow, "{name}");
        }
        assert_eq!(ruling(r#"{"except": ["request"]}"#, "request", "proxy", Purpose::Fetch), Ruling::Allow);
    }

    #[test]
    fn claimed_names_stay_home_and_others_are_not_published() {
        let own = r#"{"claimed": ["@acme/*"], "publish": ["@acme/*"]}"#;
        assert!(matches!(ruling(own, "@acme/x", "proxy", Purpose::List), Ruling::Deny(_)));
        assert_eq!(ruling(own, "@acme/x", "hosted", Purpose::Publish), Ruling::Allow);
        assert!(matches!(ruling(own, "x", "hosted", Purpose::Publish), Ruling::Deny(_)));
        assert!(packhouse_policy::settings::<Names>(r#"{"distance": 4}"#).is_err());
    }
}
