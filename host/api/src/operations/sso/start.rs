//! The way to a provider.

use packhouse_app::sso::{Aim, Flow, Ticket, random};
use packhouse_identity::Secret;
use packhouse_store::OrganizationId;
use packhouse_wire::catalogue;

use super::{current, exchange};
use crate::error::ApiError;
use crate::operations::Origin;

/// The id of no organization.
const NO_ORGANIZATION: OrganizationId = OrganizationId(0);

/// What a sign-in begins with.
#[derive(Clone, Copy, Debug)]
pub enum Beginning<'a> {
    /// An organization's name or id, needed where there are several.
    Organization(Option<&'a str>),
    /// A ticket, for a confirmation.
    Ticket(&'a str),
}

/// A sign-in that was begun.
pub struct Begun {
    /// Where the browser is sent.
    pub address: String,
    /// What the browser keeps until it comes back: it binds the answer to this browser.
    pub flow: Secret,
}

/// What a sign-in is to lead to.
struct Plan {
    organization: OrganizationId,
    aim: Aim,
    /// The path of this host where the browser goes on.
    return_to: Option<String>,
}

/// Begins a sign-in by the organization's provider. `return_to` is the path of this host where the browser goes on. 404 `not_found` for a
/// ticket that is none, and where there is no such organization or no provider; 424 where the provider cannot be used.
pub async fn start(
    origin: &Origin,
    beginning: Beginning<'_>,
    return_to: Option<String>,
) -> Result<Begun, ApiError> {
    let Plan { organization, aim, return_to } = match beginning {
        Beginning::Ticket(ticket) => of_ticket(origin, ticket, return_to)?,
        Beginning::Organization(named) => {
            Plan { organization: find(origin, named).await?, aim: Aim::Session, return_to }
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
    Ok(Begun { address: address.as_str().to_owned(), flow: flow.seal(&origin.app.sealer)? })
}

/// What a ticket is for, and where the browser goes on: to the page that asked for the ticket, where one did.
fn of_ticket(origin: &Origin, ticket: &str, return_to: Option<String>) -> Result<Plan, ApiError> {
    let gone = || ApiError::from(&catalogue::NOT_FOUND);
    let Ticket { organization, member, action, page, .. } =
        Ticket::open(&origin.app.sealer, ticket, origin.now).ok_or_else(gone)?;
    let organization = organization.parse().map_err(|_| gone())?;
    let aim = Aim::Confirmation { member, action, page: page.is_some() };
    Ok(Plan { organization, aim, return_to: page.or(return_to) })
}

/// The organization that is named, or the only one. [`NO_ORGANIZATION`] for an unknown name: it goes on as one without a provider, so that
/// neither the answer nor its time tells which names there are.
async fn find(origin: &Origin, named: Option<&str>) -> Result<OrganizationId, ApiError> {
    let all = origin.app.store.organizations().await?;
    match (named, all.as_slice()) {
        (None, [only]) => Ok(only.id),
        (None, _) => Err(ApiError::invalid("There are several organizations; name one in `organization`.")),
        (Some(named), all) => {
            let found = all.iter().find(|row| row.name == named || row.id.to_string() == named);
            Ok(found.map_or(NO_ORGANIZATION, |row| row.id))
        }
    }
}
