//! Tests of access: every kind of credential in every state, for every action at every kind of
//! repository of each format. The facts pass through the server's own steps, from database rows to
//! the decision. The expected result is computed from the case, by the rules of the specification
//! (Authentication, States and transitions, R4) in their order.

use std::sync::Arc;

use packhouse_store::{
    AccessKeyId, AccessKeyRow, KeyOwnerId, LookUp, MemberId, MemberKind, MemberRow, OrganizationId,
    RepositoryId, RepositoryRow, Scope, TokenId, TokenRow,
};

use crate::credential::PresentedCredential;
use crate::identify;
use packhouse_identity::Secret;
use packhouse_identity::access::{
    self, AccessAction, AccessDecision, AccessRequest, FormatRules, RepositoryFacts, RepositoryKind,
    ResolvedCredential,
};

const NOW: i64 = 1_000_000;

/// The kind of the presented credential.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum CredentialKind {
    Nothing,
    Unknown,
    /// A credential of another organization, which this organization does not know.
    Foreign,
    ReadToken,
    WriteToken,
    FullToken,
    NpmToken,
    OrganizationKey,
    RepositoryKey,
    LegacyToken,
    SubscribersKey,
    GroupsKey,
    Member,
}
use CredentialKind::*;

const CREDENTIALS: [CredentialKind; 13] = [
    Nothing,
    Unknown,
    Foreign,
    ReadToken,
    WriteToken,
    FullToken,
    NpmToken,
    OrganizationKey,
    RepositoryKey,
    LegacyToken,
    SubscribersKey,
    GroupsKey,
    Member,
];

/// State of the credential or of the member who owns it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Standing {
    Active,
    Rotating,
    OverlapOver,
    Revoked,
    Expired,
    LostPublish,
    LostDelete,
    LostRead,
    OwnerGone,
    Suspended,
}
use Standing::*;

const STANDINGS: [Standing; 10] = [
    Active,
    Rotating,
    OverlapOver,
    Revoked,
    Expired,
    LostPublish,
    LostDelete,
    LostRead,
    OwnerGone,
    Suspended,
];

/// Way in which the client sends the credential.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Presentation {
    ByItsUser,
    ByAnother,
    AsToken,
    AsBearer,
}
use Presentation::*;

/// Formats with different rules for refusals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum TestFormat {
    Maven,
    Python,
    Npm,
    Docker,
}
use TestFormat::*;

impl TestFormat {
    fn name(self) -> &'static str {
        match self {
            Maven => "maven",
            Python => "python",
            Npm => "npm",
            Docker => "docker",
        }
    }

    fn rules(self) -> FormatRules<'static> {
        FormatRules {
            checks_username: matches!(self, Maven | Python),
            refused_read_status: if self == Npm { 404 } else { 401 },
            refused_write_status: 401,
            not_reached_status: 403,
            token_usernames: vec!["__token__".to_owned()].into(),
            token_formats: vec![self.name().to_owned()].into(),
        }
    }
}

