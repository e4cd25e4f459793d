//! Where the server listens and by which addresses clients know it, and whether these fit together.

use url::Url;

use crate::{Config, Mistake, Reader, values};

/// The path of portal and API where one listener serves packages too, and `api_url` is not set.
const PORTAL: &str = "/portal";
/// First segments of paths that the repository host answers itself, and of the health and metrics of both hosts.
const RESERVED: [&str; 4] = ["repositories", "livez", "readyz", "metrics"];

impl Config {
    /// Whether one listener serves packages and API.
    pub fn has_one_listener(&self) -> bool {
        is_one(&self.packages_listen, &self.api_listen)
    }

    /// The path of the repository host in its public address, without a slash at its end; empty for none.
    pub fn base_path(&self) -> &str {
        self.base_url.as_ref().map_or("", path_of)
    }

    /// The same of portal and API.
    pub fn api_path(&self) -> &str {
        api_path(self.api_url.as_ref(), self.has_one_listener())
    }

    /// The public address of the API as it is set, without a slash at its end: `api_url`, or where one listener serves both, below
    /// the site of `base_url`.
    pub fn public_api_url(&self) -> Option<String> {
        let beside = || {
            let site = self.base_url.as_ref().filter(|_| self.has_one_listener())?.origin();
            Some(format!("{}{}", site.ascii_serialization(), self.api_path()))
        };
        self.api_url.as_ref().map(|url| url.as_str().trim_end_matches('/').to_owned()).or_else(beside)
    }

    /// The listener that is on every address of the machine while no public address is set, by its setting.
    pub fn unspecified_listener(&self) -> Option<&'static str> {
        let is_unspecified = |listen: &str| {
            let host = listen.rsplit_once(':').map_or(listen, |(host, _)| host).trim_matches(['[', ']']);
            host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_unspecified())
        };
        let open = [("packages_listen", &self.packages_listen), ("api_listen", &self.api_listen)];
        let mut open = open.into_iter().filter(|(_, listen)| is_unspecified(listen));
        open.next().map(|(name, _)| name).filter(|_| self.base_url.is_none())
    }
}

/// Two listeners at port 0 get two ports.
fn is_one(packages: &str, api: &str) -> bool {
    packages == api && !packages.ends_with(":0")
}

/// A public address of packages. Its path does not begin like one of the repository host: a proxy may take it off before a request
/// arrives.
pub fn base_url(text: &str) -> Result<Url, String> {
    let url = values::public_url(text)?;
    if RESERVED.contains(&first_segment(url.path())) {
        return Err("has a path that begins like one of the repository host, so a request could mean either; write as in \
            https://tools.example/packages"
            .to_owned());
    }
    Ok(url)
}

/// The first segment of a path, without slashes; empty for the root.
pub fn first_segment(path: &str) -> &str {
    path.trim_start_matches('/').split('/').next().unwrap_or_default()
}

fn path_of(url: &Url) -> &str {
    url.path().trim_end_matches('/')
}

fn api_path(api_url: Option<&Url>, is_one: bool) -> &str {
    match api_url {
        Some(url) => path_of(url),
        None if is_one => PORTAL,
        None => "",
    }
}

impl Reader<'_> {
    /// Refuses listeners and addresses that cannot be served together.
    pub(crate) fn fitting_addresses(&self) -> Result<(), Mistake> {
        let [packages, api] = ["packages_listen", "api_listen"].map(|name| self.text(name).trim());
        if !is_one(packages, api) {
            return Ok(());
        }
        let base_url = self.parse_some("base_url", base_url)?;
        let api_url = self.parse_some("api_url", values::public_url)?;
        let (base, api) = (base_url.as_ref().map_or("", path_of), api_path(api_url.as_ref(), true));
        let below = |path: &str, other: &str| {
            path.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if api.is_empty() {
            let reason = "has no path, and packages are at the root: packages_listen and api_listen are one address; write \
                as in https://packages.example/portal, or set another api_listen";
            return Err(self.mistake("api_url", reason));
        }
        if below(base, api) {
            let reason = "lies below the path of the API, which one listener serves too; set base_url and api_url to \
                different paths, or another api_listen";
            return Err(self.mistake("base_url", reason));
        }
        if RESERVED.contains(&first_segment(api)) {
            let reason = "has a path that packages have already; write as in https://packages.example/portal";
            return Err(self.mistake("api_url", reason));
        }
        for (own, other) in [("tls.packages_cert", "tls.api_cert"), ("tls.packages_key", "tls.api_key")] {
            if self.text(own) != self.text(other) {
                let reason = format!(
                    "is not that of {other}, and one listener serves both; set tls.cert and tls.key instead"
                );
                return Err(self.mistake(own, &reason));
            }
        }
        Ok(())
    }
}
