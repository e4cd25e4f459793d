//! Checks listeners and public addresses against the paths that are served there.

use anyhow::bail;
use packhouse_app::App;
use packhouse_config::Config;
use packhouse_config::addresses::first_segment;
use packhouse_runtime::Runtime;

/// Rejects an API address whose path begins like a page or an API call below it. A proxy may strip
/// the path before the request arrives, so the two could not be told apart.
pub(crate) fn check_api_path(config: &Config) -> anyhow::Result<()> {
    let first = first_segment(config.api_path());
    let mut below = packhouse_portal::first_segments().chain(packhouse_api::FIRST_SEGMENTS);
    if below.any(|own| own == first) {
        bail!(
            "the path of {} begins with /{first}, which is also the path of a page or an API call, so a request could mean either; \
             use another path, as in https://tools.example/portal",
            config.sources.label("api_url")
        );
    }
    Ok(())
}

/// Rejects a public address whose path a format's clients need for packages. These paths are known
/// only once the plugins are loaded. Warns of a listener on all addresses without a public address.
pub(super) fn examine(app: &App) -> anyhow::Result<()> {
    let config = &app.config;
    let beside = config.has_one_listener().then(|| ("api_url", config.api_path()));
    for (setting, path) in beside.into_iter().chain([("base_url", config.base_path())]) {
        if let Some(claim) = claimed(&app.runtime, path) {
            bail!(
                "{}: clients of a format need {claim} for packages; use another path",
                config.sources.label(setting)
            );
        }
    }
    if let Some(listen) = config.unspecified_listener() {
        tracing::warn!(
            setting = listen,
            "the server listens on all addresses and base_url is not set; links use the host name of each request"
        );
    }
    Ok(())
}

/// Returns the root path claimed by a format that collides with this path. None for the root
/// itself.
fn claimed(runtime: &Runtime, path: &str) -> Option<String> {
    let first = Some(first_segment(path)).filter(|first| !first.is_empty())?;
    let current = runtime.current();
    let served = current.claims().map(|(_, claim)| claim);
    let mut all = served.chain(current.awaited_claims().map(|(_, claim)| claim));
    all.find(|claim| first_segment(&claim.path) == first).map(|claim| claim.path.clone())
}
