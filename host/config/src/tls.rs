//! TLS settings: certificate files for each listener, ACME, and the redirect to https.

use std::path::PathBuf;

use url::Url;

use crate::{ConfigError, Secret, SettingsReader, values};

#[derive(Clone, Debug, Default)]
pub struct TlsSettings {
    /// Certificate files of the repository host. May be empty.
    pub packages: Vec<CertificateFiles>,
    /// Certificate files of the API. May be empty.
    pub api: Vec<CertificateFiles>,
    /// `host:port` of a plain HTTP listener that redirects to https.
    pub redirect_listen: Option<String>,
    /// Seconds for which browsers use only https (`Strict-Transport-Security`); `None` omits the
    /// header.
    pub hsts_s: Option<u64>,
    pub acme: Option<AcmeSettings>,
}

impl TlsSettings {
    /// Returns whether the repository host uses TLS.
    pub fn serves_packages(&self) -> bool {
        !self.packages.is_empty() || self.acme.is_some()
    }

    /// Returns whether the API uses TLS.
    pub fn serves_api(&self) -> bool {
        !self.api.is_empty() || self.acme.is_some()
    }
}

/// The files of one certificate and its key.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CertificateFiles {
    /// The certificate with its chain.
    pub cert: PathBuf,
    pub key: PathBuf,
}

/// Method that proves control of a domain name to a certificate authority.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AcmeChallenge {
    /// A certificate in a TLS handshake (RFC 8737).
    TlsAlpn,
    /// A file over plain HTTP (RFC 8555, section 8.3).
    Http,
}

#[derive(Clone, Debug)]
pub struct AcmeSettings {
    pub directory: Url,
    /// Names of the certificate: at least one, in lower case, without duplicates, sorted.
    pub domains: Vec<String>,
    /// Contact address for the authority.
    pub email: Option<String>,
    pub challenge: AcmeChallenge,
    /// Additional certificate authorities that the server trusts when it connects to the ACME
    /// directory.
    pub ca: Option<PathBuf>,
    /// Key identifier and key of an external account.
    pub external_account: Option<(String, Secret)>,
}

impl SettingsReader<'_> {
    /// Reads the TLS settings and checks that they are consistent.
    pub(crate) fn tls(&self) -> Result<TlsSettings, ConfigError> {
        let both = self.files("tls.cert", "tls.key")?;
        let own = |cert: &str, key: &str| -> Result<Vec<CertificateFiles>, ConfigError> {
            let own = self.files(cert, key)?;
            Ok(if own.is_empty() { both.clone() } else { own })
        };
        let settings = TlsSettings {
            packages: own("tls.packages_cert", "tls.packages_key")?,
            api: own("tls.api_cert", "tls.api_key")?,
            redirect_listen: self.parse_some("tls.redirect_listen", values::address)?,
            hsts_s: Some(self.parse("tls.hsts_s", values::count)?).filter(|seconds| *seconds > 0),
            acme: self.acme()?,
        };
        if settings.redirect_listen.is_some() && !settings.serves_packages() && !settings.serves_api() {
            return Err(self.error(
                "tls.redirect_listen",
                "redirects to https, but no listener serves https; also set tls.cert and tls.key, or \
                 tls.acme.enabled",
            ));
        }
        Ok(settings)
    }

    fn files(&self, cert: &str, key: &str) -> Result<Vec<CertificateFiles>, ConfigError> {
        let (certs, keys) = (self.paths(cert), self.paths(key));
        if keys.is_empty() && !certs.is_empty() {
            return Err(self.error(cert, &format!("needs a private key; set {key} to its file")));
        }
        if certs.is_empty() && !keys.is_empty() {
            return Err(self.error(key, &format!("needs a certificate; set {cert} to its file")));
        }
        if certs.len() != keys.len() {
            let (certs, keys) = (certs.len(), keys.len());
            return Err(self.error(
                key,
                &format!(
                    "lists {keys} keys, but {cert} lists {certs} certificates; list one key for each \
                     certificate, in the same order"
                ),
            ));
        }
        Ok(certs.into_iter().zip(keys).map(|(cert, key)| CertificateFiles { cert, key }).collect())
    }

    fn acme(&self) -> Result<Option<AcmeSettings>, ConfigError> {
        let enabled = self.parse("tls.acme.enabled", values::switch)?;
        let directory = self.parse("tls.acme.directory", values::directory)?;
        let mut domains = self.parse("tls.acme.domains", values::domains)?;
        let email = self.parse_some("tls.acme.email", |text| {
            crate::email(text).ok_or_else(|| "is not an e-mail address such as ops@example.com".to_owned())
        })?;
        let challenge = self.parse("tls.acme.challenge", |text| match text {
            "tls-alpn-01" => Ok(AcmeChallenge::TlsAlpn),
            "http-01" => Ok(AcmeChallenge::Http),
            _ => Err("is not an ACME challenge; expected tls-alpn-01 or http-01".to_owned()),
        })?;
        if !enabled {
            return Ok(None);
        }
        if domains.is_empty() {
            for name in ["base_url", "api_url"] {
                let url = self.parse_some(name, values::public_url)?;
                let host = url.as_ref().and_then(|url| url.host_str()).unwrap_or_default();
                // Authorities do not issue certificates for IP addresses, so `domains` refuses
                // them.
                let names = values::domains(host).map_err(|reason| self.error(name, &reason))?;
                for name in names {
                    if !domains.contains(&name) {
                        domains.push(name);
                    }
                }
            }
        }
        if domains.is_empty() {
            return Err(self.error(
                "tls.acme.enabled",
                "orders a certificate, but no host name is known for it; set base_url and api_url, or \
                 tls.acme.domains",
            ));
        }
        domains.sort();
        if challenge == AcmeChallenge::Http && self.some("tls.redirect_listen").is_none() {
            return Err(self.error(
                "tls.acme.challenge",
                "needs a plain HTTP listener that the authority can reach; set tls.redirect_listen, for \
                 example to 0.0.0.0:80",
            ));
        }
        let external_account = match (self.some("tls.acme.eab_kid"), self.some("tls.acme.eab_key")) {
            (None, None) => None,
            (Some(id), Some(key)) => Some((id.to_owned(), Secret::new(key))),
            (Some(_), None) => {
                return Err(self.error(
                    "tls.acme.eab_kid",
                    "needs the key of the external account; set tls.acme.eab_key",
                ));
            }
            (None, Some(_)) => {
                return Err(self.error(
                    "tls.acme.eab_key",
                    "needs the identifier of the external account; set tls.acme.eab_kid",
                ));
            }
        };
        let ca = self.some("tls.acme.ca").map(PathBuf::from);
        Ok(Some(AcmeSettings { directory, domains, email, challenge, ca, external_account }))
    }

    /// Returns whether connections begin with a PROXY header. This setting needs `trusted_proxies`,
    /// because the server accepts the header only from those networks.
    pub(crate) fn proxy_protocol(&self) -> Result<bool, ConfigError> {
        let on = self.parse("proxy_protocol", values::switch)?;
        if on && self.some("trusted_proxies").is_none() {
            return Err(self.error(
                "proxy_protocol",
                "needs trusted networks, because the PROXY header is accepted only from them; set \
                 trusted_proxies to the proxy's network",
            ));
        }
        Ok(on)
    }
}
