//! What the audit log says of a command that changes what formats run.

use packhouse_app::App;
use packhouse_store::AuditEvent;

use crate::cli::accounts::event;

/// Of a change of the server, which stands in the audit log of the first organization; none before there is one.
pub(super) async fn events(app: &App) -> anyhow::Result<impl Fn(&str, &str) -> Option<AuditEvent>> {
    let first = app.first_organization().await?;
    Ok(move |action: &str, subject: &str| Some(event(first?, action, subject)))
}
