//! Compares the decision for every combination of facts with a second implementation of the rules.
//! The second implementation lists the conditions for each refusal, in words as close to the
//! specification as possible.

use super::*;

/// Every combination of rules, credentials, repositories and actions.
fn all() -> Vec<AccessRequest<'static>> {
    let mut questions = Vec::new();
    for rules in rules() {
        let rules: &'static FormatRules<'static> = Box::leak(Box::new(rules));
        for presented in presented() {
            let presented: &'static ResolvedCredential = Box::leak(Box::new(presented));
            for repository in repositories() {
                for action in [
                    AccessAction::Open,
                    AccessAction::Read { for_publish: false },
                    AccessAction::Read { for_publish: true },
                    AccessAction::Publish,
                    AccessAction::Delete,
                ] {
                    questions.push(AccessRequest { repository, rules, presented, action, now: NOW });
                }
            }
        }
    }
    questions
}

const NOW: i64 = 1_000;

fn rules() -> Vec<FormatRules<'static>> {
    let rules = |checks_username, refused_read_status, not_reached_status, formats: &[&str]| FormatRules {
        checks_username,
        refused_read_status,
        refused_write_status: 401,
        not_reached_status,
        token_usernames: vec!["__token__".to_owned()].into(),
        token_formats: formats.iter().map(|name| (*name).to_owned()).collect(),
    };
    vec![rules(true, 401, 403, &[]), rules(false, 404, 403, &["special"]), rules(false, 401, 404, &[])]
}

fn repositories() -> Vec<Option<RepositoryFacts>> {
    let mut all = vec![None];
    for kind in [RepositoryKind::Hosted, RepositoryKind::Proxy, RepositoryKind::Group] {
        for public in [false, true] {
            for enabled in [false, true] {
                all.push(Some(RepositoryFacts { kind, public, enabled }));
            }
        }
    }
    all
}

fn rights() -> Vec<Rights> {
    let rights = |bits| Rights {
        read: bits & 1 > 0,
        publish: bits & 2 > 0,
        delete: bits & 4 > 0,
        manage: bits & 8 > 0,
    };
    (0..16).map(rights).collect()
}

fn presented() -> Vec<ResolvedCredential> {
    let mut all = vec![
        ResolvedCredential::Nothing,
        ResolvedCredential::Unknown,
        ResolvedCredential::Refused(SUSPENDED),
    ];
    all.extend(rights().into_iter().map(ResolvedCredential::Member));
    let owners = rights().into_iter().map(Some).chain([None]);
    let states = [
        (None, None, None),
        (Some(1), None, None),
        (None, Some(1), None),
        (None, None, Some(1)),
        (None, Some(NOW + 1), Some(NOW + 1)),
    ];
    for (revoked_at, expires_at, ends_at) in states {
        let key = |given| ResolvedCredential::Key(KeyFacts { revoked_at, expires_at, ends_at, given });
        all.extend([true, false].map(key));
    }
    let names = [None, Some("me@x"), Some("ME@X"), Some("you@x"), Some("__token__")];
    for owner in owners {
        for (revoked_at, expires_at, ends_at) in states {
            for (scope, format, listed) in [
                (1, "generic", true),
                (2, "generic", true),
                (3, "generic", true),
                (3, "generic", false),
                (3, "special", true),
            ] {
                for name in names {
                    let facts = TokenFacts {
                        read: scope & 1 > 0,
                        write: scope & 2 > 0,
                        format: format.into(),
                        revoked_at,
                        expires_at,
                        ends_at,
                        listed,
                        owner,
                        username: Some("me@x".into()),
                    };
                    all.push(ResolvedCredential::Token(facts, name.map(str::to_owned)));
                }
            }
        }
    }
    all
}

