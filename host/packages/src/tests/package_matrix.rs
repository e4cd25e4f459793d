//! Tests of limits to packages: every kind of credential with every combination of limits, for
//! packages within and outside of them. The facts pass through the server's own steps, from
//! database rows to the judgement of a request. The expected result is computed from the case.

use std::sync::Arc;

use packhouse_runtime::{Action, BodyPlan, Folding, Intent, LimitKind, Looked, PackageBounds, PackageLimit};
use packhouse_store::{LookUp, MemberRow, TokenRow};
use serde_json::{Value, json};

use super::matrix::{CredentialKind, REPOSITORY, Standing, TestFormat, member, repository, token};
use crate::credential::PresentedCredential;
use crate::identify::{self, Principal};
use crate::package_limits;
use packhouse_identity::Secret;
use packhouse_identity::access::{RepositoryKind, ResolvedCredential};

/// The kind of a credential that writes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum WriterKind {
    /// A member who signed in with a password.
    Password,
    /// A token of a member.
    Token,
    ServiceKey,
    /// A token that was issued for a trusted publisher.
    Publisher,
}

/// A list of patterns; `None` allows all packages.
type Limit = Option<&'static [&'static str]>;

const LIMITS: [Limit; 5] = [None, Some(&["*"]), Some(&["Acme.*"]), Some(&["lib"]), Some(&["acme-*", "lib"])];

/// Names of packages, in several spellings.
const NAMES: [&str; 6] = ["acme-tool", "ACME__tool", "lib", "Lib", "acme", "other"];

#[derive(Clone, Copy, Debug)]
struct LimitCase {
    writer: WriterKind,
    /// Packages of the token, the key or the publisher.
    own: Limit,
    /// Packages that the member may publish.
    publish: Limit,
    /// Packages that the member may delete.
    delete: Limit,
    action: Action,
}

fn cases() -> Vec<LimitCase> {
    let mut cases = Vec::new();
    for writer in [WriterKind::Password, WriterKind::Token, WriterKind::ServiceKey, WriterKind::Publisher] {
        for own in LIMITS {
            for publish in LIMITS {
                for delete in LIMITS {
                    for action in [Action::Publish, Action::Delete] {
                        cases.push(LimitCase { writer, own, publish, delete, action });
                    }
                }
            }
        }
    }
    cases
}

/// Reports whether a list allows a package by the rules of PEP 503.
fn allows(limit: Limit, name: &str) -> bool {
    let name = name.to_lowercase();
    let is_lib = name == "lib";
    let is_acme = ["acme-", "acme_", "acme."].iter().any(|start| name.starts_with(start));
    limit.is_none_or(|patterns| {
        patterns.iter().any(|pattern| match *pattern {
            "*" => true,
            "lib" => is_lib,
            "Acme.*" | "acme-*" => is_acme,
            other => panic!("an unknown pattern: {other}"),
        })
    })
}

/// Returns the limit that refuses the package, or `None` if it may be written.
fn expected(case: &LimitCase, name: &str) -> Option<LimitKind> {
    let LimitCase { writer, own, publish, delete, action } = *case;
    let both = allows(publish, name) && allows(delete, name);
    match writer {
        WriterKind::Password => {
            let may = allows(if action == Action::Delete { delete } else { publish }, name);
            (!may).then_some(LimitKind::Credential)
        }
        WriterKind::Publisher => (!allows(own, name)).then_some(LimitKind::Grant),
        WriterKind::Token | WriterKind::ServiceKey if !allows(own, name) => Some(LimitKind::Credential),
        // The loss of either right affects both actions of a token.
        WriterKind::Token => (!both).then_some(LimitKind::Owner),
        WriterKind::ServiceKey => None,
    }
}

fn owner(case: &LimitCase) -> MemberRow {
    let entry = |action: &str, limit: Limit| {
        let mut entry = json!({"repository": REPOSITORY.to_string(), "actions": ["read", action]});
        if let Some(patterns) = limit {
            entry["packages"] = json!(patterns);
        }
        entry
    };
    let own = json!({"repositories": [entry("publish", case.publish)]});
    // The right to delete comes from a team.
    let of_team = json!([{"repositories": [entry("delete", case.delete)]}]);
    MemberRow {
        permissions: own.to_string(),
        team_permissions: of_team.to_string(),
        ..member(Standing::Active)
    }
}

