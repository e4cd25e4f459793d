//! `packhouse healthcheck`: asks the server of these settings how it is, for supervisors that can do nothing but start a program.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, bail};
use reqwest::{Client, Response};

use packhouse_config::Config;

/// How long a server may take to answer. It answers at once, whatever hangs behind it.
const PATIENCE: Duration = Duration::from_secs(5);

/// An error where the server does not answer, or says that it is not well. `live` asks no more than whether the process runs.
pub(crate) async fn check(config: &Config, live: bool) -> anyhow::Result<()> {
    let path = format!("{}/{}", config.api_path(), if live { "livez" } else { "readyz" });
    let path = path.trim_start_matches('/');
    let at = own_address(&config.api_listen).await?;
    let answer = ask(at, path, config.tls.serves_api()).await?;
    let status = answer.status();
    let text = answer.text().await.unwrap_or_default();
    if !status.is_success() {
        bail!("the server at {at} answers /{path} with {status}: {}", text.trim());
    }
    super::print(text.trim())
}

/// Where a listener is reached from its own machine: one on all addresses is asked on loopback.
async fn own_address(listen: &str) -> anyhow::Result<SocketAddr> {
    let mut found = tokio::net::lookup_host(listen).await;
    let found = found.as_mut().ok().and_then(Iterator::next);
    let mut address = found.with_context(|| format!("`{listen}` (api_listen) is no address"))?;
    if address.ip().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    Ok(address)
}

/// Asks with TLS where the API speaks it. Its certificate is of a name that is not this address, and nothing is told that had to be kept
/// from others: it is not verified.
async fn ask(at: SocketAddr, path: &str, tls: bool) -> anyhow::Result<Response> {
    let scheme = if tls { "https" } else { "http" };
    let client = Client::builder().no_proxy().timeout(PATIENCE).tls_danger_accept_invalid_certs(true);
    let client = client.redirect(reqwest::redirect::Policy::none()).build()?;
    let answer = client.get(format!("{scheme}://{at}/{path}")).send().await;
    answer.with_context(|| format!("the server at {at} does not answer"))
}
