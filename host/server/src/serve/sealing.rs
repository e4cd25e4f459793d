//! The sealing key at every start: whether it is the one that this database was last served with, since servers that share a
//! database must share it.

use anyhow::Context;

use packhouse_app::App;

/// Under which name the database keeps which key it was last served with: a name that tells nothing of the key.
const KEY: &str = "sealing_key";
/// Where former versions kept the key of bearers as it is, for whoever reads the database.
const DISCLOSED: &str = "bearer_key";

/// Says in the log when the key is another than that of the last server that started here, and throws away a key that was
/// disclosed.
pub(crate) async fn check(app: &App) -> anyhow::Result<()> {
    let store = &app.store;
    let disclosed = store.replace_fact(DISCLOSED, None).await.context("failed to read the database")?;
    if disclosed.is_some() {
        tracing::info!(
            "a key of bearers that the database held unsealed was thrown away; clients get new bearers by themselves"
        );
    }
    let own = match app.sealer.id() {
        Ok(own) => own,
        // Whatever needs the key fails when it is needed; what needs none is served.
        Err(error) => {
            tracing::error!(%error, "nothing can be sealed, and no bearer given out");
            return Ok(());
        }
    };
    let last = store.replace_fact(KEY, Some(own)).await.context("failed to read the database")?;
    if let Some(last) = last.filter(|last| last != own) {
        tracing::warn!(
            own,
            last,
            "this server's sealing key is another than that of the server that was last started on this database. If several \
             servers share the database, set `sealing_key` to the same text for all of them: until then each refuses the \
             bearers that another gives to clients of registries, and can read no secret that another has sealed. If the key \
             was changed or lost, set the client secrets of sign-in providers and the credentials for upstreams anew"
        );
    }
    Ok(())
}
