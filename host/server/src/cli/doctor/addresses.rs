//! Checks of the listen addresses and the public addresses.

use std::net::TcpListener;

use packhouse_config::Config;
use packhouse_config::tls::AcmeChallenge;
use url::Url;

use super::Findings;
use crate::bind_error::bind_error;
use crate::serve::check_api_path;

/// Checks listeners and public addresses. If a server is running, its ports are not tried.
pub(super) async fn examine(config: &Config, running: bool, findings: &mut Findings) {
    let before = findings.faults();
    let listeners = [
        ("packages_listen", Some(&config.packages_listen)),
        ("api_listen", Some(&config.api_listen)),
        ("metrics_listen", config.metrics_listen.as_ref()),
        ("tls.redirect_listen", config.tls.redirect_listen.as_ref()),
    ];
    let listeners: Vec<(&str, &String)> =
        listeners.into_iter().filter_map(|(name, address)| Some((name, address?))).collect();
    for (at, (name, address)) in listeners.iter().enumerate() {
        let same = listeners.iter().skip(at + 1).find(|(other_name, other)| {
            let both_hosts = (*name, *other_name) == ("packages_listen", "api_listen");
            other == address && !address.ends_with(":0") && !both_hosts
        });
        if let Some((other, _)) = same {
            let label = config.sources.label(other);
            findings.wrong(format!("{label} is the same address as {name}; set another port"));
        } else if !running && let Err(error) = TcpListener::bind(address.as_str()) {
            findings.wrong(bind_error(config, name, &error));
        }
    }
    together(config, findings);
    public(config, "base_url", config.base_url.as_ref(), config.tls.serves_packages(), findings).await;
    public(config, "api_url", config.api_url.as_ref(), config.tls.serves_api(), findings).await;
    let port = |address: &str| address.rsplit_once(':').map_or("", |(_, port)| port).to_owned();
    if config.tls.acme.as_ref().is_some_and(|acme| acme.challenge == AcmeChallenge::TlsAlpn) {
        let ports = [port(&config.packages_listen), port(&config.api_listen)];
        if !ports.contains(&"443".to_owned()) {
            findings.note(
                "tls.acme.challenge = \"tls-alpn-01\" validates names on port 443, and no listener uses that port: \
                 forward port 443 unchanged to a listener, or use http-01",
            );
        }
    }
    findings.ok_unless(
        before,
        format!("addresses: packages at {}, API at {}", config.packages_listen, config.api_listen),
    );
}

/// Checks that clients can tell packages from portal and API, and that links have a usable address.
fn together(config: &Config, findings: &mut Findings) {
    let site = |url: &Option<Url>| url.as_ref().map(Url::origin);
    let (packages, api) = (site(&config.base_url), site(&config.api_url));
    let is_same = packages.is_some() && packages == api && config.base_path() == config.api_path();
    if is_same && !config.has_one_listener() {
        let label = config.sources.label("api_url");
        findings.wrong(format!(
            "{label} is also the address of base_url, and a client cannot tell packages from the portal there; \
             give it a path, as in https://packages.example/portal"
        ));
    }
    if let Err(error) = check_api_path(config) {
        findings.wrong(error.to_string());
    }
    if let Some(listen) = config.unspecified_listener() {
        let label = config.sources.label(listen);
        findings.note(format!(
            "{label} is all addresses of this machine, and base_url is not set: links use the host name of each \
             request; set base_url and api_url to the addresses that clients use"
        ));
    }
}

async fn public(config: &Config, name: &str, url: Option<&Url>, secured: bool, findings: &mut Findings) {
    let Some(url) = url else { return };
    let label = config.sources.label(name);
    match (url.scheme(), secured) {
        ("http", true) => {
            findings.wrong(format!("{label} begins with http, but the listener uses TLS; change it to https"));
        }
        ("https", false) if config.trusted_proxies.is_empty() => findings.note(format!(
            "{label} begins with https, but the listener speaks plain HTTP: a proxy in front must terminate TLS, and \
             trusted_proxies must contain its network"
        )),
        _ => {}
    }
    let Some(host) = url.host_str() else { return };
    let target = (host.trim_matches(['[', ']']), url.port_or_known_default().unwrap_or_default());
    if tokio::net::lookup_host(target).await.is_err() {
        findings.note(format!("{label}: this machine cannot resolve {host}; make sure that clients can"));
    }
}
