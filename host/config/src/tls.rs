//! What the operator sets of TLS: files for each listener, ACME, the redirect.

use std::path::PathBuf;

use url::Url;

use crate::{Mistake, Reader, Secret, values};

/// The settings under `tls`.
#[derive(Clone, Debug, Default)]
pub struct TlsSettings {
    /// For the repository host; empty: none from files.
    pub packages: Vec<CertificateFiles>,
    /// For the API; empty: none from files.
    pub api: Vec<CertificateFiles>,
    /// `host:port` of a plain listener that leads to https.
    pub redirect_listen: Option<String>,
    /// Seconds for which browsers keep to https; none for no such field.
    pub hsts_s: Option<u64>,
    /// Certificates that are ordered.
    pub acme: Option<AcmeSettings>,
}

impl TlsSettings {
    /// Whether the repository host speaks TLS.
    pub fn serves_packages(&self) -> bool {
        !self.packages.is_empty() || self.acme.is_some()
    }

    /// Whether the API speaks TLS.
    pub fn serves_api(&self) -> bool {
        !self.api.is_empty() || self.acme.is_some()
    }
}

/// One certificate with its key, as files.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CertificateFiles {
    /// The certificate, and those that signed it.
    pub cert: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// How a name is proven to an authority.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AcmeChallenge {
    /// RFC 8737: in a handshake of TLS.
    TlsAlpn,
    /// RFC 8555, section 8.3: by a file over plain HTTP.
    Http,
}

/// The settings under `tls.acme`.
#[derive(Clone, Debug)]
pub struct AcmeSettings {
    /// The directory.
    pub directory: Url,
    /// Names of the certificate: at least one, in lower case, each once, in order.
    pub domains: Vec<String>,
    /// Whom the authority writes to.
    pub email: Option<String>,
    /// How names are proven.
    pub challenge: AcmeChallenge,
    /// Authorities for the directory's own certificate.
    pub ca: Option<PathBuf>,
    /// Key identifier and key of an external account.
    pub external_account: Option<(String, Secret)>,
}

impl Reader<'_> {
    /// What is set of TLS, and whether it fits together.
    pub(crate) fn tls(&self) -> Result<TlsSettings, Mistake> {
        let both = self.files("tls.cert", "tls.key")?;
        let own = |cert: &str, key: &str| -> Result<Vec<CertificateFiles>, Mistake> {
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
            return Err(self.mistake(
                "tls.redirect_listen",
                "leads to https, which no listener speaks; set tls.cert and tls.key, or tls.acme.enabled, too",
            ));
        }
        Ok(settings)
    }

    fn files(&self, cert: &str, key: &str) -> Result<Vec<CertificateFiles>, Mistake> {
        let (certs, keys) = (self.paths(cert), self.paths(key));
        if keys.is_empty() && !certs.is_empty() {
            return Err(self
                .mistake(cert, &format!("has no key beside it; set {key} to the file of its private key")));
        }
        if certs.is_empty() && !keys.is_empty() {
            return Err(self.mistake(key, &format!("has no certificate beside it; set {cert} to its file")));
        }
        if certs.len() != keys.len() {
            let (certs, keys) = (certs.len(), keys.len());
            return Err(self.mistake(
                key,
                &format!("names {keys} keys where {cert} names {certs} certificates; name one for each, in the same order"),
            ));
        }
        Ok(certs.into_iter().zip(keys).map(|(cert, key)| CertificateFiles { cert, key }).collect())
    }

    fn acme(&self) -> Result<Option<AcmeSettings>, Mistake> {
        let enabled = self.parse("tls.acme.enabled", values::switch)?;
        let directory = self.parse("tls.acme.directory", values::directory)?;
        let mut domains = self.parse("tls.acme.domains", values::domains)?;
        let email = self.parse_some("tls.acme.email", |text| {
            crate::email(text).ok_or_else(|| "is no e-mail address; write as in ops@example.com".to_owned())
        })?;
        let challenge = self.parse("tls.acme.challenge", |text| match text {
            "tls-alpn-01" => Ok(AcmeChallenge::TlsAlpn),
            "http-01" => Ok(AcmeChallenge::Http),
            _ => Err("is no way to prove a name; write tls-alpn-01 or http-01".to_owned()),
        })?;
        if !enabled {
            return Ok(None);
        }
        if domains.is_empty() {
            for name in ["base_url", "api_url"] {
                let url = self.parse_some(name, values::public_url)?;
                let host = url.as_ref().and_then(|url| url.host_str()).unwrap_or_default();
                // An address that is no name needs a certificate from elsewhere.
                let names = values::domains(host).map_err(|reason| self.mistake(name, &reason))?;
                for name in names {
                    if !domains.contains(&name) {
                        domains.push(name);
                    }
                }
            }
        }
        if domains.is_empty() {
            return Err(self.mistake(
                "tls.acme.enabled",
                "orders a certificate and nothing says for which names; set base_url and api_url, or tls.acme.domains",
            ));
        }
        domains.sort();
        if challenge == AcmeChallenge::Http && self.some("tls.redirect_listen").is_none() {
            return Err(self.mistake(
                "tls.acme.challenge",
                "needs a plain listener on which the authority finds the answer; set tls.redirect_listen, as to 0.0.0.0:80",
            ));
        }
        let external_account = match (self.some("tls.acme.eab_kid"), self.some("tls.acme.eab_key")) {
            (None, None) => None,
            (Some(id), Some(key)) => Some((id.to_owned(), Secret::new(key))),
            (Some(_), None) => {
                return Err(self.mistake("tls.acme.eab_kid", "has no key beside it; set tls.acme.eab_key"));
            }
            (None, Some(_)) => {
                return Err(
                    self.mistake("tls.acme.eab_key", "has no identifier beside it; set tls.acme.eab_kid")
                );
            }
        };
        let ca = self.some("tls.acme.ca").map(PathBuf::from);
        Ok(Some(AcmeSettings { directory, domains, email, challenge, ca, external_account }))
    }

    /// Whether connections begin with a PROXY header: only from networks that somebody named.
    pub(crate) fn proxy_protocol(&self) -> Result<bool, Mistake> {
        let on = self.parse("proxy_protocol", values::switch)?;
        if on && self.some("trusted_proxies").is_none() {
            return Err(self.mistake(
                "proxy_protocol",
                "trusts whoever connects to name the client, and nobody is to be trusted; set trusted_proxies to the proxy's network",
            ));
        }
        Ok(on)
    }
}
