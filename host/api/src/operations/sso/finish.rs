//! Return from a sign-in provider: checks its response, and creates a session or a confirmation.

use packhouse_app::sso::{Aim, Flow, IdentifiedUser, Link, Refused, SsoSettings};
use packhouse_identity::Secret;
use packhouse_store::{MemberRow, NewMember, OrganizationId, Refusal, SsoIdentity, SsoMember};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::{current, exchange, groups};
use crate::error::ApiError;
use crate::operations::Origin;
use crate::operations::confirmations::{NewConfirmation, issue_confirmation};
use crate::operations::sessions::{self, SignedIn};

/// Time that a member has to confirm an identity: 10 minutes in ms.
const LINK_MS: i64 = 10 * 60 * 1000;

/// Response that the browser brings from the provider.
#[derive(Clone, Copy, Debug)]
pub struct ProviderAnswer<'a> {
    /// Id of the sign-in: the OAuth `state`.
    pub state: Option<&'a str>,
    /// Code that is exchanged for an ID token.
    pub code: Option<&'a str>,
    pub issuer: Option<&'a str>,
    /// True if the sign-in failed at the provider.
    pub failed: bool,
}

pub enum SsoOutcome {
    Session(SignedIn),
    /// The member must confirm that the identity is theirs. Contains the sealed value for the
    /// browser's cookie.
    Link(Secret),
    /// New confirmation of an action.
    Confirmation {
        confirmed: NewConfirmation,
        /// True if a page of this host requested it.
        page: bool,
    },
}

pub struct FinishedSignIn {
    pub outcome: SsoOutcome,
    /// Path of this host where the browser continues.
    pub return_to: Option<String>,
}

/// Sign-in that this browser started, with its organization.
struct FlowContext<'a> {
    organization: OrganizationId,
    flow: &'a Flow,
}

/// Completes a sign-in. `sealed` is the value of the browser's cookie. 401 `sso_refused` if the
/// response cannot be trusted.
pub async fn finish(
    origin: &Origin,
    sealed: Option<Secret>,
    answer: ProviderAnswer<'_>,
) -> Result<FinishedSignIn, ApiError> {
    let flow = spend(origin, sealed, answer.state.unwrap_or_default()).await?;
    let organization: OrganizationId = flow
        .organization
        .parse()
        .map_err(|_| Refused::Answer("the sign-in does not belong to an organization"))?;
    let identified = identify(origin, &FlowContext { organization, flow: &flow }, answer).await;
    let identified = identified.inspect_err(|error| count_refusal(origin, organization, error))?;
    let member = match identified {
        IdentifiedMember::Member(member) => member,
        IdentifiedMember::Unbound(member, identity, groups) => {
            let link = link_of(origin, &flow, &member, identity, groups).seal(&origin.app.sealer)?;
            return Ok(FinishedSignIn { outcome: SsoOutcome::Link(link), return_to: None });
        }
    };
    let outcome = match &flow.aim {
        Aim::Session => SsoOutcome::Session(sessions::begin(origin, member).await?),
        Aim::Confirmation { action, page, .. } => {
            let confirmed = issue_confirmation(origin, &member, action).await?;
            SsoOutcome::Confirmation { confirmed, page: *page }
        }
    };
    Ok(FinishedSignIn { outcome, return_to: flow.return_to })
}

/// Member to whom a provider's response leads.
enum IdentifiedMember {
    /// Member who is linked to the identity.
    Member(MemberRow),
    /// Member who only has the same e-mail address and must confirm the identity, with the groups
    /// that the member then follows.
    Unbound(MemberRow, SsoIdentity, Option<Vec<String>>),
}

fn link_of(
    origin: &Origin,
    flow: &Flow,
    member: &MemberRow,
    identity: SsoIdentity,
    groups: Option<Vec<String>>,
) -> Link {
    Link {
        organization: member.organization.to_string(),
        member: member.id.to_string(),
        issuer: identity.issuer,
        subject: identity.subject,
        email: member.email.clone(),
        groups,
        return_to: flow.return_to.clone(),
        expires_at: origin.now + LINK_MS,
    }
}

