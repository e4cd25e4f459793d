//! Looks up a credential and a repository in one statement. Later steps see only the hash of the
//! secret and its row, never the secret.

use std::net::IpAddr;
use std::sync::Arc;

use packhouse_store::{
    LookUp, MemberId, MemberRow, OrganizationId, PUBLISHER_BACKING, Reached, RepositoryRow, TokenRow,
};

use crate::bearer_scope::BearerScope;
use crate::credential::PresentedCredential;
use crate::error_response::HttpError;
use crate::password_sign_in::{self, PasswordOutcome, SignIn};
use packhouse_app::App;
use packhouse_app::publishers::{IdTokenRefusal, IdTokenRequest, PublisherReach};
use packhouse_app::sso;
use packhouse_identity::access::{
    CredentialState, KeyFacts, ResolvedCredential, Rights, SUSPENDED, TokenFacts,
};
use packhouse_identity::grants::{Grants, id_token_fingerprint};
use packhouse_identity::permissions::Permissions;
use packhouse_identity::{self as identity, BearerHolder, Secret};

/// The caller of a request, and the rows of its credential and repository.
pub(crate) struct Principal {
    pub facts: Arc<LookUp>,
    /// The credential, in the form that access decisions use.
    pub presented: ResolvedCredential,
    /// Name of the caller that plugins may see.
    pub caller: Option<Arc<str>>,
    /// Name of the credential in the log. It never contains a part of the secret.
    pub credential: Option<Arc<str>>,
    /// Member who signed in or owns the token.
    pub member: Option<Arc<MemberRow>>,
    /// Scopes of the bearer token in which the credential arrived.
    pub bearer_scope: BearerScope,
    /// Packages that trusted publishers grant, if one of them issued the token.
    pub grants: Option<Grants>,
}

/// The credential and repository to look up.
pub(crate) struct IdentityQuery<'a> {
    pub organization: OrganizationId,
    /// Name of the repository to look up in the same statement; empty for none.
    pub repository: &'a str,
    pub credential: PresentedCredential,
    pub peer: IpAddr,
    /// Format whose token service issues the bearer tokens that are accepted here. `None` if no
    /// bearer token is accepted.
    pub bearer_format: Option<&'a str>,
    /// URL with which generated links begin. Its host is the audience of ID tokens.
    pub own_address: &'a str,
    pub request_id: &'a str,
}

/// Looks up a repository and a credential. Fails with 429 after too many wrong passwords, and with
/// 503 if the store cannot be read.
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
        return Ok(unidentified(facts, presented));
    };
    // A build with an expired token repeats its request often. This is not password guessing and
    // must not block the sign-in of the token's owner.
    if identity::says_token(password.reveal()) {
        return Ok(unidentified(facts, ResolvedCredential::Unknown));
    }
    let attempt = SignIn { organization, username: &username, password, peer };
    let outcome = Box::pin(password_sign_in::sign_in(app, attempt)).await?;
    Ok(match outcome {
        PasswordOutcome::Right(member) if sso::allows_password(facts.sign_in.as_deref(), &member) => {
            account(facts, *member)
        }
        PasswordOutcome::NeedsToken(reason) => unidentified(facts, ResolvedCredential::Refused(reason)),
        PasswordOutcome::Right(_) | PasswordOutcome::Wrong => {
            unidentified(facts, ResolvedCredential::Unknown)
        }
    })
}

