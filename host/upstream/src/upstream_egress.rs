//! Limits the targets of one upstream's redirects, links in metadata and token services, depending
//! on the upstream's own location.
//!
//! An upstream on the public internet may lead only to public addresses; the networks that the
//! operator allows are only for upstreams inside them. On loopback, an upstream may lead only to
//! its own port, or to one that the operator named.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Client, ClientBuilder, redirect};
use url::{Host, Url};

use super::egress_policy::{EgressDenied, EgressPolicy, is_public};
use crate::boxed;

/// Kind of destination of a request. Its rule is applied when names are resolved.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Destination {
    Upstream,
    /// The targets allowed for an upstream in an allowed network, at this port. None if the port
    /// does not matter.
    AllowedNetwork(Option<u16>),
    Public,
}

/// The rules for one upstream. Cheap to clone.
#[derive(Clone)]
pub struct UpstreamEgress {
    policy: EgressPolicy,
    host: Option<Host<String>>,
    port: Option<u16>,
    /// True if the upstream's name resolved to an allowed network at its first lookup. A public
    /// name does not become internal later.
    is_internal: Arc<OnceLock<bool>>,
}

impl UpstreamEgress {
    /// Creates the rules for the upstream at this address.
    pub fn of(policy: &EgressPolicy, upstream: &Url) -> Self {
        Self {
            policy: policy.clone(),
            host: upstream.host().map(|host| host.to_owned()),
            port: upstream.port_or_known_default(),
            is_internal: Arc::default(),
        }
    }

    /// Returns the rules for an upstream whose name the egress proxy resolves. The name then counts
    /// as public.
    pub fn without_lookup(self) -> Self {
        // Cannot fail: the value is new.
        let _ = self.is_internal.set(false);
        self
    }

    /// Creates the rules for another upstream under the same policy.
    pub fn for_address(&self, upstream: &Url) -> Self {
        Self::of(&self.policy, upstream)
    }

    /// Returns the kind of destination of a request to this address. `EgressDenied` if the address
    /// is forbidden, as far as that is known before its name is resolved.
    #[boxed]
    pub async fn judge(&self, url: &Url) -> Result<Destination, EgressDenied> {
        self.policy.check_scheme(url)?;
        let port = url.port_or_known_default();
        let host = url.host().map(|host| host.to_owned());
        if host == self.host && port == self.port {
            self.policy.check(url)?;
            return Ok(Destination::Upstream);
        }
        let ip: IpAddr = match host {
            Some(Host::Ipv4(ip)) => ip.into(),
            Some(Host::Ipv6(ip)) => ip.into(),
            _ if self.is_upstream_internal().await => {
                let port = port.filter(|port| Some(*port) == self.port || self.policy.names_port(*port));
                return Ok(Destination::AllowedNetwork(port));
            }
            _ => return Ok(Destination::Public),
        };
        if is_public(ip) {
            return Ok(Destination::Public);
        }
        if self.policy.allows_target(ip, port, self.port) && self.is_upstream_internal().await {
            Ok(Destination::AllowedNetwork(None))
        } else {
            Err(EgressDenied::target(ip.to_string()))
        }
    }

    /// Returns true if the upstream itself is in an allowed network.
    async fn is_upstream_internal(&self) -> bool {
        let allowed = |ip: IpAddr| !is_public(ip) && self.policy.allows(ip, self.port);
        match &self.host {
            Some(Host::Ipv4(ip)) => allowed((*ip).into()),
            Some(Host::Ipv6(ip)) => allowed((*ip).into()),
            Some(Host::Domain(name)) => match self.is_internal.get() {
                Some(is_internal) => *is_internal,
                None => match self.policy.lookup(name.clone()).await {
                    Ok(found) => *self.is_internal.get_or_init(|| found.iter().any(|ip| allowed(*ip))),
                    Err(_) => false,
                },
            },
            None => false,
        }
    }

    /// Returns the resolver for requests to this kind of destination.
    pub fn resolver(&self, destination: Destination) -> EgressResolver {
        EgressResolver { egress: self.clone(), destination }
    }

    /// Builds a client for requests to this kind of destination. The client follows no redirects
    /// and ignores the system's proxy. `more` adds further options.
    pub fn client(
        &self,
        destination: Destination,
        more: impl Fn(ClientBuilder) -> ClientBuilder,
    ) -> Result<Client, reqwest::Error> {
        let builder = || {
            more(Client::builder())
                .user_agent(concat!("Packhouse/", env!("CARGO_PKG_VERSION")))
                .redirect(redirect::Policy::none())
                .referer(false)
                .no_proxy()
                .dns_resolver(self.resolver(destination))
        };
        // Without system certificates, servers without TLS can still be reached.
        builder().build().or_else(|_| builder().tls_certs_only([]).build())
    }

