//! An organization's sign-in settings, in the form in which the database stores them.

use packhouse_store::{MemberRow, OrganizationId};
use serde::{Deserialize, Serialize};

use packhouse_identity::permissions::{Permission, Permissions};

/// Sign-in settings. The client secret is sealed, so `Debug` shows only the sealed text.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct SsoSettings {
    /// The provider's address, exactly as the provider's tokens state it.
    pub issuer: String,
    /// This server's client id at the provider.
    pub client_id: String,
    /// The sealed client secret; `None` for a client without one.
    pub sealed_secret: Option<String>,
    /// Domains of the verified e-mail addresses that may sign in, in lower case. If the list is
    /// empty, all domains may.
    pub email_domains: Vec<String>,
    /// Permissions of members that the server creates at their first sign-in. `None` means that it
    /// creates no members.
    pub permissions: Option<Permissions>,
    /// True if members may still sign in with a password.
    pub password_sign_in: bool,
    /// Claim of the ID token that lists the user's groups. `None` means `groups`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups_claim: Option<String>,
}

impl SsoSettings {
    /// Reads stored settings. If this fails, logs the error and returns `None`.
    pub fn read(json: &str) -> Option<SsoSettings> {
        serde_json::from_str(json)
            .inspect_err(|error| tracing::error!(%error, "cannot read the sign-in settings"))
            .ok()
    }
}

impl SsoSettings {
    /// Claim that lists the user's groups unless the settings name another one.
    pub const GROUPS_CLAIM: &'static str = "groups";

    /// Returns the sealing purpose of the client secret.
    pub fn purpose(organization: OrganizationId) -> String {
        format!("sso client secret {organization}")
    }

    /// Returns the name of the claim that lists the user's groups.
    pub fn groups_claim(&self) -> &str {
        self.groups_claim.as_deref().unwrap_or(SsoSettings::GROUPS_CLAIM)
    }

    /// Reports whether this e-mail address, in lower case, may sign in.
    pub fn takes(&self, email: &str) -> bool {
        let domain = email.rsplit_once('@').map_or("", |(_, domain)| domain);
        self.email_domains.is_empty() || self.email_domains.iter().any(|taken| taken == domain)
    }
}

/// Reports whether this member may sign in with a password. Members who manage the organization's
/// account always may. A provider that is unreachable or misconfigured therefore cannot lock
/// everyone out. If the settings cannot be read, only these members may.
pub fn allows_password(settings: Option<&str>, member: &MemberRow) -> bool {
    let Some(json) = settings else { return true };
    SsoSettings::read(json).is_some_and(|settings| settings.password_sign_in)
        || Permissions::of_member(member).holds(Permission::ManageOwnerAccount)
}
