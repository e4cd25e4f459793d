//! The state of the program for a command that needs plugins as well as the database, beside a running server or without one.

use std::sync::Arc;

use anyhow::Context;
use packhouse_app::App;
use packhouse_app::mail::Mail;
use packhouse_config::Config;
use packhouse_runtime::Runtime;
use packhouse_store::Store;

/// Opens the store and loads the plugins that the database says.
pub(super) async fn opened(config: Config) -> anyhow::Result<Arc<App>> {
    let store = Store::open(config.store.clone()).await.context("failed to open the store")?;
    over(config, store).await
}

/// The same over a store that is open.
pub(super) async fn over(config: Config, store: Store) -> anyhow::Result<Arc<App>> {
    let mail = Mail::new(&config)?;
    let examined = Runtime::examine(config.runtime.clone()).await;
    let runtime = examined.and_then(|plugins| plugins.with(&store)).context("failed to load the plugins")?;
    let app = Arc::new(App::new(config, store, runtime, mail));
    app.follow_plugins().await?;
    app.follow_advisories().await?;
    Ok(app)
}
