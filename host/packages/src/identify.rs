//! What the store knows of a credential and of a repository, read in one statement. The secret itself ends here: what goes on is
//! a hash and a row.

use std::net::IpAddr;
use std::sync::Arc;

use packhouse_store::{LookUp, MemberId, MemberRow, OrganizationId, PUBLISHER_BACKING, Reached, TokenRow};

use crate::bearer_scope::BearerScope;
use crate::credential::PresentedCredential;
use crate::error_response::HttpError;
use crate::password_sign_in::{self, SignIn};
use packhouse_app::App;
use packhouse_app::publishers::{IdTokenRefusal, IdTokenRequest, PublisherReach};
use packhouse_app::sso;
use packhouse_identity::access::{KeyFacts, ResolvedCredential, Rights, State, TokenFacts};
use packhouse_identity::grants::{Grants, id_token_fingerprint};
use packhouse_identity::permissions::Permissions;
use packhouse_identity::{self as identity, Holder, Secret};

/// What is known of a request's credential and repository.
pub(crate) struct Principal {
    /// As the store has them.
    pub facts: Arc<LookUp>,
    /// The credential, as access is decided on it.
    pub presented: ResolvedCredential,
    /// Who asks, as it may be shown to a plugin.
    pub caller: Option<Arc<str>>,
    /// Names the credential in the log; never a part of it.
    pub credential: Option<Arc<str>>,
    /// The member whose account it is, or whose token.
    pub member: Option<Arc<MemberRow>>,
    /// What a bearer leaves of the credential's rights.
    pub bearer_scope: BearerScope,
    /// What publishers let the credential do, where it is theirs: some packages of some repositories.
    pub grants: Option<Grants>,
}

/// What is to be identified.
pub(crate) struct IdentityQuery<'a> {
    /// The organization that the request is for.
    pub organization: OrganizationId,
    /// The name of the repository that is looked up in the same statement; empty for none.
    pub repository: &'a str,
    /// The credential that came.
    pub credential: PresentedCredential,
    /// The client's address.
    pub peer: IpAddr,
    /// The format whose token service's bearers count here, if any do.
    pub bearer_format: Option<&'a str>,
    /// What links start with: ID tokens are made for this host.
    pub base_url: &'a str,
    /// Names the request in the audit log.
    pub request_id: &'a str,
}

/// Looks up a repository and a credential. 429 for a password that was guessed at too often, 503 if the store cannot be read.
pub(crate) async fn identify(app: &App, query: IdentityQuery<'_>) -> Result<Principal, HttpError> {
    let id_token = query.credential.id_token().cloned();
    if let Some(id_token) = id_token {
        return Box::pin(by_id_token(app, query, &id_token)).await;
    }
    let IdentityQuery { organization, repository, credential, peer, bearer_format, .. } = query;
    if let (PresentedCredential::Bearer(secret), Some(format)) = (&credential, bearer_format)
        && identity::says_bearer(secret.reveal())
    {
        return Box::pin(by_bearer(app, organization, repository, secret, format)).await;
    }
    let fingerprint = credential.fingerprint();
    let facts = app.store.look_up(organization, repository, fingerprint.as_ref()).await?;
    if let Some(principal) = recognized(&facts, &credential) {
        return Ok(principal);
    }
    let PresentedCredential::Basic { username, password } = credential else {
        let presented = match credential {
            PresentedCredential::Nothing => ResolvedCredential::Nothing,
            _ => ResolvedCredential::Unknown,
        };
        return Ok(nobody(facts, presented));
    };
    // A build with an old token asks again and again. That is no guessing, and must not hold up its owner's sign-in.
    if identity::says_token(password.reveal()) {
        return Ok(nobody(facts, ResolvedCredential::Unknown));
    }
    let attempt = SignIn { organization, username: &username, password, peer };
    match Box::pin(password_sign_in::sign_in(app, attempt)).await? {
        Some(member) if sso::allows_password(facts.sign_in.as_deref(), &member) => Ok(account(facts, member)),
        _ => Ok(nobody(facts, ResolvedCredential::Unknown)),
    }
}

