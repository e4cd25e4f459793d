//! How far an upstream reaches: where redirects, links in metadata and token services may lead, judged by where the upstream is
//! itself. One of the public internet leads nowhere else: the networks that the operator allows are for the upstreams that are in
//! them. To loopback nobody is led but to the upstream's own port, or to one that the operator named.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

use super::address::{Addresses, NotAllowed, is_public};

/// Which rule a request goes by: names are judged by it when they are looked up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Way {
    /// To the upstream itself.
    Home,
    /// To where an upstream of an allowed network may lead.
    Beside,
    /// To public addresses alone.
    Public,
}

/// One upstream's reach. Cheap to clone.
#[derive(Clone)]
pub struct Reach {
    addresses: Addresses,
    host: Option<Host<String>>,
    port: Option<u16>,
    /// Whether the upstream's name led to an allowed network when it was first looked up. A name of the public internet does not
    /// turn into an inner one later.
    near: Arc<OnceLock<bool>>,
}

impl Reach {
    /// Of the upstream at this address.
    pub fn of(addresses: &Addresses, home: &Url) -> Self {
        Self {
            addresses: addresses.clone(),
            host: home.host().map(|host| host.to_owned()),
            port: home.port_or_known_default(),
            near: Arc::default(),
        }
    }

    /// The same, where the upstream's name is not looked up here: a name counts as one of the public internet.
    pub fn not_looked_up(self) -> Self {
        // It is new, so nothing was found out yet.
        let _ = self.near.set(false);
        self
    }

    /// Of another server that is asked by the same rules.
    pub fn with_home(&self, home: &Url) -> Self {
        Self::of(&self.addresses, home)
    }

    /// By which rule a request to this address goes; `NotAllowed` for one to which nobody is sent, as far as it shows before its
    /// name is looked up.
    pub async fn judge(&self, url: &Url) -> Result<Way, NotAllowed> {
        self.addresses.check_scheme(url)?;
        let port = url.port_or_known_default();
        let host = url.host().map(|host| host.to_owned());
        if host == self.host && port == self.port {
            self.addresses.check(url)?;
            return Ok(Way::Home);
        }
        let ip: IpAddr = match host {
            Some(Host::Ipv4(ip)) => ip.into(),
            Some(Host::Ipv6(ip)) => ip.into(),
            _ => return Ok(if self.is_near().await { Way::Beside } else { Way::Public }),
        };
        if is_public(ip) {
            return Ok(Way::Public);
        }
        match self.addresses.leads(ip, port, self.port) && self.is_near().await {
            true => Ok(Way::Beside),
            false => Err(NotAllowed::led(ip.to_string())),
        }
    }

    /// Whether the upstream itself is in an allowed network.
    async fn is_near(&self) -> bool {
        let allowed = |ip: IpAddr| !is_public(ip) && self.addresses.allows(ip, self.port);
        match &self.host {
            Some(Host::Ipv4(ip)) => allowed((*ip).into()),
            Some(Host::Ipv6(ip)) => allowed((*ip).into()),
            Some(Host::Domain(name)) => match self.near.get() {
                Some(near) => *near,
                None => match self.addresses.look_up(name.clone()).await {
                    Ok(found) => *self.near.get_or_init(|| found.iter().any(|ip| allowed(*ip))),
                    Err(_) => false,
                },
            },
            None => false,
        }
    }

    /// Looks names up for requests that go this way.
    pub fn resolver(&self, way: Way) -> Resolver {
        Resolver { reach: self.clone(), way }
    }

    /// Those of a name's addresses that may be connected to.
    fn admitted(&self, way: Way, found: &[IpAddr]) -> Vec<IpAddr> {
        let admits = |ip: IpAddr| match way {
            Way::Home => self.addresses.allows(ip, self.port),
            Way::Beside => is_public(ip) || self.addresses.leads(ip, None, None),
            Way::Public => is_public(ip),
        };
        let mut good: Vec<IpAddr> = found.iter().copied().filter(|ip| admits(*ip)).collect();
        let inner = good.iter().any(|ip| !is_public(*ip));
        if way == Way::Home && !good.is_empty() && !*self.near.get_or_init(|| inner) {
            good.retain(|ip| is_public(*ip));
        }
        good
    }
}

