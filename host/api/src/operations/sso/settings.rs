//! Sign-in settings of an organization. The client secret can be set and is never returned. All
//! operations need manage-owner-account.

use std::sync::Arc;

use packhouse_app::mail::{self, Letter};
use packhouse_app::sso::SsoSettings;
use packhouse_identity::Secret;
use packhouse_identity::permissions::Permission::ManageOwnerAccount;
use packhouse_identity::permissions::Permissions;
use packhouse_store::MemberRow;
use packhouse_wire::catalogue;

use super::{current, groups};
use crate::error::ApiError;
use crate::operations::confirmations::{Action, Confirmation};
use crate::operations::{Actor, members};

/// Maximum number of members among whom the owners to notify are searched.
const MAX_MEMBERS: u32 = 10_000;

#[derive(Debug)]
pub struct SettingsRequest {
    /// Address of the provider, exactly as in its ID tokens.
    pub issuer: String,
    /// Client id of this server at the provider.
    pub client_id: String,
    /// Client secret. `None` keeps the present one while issuer and client are unchanged, and
    /// removes it otherwise.
    pub client_secret: Option<Secret>,
    /// Domains whose verified e-mail addresses may sign in; if empty, only those of members.
    pub email_domains: Vec<String>,
    /// Permissions of members who are created at their first sign-in, without repetition; `None` if
    /// no members are created.
    pub permissions: Option<Permissions>,
    /// True if members may still sign in with a password.
    pub password_sign_in: bool,
    /// Claim of the ID token that lists the user's groups; `None` for `groups`.
    pub groups_claim: Option<String>,
}

impl SettingsRequest {
    /// Returns whether issuer and client are those of these settings.
    fn names_client_of(&self, known: &SsoSettings) -> bool {
        known.issuer == self.issuer && known.client_id == self.client_id
    }

    fn groups_claim(&self) -> &str {
        self.groups_claim.as_deref().unwrap_or(SsoSettings::GROUPS_CLAIM)
    }
}

/// Returns the settings of the actor's organization. 404 `not_found` if it has none.
pub async fn show(actor: &Actor) -> Result<SsoSettings, ApiError> {
    actor.needs(ManageOwnerAccount)?;
    current(actor, actor.organization()).await
}

/// Sets how members of the organization sign in. The server contacts the provider only when a
/// member signs in. 403 `role_mismatch` if a new member would hold more than the actor, or if
/// another provider than before may sign in a member, or fill a team, that holds more than the
/// actor.
pub async fn set(
    actor: &Actor,
    confirmation: &Confirmation,
    request: SettingsRequest,
) -> Result<SsoSettings, ApiError> {
    confirmation.judge(actor, Action::ChangeSignIn).await?;
    actor.needs(ManageOwnerAccount)?;
    let present = actor.app.store.sso_settings(actor.organization()).await?;
    let present = present.as_deref().and_then(SsoSettings::read);
    let same_client = present.filter(|known| request.names_client_of(known));
    if same_client.is_none() {
        may_sign_in_members(actor).await?;
    }
    if same_client.as_ref().is_none_or(|known| request.groups_claim() != known.groups_claim()) {
        may_fill_teams(actor).await?;
    }
    if let Some(permissions) = &request.permissions {
        actor.judge(actor.covers(permissions).await?, &catalogue::ROLE_MISMATCH)?;
        members::servers_understand(actor, permissions).await?;
        members::repositories_exist(actor, permissions).await?;
    }
    let sealed_secret = match &request.client_secret {
        Some(secret) => Some(seal(actor, secret)?),
        // The present secret must not be sent to another address.
        None => same_client.and_then(|known| known.sealed_secret),
    };
    let settings = SsoSettings {
        issuer: request.issuer,
        client_id: request.client_id,
        sealed_secret,
        email_domains: request.email_domains,
        permissions: request.permissions,
        password_sign_in: request.password_sign_in,
        groups_claim: request.groups_claim,
    };
    let json = serde_json::to_string(&settings).map_err(anyhow::Error::from)?;
    let mails = mails(actor, Some(&settings.issuer)).await?;
    let event = actor.event("set_sso", settings.issuer.clone());
    actor.app.store.set_sso_settings(actor.organization(), &json, Some(event)).await?;
    send(actor, mails);
    Ok(settings)
}

/// Removes the settings: members sign in with a password only. Sessions stay valid. 404 `not_found`
/// without settings.
pub async fn remove(actor: &Actor, confirmation: &Confirmation) -> Result<(), ApiError> {
    confirmation.judge(actor, Action::ChangeSignIn).await?;
    actor.needs(ManageOwnerAccount)?;
    let mails = mails(actor, None).await?;
    let event = actor.event("delete_sso", "");
    if actor.app.store.delete_sso_settings(actor.organization(), Some(event)).await? {
        send(actor, mails);
        Ok(())
    } else {
        Err(ApiError::from(&catalogue::NOT_FOUND))
    }
}

/// E-mails that tell the owners how members sign in from now on, and who changed it. They are
/// prepared before the change, so that a completed change is not answered with an error.
async fn mails(actor: &Actor, issuer: Option<&str>) -> Result<Vec<Letter>, ApiError> {
    let members = actor.app.store.list_members(actor.organization(), None, MAX_MEMBERS).await?;
    let owns = |row: &&MemberRow| Permissions::of_member(row).holds(ManageOwnerAccount);
    let (api_url, by) = (actor.app.api_url(), &actor.member().email);
    let mail_to = |owner: &MemberRow| mail::sign_in_changed(&owner.email, &api_url, issuer, by);
    Ok(members.iter().filter(owns).map(mail_to).collect())
}

/// Sends e-mails in the background, so that a slow mail server does not delay the response.
fn send(actor: &Actor, mails: Vec<Letter>) {
    let app = Arc::clone(&actor.app);
    tokio::spawn(async move {
        for letter in mails {
            app.mail.send(letter).await;
        }
    });
}

fn seal(actor: &Actor, secret: &Secret) -> Result<String, ApiError> {
    let sealed = actor.app.sealer.seal(&SsoSettings::purpose(actor.organization()), secret);
    sealed.map_err(|error| ApiError::Internal(error.into()))
}

/// Checks that the actor may manage all members whom another provider could sign in without a
/// confirmation: those that SCIM created and who have not signed in yet. 403 `role_mismatch`.
async fn may_sign_in_members(actor: &Actor) -> Result<(), ApiError> {
    for member in actor.app.store.members_without_sign_in(actor.organization()).await? {
        let covers = actor.covers(&Permissions::of_member(&member)).await?;
        actor.judge(covers, &catalogue::ROLE_MISMATCH)?;
    }
    Ok(())
}

/// Checks that the actor holds the permissions of all teams that name groups. Another provider,
/// client or claim decides anew who is in these groups, so this is a grant as in a team itself. 403
/// `role_mismatch`.
async fn may_fill_teams(actor: &Actor) -> Result<(), ApiError> {
    for team in groups::teams_with_groups(actor, actor.organization()).await? {
        let covers = actor.covers(&Permissions::read(&team.permissions)).await?;
        actor.judge(covers, &catalogue::ROLE_MISMATCH)?;
    }
    Ok(())
}
