//! A policy: a version says, signed, where and of what it was built.
//!
//! Of all that is signed of a version, one statement must be verified and fit in every respect that the settings name. What nobody
//! signed, or the host cannot verify, is refused.

use packhouse_policy::{Context, Description, Facts, Policy, Provenance, Purpose, Ruling, fits_any};
use serde::Deserialize;

/// What an organization sets. A list that is empty takes anything.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    identities: Vec<String>,
    issuers: Vec<String>,
    source_repositories: Vec<String>,
    except: Vec<String>,
    lists: bool,
}

/// See the module.
pub struct ProvenanceRequired;

impl Policy for ProvenanceRequired {
    type Settings = Settings;

    fn describe() -> Description {
        Description::new(
            "provenance",
            "1.0.0",
            "A version is signed by whoever built it, of a source that is known",
        )
        .ignores_advisories()
        .list("identities", "Who may sign, by patterns of the certificate's subject", false)
        .list("issuers", "Who may vouch for the signer, by patterns", false)
        .list(
            "source_repositories",
            "What versions may be built of, by patterns of addresses; {name} stands for the package",
            false,
        )
        .packages("except", "Packages that need none, by patterns", false)
        .setting(
            "lists",
            "boolean",
            "Whether lists leave out what has none: only for formats whose lists tell provenance",
            false,
        )
    }

    fn judge(settings: &Settings, context: &Context, version: &Facts) -> Ruling {
        // A list tells nothing of signatures: its files decide.
        let is_list = context.purpose == Purpose::List && !settings.lists;
        if is_list || fits_any(&settings.except, &version.name) {
            return Ruling::Allow;
        }
        let mut first = None;
        for one in &version.provenance {
            match fault(settings, version, one) {
                None => return Ruling::Allow,
                Some(fault) => first = first.or(Some(fault)),
            }
        }
        Ruling::deny(match first {
            Some(fault) => format!("The provenance of {} does not fit: {fault}", version.title()),
            None => format!("{} has no provenance that this server knows of", version.title()),
        })
    }
}

fn fault(settings: &Settings, version: &Facts, one: &Provenance) -> Option<String> {
    if !one.verified {
        return Some("what is signed of it is not verified here".to_owned());
    }
    let fits = |patterns: &[String], text: &str| patterns.is_empty() || fits_any(patterns, text);
    if !fits(&settings.identities, &one.identity) {
        return Some(format!("{} may not sign it", one.identity));
    }
    if !fits(&settings.issuers, &one.issuer) {
        return Some(format!("{} may not vouch for its signer", one.issuer));
    }
    let sources: Vec<String> =
        settings.source_repositories.iter().map(|pattern| pattern.replace("{name}", &version.name)).collect();
    if !fits(&sources, &one.source_repository) {
        return Some(format!("it was built of {}", one.source_repository));
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
    fn identity_and_source_must_fit_and_the_signature_hold() {
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
    fn what_nobody_signed_is_refused_but_for_exceptions() {
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
    fn settings_that_are_spelt_wrong_are_named() {
        let wrong = packhouse_policy::settings::<ProvenanceRequired>(r#"{"identity": []}"#);
        assert!(wrong.err().unwrap().contains("identity"));
    }
}
