//! A policy that requires signed provenance of a version: a statement that says where the version
//! was built, and from which source.
//!
//! The host must have verified at least one statement about the version, and this statement must
//! match all settings. The policy refuses all other versions.

use packhouse_policy::{Context, Description, Facts, Policy, Provenance, Purpose, Ruling, fits_any};
use serde::Deserialize;

/// The settings of an organization. An empty list of identities, issuers or source repositories
/// accepts all of them.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProvenanceSettings {
    identities: Vec<String>,
    issuers: Vec<String>,
    source_repositories: Vec<String>,
    except: Vec<String>,
    lists: bool,
}

/// The policy.
pub struct ProvenanceRequired;

impl Policy for ProvenanceRequired {
    type Settings = ProvenanceSettings;

    fn describe() -> Description {
        Description::new(
            "provenance",
            "1.0.0",
            "Versions have signed provenance from an accepted builder and source",
        )
        .ignores_advisories()
        .list("identities", "Patterns of certificate subjects that may sign", false)
        .list("issuers", "Patterns of issuers that may vouch for the signer", false)
        .list(
            "source_repositories",
            "Patterns of source repository addresses that versions may be built from; {name} stands for the package",
            false,
        )
        .packages("except", "Patterns of packages that need no provenance", false)
        .setting(
            "lists",
            "boolean",
            "Whether lists leave out versions without provenance; only for formats whose lists state provenance",
            false,
        )
    }

    fn judge(settings: &ProvenanceSettings, context: &Context, version: &Facts) -> Ruling {
        // Most lists do not state signatures. The policy then judges the version when a client
        // fetches its file.
        let is_list = context.purpose == Purpose::List && !settings.lists;
        if is_list || fits_any(&settings.except, &version.name) {
            return Ruling::Allow;
        }
        let mut first = None;
        for statement in &version.provenance {
            match fault(settings, version, statement) {
                None => return Ruling::Allow,
                Some(fault) => first = first.or(Some(fault)),
            }
        }
        Ruling::deny(match first {
            Some(fault) => format!("The provenance of {} is not accepted: {fault}", version.title()),
            None => format!("{} has no provenance that this server knows of", version.title()),
        })
    }
}

/// Returns the reason why a statement is not accepted. `None` if it is accepted.
fn fault(settings: &ProvenanceSettings, version: &Facts, statement: &Provenance) -> Option<String> {
    if !statement.verified {
        return Some("its signed statement is not verified here".to_owned());
    }
    let fits = |patterns: &[String], text: &str| patterns.is_empty() || fits_any(patterns, text);
    if !fits(&settings.identities, &statement.identity) {
        return Some(format!("{} may not sign it", statement.identity));
    }
    if !fits(&settings.issuers, &statement.issuer) {
        return Some(format!("{} may not vouch for its signer", statement.issuer));
    }
    let sources: Vec<String> =
        settings.source_repositories.iter().map(|pattern| pattern.replace("{name}", &version.name)).collect();
    if !fits(&sources, &statement.source_repository) {
        return Some(format!("it was built from {}", statement.source_repository));
    }
    None
}

packhouse_policy::export_policy!(ProvenanceRequired);

#[cfg(test)]
mod tests {
    use super::*;

    fn ruling(settings: &str, change: impl FnOnce(&mut Provenance)) -> Ruling {
        let settings = packhouse_policy::settings::<ProvenanceRequired>(settings).unwrap();
        let mut one = Provenance {
            identity: "https://github.com/acme/lib/.github/workflows/release.yml@refs/heads/main".to_owned(),
            issuer: "https://token.actions.githubusercontent.com".to_owned(),
            source_repository: "https://github.com/acme/lib".to_owned(),
            verified: true,
            ..Provenance::default()
        };
        change(&mut one);
        let version = Facts {
            name: "lib".to_owned(),
            version: "1".to_owned(),
            provenance: vec![one],
            ..Facts::default()
        };
        ProvenanceRequired::judge(&settings, &Context::default(), &version)
    }

    const OURS: &str = r#"{"identities": ["https://github.com/acme/*"], "source_repositories": ["https://github.com/acme/{name}"]}"#;

    #[test]
    fn identity_source_and_signature_must_be_accepted() {
        assert_eq!(ruling(OURS, |_| ()), Ruling::Allow);
        assert_eq!(ruling("{}", |_| ()), Ruling::Allow);
        for change in [
            (|one: &mut Provenance| one.verified = false) as fn(&mut Provenance),
            |one| one.identity = "https://github.com/mallory/lib/x".to_owned(),
            |one| one.source_repository = "https://github.com/acme/other".to_owned(),
        ] {
            assert!(matches!(ruling(OURS, change), Ruling::Deny(_)));
        }
    }

    #[test]
    fn an_unsigned_version_is_refused_unless_it_is_an_exception() {
        let judge = |settings: &str, purpose| {
            let settings = packhouse_policy::settings::<ProvenanceRequired>(settings).unwrap();
            let version = Facts { name: "old".to_owned(), ..Facts::default() };
            ProvenanceRequired::judge(&settings, &Context { purpose, ..Context::default() }, &version)
        };
        assert!(matches!(judge("{}", Purpose::Fetch), Ruling::Deny(_)));
        assert_eq!(judge("{}", Purpose::List), Ruling::Allow);
        assert!(matches!(judge(r#"{"lists": true}"#, Purpose::List), Ruling::Deny(_)));
        assert_eq!(judge(r#"{"except": ["o*"]}"#, Purpose::Fetch), Ruling::Allow);
    }

    #[test]
    fn a_misspelt_setting_is_named() {
        let wrong = packhouse_policy::settings::<ProvenanceRequired>(r#"{"identity": []}"#);
        assert!(wrong.err().unwrap().contains("identity"));
    }
}