/// Opens the sign-in that this browser started, and uses it up whatever follows.
async fn spend(origin: &Origin, sealed: Option<Secret>, state: &str) -> Result<Flow, ApiError> {
    let refused = |why| ApiError::from(Refused::Answer(why));
    let flow = sealed.and_then(|sealed| Flow::open(&origin.app.sealer, &sealed, origin.now));
    let flow =
        flow.ok_or_else(|| refused("this browser did not start a sign-in, or started it too long ago"))?;
    if !bool::from(state.as_bytes().ct_eq(flow.state.as_bytes())) {
        return Err(refused("the provider's response belongs to another sign-in"));
    }
    let sha256: [u8; 32] = Sha256::digest(flow.state.as_bytes()).into();
    if origin.app.store.spend_sso_state(&sha256, flow.ends_at()).await? {
        Ok(flow)
    } else {
        Err(refused("the provider's response was used already"))
    }
}

/// Checks the provider's response and finds its member.
async fn identify(
    origin: &Origin,
    context: &FlowContext<'_>,
    answer: ProviderAnswer<'_>,
) -> Result<IdentifiedMember, ApiError> {
    let FlowContext { organization, flow } = context;
    let settings = current(origin, *organization).await?;
    if settings.issuer != flow.issuer || answer.issuer.is_some_and(|named| named != flow.issuer) {
        return Err(Refused::Answer("the response comes from another provider").into());
    }
    if answer.failed {
        return Err(Refused::Answer("the provider reports that the user did not sign in").into());
    }
    let code = answer.code.ok_or(Refused::Answer("the provider did not send a code"))?;
    let user = exchange(origin, *organization, &settings)?.identity(flow, code).await?;
    member(origin, &settings, context, user).await
}

/// Counts a refused response for the audit log.
fn count_refusal(origin: &Origin, organization: OrganizationId, error: &ApiError) {
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

/// Finds the member of an identity, or creates one. The member then follows the provider's groups.
/// A confirmation is only for an existing member. 403 `member_suspended`.
async fn member(
    origin: &Origin,
    settings: &SsoSettings,
    flow: &FlowContext<'_>,
    user: IdentifiedUser,
) -> Result<IdentifiedMember, ApiError> {
    let IdentifiedUser { identity, name, groups: claim } = user;
    let FlowContext { organization, flow: Flow { aim, .. } } = flow;
    let organization = *organization;
    let refused = |why| ApiError::from(Refused::Answer(why));
    let new = match (aim, &settings.permissions) {
        (Aim::Session, Some(permissions)) if !settings.email_domains.is_empty() => Some(NewMember {
            email: identity.email.clone(),
            name: crate::fields::name(&Some(name.into())).unwrap_or_default(),
            // An empty hash matches no password.
            password_hash: String::new(),
            permissions: serde_json::to_string(permissions).map_err(anyhow::Error::from)?,
        }),
        _ => None,
    };
    let email = identity.email.as_str();
    let event = origin.event_of(organization, email, "sso", "create_member", email);
    match origin.app.store.sso_member(organization, &identity, new, Some(event)).await? {
        SsoMember::Known(member) | SsoMember::Made(member) => match aim {
            Aim::Confirmation { member: expected, .. } if *expected != member.id.to_string() => {
                Err(refused("another member signed in"))
            }
            _ => {
                sessions::check_active(origin, &member)?;
                Ok(IdentifiedMember::Member(groups::follow(origin, settings, member, &claim).await?))
            }
        },
        SsoMember::Unbound(member) => match aim {
            Aim::Session => {
                let groups = groups::for_cookie(origin, organization, claim).await?;
                Ok(IdentifiedMember::Unbound(member, identity, groups))
            }
            Aim::Confirmation { .. } => {
                Err(refused("the member has not confirmed this provider yet; sign in through it once"))
            }
        },
        SsoMember::Nobody => Err(refused("no member has this e-mail address")),
        SsoMember::Another => {
            Err(refused("the member with this e-mail address is linked to another account at the provider"))
        }
    }
}
