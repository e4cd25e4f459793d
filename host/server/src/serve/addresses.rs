//! Whether listeners and public addresses fit what is served there, and what the operator should know of them.

use anyhow::bail;
use packhouse_app::App;
use packhouse_config::Config;
use packhouse_config::addresses::first_segment;
use packhouse_runtime::Runtime;

/// Refuses a path of the API's public address that begins like a page or a call below it. A proxy may take the path off before a request
/// arrives, so the page could not be told from the path.
pub(crate) fn check_api_path(config: &Config) -> anyhow::Result<()> {
    let first = first_segment(config.api_path());
    let mut below = packhouse_portal::first_segments().chain(packhouse_api::FIRST_SEGMENTS);
    if below.any(|own| own == first) {
        bail!(
            "{} has a path that begins with /{first}, as a page or a call below it does, so a request could mean either; write another \
             path, as in https://tools.example/portal",
            config.sources.label("api_url")
        );
    }
    Ok(())
}

/// Refuses a path of a public address at which clients of a format need packages, which shows only once the plugins are there. Warns of
/// a listener on all addresses without a public address.
pub(super) fn examine(app: &App) -> anyhow::Result<()> {
    let config = &app.config;
    let beside = config.has_one_listener().then(|| ("api_url", config.api_path()));
    for (setting, path) in beside.into_iter().chain([("base_url", config.base_path())]) {
        if let Some(claim) = claimed(&app.runtime, path) {
            bail!(
                "{}: the clients of a format need {claim} for packages; write another path",
                config.sources.label(setting)
            );
        }
    }
    if let Some(listen) = config.unspecified_listener() {
        tracing::warn!(
            setting = listen,
            "the server listens on every address and base_url is not set; links follow the host that a client asks"
        );
    }
    Ok(())
}

/// The claim on a root path that this path collides with; none for the root itself.
fn claimed(runtime: &Runtime, path: &str) -> Option<String> {
    let first = Some(first_segment(path)).filter(|first| !first.is_empty())?;
    let current = runtime.current();
    let served = current.claims().map(|(_, claim)| claim);
    let mut all = served.chain(current.awaited_claims().map(|(_, claim)| claim));
    all.find(|claim| first_segment(&claim.path) == first).map(|claim| claim.path.clone())
}
