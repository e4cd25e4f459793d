//! Compares the sealing key with the key of the server that last started with this database.
//! Servers that share a database must share the key.

use anyhow::Context;

use packhouse_app::App;

/// Key under which the database stores the id of the last sealing key. The id reveals nothing about
/// the key.
const KEY: &str = "sealing_key";
/// Key under which earlier versions stored the bearer key unsealed, readable by anyone with access
/// to the database.
const DISCLOSED: &str = "bearer_key";

/// Logs a warning if the sealing key differs from that of the last started server. Also deletes an
/// unsealed bearer key.
pub(crate) async fn check(app: &App) -> anyhow::Result<()> {
    let store = &app.store;
    let disclosed = store.replace_fact(DISCLOSED, None).await.context("failed to read the database")?;
    if disclosed.is_some() {
        tracing::info!(
            "deleted an unsealed bearer key from the database; clients get new bearers automatically"
        );
    }
    let own = match app.sealer.id() {
        Ok(own) => own,
        // Operations that need the key fail later; everything else is served.
        Err(error) => {
            tracing::error!(%error, "the sealing key cannot be used; the server can neither seal secrets nor issue bearers");
            return Ok(());
        }
    };
    let last = store.replace_fact(KEY, Some(own)).await.context("failed to read the database")?;
    if let Some(last) = last.filter(|last| last != own) {
        tracing::warn!(
            own,
            last,
            "the sealing key differs from that of the server that was last started on this database. If several servers share \
             the database, set `sealing_key` to the same text for all of them: until then, each rejects the bearers that \
             another issues to registry clients, and cannot read secrets that another has sealed. If the key was changed \
             or lost, set the client secrets of sign-in providers and the credentials for upstreams again"
        );
    }
    Ok(())
}