/// An ID token as a credential: known by its hash once it was judged, until it expires. A text that looks like one may be a token that
/// was brought in from elsewhere, and one whose issuer nobody named is something that nobody knows.
async fn by_id_token(app: &App, query: IdentityQuery<'_>, id_token: &Secret) -> Result<Principal, HttpError> {
    let IdentityQuery { organization, repository, credential, peer, base_url, request_id, .. } = query;
    let hash = id_token_fingerprint(organization, id_token.reveal());
    let mut facts = app.store.look_up(organization, repository, Some(&hash)).await?;
    if facts.token.is_none()
        && let Some(fingerprint) = credential.fingerprint()
    {
        let brought_in = app.store.look_up(organization, repository, Some(&fingerprint)).await?;
        if let Some(principal) = recognized(&brought_in, &credential) {
            return Ok(principal);
        }
    }
    if !is_known_here(&facts, app.store.now_ms()) && !*app.live.read_only.get() {
        let format = facts.repository.as_ref().map(|row| row.format.as_str());
        let audiences = app.id_token_audiences(base_url, format);
        let reach = PublisherReach::Organization;
        let request = IdTokenRequest {
            organization,
            id_token,
            audiences: &audiences,
            reach,
            address: peer,
            request_id,
        };
        match app.admit_id_token(request).await {
            Ok(_) => facts = app.store.look_up(organization, repository, Some(&hash)).await?,
            Err(IdTokenRefusal::UnknownIssuer | IdTokenRefusal::Malformed(_)) => {}
            Err(refused) => return Err(refused.into()),
        }
    }
    Ok(recognized(&facts, &credential).unwrap_or_else(|| nobody(facts, ResolvedCredential::Unknown)))
}

/// Whether an ID token was judged before, and nothing more is to be found out about it here: where it does not reach the repository, or
/// was given up, another publisher may trust its workflow by now.
fn is_known_here(facts: &LookUp, now: i64) -> bool {
    let works = |token: &TokenRow| State::at(now, token.revoked_at, token.expires_at, token.ends_at).works();
    facts.token.as_ref().is_some_and(works) && (facts.reaches || facts.repository.is_none())
}

/// A bearer's credential, looked up anew.
async fn by_bearer(
    app: &App,
    organization: OrganizationId,
    repository: &str,
    secret: &Secret,
    format: &str,
) -> Result<Principal, HttpError> {
    let now = app.store.now_ms();
    let bearer = app.bearers.verify(&app.store, &app.sealer, secret.reveal(), now).await?;
    let bearer = bearer.filter(|bearer| bearer.organization == organization.0 && bearer.format == format);
    let holder = bearer.as_ref().map(|bearer| &bearer.holder);
    let fingerprint = match holder {
        Some(Holder::Token(hash)) => hex::decode(hash).ok().and_then(|hash| <[u8; 32]>::try_from(hash).ok()),
        _ => None,
    };
    let facts = app.store.look_up(organization, repository, fingerprint.as_ref()).await?;
    let principal = match holder {
        None => None,
        Some(Holder::Nobody) => Some(nobody(facts.clone(), ResolvedCredential::Nothing)),
        Some(Holder::Token(_)) => {
            token(&facts, &PresentedCredential::Bearer(secret.clone())).or_else(|| key(&facts))
        }
        Some(holder @ Holder::Member(id, _)) => {
            let member = app.store.find_member(organization, MemberId(*id)).await?;
            let still = |member: &MemberRow| {
                holder.is(member) && sso::allows_password(facts.sign_in.as_deref(), member)
            };
            member.filter(still).map(|member| account(facts.clone(), member))
        }
    };
    Ok(match (principal, bearer) {
        (Some(principal), Some(bearer)) => {
            Principal { bearer_scope: BearerScope::Granted(bearer.grants), ..principal }
        }
        _ => Principal { bearer_scope: BearerScope::Refused, ..nobody(facts, ResolvedCredential::Unknown) },
    })
}