/// The second implementation: status and code of the refusal, or `None` if the request is allowed.
fn expected(question: &AccessRequest<'_>) -> Option<(u16, &'static str)> {
    let AccessRequest { repository, rules, presented, action, .. } = question;
    let write = matches!(action, AccessAction::Publish | AccessAction::Delete);
    let read = matches!(action, AccessAction::Read { .. });
    let token = match presented {
        ResolvedCredential::Token(token, name) => Some((token, name.as_deref())),
        _ => None,
    };
    let key = match presented {
        ResolvedCredential::Key(key) => Some(key),
        _ => None,
    };
    let over =
        |revoked: Option<i64>, expires, ends| revoked.is_some() || expires == Some(1) || ends == Some(1);
    let ended = token.is_some_and(|(token, _)| over(token.revoked_at, token.expires_at, token.ends_at))
        || key.is_some_and(|key| over(key.revoked_at, key.expires_at, key.ends_at));
    let misnamed = rules.checks_username && token.is_some_and(|(_, name)| name == Some("you@x"));
    let unknown = matches!(presented, ResolvedCredential::Unknown | ResolvedCredential::Refused(_));
    let refused = unknown || ended || misnamed;
    let public = repository.is_some_and(|repository| repository.public);
    let free = repository.is_some() && (*action == AccessAction::Open || (read && public && !refused));
    let disabled = || repository.filter(|repository| !repository.enabled).map(|_| (503, "format_disabled"));
    if free {
        return disabled();
    }
    if **presented == ResolvedCredential::Nothing {
        return Some((401, "unauthorized"));
    }
    if refused {
        let part_of_write = write || *action == AccessAction::Read { for_publish: true };
        let hidden = !part_of_write && rules.refused_read_status == 404;
        return Some(if hidden { (404, "not_found") } else { (401, "unauthorized") });
    }
    let Some(repository) = repository else { return Some((404, "not_found")) };
    let rights = match presented {
        ResolvedCredential::Member(rights) => *rights,
        _ => token.and_then(|(token, _)| token.owner).unwrap_or(Rights {
            read: true,
            publish: true,
            delete: true,
            manage: false,
        }),
    };
    let reached = match (token, key) {
        (Some((token, _)), _) => token.listed && rights.read,
        (None, Some(key)) => key.given,
        // The right to manage a repository gives no access to its packages.
        (None, None) => rights.read || rights.publish || rights.delete,
    };
    if !reached {
        let hidden = repository.kind == RepositoryKind::Proxy || rules.not_reached_status == 404;
        return Some(if hidden { (404, "not_found") } else { (403, "scope_mismatch_repo") });
    }
    let special = token.is_some_and(|(token, _)| &*token.format == "special");
    if special && repository.kind == RepositoryKind::Proxy {
        return Some((403, "npm_token_not_supported_on_proxy"));
    }
    if write && repository.kind == RepositoryKind::Proxy {
        return Some((405, "writes_not_permitted_on_proxy"));
    }
    if write && repository.kind == RepositoryKind::Group {
        return Some((405, "writes_not_permitted_on_group"));
    }
    if special && rules.token_formats.is_empty() {
        return Some((403, "scope_mismatch_repo"));
    }
    let for_publish = *action == AccessAction::Read { for_publish: true };
    let within = match (token, action) {
        (Some((token, _)), _) if write => token.write,
        (Some((token, _)), _) => token.read || (for_publish && token.write),
        (None, _) if key.is_some() => !write,
        (None, AccessAction::Publish) => rights.publish,
        (None, AccessAction::Delete) => rights.delete,
        (None, _) => rights.read || (for_publish && rights.publish),
    };
    if !within {
        return Some((403, "scope_mismatch_repo"));
    }
    if write && token.is_some() && !(rights.publish && rights.delete) {
        return Some((403, "revoked-authority-clamp"));
    }
    disabled()
}

#[test]
fn every_combination_is_decided_as_the_rules_say() {
    let questions = all();
    assert!(questions.len() > 100_000, "{}", questions.len());
    for question in &questions {
        let decided = match decide(question) {
            AccessDecision::Allowed => None,
            AccessDecision::Refused(refusal) => Some((refusal.status, refusal.code.code)),
        };
        assert_eq!(decided, expected(question), "{question:?}");
    }
}

#[test]
fn only_open_and_public_requests_are_allowed_without_a_credential() {
    for question in all().iter().filter(|question| decide(question) == AccessDecision::Allowed) {
        let public = question.repository.is_some_and(|repository| repository.public);
        let anyone = question.action == AccessAction::Open || (public && !question.action.writes());
        assert!(anyone || *question.presented != ResolvedCredential::Nothing, "{question:?}");
        assert!(anyone || *question.presented != ResolvedCredential::Unknown, "{question:?}");
        let suspended = *question.presented == ResolvedCredential::Refused(SUSPENDED);
        assert!(!suspended || question.action == AccessAction::Open, "{question:?}");
    }
}

#[test]
fn a_suspended_account_is_named_as_the_reason() {
    let rules = rules().remove(0);
    let public = RepositoryFacts { kind: RepositoryKind::Hosted, public: true, enabled: true };
    for repository in [None, Some(public)] {
        for action in [AccessAction::Read { for_publish: false }, AccessAction::Publish] {
            let presented = ResolvedCredential::Refused(SUSPENDED);
            let question =
                AccessRequest { repository, rules: &rules, presented: &presented, action, now: NOW };
            let AccessDecision::Refused(refusal) = decide(&question) else { panic!("{question:?}") };
            assert_eq!((refusal.status, refusal.sentence.as_str()), (401, SUSPENDED));
        }
    }
    assert!(is_unauthenticated(&ResolvedCredential::Refused(SUSPENDED), NOW));
}

#[test]
fn a_refused_action_is_named() {
    let actions = [
        (AccessAction::Read { for_publish: false }, "[read]"),
        (AccessAction::Publish, "[write]"),
        (AccessAction::Delete, "[delete]"),
    ];
    for (action, name) in actions {
        assert!(Refusal::out_of_scope(action).sentence.ends_with(name));
    }
}

#[test]
fn a_state_follows_from_its_dates() {
    let cases = [
        ((None, None, None), CredentialState::Active),
        ((None, Some(NOW + 1), None), CredentialState::Active),
        ((None, Some(NOW), None), CredentialState::Expired),
        ((None, None, Some(NOW + 1)), CredentialState::Rotating),
        ((None, None, Some(NOW)), CredentialState::Revoked),
        ((Some(NOW + 1), None, None), CredentialState::Revoked),
        ((Some(1), Some(1), Some(1)), CredentialState::Revoked),
    ];
    for ((revoked, expires, ends), expected) in cases {
        assert_eq!(
            CredentialState::at(NOW, revoked, expires, ends),
            expected,
            "{revoked:?} {expires:?} {ends:?}"
        );
    }
}
