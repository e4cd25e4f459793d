//! The way back from a provider: its answer judged, and what comes of it, a session or a confirmation.

use packhouse_app::sso::{Aim, Flow, Link, Refused, Settings};
use packhouse_identity::Secret;
use packhouse_store::{MemberRow, NewMember, OrganizationId, Refusal, SsoIdentity, SsoMember};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::{current, exchange};
use crate::error::ApiError;
use crate::operations::Origin;
use crate::operations::confirmations::{Confirmed, confirmed};
use crate::operations::sessions::{self, SignedIn};

/// How long a member has to confirm an identity: 10 minutes in ms.
const LINK_MS: i64 = 10 * 60 * 1000;

/// What the provider sends back with the browser.
#[derive(Clone, Copy, Debug)]
pub struct ProviderAnswer<'a> {
    /// Names the sign-in.
    pub state: Option<&'a str>,
    /// What is exchanged for an ID token.
    pub code: Option<&'a str>,
    /// Who answers.
    pub issuer: Option<&'a str>,
    /// Whether nobody signed in.
    pub failed: bool,
}

/// What came of a sign-in.
pub enum Outcome {
    /// A session.
    Session(SignedIn),
    /// The member has to confirm that the identity is theirs: what the browser keeps for that, sealed.
    Link(Secret),
    /// A confirmation.
    Confirmation {
        /// The confirmation.
        confirmed: Confirmed,
        /// Whether a page of this host asked for it.
        page: bool,
    },
}

/// A sign-in that has come to its end.
pub struct Finished {
    /// What came of it.
    pub outcome: Outcome,
    /// The path of this host where the browser goes on.
    pub return_to: Option<String>,
}

/// A sign-in that this browser began, and whose.
struct Signed<'a> {
    organization: OrganizationId,
    flow: &'a Flow,
}

/// Ends a sign-in. `sealed` is what the browser kept. 401 `sso_refused` for all that is not to be believed.
pub async fn finish(
    origin: &Origin,
    sealed: Option<Secret>,
    answer: ProviderAnswer<'_>,
) -> Result<Finished, ApiError> {
    let flow = spend(origin, sealed, answer.state.unwrap_or_default()).await?;
    let organization: OrganizationId =
        flow.organization.parse().map_err(|_| Refused::Answer("the sign-in is of no organization"))?;
    let shown = shown(origin, &Signed { organization, flow: &flow }, answer).await;
    let shown = shown.inspect_err(|error| count(origin, organization, error))?;
    let member = match shown {
        Shown::Member(member) => member,
        Shown::Unbound(member, identity) => {
            let link = link_of(origin, &flow, &member, identity).seal(&origin.app.sealer)?;
            return Ok(Finished { outcome: Outcome::Link(link), return_to: None });
        }
    };
    let outcome = match &flow.aim {
        Aim::Session => Outcome::Session(sessions::begin(origin, member).await?),
        Aim::Confirmation { action, page, .. } => {
            Outcome::Confirmation { confirmed: confirmed(origin, &member, action).await?, page: *page }
        }
    };
    Ok(Finished { outcome, return_to: flow.return_to })
}

/// Whom a provider's answer shows.
enum Shown {
    /// A member.
    Member(MemberRow),
    /// A member by the e-mail address alone, who has to confirm it.
    Unbound(MemberRow, SsoIdentity),
}

fn link_of(origin: &Origin, flow: &Flow, member: &MemberRow, identity: SsoIdentity) -> Link {
    Link {
        organization: member.organization.to_string(),
        member: member.id.to_string(),
        issuer: identity.issuer,
        subject: identity.subject,
        email: member.email.clone(),
        return_to: flow.return_to.clone(),
        expires_at: origin.now + LINK_MS,
    }
}

/// The sign-in that this browser began, used up from now on whatever follows.
async fn spend(origin: &Origin, sealed: Option<Secret>, state: &str) -> Result<Flow, ApiError> {
    let refused = |why| ApiError::from(Refused::Answer(why));
    let flow = sealed.and_then(|sealed| Flow::open(&origin.app.sealer, &sealed, origin.now));
    let flow = flow.ok_or_else(|| refused("this browser began no sign-in, or too long ago"))?;
    if !bool::from(state.as_bytes().ct_eq(flow.state.as_bytes())) {
        return Err(refused("the answer belongs to another sign-in"));
    }
    let sha256: [u8; 32] = Sha256::digest(flow.state.as_bytes()).into();
    if origin.app.store.spend_sso_state(&sha256, flow.ends_at()).await? {
        Ok(flow)
    } else {
        Err(refused("the answer came before"))
    }
}

/// The member whom the provider's answer shows.
async fn shown(origin: &Origin, signed: &Signed<'_>, answer: ProviderAnswer<'_>) -> Result<Shown, ApiError> {
    let Signed { organization, flow } = signed;
    let settings = current(origin, *organization).await?;
    if settings.issuer != flow.issuer || answer.issuer.is_some_and(|named| named != flow.issuer) {
        return Err(Refused::Answer("the answer is another provider's").into());
    }
    if answer.failed {
        return Err(Refused::Answer("the provider says that nobody signed in").into());
    }
    let code = answer.code.ok_or(Refused::Answer("the provider sent no code"))?;
    let (identity, name) = exchange(origin, *organization, &settings)?.identity(flow, code).await?;
    member(origin, &settings, signed, identity, name).await
}

/// Counts a refused answer, for the audit log.
fn count(origin: &Origin, organization: OrganizationId, error: &ApiError) {
    let Some(code) = error.code().filter(|code| code.status == 401) else { return };
    let refusal = Refusal {
        organization: Some(organization),
        actor: String::new(),
        credential: "sso".to_owned(),
        address: origin.address.to_string(),
        code: code.code.to_owned(),
    };
    origin.app.store.refused(refusal, origin.now);
}

/// Whom the identity leads to. A confirmation is for a member who is here already, and for nobody else.
async fn member(
    origin: &Origin,
    settings: &Settings,
    flow: &Signed<'_>,
    identity: SsoIdentity,
    name: String,
) -> Result<Shown, ApiError> {
    let Signed { organization, flow: Flow { aim, .. } } = flow;
    let organization = *organization;
    let refused = |why| ApiError::from(Refused::Answer(why));
    let new = match (aim, &settings.permissions) {
        (Aim::Session, Some(permissions)) if !settings.email_domains.is_empty() => Some(NewMember {
            email: identity.email.clone(),
            name: crate::fields::name(&Some(name.into())).unwrap_or_default(),
            // No password is right.
            password_hash: String::new(),
            permissions: serde_json::to_string(permissions).map_err(anyhow::Error::from)?,
        }),
        _ => None,
    };
    let email = identity.email.as_str();
    let event = origin.event_of(organization, email, "sso", "create_member", email);
    match origin.app.store.sso_member(organization, &identity, new, Some(event)).await? {
        SsoMember::Known(member) | SsoMember::Made(member) => match aim {
            Aim::Confirmation { member: wanted, .. } if *wanted != member.id.to_string() => {
                Err(refused("somebody else signed in"))
            }
            _ => Ok(Shown::Member(member)),
        },
        SsoMember::Unbound(member) => match aim {
            Aim::Session => Ok(Shown::Unbound(member, identity)),
            Aim::Confirmation { .. } => {
                Err(refused("the member has not confirmed this provider yet: sign in by it once"))
            }
        },
        SsoMember::Nobody => Err(refused("no member has this e-mail address")),
        SsoMember::Another => {
            Err(refused("the member of this e-mail address is somebody else at the provider"))
        }
    }
}
