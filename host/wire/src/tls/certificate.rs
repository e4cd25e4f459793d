//! Certificates with their keys, from files or the database, checked before use.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys};
use x509_parser::extensions::GeneralName;
use x509_parser::parse_x509_certificate;

use super::provider;
use packhouse_config::tls::CertificateFiles;

/// Reason why a certificate cannot be used. The messages are for the operator and never contain a
/// key.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The file could not be read.
    #[error("the file {} cannot be read: {source}", file.display())]
    Unreadable {
        /// Path of the unreadable file.
        file: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The file contains no certificate.
    #[error("{0} contains no certificate in PEM format (-----BEGIN CERTIFICATE-----)")]
    NoCertificate(String),
    /// The file contains no usable private key.
    #[error("{0} contains no private key in PEM format without a passphrase (-----BEGIN PRIVATE KEY-----)")]
    NoKey(String),
    /// The certificate or key is damaged or of an unsupported kind.
    #[error("{place} cannot be used for TLS: {why}")]
    Unusable {
        /// Name of the file or other source.
        place: String,
        /// Description of the problem in words.
        why: String,
    },
    /// The key belongs to another certificate.
    #[error("the private key in {key} does not belong to the certificate in {cert}")]
    Mismatch {
        /// File or other source of the certificate.
        cert: String,
        /// File or other source of the private key.
        key: String,
    },
}

/// Maximum size of a PEM file. A longer file is probably the wrong one.
const LONGEST: u64 = 1024 * 1024;

/// Reads a file with certificates or a key. `InvalidData` if it is larger than 1 MiB.
pub fn read_pem(file: &Path) -> io::Result<Vec<u8>> {
    let mut pem = Vec::new();
    File::open(file)?.take(LONGEST + 1).read_to_end(&mut pem)?;
    if pem.len() as u64 > LONGEST {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the file is larger than 1 MiB"));
    }
    Ok(pem)
}

/// A certificate that is ready for use.
#[derive(Clone, Debug)]
pub struct Certificate {
    key: Arc<CertifiedKey>,
    names: Vec<String>,
    begins: i64,
    ends: i64,
}

impl Certificate {
    /// Reads a certificate and its key from files.
    pub fn load(files: &CertificateFiles) -> Result<Certificate, CertificateError> {
        let read = |file: &Path| {
            read_pem(file).map_err(|source| CertificateError::Unreadable { file: file.to_owned(), source })
        };
        let (chain, key) = (read(&files.cert)?, read(&files.key)?);
        Certificate::from_pem(
            &chain,
            &key,
            [&files.cert.display().to_string(), &files.key.display().to_string()],
        )
    }

    /// Parses the chain and the key from PEM. `places` names both sources in errors.
    pub fn from_pem(chain: &[u8], key: &[u8], places: [&str; 2]) -> Result<Certificate, CertificateError> {
        let [cert_place, key_place] = places;
        let unusable = |place: &str, why: &dyn std::fmt::Display| CertificateError::Unusable {
            place: place.to_owned(),
            why: why.to_string(),
        };
        let chain: Result<Vec<CertificateDer<'static>>, _> = CertificateDer::pem_slice_iter(chain).collect();
        let chain = chain.map_err(|error| unusable(cert_place, &error))?;
        let first = chain.first().ok_or_else(|| CertificateError::NoCertificate(cert_place.to_owned()))?;
        let (names, begins, ends) =
            facts(first).ok_or_else(|| unusable(cert_place, &"its first certificate is damaged"))?;
        let key =
            PrivateKeyDer::from_pem_slice(key).map_err(|_| CertificateError::NoKey(key_place.to_owned()))?;
        let key = provider().key_provider.load_private_key(key);
        let key = CertifiedKey::new(chain, key.map_err(|error| unusable(key_place, &error))?);
        match key.keys_match() {
            Ok(()) | Err(Error::InconsistentKeys(InconsistentKeys::Unknown)) => {}
            Err(Error::InconsistentKeys(_)) => {
                return Err(CertificateError::Mismatch {
                    cert: cert_place.to_owned(),
                    key: key_place.to_owned(),
                });
            }
            Err(error) => return Err(unusable(cert_place, &error)),
        }
        Ok(Certificate { key: Arc::new(key), names, begins, ends })
    }

    /// Returns the chain with the key.
    pub fn key(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.key)
    }

    /// Returns the host names in the certificate.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the start of the certificate's validity in Unix ms.
    pub fn begins(&self) -> i64 {
        self.begins
    }

    /// Returns the end of the certificate's validity in Unix ms.
    pub fn ends(&self) -> i64 {
        self.ends
    }

    /// Returns whether the certificate covers this host name.
    pub fn is_for(&self, host: &ServerName<'_>) -> bool {
        match host {
            ServerName::DnsName(host) => {
                let host = host.as_ref().to_ascii_lowercase();
                self.names.iter().any(|name| name_covers(name, &host))
            }
            ServerName::IpAddress(address) => {
                let address = std::net::IpAddr::from(*address).to_string();
                self.names.contains(&address)
            }
            _ => false,
        }
    }
}

/// Returns whether the name in a certificate covers this host; `*` stands for one label (RFC 6125,
/// section 6.4.3).
fn name_covers(name: &str, host: &str) -> bool {
    match name.strip_prefix("*.") {
        Some(rest) => host.split_once('.').is_some_and(|(label, tail)| !label.is_empty() && tail == rest),
        None => name == host,
    }
}

/// Returns the names of a certificate, and the start and end of its validity in Unix ms.
fn facts(certificate: &[u8]) -> Option<(Vec<String>, i64, i64)> {
    let (_, certificate) = parse_x509_certificate(certificate).ok()?;
    let mut names = Vec::new();
    for name in certificate
        .subject_alternative_name()
        .ok()
        .flatten()
        .iter()
        .flat_map(|list| &list.value.general_names)
    {
        match name {
            GeneralName::DNSName(name) => names.push(name.to_ascii_lowercase()),
            GeneralName::IPAddress(bytes) => names.extend(address(bytes)),
            _ => {}
        }
    }
    let validity = certificate.validity();
    let ms = |seconds: i64| seconds.saturating_mul(1000);
    Some((names, ms(validity.not_before.timestamp()), ms(validity.not_after.timestamp())))
}

fn address(bytes: &[u8]) -> Option<String> {
    if let Ok(four) = <[u8; 4]>::try_from(bytes) {
        return Some(std::net::IpAddr::from(four).to_string());
    }
    <[u8; 16]>::try_from(bytes).ok().map(|sixteen| std::net::IpAddr::from(sixteen).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_one_label() {
        for (name, host, covers) in [
            ("a.example", "a.example", true),
            ("a.example", "b.example", false),
            ("*.example", "a.example", true),
            ("*.example", "a.b.example", false),
            ("*.example", "example", false),
            ("*.example", ".example", false),
        ] {
            assert_eq!(name_covers(name, host), covers, "{name} {host}");
        }
    }

    #[test]
    fn unusable_certificates_have_readable_errors() {
        let error = |chain: &str, key: &str| {
            Certificate::from_pem(chain.as_bytes(), key.as_bytes(), ["a.pem", "a.key"])
                .unwrap_err()
                .to_string()
        };
        assert!(error("", "").contains("a.pem contains no certificate"));
        let nonsense = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(error(nonsense, "").contains("damaged"));
    }
}
