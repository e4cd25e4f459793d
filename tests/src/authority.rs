//! An authority of a test's own, made by the `openssl` program, whose certificates the server under test serves.

use crate::tls::{authority, openssl};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The authority, in a folder that goes when it goes.
#[derive(Debug)]
pub struct Authority {
    home: TempDir,
}

impl Authority {
    /// A fresh one; the reason when there is no `openssl`.
    pub fn new() -> Result<Self, String> {
        let home = TempDir::new().expect("a folder");
        authority(home.path())?;
        Ok(Self { home })
    }

    /// Where its own certificate lies.
    pub fn ca(&self) -> PathBuf {
        self.folder().join("ca.pem")
    }

    /// The folder of everything that it made.
    pub fn folder(&self) -> &Path {
        self.home.path()
    }

    /// Signs a certificate for these names (`DNS:a.example`, `IP:127.0.0.1`), in the files `NAME.pem` and `NAME.key`.
    #[track_caller]
    pub fn issue(&self, name: &str, names: &[&str]) -> [PathBuf; 2] {
        self.issue_for(name, names, "-days 2")
    }

    /// The same for a time as `openssl x509` takes it.
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