/// A reach's look-up of names.
pub struct Resolver {
    reach: Reach,
    way: Way,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (host, reach, way) = (name.as_str().to_owned(), self.reach.clone(), self.way);
        Box::pin(async move {
            let found = reach.addresses.look_up(host.clone()).await?;
            let good = reach.admitted(way, &found);
            match (good.is_empty(), found.first()) {
                (false, _) => Ok(Box::new(good.into_iter().map(|ip| SocketAddr::new(ip, 0))) as Addrs),
                (true, Some(ip)) if way == Way::Home => Err(NotAllowed::at(format!("{host} ({ip})")).into()),
                (true, Some(ip)) => Err(NotAllowed::led(format!("{host} ({ip})")).into()),
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

    use super::super::address::Names;
    use super::*;

    /// The addresses of each name; the first of several look-ups has the first list, and the last list stays.
    struct Known(Mutex<HashMap<&'static str, Vec<&'static str>>>);

    impl Names for Known {
        fn look_up(&self, host: String) -> BoxFuture<'static, std::io::Result<Vec<IpAddr>>> {
            let mut known = self.0.lock().unwrap();
            let lists = known.get_mut(host.as_str()).unwrap();
            let list = if lists.len() > 1 { lists.remove(0) } else { lists[0] };
            Box::pin(async move { Ok(list.split(' ').map(|ip| ip.parse().unwrap()).collect()) })
        }
    }

    fn reach(allowed: &str, home: &str, names: &[(&'static str, &[&'static str])]) -> Reach {
        let names = names.iter().map(|(name, lists)| (*name, lists.to_vec())).collect();
        let allowed = packhouse_config::upstream_networks(allowed).unwrap();
        let addresses = Addresses::new(&allowed, Arc::new(Known(Mutex::new(names))));
        Reach::of(&addresses, &home.parse().unwrap())
    }

    async fn way(reach: &Reach, url: &str) -> Option<Way> {
        reach.judge(&url.parse().unwrap()).await.ok()
    }

    #[tokio::test]
    async fn a_public_upstream_leads_to_public_addresses_alone() {
        let names: &[(&str, &[&str])] = &[("repo.test", &["1.1.1.1"])];
        for home in ["https://1.1.1.1/x", "https://repo.test/x"] {
            let reach = reach("10.0.0.0/8,127.0.0.0/8:*", home, names);
            assert_eq!(way(&reach, home).await, Some(Way::Home));
            for public in ["https://files.test/a", "https://8.8.8.8/", "http://8.8.8.8:81/"] {
                assert_eq!(way(&reach, public).await, Some(Way::Public), "{home} {public}");
            }
            for inner in
                ["http://10.0.0.7/", "http://127.0.0.1:8081/", "http://169.254.169.254/", "file:///x"]
            {
                assert_eq!(way(&reach, inner).await, None, "{home} {inner}");
            }
        }
    }

    #[tokio::test]
    async fn an_upstream_of_an_allowed_network_leads_to_those() {
        let names: &[(&str, &[&str])] = &[("repo.test", &["10.0.0.5"])];
        for home in ["http://10.0.0.5/x", "http://repo.test/x"] {
            let reach = reach("10.0.0.0/8,127.0.0.0/8,192.168.0.0/16:8443", home, names);
            for inner in
                ["http://10.0.0.7:99/", "http://192.168.0.1:8443/", "http://files.test/", "http://127.0.0.1/"]
            {
                assert_eq!(way(&reach, inner).await, Some(Way::Beside), "{home} {inner}");
            }
            for refused in
                ["http://127.0.0.1:8081/", "http://192.168.0.1/", "http://172.16.0.1/", "http://[::1]/"]
            {
                assert_eq!(way(&reach, refused).await, None, "{home} {refused}");
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
            let reach = reach(allowed, "http://127.0.0.1:8090/x", &[]);
            for url in ["http://127.0.0.2:8090/", "http://127.0.0.1:8091/", "http://127.0.0.1:1/"] {
                let expected = led.contains(&url).then_some(Way::Beside);
                assert_eq!(way(&reach, url).await, expected, "{allowed} {url}");
            }
        }
    }

    #[tokio::test]
    async fn names_are_judged_by_where_they_lead() {
        let all: Vec<IpAddr> =
            ["1.1.1.1", "10.0.0.7", "127.0.0.1", "172.16.0.1"].iter().map(|ip| ip.parse().unwrap()).collect();
        let admitted = |allowed: &str, way: Way| {
            let reach = reach(allowed, "http://10.0.0.5/", &[]);
            reach.admitted(way, &all).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let allowed = "10.0.0.0/8,127.0.0.0/8";
        assert_eq!(admitted(allowed, Way::Home), ["1.1.1.1", "10.0.0.7", "127.0.0.1"]);
        assert_eq!(admitted(allowed, Way::Beside), ["1.1.1.1", "10.0.0.7"]);
        assert_eq!(admitted(allowed, Way::Public), ["1.1.1.1"]);
        assert_eq!(admitted("127.0.0.0/8:*", Way::Beside), ["1.1.1.1", "127.0.0.1"]);
    }

    #[tokio::test]
    async fn a_public_name_does_not_turn_into_an_inner_one() {
        let names: &[(&str, &[&str])] = &[("repo.test", &["1.1.1.1", "10.0.0.5", "10.0.0.5"])];
        let reach = reach("10.0.0.0/8", "https://repo.test/", names);
        let look_up = async || reach.resolver(Way::Home).resolve("repo.test".parse().unwrap()).await;
        assert!(look_up().await.is_ok());
        assert!(look_up().await.is_err());
        assert_eq!(way(&reach, "https://10.0.0.7/").await, None);
    }
}
