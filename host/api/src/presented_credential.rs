//! Counts refused credentials of the API for the audit log.

use packhouse_store::{OrganizationId, Refusal, now_ms};

use super::error::ApiError;
use packhouse_app::App;

/// Credential that a request presents, for counting its refusal.
#[derive(Default)]
pub(super) struct PresentedCredential {
    /// True if the request has any credential.
    pub(super) is_present: bool,
    pub(super) address: String,
    /// Organization, name of the caller and name of the credential, once the caller is known.
    pub(super) caller: Option<(OrganizationId, String, String)>,
}

impl PresentedCredential {
    /// Counts a refusal of the credential. Requests without one are only counted in the metrics.
    pub(super) fn count(self, app: &App, error: &ApiError) {
        let Some(code) = error.code().filter(|code| matches!(code.status, 401 | 403 | 429)) else { return };
        if !self.is_present {
            return;
        }
        let (organization, actor, credential) = match self.caller {
            Some((organization, actor, credential)) => (Some(organization), actor, credential),
            None => (None, String::new(), String::new()),
        };
        let code = code.code.to_owned();
        app.store.refused(Refusal { organization, actor, credential, address: self.address, code }, now_ms());
    }
}
