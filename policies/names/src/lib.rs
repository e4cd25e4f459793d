//! A policy for the names of packages.
//!
//! Packages with a name that the organization claims do not come through a proxy. The policy
//! refuses a name that looks like a name in use, because an attacker may have published it for
//! users who mistype. Published packages must have one of the names that the settings allow.

mod distance;

use distance::is_within;
use packhouse_policy::{Context, Description, Facts, Policy, Purpose, Ruling, fits, fits_any};
use serde::Deserialize;

/// The settings of an organization.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NameSettings {
    claimed: Vec<String>,
    publish: Vec<String>,
    distance: usize,
    known: Vec<String>,
    except: Vec<String>,
}

impl Default for NameSettings {
    fn default() -> NameSettings {
        NameSettings {
            claimed: Vec::new(),
            publish: Vec::new(),
            distance: 1,
            known: Vec::new(),
            except: Vec::new(),
        }
    }
}

/// Shortest name that is compared, in characters without `-`, `_` and `.`. Too many shorter names
/// resemble each other.
const SHORTEST: usize = 4;

/// The policy.
pub struct Names;

impl Policy for Names {
    type Settings = NameSettings;

    fn describe() -> Description {
        Description::new(
            "names",
            "1.0.0",
            "Claimed names do not come through proxies, and lookalikes of names in use are refused",
        )
        .wants_names()
        .ignores_provenance()
        .ignores_advisories()
        .packages("claimed", "Patterns of names that never come through a proxy", false)
        .packages("publish", "Patterns of names that may be published; if empty, all", false)
        .setting(
            "distance",
            "integer",
            "A name that differs from one in use by at most this many letters is a lookalike: 0 to 3, 1 by default",
            false,
        )
        .packages("known", "More names that count as in use", false)
        .packages("except", "Patterns of names that are never lookalikes", false)
    }

    fn check(settings: &NameSettings) -> Result<(), String> {
        if settings.distance > 3 {
            return Err("`distance` must be between 0 and 3".to_owned());
        }
        Ok(())
    }

    fn judge(settings: &NameSettings, context: &Context, version: &Facts) -> Ruling {
        let name = version.name.as_str();
        let is_proxy = context.kind == "proxy";
        if is_proxy && fits_any(&settings.claimed, name) {
            return Ruling::deny(format!(
                "The organization claims the name {name}: it does not come through a proxy"
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
                "{name} looks like {other}, which is in use here: it may be a typosquatting package"
            )),
            None => Ruling::Allow,
        }
    }
}

/// Returns a name in use that `name` looks like. `None` if `name` looks like no such name, is
/// itself in use, or is too short.
fn lookalike<'a>(settings: &'a NameSettings, context: &'a Context, name: &str) -> Option<&'a str> {
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

/// Normalizes a name: changes it to lower case, removes `-`, `_` and `.`, and replaces `0` with `o`
/// and `1` with `l`, because they look alike.
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
    fn claimed_names_do_not_pass_a_proxy_and_other_names_are_not_published() {
        let own = r#"{"claimed": ["@acme/*"], "publish": ["@acme/*"]}"#;
        assert!(matches!(ruling(own, "@acme/x", "proxy", Purpose::List), Ruling::Deny(_)));
        assert_eq!(ruling(own, "@acme/x", "hosted", Purpose::Publish), Ruling::Allow);
        assert!(matches!(ruling(own, "x", "hosted", Purpose::Publish), Ruling::Deny(_)));
        assert!(packhouse_policy::settings::<Names>(r#"{"distance": 4}"#).is_err());
    }
}
