//! The application state for commands that need plugins and the database, with or without a running
//! server.

use std::sync::Arc;

use anyhow::Context;
use packhouse_app::App;
use packhouse_app::mail::Mail;
use packhouse_config::Config;
use packhouse_runtime::Runtime;
use packhouse_store::Store;

/// Opens the store and loads the plugins that the database names.
pub(super) async fn open_app(config: Config) -> anyhow::Result<Arc<App>> {
    let store = Store::open(config.store.clone()).await.context("failed to open the store")?;
    open_app_with_store(config, store).await
}

/// Loads the plugins for a store that is already open.
pub(super) async fn open_app_with_store(config: Config, store: Store) -> anyhow::Result<Arc<App>> {
    let mail = Mail::new(&config)?;
    let examined = Runtime::examine(config.runtime.clone()).await;
    let runtime = examined.and_then(|plugins| plugins.with(&store)).context("failed to load the plugins")?;
    let app = Arc::new(App::new(config, store, runtime, mail));
    app.follow_plugins().await?;
    app.follow_advisories().await?;
    Ok(app)
}
