//! A provider's identity that becomes a member's: who has a password, or is known at another provider, confirms it by the password.

use packhouse_app::sso::{Link, Refused};
use packhouse_identity::Secret;
use packhouse_store::{MemberId, OrganizationId, SsoIdentity};

use super::current;
use crate::error::ApiError;
use crate::operations::sessions::{self, SignedIn};
use crate::operations::{Origin, passwords};

/// The identity that this browser is to confirm; none where it began no sign-in, or too long ago.
#[must_use]
pub fn pending(origin: &Origin, sealed: Option<Secret>) -> Option<Link> {
    sealed.and_then(|sealed| Link::open(&origin.app.sealer, &sealed, origin.now))
}

/// Binds the identity to its member and signs the member in. 401 `invalid_credentials` for a wrong password, or 429; 401 `sso_refused`
/// where the organization has another provider by now, or the identity is somebody else's.
pub async fn link(origin: &Origin, link: &Link, password: Secret) -> Result<SignedIn, ApiError> {
    let refused = |why| ApiError::from(Refused::Answer(why));
    let gone = || refused("the member is gone");
    let organization: OrganizationId = link.organization.parse().map_err(|_| gone())?;
    let id: MemberId = link.member.parse().map_err(|_| gone())?;
    if current(origin, organization).await?.issuer != link.issuer {
        return Err(refused("the organization has another provider by now"));
    }
    let store = &origin.app.store;
    let member = store.find_member(organization, id).await?.ok_or_else(gone)?;
    passwords::check(origin, &member.email, password, std::slice::from_ref(&member)).await?;
    let Link { issuer, subject, email, .. } = link;
    let identity = SsoIdentity { issuer: issuer.clone(), subject: subject.clone(), email: email.clone() };
    let event = origin.event_of(organization, &member.email, "password", "link_sign_in", issuer);
    if !store.bind_sso(&member, &identity, Some(event)).await? {
        return Err(refused("the member of this e-mail address is somebody else at the provider"));
    }
    sessions::begin(origin, member).await
}