/// Most tokens of a request whose ids are looked up.
const MAX_TOKENS: usize = 4;

/// The tokens of this host's among the texts of a path or a query, each with its id: a plugin is to see that and no more.
pub(crate) async fn tokens_in(
    app: &App,
    principal: &Principal,
    organization: OrganizationId,
    texts: impl Iterator<Item = &String>,
) -> Result<Vec<(String, String)>, HttpError> {
    let mut found = Vec::new();
    for text in texts.filter(|text| identity::says_token(text)).take(MAX_TOKENS) {
        let Some(hash) = identity::fingerprint(text) else { continue };
        let own =
            principal.facts.token.as_ref().filter(|token| token.secret_sha256 == hash).map(|token| token.id);
        let id = match own {
            Some(id) => Some(id),
            None => {
                let facts = app.store.look_up(organization, "", Some(&hash)).await?;
                facts.token.as_ref().map(|token| token.id)
            }
        };
        found.extend(id.map(|id| (text.clone(), id.to_string())));
    }
    Ok(found)
}

fn nobody(facts: Arc<LookUp>, presented: ResolvedCredential) -> Principal {
    Principal {
        facts,
        presented,
        caller: None,
        credential: None,
        member: None,
        bearer_scope: BearerScope::Direct,
        grants: None,
    }
}

/// A member's own account.
fn account(facts: Arc<LookUp>, member: MemberRow) -> Principal {
    let permissions = Permissions::read(&member.permissions);
    let rights = facts.repository.as_ref().map(|row| permissions.rights(row.id)).unwrap_or_default();
    Principal {
        caller: Some(member.email.as_str().into()),
        credential: Some(format!("member:{}", member.id).into()),
        member: Some(Arc::new(member)),
        ..nobody(facts, ResolvedCredential::Member(rights))
    }
}

/// The token or access key that was found.
pub(super) fn recognized(facts: &Arc<LookUp>, credential: &PresentedCredential) -> Option<Principal> {
    token(facts, credential).or_else(|| key(facts))
}

/// The token that was found, as access is decided on it.
fn token(facts: &Arc<LookUp>, credential: &PresentedCredential) -> Option<Principal> {
    facts.token.as_ref()?;
    let known = Known::of(facts);
    let KnownToken { presented, caller, credential: name, grants } = known.token.as_ref()?;
    let username = match credential {
        PresentedCredential::Basic { username, .. } => Some(username.clone()),
        _ => None,
    };
    Some(Principal {
        facts: Arc::clone(facts),
        presented: ResolvedCredential::Token(presented.clone(), username),
        caller: Some(Arc::clone(caller)),
        credential: Some(Arc::clone(name)),
        member: facts.owner.clone(),
        bearer_scope: BearerScope::Direct,
        grants: grants.clone(),
    })
}

/// What a look-up's answer says of a token: the same for all requests that get this answer, and dear to work out.
struct Known {
    /// Of the token's owner.
    permissions: Option<Arc<Permissions>>,
    token: Option<KnownToken>,
}

/// See [`Principal`].
struct KnownToken {
    presented: TokenFacts,
    caller: Arc<str>,
    credential: Arc<str>,
    grants: Option<Grants>,
}

impl Known {
    fn of(facts: &LookUp) -> Arc<Known> {
        facts.derived.get_or_make(|| {
            let permissions =
                facts.owner.as_ref().map(|owner| Arc::new(Permissions::read(&owner.permissions)));
            let token = facts.token.as_ref().map(|row| KnownToken::of(row, facts, permissions.as_deref()));
            Arc::new(Known { permissions, token })
        })
    }
}