/// Identifies the caller by an ID token. After the first check, the server finds the token by its
/// hash until it expires. A text that looks like an ID token can also be a token imported from
/// another server. An ID token of an unknown issuer is treated as an unknown credential.
async fn by_id_token(app: &App, query: IdentityQuery<'_>, id_token: &Secret) -> Result<Principal, HttpError> {
    let IdentityQuery { organization, repository, credential, peer, own_address, request_id, .. } = query;
    let hash = id_token_fingerprint(organization, id_token.reveal());
    let mut facts = app.store.look_up(organization, repository, Some(&hash)).await?;
    if facts.token.is_none()
        && let Some(fingerprint) = credential.fingerprint()
    {
        let imported = app.store.look_up(organization, repository, Some(&fingerprint)).await?;
        if let Some(principal) = recognized(&imported, &credential) {
            return Ok(principal);
        }
    }
    if !is_known_here(&facts, app.store.now_ms()) && !*app.live.read_only.get() {
        let format = facts.repository.as_ref().map(|row| row.format.as_str());
        let audiences = app.id_token_audiences(own_address, format);
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
    Ok(recognized(&facts, &credential).unwrap_or_else(|| unidentified(facts, ResolvedCredential::Unknown)))
}

/// Reports whether the ID token was checked before and a new check is pointless. If the token does
/// not reach the repository or was revoked, a new check is useful: another publisher may trust its
/// workflow by now.
fn is_known_here(facts: &LookUp, now: i64) -> bool {
    let works = |token: &TokenRow| {
        CredentialState::at(now, token.revoked_at, token.expires_at, token.ends_at).works()
    };
    facts.token.as_ref().is_some_and(works) && (facts.reaches || facts.repository.is_none())
}

/// Identifies the caller by a bearer token. Looks up the credential for which the token was issued.
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
        Some(BearerHolder::Token(hash)) => {
            hex::decode(hash).ok().and_then(|hash| <[u8; 32]>::try_from(hash).ok())
        }
        _ => None,
    };
    let facts = app.store.look_up(organization, repository, fingerprint.as_ref()).await?;
    let principal = match holder {
        None => None,
        Some(BearerHolder::Nobody) => Some(unidentified(facts.clone(), ResolvedCredential::Nothing)),
        Some(BearerHolder::Token(_)) => {
            token(&facts, &PresentedCredential::Bearer(secret.clone())).or_else(|| key(&facts))
        }
        Some(holder @ BearerHolder::Member(id, _)) => {
            let member = app.store.find_member(organization, MemberId(*id)).await?;
            let still = |member: &MemberRow| {
                holder.is(member) && sso::allows_password(facts.sign_in.as_deref(), member)
            };
            let member = member.filter(still);
            let needs_token = match &member {
                // The password may need a second factor since the bearer was issued.
                Some(member) => {
                    let factor = app.store.password_factor(member.id).await?;
                    password_sign_in::needs_token(factor).is_some()
                }
                None => false,
            };
            member.filter(|_| !needs_token).map(|member| account(facts.clone(), member))
        }
    };
    Ok(match (principal, bearer) {
        (Some(principal), Some(bearer)) => {
            Principal { bearer_scope: BearerScope::Granted(bearer.grants), ..principal }
        }
        _ => Principal {
            bearer_scope: BearerScope::Refused,
            ..unidentified(facts, ResolvedCredential::Unknown)
        },
    })
}

/// Maximum number of tokens in a request whose ids the server looks up.
const MAX_TOKENS: usize = 4;

/// Returns the tokens of this server among the texts of a path or a query, each with its id.
/// Plugins see only the id.
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

