//! Refusals of what was shown to the API as a credential, counted for the audit log.

use packhouse_store::{OrganizationId, Refusal, now_ms};

use super::error::ApiError;
use packhouse_app::App;

/// What was shown as a credential, for the count of refusals.
#[derive(Default)]
pub(super) struct Shown {
    /// Whether anything was.
    pub(super) anything: bool,
    /// From which address.
    pub(super) address: String,
    /// Who it turned out to be.
    pub(super) caller: Option<(OrganizationId, String, String)>,
}

impl Shown {
    /// Counts a refusal of what was shown. Who shows nothing is in the metrics alone.
    pub(super) fn count(self, app: &App, error: &ApiError) {
        let Some(code) = error.code().filter(|code| matches!(code.status, 401 | 403 | 429)) else { return };
        if !self.anything {
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