impl KnownToken {
    /// `permissions` are those of its owner.
    fn of(row: &TokenRow, facts: &LookUp, permissions: Option<&Permissions>) -> KnownToken {
        let here = facts.repository.as_ref().map(|repository| repository.id);
        let owner =
            permissions.map(|permissions| here.map(|here| permissions.rights(here)).unwrap_or_default());
        let grants = row.grants.as_deref().map(grants);
        let (read, write) = match (&grants, here) {
            (Some(grants), Some(here)) => grants.scope(here),
            _ => (row.scope.read, row.scope.write),
        };
        // A service key's user name is that of who made it; a legacy token works with any.
        let username: Option<Arc<str>> = match (&facts.owner, row.backing.as_deref()) {
            (Some(owner), _) => Some(owner.email.as_str().into()),
            (None, Some("legacy" | PUBLISHER_BACKING)) => None,
            (None, _) => Some(row.created_by.as_str().into()),
        };
        let caller = username.clone().unwrap_or_else(|| row.name.as_str().into());
        let presented = TokenFacts {
            read,
            write,
            format: row.format.as_str().into(),
            revoked_at: row.revoked_at,
            expires_at: row.expires_at,
            ends_at: row.ends_at,
            listed: facts.reaches,
            // An owner who is gone has no rights left.
            owner: owner.or(row.owner.map(|_| Rights::default())),
            username,
        };
        KnownToken { presented, caller, credential: format!("token:{}", row.id).into(), grants }
    }
}

/// The access key that was found, as access is decided on it. Any user name goes with it.
fn key(facts: &Arc<LookUp>) -> Option<Principal> {
    let row = facts.key.as_ref()?;
    let presented = KeyFacts {
        revoked_at: row.revoked_at,
        expires_at: row.expires_at,
        ends_at: row.ends_at,
        given: facts.reaches,
    };
    Some(Principal {
        facts: Arc::clone(facts),
        presented: ResolvedCredential::Key(presented),
        caller: facts.key_owner.as_deref().map(Arc::from),
        credential: Some(format!("access-key:{}", row.id).into()),
        member: None,
        bearer_scope: BearerScope::Direct,
        grants: None,
    })
}

impl Principal {
    /// The same credential as access to one after the other of further repositories is decided on it.
    pub(crate) fn presented_elsewhere(&self) -> PresentedElsewhere {
        let permissions = match (&self.member, &self.facts.owner) {
            (None, _) => None,
            (Some(member), Some(owner)) if Arc::ptr_eq(member, owner) => {
                Known::of(&self.facts).permissions.clone()
            }
            (Some(member), _) => Some(Arc::new(Permissions::read(&member.permissions))),
        };
        PresentedElsewhere { presented: self.presented.clone(), permissions, grants: self.grants.clone() }
    }
}

/// See [`Principal::presented_elsewhere`].
pub(crate) struct PresentedElsewhere {
    presented: ResolvedCredential,
    /// Of the member whose account it is, or whose token.
    permissions: Option<Arc<Permissions>>,
    grants: Option<Grants>,
}

impl PresentedElsewhere {
    /// The credential as access to this repository is decided on it.
    pub(crate) fn to(&mut self, other: &Reached) -> &ResolvedCredential {
        let permissions = self.permissions.as_ref();
        let rights = permissions.map(|permissions| permissions.rights(other.row.id)).unwrap_or_default();
        match &mut self.presented {
            ResolvedCredential::Token(token, _) => {
                token.listed = other.reaches;
                if let Some(grants) = &self.grants {
                    (token.read, token.write) = grants.scope(other.row.id);
                }
                token.owner = token.owner.map(|_| rights);
            }
            ResolvedCredential::Key(key) => key.given = other.reaches,
            ResolvedCredential::Member(of_member) => *of_member = rights,
            ResolvedCredential::Nothing | ResolvedCredential::Unknown => {}
        }
        &self.presented
    }
}

/// What publishers let a token do. What cannot be read lets it do nothing.
fn grants(text: &str) -> Grants {
    Grants::read(text).unwrap_or_else(|error| {
        tracing::error!(%error, "the grants of a token cannot be read");
        Grants::default()
    })
}
