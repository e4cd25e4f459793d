//! A test's own certificate authority, made with the `openssl` program. It issues the certificates
//! that the server under test presents.

use crate::tls::{authority, openssl};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The authority. Dropping it removes its folder.
#[derive(Debug)]
pub struct Authority {
    home: TempDir,
}

impl Authority {
    /// Makes a fresh authority; the error says that `openssl` is missing.
    pub fn new() -> Result<Self, String> {
        let home = TempDir::new().expect("a folder");
        authority(home.path())?;
        Ok(Self { home })
    }

    /// The path of the authority's own certificate.
    pub fn ca(&self) -> PathBuf {
        self.folder().join("ca.pem")
    }

    /// The folder with all files of the authority.
    pub fn folder(&self) -> &Path {
        self.home.path()
    }

    /// Makes a key and a certificate for these names (`DNS:a.example`, `IP:127.0.0.1`). Returns the
    /// paths of the files `NAME.pem` and `NAME.key`.
    #[track_caller]
    pub fn issue(&self, name: &str, names: &[&str]) -> [PathBuf; 2] {
        self.issue_for(name, names, "-days 2")
    }

    /// Like `issue`, for a validity period in the form that `openssl x509` takes.
    #[track_caller]
    pub fn issue_for(&self, name: &str, names: &[&str], time: &str) -> [PathBuf; 2] {
        let make = format!(
            "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout {name}.key -out {name}.csr -subj /CN={name} \
             -addext subjectAltName={}",
            names.join(",")
        );
        openssl(self.folder(), &make).expect("openssl");
        let sign = format!(
            "x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial {time} -copy_extensions copy -out {name}.pem"
        );
        openssl(self.folder(), &sign).expect("openssl");
        [self.folder().join(format!("{name}.pem")), self.folder().join(format!("{name}.key"))]
    }
}
