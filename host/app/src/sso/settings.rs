//! An organization's sign-in settings, as the database keeps them.

use packhouse_store::{MemberRow, OrganizationId};
use serde::{Deserialize, Serialize};

use packhouse_identity::permissions::{Permission, Permissions};

/// Sign-in settings. The client's secret is sealed; its `Debug` is the sealed text.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Settings {
    /// The provider's address, as its tokens name it.
    pub issuer: String,
    /// What the provider knows this server by.
    pub client_id: String,
    /// Sealed; none for a client without one.
    pub sealed_secret: Option<String>,
    /// Whose verified addresses may sign in, in lower case; any member's where there are none.
    pub email_domains: Vec<String>,
    /// What a member may do who is made at the first sign-in; none: nobody is made.
    pub permissions: Option<Permissions>,
    /// Whether members may still sign in by password.
    pub password_sign_in: bool,
}

impl Settings {
    /// As the database keeps them; none where they cannot be read, which is told in the log.
    pub fn read(json: &str) -> Option<Settings> {
        serde_json::from_str(json)
            .inspect_err(|error| tracing::error!(%error, "sign-in settings make no sense"))
            .ok()
    }
}

impl Settings {
    /// For what the client's secret is sealed.
    pub fn purpose(organization: OrganizationId) -> String {
        format!("sso client secret {organization}")
    }

    /// Whether this address, in lower case, may sign in.
    pub fn takes(&self, email: &str) -> bool {
        let domain = email.rsplit_once('@').map_or("", |(_, domain)| domain);
        self.email_domains.is_empty() || self.email_domains.iter().any(|taken| taken == domain)
    }
}

/// Whether this member may sign in by password. Who manages the organization's account always may, so that a provider that is
/// gone or set up wrongly locks nobody out for good. Settings that cannot be read allow nobody else.
pub fn allows_password(settings: Option<&str>, member: &MemberRow) -> bool {
    let Some(json) = settings else { return true };
    Settings::read(json).is_some_and(|settings| settings.password_sign_in)
        || Permissions::read(&member.permissions).holds(Permission::ManageOwnerAccount)
}
