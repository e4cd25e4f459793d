//! Audit log entries for commands that change which components formats run.

use packhouse_app::App;
use packhouse_store::AuditEvent;

use crate::cli::accounts::event;

/// Returns a function that creates entries for a change of the server. They go to the audit log of
/// the first organization; without one, there is no entry.
pub(super) async fn events(app: &App) -> anyhow::Result<impl Fn(&str, &str) -> Option<AuditEvent>> {
    let first = app.first_organization().await?;
    Ok(move |action: &str, subject: &str| Some(event(first?, action, subject)))
}
