//! What of listeners and public addresses shows only once the plugins are there, and what the operator should know of them.

use anyhow::bail;
use packhouse_app::App;
use packhouse_runtime::Runtime;

/// Refuses a path of the API at which packages are, where one listener serves both. Warns of a listener on all addresses without a
/// public address.
pub(super) fn examine(app: &App) -> anyhow::Result<()> {
    let config = &app.config;
    if let Some(claim) = claimed(&app.runtime, config.api_path()).filter(|_| config.has_one_listener()) {
        bail!(
            "{}: the clients of a format need {claim} for packages, and one listener serves both; write another path",
            config.sources.label("api_url")
        );
    }
    if let Some(listen) = config.unspecified_listener() {
        tracing::warn!(
            setting = listen,
            "the server listens on every address and base_url is not set; links follow the host that a client asks"
        );
    }
    Ok(())
}

/// The claim on a root path that this path collides with.
fn claimed(runtime: &Runtime, path: &str) -> Option<String> {
    let first = |path: &str| path.trim_start_matches('/').split('/').next().unwrap_or_default().to_owned();
    let current = runtime.current();
    let served = current.claims().map(|(_, claim)| claim);
    let mut all = served.chain(current.awaited_claims().map(|(_, claim)| claim));
    all.find(|claim| first(&claim.path) == first(path)).map(|claim| claim.path.clone())
}
