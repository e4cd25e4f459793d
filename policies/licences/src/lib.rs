//! A policy for the licences of versions.
//!
//! `allow` lists the accepted licences, `deny` the refused ones. A version with a choice of
//! licences passes if one of them passes. If the stated licence is not an SPDX expression, the
//! policy looks for it among common names. If it is not a common name either, the licence is
//! unknown.

mod spdx;

use packhouse_policy::{Context, Description, Facts, Policy, Purpose, Ruling, fits, fits_any, one_of};
use serde::Deserialize;
use spdx::Expression;

/// Common names of licences, in lower case and without `license`, with their SPDX identifiers.
const COMMON_NAMES: [(&str, &str); 14] = [
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
/// Deprecated SPDX identifiers, in lower case, with their replacements.
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

/// The settings of an organization.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LicenceSettings {
    #[serde(default)]
    allow: Vec<String>,
    #[serde(default)]
    deny: Vec<String>,
    #[serde(default)]
    except: Vec<String>,
    #[serde(default)]
    unknown: Unknown,
}

/// The ruling for a version of unknown licence.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Unknown {
    Allow,
    #[default]
    Warn,
    Deny,
}

/// The policy.
pub struct Licences;

impl Policy for Licences {
    type Settings = LicenceSettings;

    fn describe() -> Description {
        let unknown = ["allow", "warn", "deny"];
        Description::new("licences", "1.0.0", "Versions have a licence that the organization accepts")
            .ignores_provenance()
            .ignores_advisories()
            .list("allow", "Accepted licences, as SPDX identifiers with * for any text; if empty, all that are not denied", false)
            .list("deny", "Refused licences", false)
            .packages("except", "Patterns of packages that may have any licence", false)
            .schema("unknown", one_of(&unknown, "The ruling for a version whose licence is not known; warn by default"), false)
    }

    fn check(settings: &LicenceSettings) -> Result<(), String> {
        if settings.allow.is_empty() && settings.deny.is_empty() {
            return Err("`allow` or `deny` must name a licence".to_owned());
        }
        Ok(())
    }

    fn judge(settings: &LicenceSettings, context: &Context, version: &Facts) -> Ruling {
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
        let expression = Expression::parse(stated).or_else(|| from_common_name(stated));
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

fn allows(settings: &LicenceSettings, name: &str) -> bool {
    let name = renamed(name);
    // A licence with an exception is a licence of its own. The pattern `GPL-2.0-only` therefore
    // does not match `GPL-2.0-only WITH Classpath-exception-2.0`.
    let among = |patterns: &[String]| {
        patterns.iter().any(|pattern| fits(&renamed(pattern).to_lowercase(), &name.to_lowercase()))
    };
    !among(&settings.deny) && (settings.allow.is_empty() || among(&settings.allow))
}

fn renamed(name: &str) -> &str {
    let found = RENAMED.iter().find(|(old, _)| name.eq_ignore_ascii_case(old));
    found.map_or(name, |(_, new)| new)
}

/// Returns the licence with this common name. `None` if the name is not a common one.
fn from_common_name(text: &str) -> Option<Expression> {
    let lower = text.to_lowercase().replace("license", "").replace("licence", "");
    let words: Vec<&str> = lower.split_whitespace().collect();
    let words = words.join(" ");
    let words = words.trim_end_matches([',', '.', ' ']).replace(" ,", ",");
    let found = COMMON_NAMES.iter().find(|(written, _)| *written == words)?;
    Some(Expression::Licence(found.1.to_owned()))
}

fn unknown(settings: &LicenceSettings, context: &Context, sentence: String) -> Ruling {
    match settings.unknown {
        Unknown::Allow => Ruling::Allow,
        Unknown::Warn => Ruling::Warn(sentence),
        // A list may lack the licence. The policy judges the version again when a client fetches
        // its file, which may state the licence.
        Unknown::Deny if context.purpose == Purpose::List => Ruling::Allow,
        Unknown::Deny => Ruling::Deny(sentence),
    }
}

/// Shortens a text to 80 characters, for use in a message.
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
    fn lists_apply_to_expressions_and_to_common_names() {
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
    fn the_settings_decide_about_unknown_licences() {
        for license in [None, Some(""), Some("see LICENSE.txt")] {
            assert!(matches!(ruling(r#"{"allow": ["MIT"]}"#, license), Ruling::Warn(_)));
            assert!(matches!(ruling(r#"{"allow": ["MIT"], "unknown": "deny"}"#, license), Ruling::Deny(_)));
        }
        assert!(packhouse_policy::settings::<Licences>("{}").is_err());
    }
}
