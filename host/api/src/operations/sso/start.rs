//! Start of a sign-in at a provider.

use packhouse_app::sso::{Aim, Flow, Ticket, random};
use packhouse_identity::Secret;
use packhouse_store::OrganizationId;
use packhouse_wire::catalogue;

use super::{current, exchange};
use crate::error::ApiError;
use crate::operations::Origin;

/// Id that no organization has.
const NO_ORGANIZATION: OrganizationId = OrganizationId(0);

#[derive(Clone, Copy, Debug)]
pub enum SignInStart<'a> {
    /// Name or id of the organization, required if there are several.
    Organization(Option<&'a str>),
    Ticket(&'a str),
}

pub struct StartedSignIn {
    /// Address to which the browser is sent.
    pub address: String,
    /// Sealed value for the browser's cookie. It binds the provider's response to this browser.
    pub flow: Secret,
}

struct SignInPlan {
    organization: OrganizationId,
    aim: Aim,
    /// Path of this host where the browser continues.
    return_to: Option<String>,
}

/// Starts a sign-in at the organization's provider. `return_to` is the path of this host where the
/// browser continues. 404 `not_found` for an invalid ticket, an unknown organization, or one
/// without a provider; 424 if the provider cannot be used.
pub async fn start(
    origin: &Origin,
    beginning: SignInStart<'_>,
    return_to: Option<String>,
) -> Result<StartedSignIn, ApiError> {
    let SignInPlan { organization, aim, return_to } = match beginning {
        SignInStart::Ticket(ticket) => of_ticket(origin, ticket, return_to)?,
        SignInStart::Organization(named) => {
            SignInPlan { organization: find(origin, named).await?, aim: Aim::Session, return_to }
        }
    };
    let settings = current(origin, organization).await?;
    let flow = Flow {
        organization: organization.to_string(),
        issuer: settings.issuer.clone(),
        state: random(),
        nonce: random(),
        verifier: random(),
        return_to,
        aim,
        began_at: origin.now,
    };
    let address = exchange(origin, organization, &settings)?.address(&flow).await?;
    Ok(StartedSignIn { address: address.as_str().to_owned(), flow: flow.seal(&origin.app.sealer)? })
}

/// Opens a ticket. The browser continues at the page that requested the ticket, if there is one.
fn of_ticket(origin: &Origin, ticket: &str, return_to: Option<String>) -> Result<SignInPlan, ApiError> {
    let gone = || ApiError::from(&catalogue::NOT_FOUND);
    let Ticket { organization, member, action, page, .. } =
        Ticket::open(&origin.app.sealer, ticket, origin.now).ok_or_else(gone)?;
    let organization = organization.parse().map_err(|_| gone())?;
    let aim = Aim::Confirmation { member, action, page: page.is_some() };
    Ok(SignInPlan { organization, aim, return_to: page.or(return_to) })
}

/// Finds the named organization, or the only one. An unknown name yields [`NO_ORGANIZATION`], which
/// is handled like an organization without a provider. So neither the response nor its time reveals
/// which names exist.
async fn find(origin: &Origin, named: Option<&str>) -> Result<OrganizationId, ApiError> {
    let all = origin.app.store.organizations().await?;
    match (named, all.as_slice()) {
        (None, [only]) => Ok(only.id),
        (None, _) => {
            Err(ApiError::invalid("This server has several organizations; name one in `organization`."))
        }
        (Some(named), all) => {
            let found = all.iter().find(|row| row.name == named || row.id.to_string() == named);
            Ok(found.map_or(NO_ORGANIZATION, |row| row.id))
        }
    }
}
