//! Who may do what: every kind of credential in every state, at every kind of repository of each format, for every action. The
//! facts go through the program's own steps, from rows as the store gives them to the verdict. What is expected is read off
//! the case itself, by the rules of the specification (Authentication, States and transitions, R4) in their order of judgement.

use std::sync::Arc;

use packhouse_store::{
    AccessKeyId, AccessKeyRow, KeyOwnerId, LookUp, MemberId, MemberRow, OrganizationId, RepositoryId,
    RepositoryRow, Scope, TokenId, TokenRow,
};

use crate::credential::PresentedCredential;
use crate::identify;
use packhouse_identity::Secret;
use packhouse_identity::access::{
    self, AccessAction, AccessDecision, AccessRequest, Kind, RepositoryFacts, ResolvedCredential, Rules,
};
use packhouse_identity::permissions::Permissions;

const NOW: i64 = 1_000_000;

/// What is presented.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Shown {
    Nothing,
    Unknown,
    /// A credential of another organization, which is nothing to this one.
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
use Shown::*;

const SHOWN: [Shown; 13] = [
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

/// How it stands with the credential, or with the member behind it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stands {
    Active,
    Rotating,
    OverlapOver,
    Revoked,
    Expired,
    LostPublish,
    LostDelete,
    LostRead,
    OwnerGone,
}
use Stands::*;

const STANDS: [Stands; 9] =
    [Active, Rotating, OverlapOver, Revoked, Expired, LostPublish, LostDelete, LostRead, OwnerGone];

/// How it is sent.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Sent {
    ByItsUser,
    ByAnother,
    AsToken,
    AsBearer,
}
use Sent::*;

/// The formats, with what each declares of its refusals.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Format {
    Maven,
    Python,
    Npm,
    Docker,
}
use Format::*;

impl Format {
    fn name(self) -> &'static str {
        match self {
            Maven => "maven",
            Python => "python",
            Npm => "npm",
            Docker => "docker",
        }
    }

    fn rules(self) -> Rules<'static> {
        Rules {
            checks_username: matches!(self, Maven | Python),
            refused_read_status: if self == Npm { 404 } else { 401 },
            refused_write_status: 401,
            not_reached_status: 403,
            token_usernames: vec!["__token__".to_owned()].into(),
            token_formats: vec![self.name().to_owned()].into(),
        }
    }
}

/// Where it is used. A repository of another organization is one that is absent from this.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    Absent,
    There { kind: Kind, public: bool, enabled: bool, reached: bool },
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Case {
    shown: Shown,
    stands: Stands,
    sent: Sent,
    format: Format,
    place: Place,
    wanted: AccessAction,
}

fn places() -> Vec<Place> {
    let mut places = vec![Place::Absent];
    for kind in [Kind::Hosted, Kind::Proxy, Kind::Group] {
        for bits in 0..8 {
            let [public, enabled, reached] = [1, 2, 4].map(|bit| bits & bit > 0);
            places.push(Place::There { kind, public, enabled, reached });
        }
    }
    places
}

/// A state that there is for this kind, and a way in which it can be sent.
fn makes_sense(shown: Shown, stands: Stands, sent: Sent) -> bool {
    let of_a_member = matches!(shown, ReadToken | WriteToken | FullToken | NpmToken);
    let states = match shown {
        Nothing | Unknown => stands == Active && sent == AsBearer,
        Foreign => stands == Active,
        Member => matches!(stands, Active | LostPublish | LostDelete | LostRead),
        _ => of_a_member || matches!(stands, Active | Rotating | OverlapOver | Revoked | Expired),
    };
    states && (shown != Member || sent == ByItsUser)
}

fn cases() -> Vec<Case> {
    let wanted = [
        AccessAction::Read { for_publish: false },
        AccessAction::Read { for_publish: true },
        AccessAction::Publish,
        AccessAction::Delete,
    ];
    let mut cases = Vec::new();
    for shown in SHOWN {
        for stands in STANDS {
            for sent in [ByItsUser, ByAnother, AsToken, AsBearer] {
                if !makes_sense(shown, stands, sent) {
                    continue;
                }
                for format in [Maven, Python, Npm, Docker] {
                    for place in places() {
                        let case = |wanted| Case { shown, stands, sent, format, place, wanted };
                        cases.extend(wanted.map(case));
                    }
                }
            }
        }
    }
    cases
}