fn token_row(case: &LimitCase) -> TokenRow {
    let own = |patterns: &[&str]| patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
    let packages = case.own.map(own);
    let kind = match case.writer {
        WriterKind::Token => CredentialKind::FullToken,
        _ => CredentialKind::OrganizationKey,
    };
    if case.writer != WriterKind::Publisher {
        return TokenRow { packages, ..token(kind, Standing::Active) };
    }
    let granted: Value = json!(packages.unwrap_or_else(|| vec!["*".to_owned()]));
    let grant = json!({
        "publisher": 1, "repository": REPOSITORY.0, "read": true, "write": true, "packages": granted,
    });
    TokenRow { grants: Some(json!([grant]).to_string()), ..token(kind, Standing::Active) }
}

fn principal(case: &LimitCase) -> Principal {
    let row = repository(TestFormat::Python, RepositoryKind::Hosted, false);
    let mut facts = LookUp { repository: Some(row), reaches: true, ..LookUp::default() };
    if case.writer == WriterKind::Password {
        return identify::account(Arc::new(facts), owner(case));
    }
    facts.token = Some(token_row(case));
    facts.owner = (case.writer == WriterKind::Token).then(|| Arc::new(owner(case)));
    let credential = PresentedCredential::Bearer(Secret::new("pkh_x"));
    identify::recognized(&Arc::new(facts), &credential).expect("a credential")
}

fn intent(action: Action, name: &str) -> Intent {
    Intent {
        action,
        subject: None,
        body: BodyPlan::None,
        limit: None,
        digests: Vec::new(),
        also_read: Vec::new(),
        check: false,
        for_publish: false,
        packages: vec![name.to_owned()],
        many_packages: false,
        for_caller: false,
        looked: Looked::default(),
    }
}

#[test]
fn every_credential_writes_only_the_packages_of_all_its_limits() {
    let row = repository(TestFormat::Python, RepositoryKind::Hosted, false);
    let mut results = std::collections::BTreeMap::<_, u32>::new();
    for case in &cases() {
        let principal = principal(case);
        let limits: Arc<[PackageLimit]> = package_limits::limits(&principal, &row, case.action).into();
        for name in NAMES {
            let intent = intent(case.action, name);
            let bounds = PackageBounds::new(Arc::clone(&limits), Folding::Pep503, &intent);
            let judged = bounds.judge_request(&intent).err().map(|refusal| refusal.kind);
            let expected = expected(case, name);
            assert_eq!(judged, expected, "{case:?} {name}");
            *results.entry(format!("{expected:?}")).or_default() += 1;
        }
    }
    // Every possible result must occur, and often.
    assert_eq!(results.len(), 4, "{results:?}");
    assert!(results.values().all(|times| *times > 50), "{results:?}");
}

#[test]
fn a_member_without_limits_has_none() {
    for writer in [WriterKind::Password, WriterKind::Token, WriterKind::ServiceKey] {
        for action in [Action::Publish, Action::Delete] {
            let case = LimitCase { writer, own: None, publish: None, delete: None, action };
            let (principal, row) =
                (principal(&case), repository(TestFormat::Python, RepositoryKind::Hosted, false));
            assert!(package_limits::limits(&principal, &row, action).is_empty(), "{case:?}");
        }
    }
}

#[test]
fn a_token_of_an_owner_who_is_gone_may_write_nothing() {
    let case = LimitCase {
        writer: WriterKind::Token,
        own: None,
        publish: None,
        delete: None,
        action: Action::Publish,
    };
    let row = repository(TestFormat::Python, RepositoryKind::Hosted, false);
    let facts = LookUp {
        repository: Some(row.clone()),
        token: Some(token_row(&case)),
        reaches: true,
        ..LookUp::default()
    };
    let credential = PresentedCredential::Bearer(Secret::new("pkh_x"));
    let principal = identify::recognized(&Arc::new(facts), &credential).expect("a credential");
    assert!(matches!(principal.presented, ResolvedCredential::Token(..)));
    let limits = package_limits::limits(&principal, &row, Action::Publish);
    assert!(limits.iter().all(|limit| limit.kind == LimitKind::Owner && limit.patterns.is_empty()));
    assert_eq!(limits.len(), 1);
}
