//! Limits the hosts to which a source may lead. Redirects and links come from the source. Without
//! this limit, a source could lead to a host in the operator's internal network, and the run would
//! import internal content.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use url::{Host, Url};

/// Maximum number of redirects in sequence.
const MAX_REDIRECTS: usize = 10;

/// The hosts to which a source may lead: its own host, the hosts that the operator lists, and all
/// hosts with public addresses.
#[derive(Clone, Debug)]
pub(crate) struct AllowedHosts {
    named: Arc<Vec<String>>,
    is_loopback: bool,
}

impl AllowedHosts {
    /// The allowed hosts for the source at this address, with the hosts that the operator lists.
    pub(crate) fn of(source: &Url, extra_hosts: &[String]) -> AllowedHosts {
        let own = source.host().map(|host| host.to_string());
        let is_loopback = source.host().is_some_and(|host| match host {
            Host::Domain(name) => name == "localhost",
            Host::Ipv4(ip) => ip.is_loopback(),
            Host::Ipv6(ip) => ip.is_loopback(),
        });
        let extra_hosts = extra_hosts.iter().map(|name| name.to_ascii_lowercase());
        AllowedHosts { named: Arc::new(own.into_iter().chain(extra_hosts).collect()), is_loopback }
    }

    /// Checks an address. Host names pass this check; `resolve` checks their addresses.
    pub(crate) fn check(&self, url: &Url) -> Result<(), String> {
        let ip = match url.host() {
            Some(Host::Ipv4(ip)) => IpAddr::V4(ip),
            Some(Host::Ipv6(ip)) => IpAddr::V6(ip),
            Some(Host::Domain(_)) | None => return Ok(()),
        };
        let host = url.host().map(|host| host.to_string()).unwrap_or_default();
        if self.allows(&host, ip) { Ok(()) } else { Err(refused(&host)) }
    }

    fn allows(&self, host: &str, ip: IpAddr) -> bool {
        let is_same_machine = self.is_loopback && ip.to_canonical().is_loopback();
        is_same_machine || self.named.iter().any(|named| named == host) || is_public(ip)
    }

    /// The redirect policy. It follows redirects only to allowed hosts.
    pub(crate) fn redirects(&self) -> Policy {
        let own = self.clone();
        Policy::custom(move |attempt| {
            if attempt.previous().len() > MAX_REDIRECTS {
                return attempt.error("too many redirects");
            }
            match own.check(attempt.url()) {
                Ok(()) => attempt.follow(),
                Err(why) => attempt.error(why),
            }
        })
    }
}

impl Resolve for AllowedHosts {
    fn resolve(&self, name: Name) -> Resolving {
        let own = self.clone();
        Box::pin(async move {
            let host = name.as_str().to_ascii_lowercase();
            let found = tokio::net::lookup_host((host.as_str(), 0)).await?;
            let may: Vec<SocketAddr> = found.filter(|address| own.allows(&host, address.ip())).collect();
            if may.is_empty() {
                return Err(refused(&host).into());
            }
            Ok(Box::new(may.into_iter()) as Addrs)
        })
    }
}

fn refused(host: &str) -> String {
    format!(
        "the source leads to {host}, which is an internal address: add --source-host {host} if that is where its files are"
    )
}

/// Reports whether an address belongs to the public internet (RFC 6890).
fn is_public(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, ..] = ip.octets();
    let is_special = ip.is_private() || ip.is_loopback() || ip.is_link_local() || ip.is_documentation();
    // In order: "this network", multicast and reserved addresses; addresses that providers share;
    // protocol assignments; benchmarks.
    !is_special && !matches!((a, b), (0 | 224..=255, _) | (100, 64..=127) | (192, 0) | (198, 18 | 19))
}

/// Reports whether an address is global unicast and neither embeds an IPv4 address nor is reserved
/// for protocols or documentation.
fn is_public_v6(ip: Ipv6Addr) -> bool {
    let [a, b, ..] = ip.segments();
    a >> 13 == 1 && !matches!((a, b), (0x2001, 0..=0x1ff | 0xdb8) | (0x2002 | 0x3fff, _))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed_hosts(source: &str, extra_hosts: &[&str]) -> AllowedHosts {
        let extra_hosts: Vec<String> = extra_hosts.iter().map(|name| (*name).to_owned()).collect();
        AllowedHosts::of(&Url::parse(source).unwrap(), &extra_hosts)
    }

    fn leads(allowed_hosts: &AllowedHosts, to: &str) -> bool {
        allowed_hosts.check(&Url::parse(to).unwrap()).is_ok()
    }

    #[test]
    fn a_source_leads_to_itself_and_to_public_addresses() {
        let outside = allowed_hosts("https://pypi.example/simple/", &[]);
        for public in ["https://1.1.1.1/x", "http://[2606:4700::1111]/", "https://files.example/"] {
            assert!(leads(&outside, public), "{public}");
        }
        for internal in [
            "http://127.0.0.1/",
            "http://10.1.2.3/",
            "http://169.254.169.254/latest/meta-data/",
            "http://192.168.0.1:8080/",
            "http://100.64.0.1/",
            "http://0.0.0.0/",
            "http://[::1]/",
            "http://[::ffff:10.0.0.1]/",
            "http://[fd00::1]/",
            "http://[fe80::1]/",
        ] {
            assert!(!leads(&outside, internal), "{internal}");
        }
        let inside = allowed_hosts("http://10.0.0.5:3141/root/", &["10.0.0.6"]);
        assert!(leads(&inside, "http://10.0.0.5:8082/") && leads(&inside, "http://10.0.0.6/"));
        assert!(!leads(&inside, "http://10.0.0.7/") && !leads(&inside, "http://127.0.0.1/"));
        assert!(leads(&allowed_hosts("http://localhost:1/", &[]), "http://127.0.0.1:2/"));
    }

    #[tokio::test]
    async fn names_are_checked_by_their_addresses() {
        let name = || "localhost".parse::<Name>().unwrap();
        assert!(allowed_hosts("https://pypi.example/", &[]).resolve(name()).await.is_err());
        assert!(allowed_hosts("https://pypi.example/", &["localhost"]).resolve(name()).await.is_ok());
        assert!(allowed_hosts("http://127.0.0.1:1/", &[]).resolve(name()).await.is_ok());
    }
}
