//! Listeners and public addresses, and the check that listeners and addresses fit together.

use url::Url;

use crate::{Config, ConfigError, SettingsReader, values};

/// Path of the portal and the API if packages share their listener and `api_url` is not set.
const PORTAL: &str = "/portal";
/// First path segments of the repository host's own routes, and of the health checks and metrics of
/// both hosts.
const RESERVED: [&str; 4] = ["repositories", "livez", "readyz", "metrics"];

impl Config {
    /// Returns whether packages and API share one listener.
    pub fn has_one_listener(&self) -> bool {
        is_one(&self.packages_listen, &self.api_listen)
    }

    /// Returns the path of the repository host's public address, without a trailing slash. Returns
    /// an empty text if the address has no path.
    pub fn base_path(&self) -> &str {
        self.base_url.as_ref().map_or("", path_of)
    }

    /// Returns the path of the public address of portal and API, without a trailing slash. Returns
    /// an empty text if the address has no path.
    pub fn api_path(&self) -> &str {
        api_path(self.api_url.as_ref(), self.has_one_listener())
    }

    /// Returns the public address of the API, without a trailing slash: `api_url` if it is set.
    /// Otherwise, if one listener serves packages and API, a path on the site of `base_url`.
    pub fn public_api_url(&self) -> Option<String> {
        let beside = || {
            let site = self.base_url.as_ref().filter(|_| self.has_one_listener())?.origin();
            Some(format!("{}{}", site.ascii_serialization(), self.api_path()))
        };
        self.api_url.as_ref().map(|url| url.as_str().trim_end_matches('/').to_owned()).or_else(beside)
    }

    /// Returns the name of a listener setting that opens the port on all addresses of the machine.
    /// Returns `None` if there is no such setting, or if `base_url` is set.
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

/// Returns whether both settings mean one listener. Two settings with port 0 do not: the system
/// assigns two different ports.
fn is_one(packages: &str, api: &str) -> bool {
    packages == api && !packages.ends_with(":0")
}

/// Parses `base_url`, the public address of packages. Refuses a path that begins with one of
/// `RESERVED`: a proxy may strip the path, so a request could mean either.
pub fn base_url(text: &str) -> Result<Url, String> {
    let url = values::public_url(text)?;
    if RESERVED.contains(&first_segment(url.path())) {
        return Err("has a path that begins like one of the repository host, so a request could mean \
            either; choose another, for example https://tools.example/packages"
            .to_owned());
    }
    Ok(url)
}

/// Returns the first segment of a path, without slashes. Returns an empty text for the root.
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

impl SettingsReader<'_> {
    /// Refuses listeners and addresses that do not fit together.
    pub(crate) fn fitting_addresses(&self) -> Result<(), ConfigError> {
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
            let reason = "needs a path, because packages_listen and api_listen are the same address and \
                packages are served at the root; add a path, for example https://packages.example/portal, or \
                set another api_listen";
            return Err(self.error("api_url", reason));
        }
        if below(base, api) {
            let reason = "is below the path of api_url, and the same listener serves both; use different \
                paths in base_url and api_url, or set another api_listen";
            return Err(self.error("base_url", reason));
        }
        if RESERVED.contains(&first_segment(api)) {
            let reason = "has a path that the repository host uses; choose another, for example \
                https://packages.example/portal";
            return Err(self.error("api_url", reason));
        }
        for (own, other) in [("tls.packages_cert", "tls.api_cert"), ("tls.packages_key", "tls.api_key")] {
            if self.text(own) != self.text(other) {
                let reason = format!(
                    "differs from {other}, but one listener serves both; set tls.cert and tls.key instead"
                );
                return Err(self.error(own, &reason));
            }
        }
        Ok(())
    }
}