fn unidentified(facts: Arc<LookUp>, presented: ResolvedCredential) -> Principal {
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

/// Returns the principal of a member's own account. The account of a suspended member is refused.
pub(super) fn account(facts: Arc<LookUp>, member: MemberRow) -> Principal {
    let rights = |row: &RepositoryRow| Permissions::of_member(&member).rights(row.id, &row.name);
    let presented = if member.active {
        ResolvedCredential::Member(facts.repository.as_ref().map(rights).unwrap_or_default())
    } else {
        ResolvedCredential::Refused(SUSPENDED)
    };
    Principal {
        caller: Some(member.email.as_str().into()),
        credential: Some(format!("member:{}", member.id).into()),
        member: Some(Arc::new(member)),
        ..unidentified(facts, presented)
    }
}

/// Returns the principal of the token or access key in these facts.
pub(super) fn recognized(facts: &Arc<LookUp>, credential: &PresentedCredential) -> Option<Principal> {
    token(facts, credential).or_else(|| key(facts))
}

/// Returns the principal of the token in these facts.
fn token(facts: &Arc<LookUp>, credential: &PresentedCredential) -> Option<Principal> {
    facts.token.as_ref()?;
    let known = DerivedFacts::of(facts);
    let DerivedToken { presented, caller, credential: name, grants } = known.token.as_ref()?;
    let username = || match credential {
        PresentedCredential::Basic { username, .. } => Some(username.clone()),
        _ => None,
    };
    let is_suspended = facts.owner.as_ref().is_some_and(|owner| !owner.active);
    Some(Principal {
        facts: Arc::clone(facts),
        presented: if is_suspended {
            ResolvedCredential::Refused(SUSPENDED)
        } else {
            ResolvedCredential::Token(presented.clone(), username())
        },
        caller: Some(Arc::clone(caller)),
        credential: Some(Arc::clone(name)),
        member: facts.owner.clone(),
        bearer_scope: BearerScope::Direct,
        grants: grants.clone(),
    })
}

/// Facts that are derived from a look-up. They are the same for all requests with this look-up, and
/// expensive to compute.
struct DerivedFacts {
    /// Effective permissions of the token's owner.
    permissions: Option<Arc<Permissions>>,
    token: Option<DerivedToken>,
}

/// The fields of [`Principal`] that a token determines.
struct DerivedToken {
    presented: TokenFacts,
    caller: Arc<str>,
    credential: Arc<str>,
    grants: Option<Grants>,
}

impl DerivedFacts {
    fn of(facts: &LookUp) -> Arc<DerivedFacts> {
        facts.derived.get_or_make(|| {
            let permissions = facts.owner.as_ref().map(|owner| Arc::new(Permissions::of_member(owner)));
            let token = facts.token.as_ref().map(|row| DerivedToken::of(row, facts, permissions.as_deref()));
            Arc::new(DerivedFacts { permissions, token })
        })
    }
}

impl DerivedToken {
    /// Derives the facts about a token. `permissions` are those of the token's owner.
    fn of(row: &TokenRow, facts: &LookUp, permissions: Option<&Permissions>) -> DerivedToken {
        let here = facts.repository.as_ref();
        let rights = |permissions: &Permissions| here.map(|here| permissions.rights(here.id, &here.name));
        let owner = permissions.map(|permissions| rights(permissions).unwrap_or_default());
        let grants = row.grants.as_deref().map(grants);
        let (read, write) = match (&grants, here) {
            (Some(grants), Some(here)) => grants.scope(here.id),
            _ => (row.scope.read, row.scope.write),
        };
        // The user name of a service key is that of its creator. A legacy token accepts any user
        // name.
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
            // If the owner's account no longer exists, the owner has no rights.
            owner: owner.or(row.owner.map(|_| Rights::default())),
            username,
        };
        DerivedToken { presented, caller, credential: format!("token:{}", row.id).into(), grants }
    }
}

/// Returns the principal of the access key in these facts. The key accepts any user name.
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
    /// Returns the credential, for access decisions about further repositories.
    pub(crate) fn presented_elsewhere(&self) -> PresentedElsewhere {
        PresentedElsewhere {
            presented: self.presented.clone(),
            permissions: self.permissions(),
            grants: self.grants.clone(),
        }
    }

    /// Returns the effective permissions of the member who signed in or owns the token.
    pub(crate) fn permissions(&self) -> Option<Arc<Permissions>> {
        match (&self.member, &self.facts.owner) {
            (None, _) => None,
            (Some(member), Some(owner)) if Arc::ptr_eq(member, owner) => {
                DerivedFacts::of(&self.facts).permissions.clone()
            }
            (Some(member), _) => Some(Arc::new(Permissions::of_member(member))),
        }
    }
}

/// A credential for access decisions about further repositories. See
/// [`Principal::presented_elsewhere`].
pub(crate) struct PresentedElsewhere {
    presented: ResolvedCredential,
    /// Permissions of the member who signed in or owns the token.
    permissions: Option<Arc<Permissions>>,
    grants: Option<Grants>,
}

impl PresentedElsewhere {
    /// Returns the credential, for the access decision about this repository.
    pub(crate) fn to(&mut self, other: &Reached) -> &ResolvedCredential {
        let permissions = self.permissions.as_ref();
        let rights = |permissions: &Arc<Permissions>| permissions.rights(other.row.id, &other.row.name);
        let rights = permissions.map(rights).unwrap_or_default();
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
            ResolvedCredential::Nothing | ResolvedCredential::Unknown | ResolvedCredential::Refused(_) => {}
        }
        &self.presented
    }
}

/// Parses the grants of a trusted publisher's token. Unreadable grants permit nothing.
fn grants(text: &str) -> Grants {
    Grants::read(text).unwrap_or_else(|error| {
        tracing::error!(%error, "cannot read the grants of a token");
        Grants::default()
    })
}
