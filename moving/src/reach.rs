//! Where a source may lead: redirects and links come from the source, so one that leads into the network of whoever runs the import would
//! bring what lies there into the repository.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use url::{Host, Url};

/// Redirects that are followed, one after another.
const MOST_REDIRECTS: usize = 10;

/// The hosts to which a source may lead: itself, those that the operator names, and every public address.
#[derive(Clone, Debug)]
pub(crate) struct Reach {
    named: Arc<Vec<String>>,
    is_loopback: bool,
}

impl Reach {
    /// Of the source at this address, with the hosts that the operator names besides.
    pub(crate) fn of(source: &Url, besides: &[String]) -> Reach {
        let own = source.host().map(|host| host.to_string());
        let is_loopback = source.host().is_some_and(|host| match host {
            Host::Domain(name) => name == "localhost",
            Host::Ipv4(ip) => ip.is_loopback(),
            Host::Ipv6(ip) => ip.is_loopback(),
        });
        let besides = besides.iter().map(|name| name.to_ascii_lowercase());
        Reach { named: Arc::new(own.into_iter().chain(besides).collect()), is_loopback }
    }

    /// Passes an address that may be asked, as far as it shows that itself: names are judged once they are looked up.
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

    /// Follows redirects to where the source may lead.
    pub(crate) fn redirects(&self) -> Policy {
        let own = self.clone();
        Policy::custom(move |attempt| {
            if attempt.previous().len() > MOST_REDIRECTS {
                return attempt.error("it redirects too often");
            }
            match own.check(attempt.url()) {
                Ok(()) => attempt.follow(),
                Err(why) => attempt.error(why),
            }
        })
    }
}

impl Resolve for Reach {
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

/// Whether an address is one of the public internet (RFC 6890).
fn is_public(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, ..] = ip.octets();
    let is_special = ip.is_private() || ip.is_loopback() || ip.is_link_local() || ip.is_documentation();
    // "This network", shared addresses, protocols, benchmarks, multicast and what is reserved.
    !is_special && !matches!((a, b), (0 | 224..=255, _) | (100, 64..=127) | (192, 0) | (198, 18 | 19))
}

/// Global unicast, without what carries an IPv4 address or is reserved for protocols and documentation.
fn is_public_v6(ip: Ipv6Addr) -> bool {
    let [a, b, ..] = ip.segments();
    a >> 13 == 1 && !matches!((a, b), (0x2001, 0..=0x1ff | 0xdb8) | (0x2002 | 0x3fff, _))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach(source: &str, besides: &[&str]) -> Reach {
        let besides: Vec<String> = besides.iter().map(|name| (*name).to_owned()).collect();
        Reach::of(&Url::parse(source).unwrap(), &besides)
    }

    fn leads(reach: &Reach, to: &str) -> bool {
        reach.check(&Url::parse(to).unwrap()).is_ok()
    }

    #[test]
    fn a_source_leads_to_itself_and_to_public_addresses() {
        let outside = reach("https://pypi.example/simple/", &[]);
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
        let inside = reach("http://10.0.0.5:3141/root/", &["10.0.0.6"]);
        assert!(leads(&inside, "http://10.0.0.5:8082/") && leads(&inside, "http://10.0.0.6/"));
        assert!(!leads(&inside, "http://10.0.0.7/") && !leads(&inside, "http://127.0.0.1/"));
        assert!(leads(&reach("http://localhost:1/", &[]), "http://127.0.0.1:2/"));
    }

    #[tokio::test]
    async fn names_are_judged_by_what_they_lead_to() {
        let name = || "localhost".parse::<Name>().unwrap();
        assert!(reach("https://pypi.example/", &[]).resolve(name()).await.is_err());
        assert!(reach("https://pypi.example/", &["localhost"]).resolve(name()).await.is_ok());
        assert!(reach("http://127.0.0.1:1/", &[]).resolve(name()).await.is_ok());
    }
}
