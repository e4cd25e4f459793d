//! Checks listeners and public addresses against the paths that are served there.

use anyhow::bail;
use packhouse_app::App;
use packhouse_config::Config;
use packhouse_config::addresses::first_segment;
use packhouse_runtime::Runtime;

/// Rejects an API address whose path begins with the first segment of a page or an API call. A
/// proxy may strip the API's path from requests. The server could then not tell whether this
/// segment belongs to the API's path or to the page.
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

/// Returns a path that a format claims and that has the same first segment as this path. None if
/// the path is the root.
fn claimed(runtime: &Runtime, path: &str) -> Option<String> {
    let first = Some(first_segment(path)).filter(|first| !first.is_empty())?;
    let current = runtime.current();
    let served = current.claims().map(|(_, claim)| claim);
    let mut all = served.chain(current.awaited_claims().map(|(_, claim)| claim));
    all.find(|claim| first_segment(&claim.path) == first).map(|claim| claim.path.clone())
}