/// The specification's answer: status and code, or none where it is allowed.
fn expected(case: &Case) -> Option<(u16, &'static str)> {
    let Case { shown, stands, sent, format, place, wanted } = *case;
    let write = matches!(wanted, AccessAction::Publish | AccessAction::Delete);
    let unauthorized = Some((401, "unauthorized"));
    // "401 bad credential"; "for npm a mistyped, expired, revoked or other-organization token" reads 404.
    // What a publish itself asks is refused as a publish is.
    let for_publish = wanted == AccessAction::Read { for_publish: true };
    let refused = match (format, write || for_publish) {
        (Npm, false) => Some((404, "not_found")),
        _ => unauthorized,
    };
    let key = matches!(shown, SubscribersKey | GroupsKey);
    // "wrong username"; Docker does not look, npm sends none, and an access key or legacy token goes with any.
    let named = matches!(format, Maven | Python) && !key && shown != LegacyToken;
    let ended = matches!(stands, OverlapOver | Revoked | Expired);
    let bad = matches!(shown, Unknown | Foreign) || ended || (named && sent == ByAnother);
    // "anyone reads" what is public, but a credential that is refused stays refused.
    if let Place::There { public: true, enabled, .. } = place
        && !write
        && !bad
    {
        return (!enabled).then_some((503, "format_disabled"));
    }
    if shown == Nothing {
        return unauthorized;
    }
    if bad {
        return refused;
    }
    let Place::There { kind, enabled, reached, .. } = place else { return Some((404, "not_found")) };
    // A member's token reaches what is on its list, while its owner reads there; a member whatever it has any right in.
    let lost_reach = matches!(stands, LostRead | OwnerGone) && shown != Member;
    if !reached || lost_reach {
        return Some(match kind {
            Kind::Proxy => (404, "not_found"),
            Kind::Hosted | Kind::Group => (403, "scope_mismatch_repo"),
        });
    }
    if shown == NpmToken && kind == Kind::Proxy {
        return Some((403, "npm_token_not_supported_on_proxy"));
    }
    match kind {
        Kind::Proxy if write => return Some((405, "writes_not_permitted_on_proxy")),
        Kind::Group if write => return Some((405, "writes_not_permitted_on_group")),
        _ => {}
    }
    let may = match (shown, wanted) {
        (NpmToken, _) if format != Npm => false,
        (ReadToken | SubscribersKey | GroupsKey, _) => !write,
        // "what a publish itself asks is part of it".
        (WriteToken, AccessAction::Read { for_publish }) => for_publish,
        (Member, AccessAction::Read { for_publish }) => stands != LostRead || for_publish,
        (Member, AccessAction::Publish) => stands != LostPublish,
        (Member, AccessAction::Delete) => stands != LostDelete,
        _ => true,
    };
    if !may {
        return Some((403, "scope_mismatch_repo"));
    }
    // "the owning member no longer can publish or delete": either one, for either write. A key of the organization or of a
    // repository has no such member.
    if write && shown != Member && matches!(stands, LostPublish | LostDelete) {
        return Some((403, "revoked-authority-clamp"));
    }
    (!enabled).then_some((503, "format_disabled"))
}

const ORGANIZATION: OrganizationId = OrganizationId(1);
const REPOSITORY: RepositoryId = RepositoryId(7);
const OWNER: MemberId = MemberId(3);
const EMAIL: &str = "me@example.com";

/// What the store finds.
fn found(case: &Case) -> LookUp {
    let mut found = LookUp::default();
    let mut reached = false;
    if let Place::There { kind, public, reached: there, .. } = case.place {
        found.repository = Some(repository(case.format, kind, public));
        reached = there;
    }
    match case.shown {
        Nothing | Unknown | Foreign | Member => return found,
        SubscribersKey | GroupsKey => {
            found.key = Some(key(case.stands));
            found.key_owner = Some("ACME".to_owned());
        }
        _ => found.token = Some(token(case.shown, case.stands)),
    }
    found.reaches = reached;
    let owned = found.token.as_ref().is_some_and(|token| token.owner.is_some());
    found.owner = (owned && case.stands != OwnerGone).then(|| Arc::new(member(case.stands)));
    found
}

