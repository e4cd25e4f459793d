//! An organization's sign-in settings. The client's secret goes in and never comes out. All of it needs manage-owner-account.

use std::sync::Arc;

use packhouse_app::mail::{self, Letter};
use packhouse_app::sso::Settings;
use packhouse_identity::Secret;
use packhouse_identity::permissions::Permission::ManageOwnerAccount;
use packhouse_identity::permissions::Permissions;
use packhouse_store::MemberRow;
use packhouse_wire::catalogue;

use super::current;
use crate::error::ApiError;
use crate::operations::confirmations::{Action, Confirmation};
use crate::operations::{Actor, members};

/// Members among whom owners are looked for who are told of a change.
const TOLD_OF: u32 = 10_000;

/// The settings that are wanted.
#[derive(Debug)]
pub struct SettingsRequest {
    /// The provider's address, exactly as its ID tokens name it.
    pub issuer: String,
    /// This server's name at the provider.
    pub client_id: String,
    /// None: it stays as it is while issuer and client stay, and there is none otherwise.
    pub client_secret: Option<Secret>,
    /// Whose verified e-mail addresses may sign in; where there are none, those of members alone.
    pub email_domains: Vec<String>,
    /// What a member may do who is made at the first sign-in, each thing once; none: nobody is made.
    pub permissions: Option<Permissions>,
    /// Whether members may still sign in by password.
    pub password_sign_in: bool,
}

/// The settings of the actor's organization: 404 `not_found` where it has none.
pub async fn show(actor: &Actor) -> Result<Settings, ApiError> {
    actor.needs(ManageOwnerAccount)?;
    current(actor, actor.organization()).await
}

/// Sets how members of the organization sign in. The provider is not asked before somebody signs in. 403 `role_mismatch` where a new
/// member would hold more than the actor.
pub async fn set(
    actor: &Actor,
    confirmation: &Confirmation,
    request: SettingsRequest,
) -> Result<Settings, ApiError> {
    confirmation.judge(actor, Action::ChangeSignIn).await?;
    actor.needs(ManageOwnerAccount)?;
    if let Some(permissions) = &request.permissions {
        actor.judge(actor.permissions().covers(permissions), &catalogue::ROLE_MISMATCH)?;
        members::repositories_exist(actor, permissions).await?;
    }
    let sealed_secret = match &request.client_secret {
        Some(secret) => Some(seal(actor, secret)?),
        None => kept(actor, &request).await?,
    };
    let SettingsRequest { issuer, client_id, email_domains, permissions, password_sign_in, .. } = request;
    let settings =
        Settings { issuer, client_id, sealed_secret, email_domains, permissions, password_sign_in };
    let json = serde_json::to_string(&settings).map_err(anyhow::Error::from)?;
    let letters = letters(actor, Some(&settings.issuer)).await?;
    let event = actor.event("set_sso", settings.issuer.clone());
    actor.app.store.set_sso_settings(actor.organization(), &json, Some(event)).await?;
    send(actor, letters);
    Ok(settings)
}

/// Takes the settings away: members sign in by password alone. Sessions stay. 404 `not_found` where there are none.
pub async fn remove(actor: &Actor, confirmation: &Confirmation) -> Result<(), ApiError> {
    confirmation.judge(actor, Action::ChangeSignIn).await?;
    actor.needs(ManageOwnerAccount)?;
    let letters = letters(actor, None).await?;
    let event = actor.event("delete_sso", "");
    if actor.app.store.delete_sso_settings(actor.organization(), Some(event)).await? {
        send(actor, letters);
        Ok(())
    } else {
        Err(ApiError::from(&catalogue::NOT_FOUND))
    }
}

/// Letters that tell the account's owners how members sign in from now on, and who changed it. They are made before the change: a change
/// that was made is not answered with an error.
async fn letters(actor: &Actor, issuer: Option<&str>) -> Result<Vec<Letter>, ApiError> {
    let members = actor.app.store.list_members(actor.organization(), None, TOLD_OF).await?;
    let owns = |row: &&MemberRow| Permissions::read(&row.permissions).holds(ManageOwnerAccount);
    let (api_url, by) = (actor.app.api_url(), &actor.member().email);
    let letter = |owner: &MemberRow| mail::sign_in_changed(&owner.email, &api_url, issuer, by);
    Ok(members.iter().filter(owns).map(letter).collect())
}

/// Sends letters. A mail server that takes its time holds nobody up.
fn send(actor: &Actor, letters: Vec<Letter>) {
    let app = Arc::clone(&actor.app);
    tokio::spawn(async move {
        for letter in letters {
            app.mail.send(letter).await;
        }
    });
}

fn seal(actor: &Actor, secret: &Secret) -> Result<String, ApiError> {
    let sealed = actor.app.sealer.seal(&Settings::purpose(actor.organization()), secret);
    sealed.map_err(|error| ApiError::Internal(error.into()))
}

/// The secret that is there, as long as it stays between the same two: nobody sends it to another address.
async fn kept(actor: &Actor, request: &SettingsRequest) -> Result<Option<String>, ApiError> {
    let json = actor.app.store.sso_settings(actor.organization()).await?;
    let settings = json.as_deref().and_then(Settings::read);
    let same =
        settings.filter(|known| known.issuer == request.issuer && known.client_id == request.client_id);
    Ok(same.and_then(|known| known.sealed_secret))
}
