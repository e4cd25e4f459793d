//! Links a provider's identity to a member. A member with a password, or with an identity at
//! another provider, confirms the link with the password.

use packhouse_app::sso::{Link, Refused};
use packhouse_identity::Secret;
use packhouse_store::{MemberId, OrganizationId, SsoIdentity};

use super::{current, groups};
use crate::error::ApiError;
use crate::operations::sessions::{self, SignedIn};
use crate::operations::{Origin, passwords};

/// Identity that this browser is to confirm; `None` if it did not start a sign-in, or started it
/// too long ago.
#[must_use]
pub fn pending(origin: &Origin, sealed: Option<Secret>) -> Option<Link> {
    sealed.and_then(|sealed| Link::open(&origin.app.sealer, &sealed, origin.now))
}

/// Links the identity to its member and signs the member in. A member with a second factor also
/// needs its code. 401 `invalid_credentials`, 401 `second_factor_required`, 403 `member_suspended`,
/// or 429. 401 `sso_refused` if the organization now uses another provider, or the identity belongs
/// to another member.
pub async fn link(
    origin: &Origin,
    link: &Link,
    password: Secret,
    code: Option<&Secret>,
) -> Result<SignedIn, ApiError> {
    let refused = |why| ApiError::from(Refused::Answer(why));
    let gone = || refused("the member was deleted");
    let organization: OrganizationId = link.organization.parse().map_err(|_| gone())?;
    let id: MemberId = link.member.parse().map_err(|_| gone())?;
    if current(origin, organization).await?.issuer != link.issuer {
        return Err(refused("the organization now uses another provider"));
    }
    let store = &origin.app.store;
    let member = store.find_member(organization, id).await?.ok_or_else(gone)?;
    passwords::authenticate(origin, &member, password, code).await?;
    sessions::check_active(origin, &member)?;
    let Link { issuer, subject, email, .. } = link;
    let identity = SsoIdentity { issuer: issuer.clone(), subject: subject.clone(), email: email.clone() };
    let event = origin.event_of(organization, &member.email, "password", "link_sign_in", issuer);
    if !store.bind_sso(&member, &identity, Some(event)).await? {
        return Err(refused(
            "the member with this e-mail address is linked to another account at the provider",
        ));
    }
    let member = match &link.groups {
        Some(groups) => groups::apply(origin, member, groups).await?,
        None => member,
    };
    sessions::begin(origin, member).await
}