    /// Returns the addresses in `found` to which connections may go.
    fn filter(&self, destination: Destination, found: &[IpAddr]) -> Vec<IpAddr> {
        let admits = |ip: IpAddr| match destination {
            Destination::Upstream => self.policy.allows(ip, self.port),
            Destination::AllowedNetwork(port) => {
                is_public(ip) || self.policy.allows_target(ip, port, self.port)
            }
            Destination::Public => is_public(ip),
        };
        let mut good: Vec<IpAddr> = found.iter().copied().filter(|ip| admits(*ip)).collect();
        let inner = good.iter().any(|ip| !is_public(*ip));
        if destination == Destination::Upstream
            && !good.is_empty()
            && !*self.is_internal.get_or_init(|| inner)
        {
            good.retain(|ip| is_public(*ip));
        }
        good
    }
}

/// Resolves names for an HTTP client and drops forbidden addresses.
pub struct EgressResolver {
    egress: UpstreamEgress,
    destination: Destination,
}

impl Resolve for EgressResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (host, egress, destination) = (name.as_str().to_owned(), self.egress.clone(), self.destination);
        Box::pin(async move {
            let found = egress.policy.lookup(host.clone()).await?;
            let good = egress.filter(destination, &found);
            match (good.is_empty(), found.first()) {
                (false, _) => Ok(Box::new(good.into_iter().map(|ip| SocketAddr::new(ip, 0))) as Addrs),
                (true, Some(ip)) => {
                    // Only the log contains the address. Otherwise every client that can name a
                    // host could look up names of an internal network.
                    tracing::warn!(host, %ip, "a name resolves to a forbidden address");
                    let denied = match destination {
                        Destination::Upstream => EgressDenied::address(host),
                        Destination::AllowedNetwork(_) | Destination::Public => EgressDenied::target(host),
                    };
                    Err(denied.into())
                }
                (true, None) => Err(std::io::Error::other(format!("{host} has no address")).into()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Mutex;

    use futures::future::BoxFuture;

    use super::super::egress_policy::NameLookup;
    use super::*;

    /// Lists of addresses for each name: one list per lookup, and the last for all further lookups.
    struct ListedLookup(Mutex<HashMap<&'static str, Vec<&'static str>>>);

    impl NameLookup for ListedLookup {
        fn lookup(&self, host: String) -> BoxFuture<'static, std::io::Result<Vec<IpAddr>>> {
            let mut known = self.0.lock().unwrap();
            let lists = known.get_mut(host.as_str()).unwrap();
            let list = if lists.len() > 1 { lists.remove(0) } else { lists[0] };
            Box::pin(async move { Ok(list.split(' ').map(|ip| ip.parse().unwrap()).collect()) })
        }
    }

    fn egress(allowed: &str, upstream: &str, names: &[(&'static str, &[&'static str])]) -> UpstreamEgress {
        let names = names.iter().map(|(name, lists)| (*name, lists.to_vec())).collect();
        let allowed = packhouse_config::upstream_networks(allowed).unwrap();
        let policy = EgressPolicy::new(&allowed, Arc::new(ListedLookup(Mutex::new(names))));
        UpstreamEgress::of(&policy, &upstream.parse().unwrap())
    }

    async fn destination(egress: &UpstreamEgress, url: &str) -> Option<Destination> {
        egress.judge(&url.parse().unwrap()).await.ok()
    }

    #[tokio::test]
    async fn a_public_upstream_leads_to_public_addresses_alone() {
        let names: &[(&str, &[&str])] = &[("repo.test", &["1.1.1.1"])];
        for upstream in ["https://1.1.1.1/x", "https://repo.test/x"] {
            let egress = egress("10.0.0.0/8,127.0.0.0/8:*", upstream, names);
            assert_eq!(destination(&egress, upstream).await, Some(Destination::Upstream));
            for public in ["https://files.test/a", "https://8.8.8.8/", "http://8.8.8.8:81/"] {
                assert_eq!(
                    destination(&egress, public).await,
                    Some(Destination::Public),
                    "{upstream} {public}"
                );
            }
            for inner in
                ["http://10.0.0.7/", "http://127.0.0.1:8081/", "http://169.254.169.254/", "file:///x"]
            {
                assert_eq!(destination(&egress, inner).await, None, "{upstream} {inner}");
            }
        }
    }

    #[tokio::test]
    async fn an_upstream_of_an_allowed_network_leads_to_those() {
        let names: &[(&str, &[&str])] = &[("repo.test", &["10.0.0.5"])];
        for upstream in ["http://10.0.0.5/x", "http://repo.test/x"] {
            let egress = egress("10.0.0.0/8,127.0.0.0/8,192.168.0.0/16:8443", upstream, names);
            for inner in
                ["http://10.0.0.7:99/", "http://192.168.0.1:8443/", "http://files.test/", "http://127.0.0.1/"]
            {
                let led = destination(&egress, inner).await;
                assert!(matches!(led, Some(Destination::AllowedNetwork(_))), "{upstream} {inner}");
            }
            for refused in
                ["http://127.0.0.1:8081/", "http://192.168.0.1/", "http://172.16.0.1/", "http://[::1]/"]
            {
                assert_eq!(destination(&egress, refused).await, None, "{upstream} {refused}");
            }
        }
    }

    #[tokio::test]
    async fn ports_on_loopback_are_named_or_the_upstreams_own() {
        for (allowed, led) in [
            ("127.0.0.0/8", &["http://127.0.0.2:8090/"][..]),
            ("127.0.0.0/8,127.0.0.1:8091", &["http://127.0.0.2:8090/", "http://127.0.0.1:8091/"]),
            ("127.0.0.0/8:*", &["http://127.0.0.2:8090/", "http://127.0.0.1:8091/", "http://127.0.0.1:1/"]),
        ] {
            let egress = egress(allowed, "http://127.0.0.1:8090/x", &[]);
            for url in ["http://127.0.0.2:8090/", "http://127.0.0.1:8091/", "http://127.0.0.1:1/"] {
                let expected = led.contains(&url).then_some(Destination::AllowedNetwork(None));
                assert_eq!(destination(&egress, url).await, expected, "{allowed} {url}");
            }
        }
    }

    #[tokio::test]
    async fn names_are_judged_by_where_they_lead() {
        let all: Vec<IpAddr> =
            ["1.1.1.1", "10.0.0.7", "127.0.0.1", "172.16.0.1"].iter().map(|ip| ip.parse().unwrap()).collect();
        let filter = |allowed: &str, destination: Destination| {
            let egress = egress(allowed, "http://10.0.0.5/", &[]);
            egress.filter(destination, &all).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let allowed = "10.0.0.0/8,127.0.0.0/8";
        let inner = Destination::AllowedNetwork;
        assert_eq!(filter(allowed, Destination::Upstream), ["1.1.1.1", "10.0.0.7", "127.0.0.1"]);
        assert_eq!(filter(allowed, inner(None)), ["1.1.1.1", "10.0.0.7"]);
        assert_eq!(filter(allowed, inner(Some(80))), ["1.1.1.1", "10.0.0.7", "127.0.0.1"], "its own port");
        assert_eq!(filter(allowed, Destination::Public), ["1.1.1.1"]);
        assert_eq!(filter("127.0.0.0/8:*", inner(None)), ["1.1.1.1", "127.0.0.1"]);
        assert_eq!(filter("127.0.0.1:8091,10.0.0.7:443", inner(Some(8091))), ["1.1.1.1", "127.0.0.1"]);
        assert_eq!(filter("127.0.0.1:8091,10.0.0.7:443", inner(Some(8092))), ["1.1.1.1"]);
    }

    #[tokio::test]
    async fn a_network_of_one_port_counts_for_names_at_that_port() {
        let egress = egress("10.0.0.5:8090,10.0.0.5:8091", "http://10.0.0.5:8090/x", &[]);
        for (url, port) in [
            ("http://files.test:8090/", Some(8090)),
            ("http://files.test:8091/", Some(8091)),
            ("http://files.test:8092/", None),
        ] {
            assert_eq!(destination(&egress, url).await, Some(Destination::AllowedNetwork(port)), "{url}");
        }
    }

    #[tokio::test]
    async fn a_public_name_does_not_turn_into_an_inner_one() {
        let names: &[(&str, &[&str])] = &[("repo.test", &["1.1.1.1", "10.0.0.5", "10.0.0.5"])];
        let egress = egress("10.0.0.0/8", "https://repo.test/", names);
        let lookup =
            async || egress.resolver(Destination::Upstream).resolve("repo.test".parse().unwrap()).await;
        assert!(lookup().await.is_ok());
        assert!(lookup().await.is_err());
        assert_eq!(destination(&egress, "https://10.0.0.7/").await, None);
    }
}