/// Repository of the request. A repository of another organization is absent too.
#[derive(Clone, Copy, Debug, PartialEq)]
enum RepositoryState {
    Absent,
    Present { kind: RepositoryKind, public: bool, enabled: bool, reached: bool },
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct AccessCase {
    credential: CredentialKind,
    standing: Standing,
    presentation: Presentation,
    format: TestFormat,
    target: RepositoryState,
    required: AccessAction,
}

fn targets() -> Vec<RepositoryState> {
    let mut targets = vec![RepositoryState::Absent];
    for kind in [RepositoryKind::Hosted, RepositoryKind::Proxy, RepositoryKind::Group] {
        for bits in 0..8 {
            let [public, enabled, reached] = [1, 2, 4].map(|bit| bits & bit > 0);
            targets.push(RepositoryState::Present { kind, public, enabled, reached });
        }
    }
    targets
}

/// Reports whether a credential of this kind can have this state and be sent in this way.
fn makes_sense(credential: CredentialKind, standing: Standing, presentation: Presentation) -> bool {
    let of_a_member = matches!(credential, ReadToken | WriteToken | FullToken | NpmToken);
    let states = match credential {
        Nothing | Unknown => standing == Active && presentation == AsBearer,
        Foreign => standing == Active,
        Member => matches!(standing, Active | LostPublish | LostDelete | LostRead | Suspended),
        _ => of_a_member || matches!(standing, Active | Rotating | OverlapOver | Revoked | Expired),
    };
    states && (credential != Member || presentation == ByItsUser)
}

fn cases() -> Vec<AccessCase> {
    let required = [
        AccessAction::Read { for_publish: false },
        AccessAction::Read { for_publish: true },
        AccessAction::Publish,
        AccessAction::Delete,
    ];
    let mut cases = Vec::new();
    for credential in CREDENTIALS {
        for standing in STANDINGS {
            for presentation in [ByItsUser, ByAnother, AsToken, AsBearer] {
                if !makes_sense(credential, standing, presentation) {
                    continue;
                }
                for format in [Maven, Python, Npm, Docker] {
                    for target in targets() {
                        let case = |required| AccessCase {
                            credential,
                            standing,
                            presentation,
                            format,
                            target,
                            required,
                        };
                        cases.extend(required.map(case));
                    }
                }
            }
        }
    }
    cases
}

/// Returns the result that the specification requires: status and code, or `None` if access is
/// allowed.
fn expected(case: &AccessCase) -> Option<(u16, &'static str)> {
    let AccessCase { credential, standing, presentation, format, target, required } = *case;
    let write = matches!(required, AccessAction::Publish | AccessAction::Delete);
    let unauthorized = Some((401, "unauthorized"));
    // "401 bad credential"; "for npm a mistyped, expired, revoked or other-organization token"
    // reads 404. A read that belongs to a publish is refused like the publish.
    let for_publish = required == AccessAction::Read { for_publish: true };
    let refused = match (format, write || for_publish) {
        (Npm, false) => Some((404, "not_found")),
        _ => unauthorized,
    };
    let key = matches!(credential, SubscribersKey | GroupsKey);
    // "wrong username": Docker ignores user names and npm sends none. An access key or a legacy
    // token accepts any user name.
    let named = matches!(format, Maven | Python) && !key && credential != LegacyToken;
    // "Everything of a suspended member is refused", its tokens and its password.
    let ended = matches!(standing, OverlapOver | Revoked | Expired | Suspended);
    let bad = matches!(credential, Unknown | Foreign) || ended || (named && presentation == ByAnother);
    // "anyone reads" public repositories, but a refused credential stays refused.
    if let RepositoryState::Present { public: true, enabled, .. } = target
        && !write
        && !bad
    {
        return (!enabled).then_some((503, "format_disabled"));
    }
    if credential == Nothing {
        return unauthorized;
    }
    if bad {
        return refused;
    }
    let RepositoryState::Present { kind, enabled, reached, .. } = target else {
        return Some((404, "not_found"));
    };
    // A member's token reaches those repositories on its list that its owner may read. A member
    // reaches every repository in which the member has any right.
    let lost_reach = matches!(standing, LostRead | OwnerGone) && credential != Member;
    if !reached || lost_reach {
        return Some(match kind {
            RepositoryKind::Proxy => (404, "not_found"),
            RepositoryKind::Hosted | RepositoryKind::Group => (403, "scope_mismatch_repo"),
        });
    }
    if credential == NpmToken && kind == RepositoryKind::Proxy {
        return Some((403, "npm_token_not_supported_on_proxy"));
    }
    match kind {
        RepositoryKind::Proxy if write => return Some((405, "writes_not_permitted_on_proxy")),
        RepositoryKind::Group if write => return Some((405, "writes_not_permitted_on_group")),
        _ => {}
    }
    let may = match (credential, required) {
        (NpmToken, _) if format != Npm => false,
        (ReadToken | SubscribersKey | GroupsKey, _) => !write,
        // "what a publish itself asks is part of it", so a write token may make such reads.
        (WriteToken, AccessAction::Read { for_publish }) => for_publish,
        (Member, AccessAction::Read { for_publish }) => standing != LostRead || for_publish,
        (Member, AccessAction::Publish) => standing != LostPublish,
        (Member, AccessAction::Delete) => standing != LostDelete,
        _ => true,
    };
    if !may {
        return Some((403, "scope_mismatch_repo"));
    }
    // "the owning member no longer can publish or delete": the loss of either right affects both
    // actions. Keys of an organization or a repository have no owning member.
    if write && credential != Member && matches!(standing, LostPublish | LostDelete) {
        return Some((403, "revoked-authority-clamp"));
    }
    (!enabled).then_some((503, "format_disabled"))
}

const ORGANIZATION: OrganizationId = OrganizationId(1);
pub(super) const REPOSITORY: RepositoryId = RepositoryId(7);
const OWNER: MemberId = MemberId(3);
const EMAIL: &str = "me@example.com";

/// Returns the rows that the store finds.
fn found(case: &AccessCase) -> LookUp {
    let mut found = LookUp::default();
    let mut reached = false;
    if let RepositoryState::Present { kind, public, reached: there, .. } = case.target {
        found.repository = Some(repository(case.format, kind, public));
        reached = there;
    }
    match case.credential {
        Nothing | Unknown | Foreign | Member => return found,
        SubscribersKey | GroupsKey => {
            found.key = Some(key(case.standing));
            found.key_owner = Some("ACME".to_owned());
        }
        _ => found.token = Some(token(case.credential, case.standing)),
    }
    found.reaches = reached;
    let owned = found.token.as_ref().is_some_and(|token| token.owner.is_some());
    found.owner = (owned && case.standing != OwnerGone).then(|| Arc::new(member(case.standing)));
    found
}

pub(super) fn repository(format: TestFormat, kind: RepositoryKind, public: bool) -> RepositoryRow {
    let kind = match kind {
        RepositoryKind::Hosted => "hosted",
        RepositoryKind::Proxy => "proxy",
        RepositoryKind::Group => "group",
    };
    RepositoryRow {
        id: REPOSITORY,
        organization: ORGANIZATION,
        name: "r".to_owned(),
        format: format.name().to_owned(),
        kind: kind.to_owned(),
        public,
        settings: "{}".into(),
        upstream: None,
        members: Vec::new(),
        revision: 1,
        settings_revision: 1,
        created_at: 1,
    }
}

/// Returns the times `expires_at`, `ends_at` and `revoked_at`.
fn dates(standing: Standing) -> [Option<i64>; 3] {
    match standing {
        Rotating => [Some(NOW + 9), Some(NOW + 1), None],
        OverlapOver => [Some(NOW + 9), Some(NOW), None],
        Revoked => [Some(NOW + 9), None, Some(NOW)],
        Expired => [Some(NOW), None, None],
        _ => [Some(NOW + 9), None, None],
    }
}

pub(super) fn token(credential: CredentialKind, standing: Standing) -> TokenRow {
    let [expires_at, ends_at, revoked_at] = dates(standing);
    let backing = match credential {
        OrganizationKey => Some("org"),
        RepositoryKey => Some("repo"),
        LegacyToken => Some("legacy"),
        _ => None,
    };
    TokenRow {
        id: TokenId(5),
        organization: ORGANIZATION,
        secret_sha256: [0; 32],
        name: "ci".to_owned(),
        scope: Scope { read: credential != WriteToken, write: credential != ReadToken },
        format: if credential == NpmToken { "npm" } else { "generic" }.to_owned(),
        owner: backing.is_none().then_some(OWNER),
        created_by: EMAIL.to_owned(),
        backing: backing.map(str::to_owned),
        backing_repository: (credential == RepositoryKey).then_some(REPOSITORY),
        repositories: Vec::new(),
        expires_at,
        ends_at,
        revoked_at,
        created_at: 1,
        last_used_at: None,
        grants: None,
        packages: None,
    }
}

fn key(standing: Standing) -> AccessKeyRow {
    let [expires_at, ends_at, revoked_at] = dates(standing);
    AccessKeyRow {
        id: AccessKeyId(6),
        organization: ORGANIZATION,
        secret_sha256: [0; 32],
        name: None,
        owner: KeyOwnerId(8),
        created_by: EMAIL.to_owned(),
        expires_at,
        ends_at,
        revoked_at,
        created_at: 1,
        last_used_at: None,
    }
}

pub(super) fn member(standing: Standing) -> MemberRow {
    let lost = match standing {
        LostPublish => "publish",
        LostDelete => "delete",
        LostRead => "read",
        _ => "",
    };
    let actions: Vec<&str> =
        ["read", "publish", "delete"].into_iter().filter(|action| *action != lost).collect();
    let permissions = serde_json::json!({"repositories": [{"repository": "7", "actions": actions}]});
    MemberRow {
        id: OWNER,
        organization: ORGANIZATION,
        email: EMAIL.to_owned(),
        name: String::new(),
        password_hash: String::new(),
        permissions: permissions.to_string(),
        created_at: 1,
        kind: MemberKind::Person,
        active: standing != Suspended,
        external_id: None,
        team_permissions: String::new(),
    }
}

fn credential(case: &AccessCase) -> PresentedCredential {
    let password = Secret::new("pkh_x");
    let basic = |username: &str| PresentedCredential::Basic {
        username: username.to_owned(),
        password: password.clone(),
    };
    match case.presentation {
        ByItsUser => basic("Me@Example.com"),
        ByAnother => basic("you@example.com"),
        AsToken => basic("__token__"),
        AsBearer => PresentedCredential::Bearer(password),
    }
}

fn presented(case: &AccessCase, facts: LookUp) -> ResolvedCredential {
    let reached = matches!(case.target, RepositoryState::Present { reached: true, .. });
    match case.credential {
        Nothing => ResolvedCredential::Nothing,
        Unknown | Foreign => ResolvedCredential::Unknown,
        // The member signed in by password.
        Member => {
            let mut row = member(case.standing);
            if !reached {
                row.permissions.clear();
            }
            identify::account(Arc::new(facts), row).presented
        }
        _ => identify::recognized(&Arc::new(facts), &credential(case)).expect("a credential").presented,
    }
}

fn decided(case: &AccessCase) -> Option<(u16, &'static str)> {
    let facts = found(case);
    let enabled = matches!(case.target, RepositoryState::Present { enabled: true, .. });
    let repository = facts.repository.as_ref().map(|row| RepositoryFacts {
        kind: RepositoryKind::of(&row.kind),
        public: row.public,
        enabled,
    });
    let (presented, rules) = (presented(case, facts), case.format.rules());
    let question =
        AccessRequest { repository, rules: &rules, presented: &presented, action: case.required, now: NOW };
    match access::decide(&question) {
        AccessDecision::Allowed => None,
        AccessDecision::Refused(refusal) => Some((refusal.status, refusal.code.code)),
    }
}

#[test]
fn every_credential_in_every_state_may_do_what_the_specification_says() {
    let cases = cases();
    assert!(cases.len() > 50_000, "{}", cases.len());
    let mut answers = std::collections::BTreeMap::<_, u32>::new();
    for case in &cases {
        let expected = expected(case);
        assert_eq!(decided(case), expected, "{case:?}");
        *answers.entry(expected).or_default() += 1;
    }
    // Every possible result must occur, and often.
    for answer in [
        None,
        Some((401, "unauthorized")),
        Some((404, "not_found")),
        Some((403, "scope_mismatch_repo")),
        Some((403, "npm_token_not_supported_on_proxy")),
        Some((403, "revoked-authority-clamp")),
        Some((405, "writes_not_permitted_on_proxy")),
        Some((405, "writes_not_permitted_on_group")),
        Some((503, "format_disabled")),
    ] {
        assert!(answers.get(&answer).is_some_and(|times| *times > 50), "{answer:?} in {answers:?}");
    }
}

#[test]
fn a_key_whose_owner_lacks_the_repository_has_its_own_reason() {
    let target = RepositoryState::Present {
        kind: RepositoryKind::Hosted,
        public: false,
        enabled: true,
        reached: false,
    };
    for credential in [SubscribersKey, GroupsKey, FullToken] {
        let case = AccessCase {
            credential,
            standing: Active,
            presentation: ByItsUser,
            format: Docker,
            target,
            required: AccessAction::Read { for_publish: false },
        };
        let facts = found(&case);
        let row = facts.repository.as_ref().unwrap();
        let repository =
            RepositoryFacts { kind: RepositoryKind::of(&row.kind), public: false, enabled: true };
        let (presented, rules) = (presented(&case, facts), case.format.rules());
        let question = AccessRequest {
            repository: Some(repository),
            rules: &rules,
            presented: &presented,
            action: case.required,
            now: NOW,
        };
        let AccessDecision::Refused(refusal) = access::decide(&question) else { panic!("{case:?}") };
        assert_eq!(refusal.reason, (credential != FullToken).then_some("key_not_reached"));
    }
}