fn repository(format: Format, kind: Kind, public: bool) -> RepositoryRow {
    let kind = match kind {
        Kind::Hosted => "hosted",
        Kind::Proxy => "proxy",
        Kind::Group => "group",
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

/// `expires_at`, `ends_at` and `revoked_at`.
fn dates(stands: Stands) -> [Option<i64>; 3] {
    match stands {
        Rotating => [Some(NOW + 9), Some(NOW + 1), None],
        OverlapOver => [Some(NOW + 9), Some(NOW), None],
        Revoked => [Some(NOW + 9), None, Some(NOW)],
        Expired => [Some(NOW), None, None],
        _ => [Some(NOW + 9), None, None],
    }
}

fn token(shown: Shown, stands: Stands) -> TokenRow {
    let [expires_at, ends_at, revoked_at] = dates(stands);
    let backing = match shown {
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
        scope: Scope { read: shown != WriteToken, write: shown != ReadToken },
        format: if shown == NpmToken { "npm" } else { "generic" }.to_owned(),
        owner: backing.is_none().then_some(OWNER),
        created_by: EMAIL.to_owned(),
        backing: backing.map(str::to_owned),
        backing_repository: (shown == RepositoryKey).then_some(REPOSITORY),
        repositories: Vec::new(),
        expires_at,
        ends_at,
        revoked_at,
        created_at: 1,
        last_used_at: None,
        grants: None,
    }
}

fn key(stands: Stands) -> AccessKeyRow {
    let [expires_at, ends_at, revoked_at] = dates(stands);
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

fn member(stands: Stands) -> MemberRow {
    let lost = match stands {
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
    }
}

fn credential(case: &Case) -> PresentedCredential {
    let password = Secret::new("pkh_x");
    let basic = |username: &str| PresentedCredential::Basic {
        username: username.to_owned(),
        password: password.clone(),
    };
    match case.sent {
        ByItsUser => basic("Me@Example.com"),
        ByAnother => basic("you@example.com"),
        AsToken => basic("__token__"),
        AsBearer => PresentedCredential::Bearer(password),
    }
}

fn presented(case: &Case, facts: LookUp) -> ResolvedCredential {
    let reached = matches!(case.place, Place::There { reached: true, .. });
    match case.shown {
        Nothing => ResolvedCredential::Nothing,
        Unknown | Foreign => ResolvedCredential::Unknown,
        // Signed in by password: the rights are those in the repository.
        Member if reached => {
            ResolvedCredential::Member(Permissions::read(&member(case.stands).permissions).rights(REPOSITORY))
        }
        Member => ResolvedCredential::Member(access::Rights::default()),
        _ => identify::recognized(&Arc::new(facts), &credential(case)).expect("a credential").presented,
    }
}

fn decided(case: &Case) -> Option<(u16, &'static str)> {
    let facts = found(case);
    let enabled = matches!(case.place, Place::There { enabled: true, .. });
    let repository = facts.repository.as_ref().map(|row| RepositoryFacts {
        kind: Kind::of(&row.kind),
        public: row.public,
        enabled,
    });
    let (presented, rules) = (presented(case, facts), case.format.rules());
    let question =
        AccessRequest { repository, rules: &rules, presented: &presented, wanted: case.wanted, now: NOW };
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
    // Every answer there is was met, and often.
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
fn a_key_whose_owner_lacks_the_repository_is_told_apart() {
    let place = Place::There { kind: Kind::Hosted, public: false, enabled: true, reached: false };
    for shown in [SubscribersKey, GroupsKey, FullToken] {
        let case = Case {
            shown,
            stands: Active,
            sent: ByItsUser,
            format: Docker,
            place,
            wanted: AccessAction::Read { for_publish: false },
        };
        let facts = found(&case);
        let row = facts.repository.as_ref().unwrap();
        let repository = RepositoryFacts { kind: Kind::of(&row.kind), public: false, enabled: true };
        let (presented, rules) = (presented(&case, facts), case.format.rules());
        let question = AccessRequest {
            repository: Some(repository),
            rules: &rules,
            presented: &presented,
            wanted: case.wanted,
            now: NOW,
        };
        let AccessDecision::Refused(refusal) = access::decide(&question) else { panic!("{case:?}") };
        assert_eq!(refusal.reason, (shown != FullToken).then_some("key_not_reached"));
    }
}
