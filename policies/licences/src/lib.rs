//! A policy: which licences a version may have.
//!
//! `allow` lists those that may be, `deny` those that may not; a version with a choice of licences passes where one choice does. What is
//! no expression of SPDX is looked up among the names that people write instead, and is unknown else.

mod spdx;

use packhouse_policy::{Context, Description, Facts, Policy, Purpose, Ruling, fits, fits_any, one_of};
use serde::Deserialize;
use spdx::Expression;

/// What people write, in lower case and without `license`, and what they mean.
const MEANT: [(&str, &str); 14] = [
    ("apache 2", "Apache-2.0"),
    ("apache 2.0", "Apache-2.0"),
    ("apache software", "Apache-2.0"),
    ("apache, version 2.0", "Apache-2.0"),
    ("the apache software, version 2.0", "Apache-2.0"),
    ("bsd", "BSD-3-Clause"),
    ("bsd 3-clause", "BSD-3-Clause"),
    ("the mit", "MIT"),
    ("mit", "MIT"),
    ("isc", "ISC"),
    ("gpl v3", "GPL-3.0-only"),
    ("gplv3", "GPL-3.0-only"),
    ("gnu general public v3 (gplv3)", "GPL-3.0-only"),
    ("mozilla public 2.0 (mpl 2.0)", "MPL-2.0"),
];
/// Names that were replaced in the list of SPDX.
const RENAMED: [(&str, &str); 8] = [
    ("gpl-2.0", "GPL-2.0-only"),
    ("gpl-2.0+", "GPL-2.0-or-later"),
    ("gpl-3.0", "GPL-3.0-only"),
    ("gpl-3.0+", "GPL-3.0-or-later"),
    ("lgpl-2.1", "LGPL-2.1-only"),
    ("lgpl-3.0", "LGPL-3.0-only"),
    ("agpl-3.0", "AGPL-3.0-only"),
    ("agpl-3.0+", "AGPL-3.0-or-later"),
];

/// What an organization sets.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    #[serde(default)]
    allow: Vec<String>,
    #[serde(default)]
    deny: Vec<String>,
    #[serde(default)]
    except: Vec<String>,
    #[serde(default)]
    unknown: Unknown,
}

/// What becomes of a version whose licence is not known.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Unknown {
    Allow,
    #[default]
    Warn,
    Deny,
}

/// See the module.
pub struct Licences;

impl Policy for Licences {
    type Settings = Settings;

    fn describe() -> Description {
        let unknown = ["allow", "warn", "deny"];
        Description::new("licences", "1.0.0", "A version has a licence that the organization accepts")
            .ignores_provenance()
            .ignores_advisories()
            .list("allow", "Licences that may be, as identifiers of SPDX with * for any text; empty: all that are not denied", false)
            .list("deny", "Licences that may not be", false)
            .packages("except", "Packages whose licence does not matter, by patterns", false)
            .schema("unknown", one_of(&unknown, "What becomes of a version whose licence is not known; warn by default"), false)
    }

    fn check(settings: &Settings) -> Result<(), String> {
        if settings.allow.is_empty() && settings.deny.is_empty() {
            return Err("`allow` or `deny` names a licence".to_owned());
        }
        Ok(())
    }

    fn judge(settings: &Settings, context: &Context, version: &Facts) -> Ruling {
        if fits_any(&settings.except, &version.name) {
            return Ruling::Allow;
        }
        let stated = version.license.as_deref().map(str::trim).filter(|text| !text.is_empty());
        let Some(stated) = stated else {
            return unknown(
                settings,
                context,
                format!("{} states no licence that this server knows of", version.title()),
            );
        };
        let expression = Expression::parse(stated).or_else(|| meant(stated));
        let Some(expression) = expression else {
            return unknown(
                settings,
                context,
                format!("The licence of {} is not known: {}", version.title(), short(stated)),
            );
        };
        let allows = |name: &str| allows(settings, name);
        match expression.refused(&allows) {
            None => Ruling::Allow,
            Some(name) => {
                Ruling::deny(format!("The licence {name} of {} is not accepted here", version.title()))
            }
        }
    }
}

fn allows(settings: &Settings, name: &str) -> bool {
    let name = renamed(name);
    // `GPL-2.0-only WITH Classpath-exception-2.0` fits itself, and what is denied without the exception is not denied with it.
    let among = |patterns: &[String]| {
        patterns.iter().any(|pattern| fits(&renamed(pattern).to_lowercase(), &name.to_lowercase()))
    };
    !among(&settings.deny) && (settings.allow.is_empty() || among(&settings.allow))
}

fn renamed(name: &str) -> &str {
    let found = RENAMED.iter().find(|(old, _)| name.eq_ignore_ascii_case(old));
    found.map_or(name, |(_, new)| new)
}

/// What people mean by a text that is no expression.
fn meant(text: &str) -> Option<Expression> {
    let lower = text.to_lowercase().replace("license", "").replace("licence", "");
    let words: Vec<&str> = lower.split_whitespace().collect();
    let words = words.join(" ");
    let words = words.trim_end_matches([',', '.', ' ']).replace(" ,", ",");
    let found = MEANT.iter().find(|(written, _)| *written == words)?;
    Some(Expression::Licence(found.1.to_owned()))
}

fn unknown(settings: &Settings, context: &Context, sentence: String) -> Ruling {
    match settings.unknown {
        Unknown::Allow => Ruling::Allow,
        Unknown::Warn => Ruling::Warn(sentence),
        // A list may not tell what is known of the file.
        Unknown::Deny if context.purpose == Purpose::List => Ruling::Allow,
        Unknown::Deny => Ruling::Deny(sentence),
    }
}

/// No more of it than a sentence holds.
fn short(text: &str) -> String {
    text.chars().take(80).collect()
}

packhouse_policy::export_policy!(Licences);

#[cfg(test)]
mod tests {
    use super::*;

    fn ruling(settings: &str, license: Option<&str>) -> Ruling {
        let settings = packhouse_policy::settings::<Licences>(settings).unwrap();
        let license = license.map(str::to_owned);
        let version = Facts { name: "lib".to_owned(), version: "1".to_owned(), license, ..Facts::default() };
        Licences::judge(&settings, &Context { purpose: Purpose::Publish, ..Context::default() }, &version)
    }

    #[test]
    fn lists_hold_of_expressions_and_of_what_people_write() {
        let list = r#"{"allow": ["MIT", "Apache-2.0", "BSD-*"], "deny": ["GPL-*"]}"#;
        for (license, passes) in [
            ("MIT", true),
            ("mit", true),
            ("MIT License", true),
            ("Apache License 2.0", true),
            ("Apache License, Version 2.0", true),
            ("BSD-2-Clause", true),
            ("GPL-3.0", false),
            ("GPL-3.0-or-later OR MIT", true),
            ("MIT AND GPL-3.0-only", false),
            ("MPL-2.0", false),
        ] {
            assert_eq!(ruling(list, Some(license)) == Ruling::Allow, passes, "{license}");
        }
        assert_eq!(ruling(r#"{"deny": ["GPL-*"]}"#, Some("MPL-2.0")), Ruling::Allow);
    }

    #[test]
    fn what_is_not_known_is_for_the_settings() {
        for license in [None, Some(""), Some("see LICENSE.txt")] {
            assert!(matches!(ruling(r#"{"allow": ["MIT"]}"#, license), Ruling::Warn(_)));
            assert!(matches!(ruling(r#"{"allow": ["MIT"], "unknown": "deny"}"#, license), Ruling::Deny(_)));
        }
        assert!(packhouse_policy::settings::<Licences>("{}").is_err());
    }
}
