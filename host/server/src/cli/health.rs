//! `packhouse healthcheck`: checks the health of the server that these settings describe. The
//! command is for supervisors that check health only by running a program.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, bail};
use reqwest::{Client, Response};

use packhouse_config::Config;

/// How long to wait for an answer. The server answers immediately, even if its dependencies hang.
const PATIENCE: Duration = Duration::from_secs(5);

/// Fails if the server does not answer or reports that it is not ready. `live` only checks whether
/// the process is running.
pub(crate) async fn check(config: &Config, live: bool) -> anyhow::Result<()> {
    let path = format!("{}/{}", config.api_path(), if live { "livez" } else { "readyz" });
    let path = path.trim_start_matches('/');
    let at = own_address(&config.api_listen).await?;
    let answer = ask(at, path, config.tls.serves_api()).await?;
    let status = answer.status();
    let text = answer.text().await.unwrap_or_default();
    if !status.is_success() {
        bail!("the server at {at} answered /{path} with {status}: {}", text.trim());
    }
    super::print(text.trim())
}

/// Reports whether a server answers at the API's address of these settings.
pub(super) async fn is_live(config: &Config) -> bool {
    let path = format!("{}/livez", config.api_path());
    let Ok(at) = own_address(&config.api_listen).await else { return false };
    let answer = ask(at, path.trim_start_matches('/'), config.tls.serves_api()).await;
    answer.is_ok_and(|answer| answer.status().is_success())
}

/// Resolves a listen address for a connection from this machine. Addresses for all interfaces
/// become loopback.
async fn own_address(listen: &str) -> anyhow::Result<SocketAddr> {
    let mut found = tokio::net::lookup_host(listen).await;
    let found = found.as_mut().ok().and_then(Iterator::next);
    let mut address = found.with_context(|| format!("`{listen}` (api_listen) is not a valid address"))?;
    if address.ip().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    Ok(address)
}

/// Sends a request, with TLS if the API uses it. The certificate is not verified, because it is for
/// another address and the request carries no secret.
async fn ask(at: SocketAddr, path: &str, tls: bool) -> anyhow::Result<Response> {
    let scheme = if tls { "https" } else { "http" };
    let client = Client::builder().no_proxy().timeout(PATIENCE).tls_danger_accept_invalid_certs(true);
    let client = client.redirect(reqwest::redirect::Policy::none()).build()?;
    let answer = client.get(format!("{scheme}://{at}/{path}")).send().await;
    // The server may have settings that this command was started without, such as variables of its
    // service.
    answer.with_context(|| {
        let speaks = if tls { "with TLS" } else { "without TLS" };
        format!(
            "the server at {at} did not answer {speaks}, as these settings say; run this command with the \
             configuration file and the environment variables of the server"
        )
    })
}
