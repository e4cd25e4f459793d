//! ACME state in the database: the account, the certificate with its key, and the last failure.
//! Each value is sealed for its own name.

use std::time::Duration;

use anyhow::Context;
use packhouse_config::Secret;
use packhouse_config::tls::AcmeSettings;
use packhouse_identity::Sealer;
use packhouse_store::{Store, now_ms};
use packhouse_wire::tls::{Certificate, CertificateError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A stored certificate. It has no `Debug`, so that its key is never printed.
#[derive(Clone, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct StoredCertificate {
    /// The certificate and its issuers, as PEM.
    pub(super) chain: String,
    /// The private key, as PEM.
    pub(super) key: String,
}

impl StoredCertificate {
    /// Parses the certificate and checks that it can be served.
    pub(crate) fn certificate(&self) -> Result<Certificate, CertificateError> {
        let places = ["the ordered certificate", "its key"];
        Certificate::from_pem(self.chain.as_bytes(), self.key.as_bytes(), places)
    }
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct OrderFailure {
    /// Number of failures in a row.
    pub(crate) count: u32,
    pub(crate) why: String,
    /// Time of the failure, in ms since 1970.
    at: i64,
    /// Time of the next attempt, in ms since 1970.
    again: i64,
}

impl OrderFailure {
    /// Creates a failure that happened now.
    pub(super) fn now(count: u32, why: String, pause: Duration) -> OrderFailure {
        let at = now_ms();
        OrderFailure {
            count,
            why,
            at,
            again: at.saturating_add(i64::try_from(pause.as_millis()).unwrap_or(i64::MAX)),
        }
    }

    /// Time until the next attempt.
    pub(super) fn pause_left(&self) -> Duration {
        Duration::from_millis(u64::try_from(self.again.saturating_sub(now_ms())).unwrap_or_default())
    }

    /// Describes the failure for the operator.
    pub(crate) fn sentence(&self) -> String {
        let (times, minutes) = (self.count, self.pause_left().as_secs() / 60 + 1);
        let why = self.why.trim_end_matches('.');
        format!(
            "no certificate could be ordered ({times} times in a row): {why}. The next attempt is in {minutes} minutes, or immediately \
             after SIGHUP"
        )
    }
}

/// Access to the ACME state in the database, for one ACME directory and one list of domains.
pub(crate) struct AcmeStore {
    account: String,
    certificate: String,
    failure: String,
}

impl AcmeStore {
    /// Creates the access for these settings.
    pub(crate) fn new(settings: &AcmeSettings) -> AcmeStore {
        let (directory, domains) = (&settings.directory, settings.domains.join(","));
        AcmeStore {
            account: format!("account {directory}"),
            certificate: format!("certificate {directory} {domains}"),
            failure: format!("failure {directory} {domains}"),
        }
    }

    /// Name of the lock that a server holds while it orders.
    pub(super) fn name(&self) -> &str {
        &self.certificate
    }

    /// Reads the certificate. `None` if it is missing, or if it was sealed with another key.
    pub(crate) async fn certificate(
        &self,
        store: &Store,
        sealer: &Sealer,
    ) -> anyhow::Result<Option<StoredCertificate>> {
        read(store, sealer, &self.certificate).await
    }

    /// Stores a certificate for all servers.
    pub(super) async fn store_certificate(
        &self,
        store: &Store,
        sealer: &Sealer,
        certificate: &StoredCertificate,
    ) -> anyhow::Result<()> {
        write(store, sealer, &self.certificate, Some(certificate)).await
    }

    /// Reads the last failure. `None` if no order has failed since the last success.
    pub(crate) async fn failure(
        &self,
        store: &Store,
        sealer: &Sealer,
    ) -> anyhow::Result<Option<OrderFailure>> {
        read(store, sealer, &self.failure).await
    }

    /// Stores the last failure, or clears it.
    pub(super) async fn store_failure(
        &self,
        store: &Store,
        sealer: &Sealer,
        failure: Option<&OrderFailure>,
    ) -> anyhow::Result<()> {
        write(store, sealer, &self.failure, failure).await
    }

    /// Reads the account at the certificate authority.
    pub(super) async fn account<T: DeserializeOwned>(
        &self,
        store: &Store,
        sealer: &Sealer,
    ) -> anyhow::Result<Option<T>> {
        read(store, sealer, &self.account).await
    }

    /// Stores the account at the certificate authority.
    pub(super) async fn store_account(
        &self,
        store: &Store,
        sealer: &Sealer,
        account: &impl Serialize,
    ) -> anyhow::Result<()> {
        write(store, sealer, &self.account, Some(account)).await
    }
}

fn purpose(name: &str) -> String {
    format!("acme {name}")
}

async fn read<T: DeserializeOwned>(store: &Store, sealer: &Sealer, name: &str) -> anyhow::Result<Option<T>> {
    let Some(sealed) = store.acme_value(name).await.context("failed to read the database")? else {
        return Ok(None);
    };
    match sealer.open(&purpose(name), &sealed) {
        Ok(text) => Ok(serde_json::from_str(text.reveal()).ok()),
        // Treated as missing: the certificate is ordered, or the account registered, again.
        Err(error) => {
            tracing::warn!(%error, name, "stored ACME data cannot be decrypted");
            Ok(None)
        }
    }
}

async fn write(
    store: &Store,
    sealer: &Sealer,
    name: &str,
    value: Option<&impl Serialize>,
) -> anyhow::Result<()> {
    let seal = |value| -> anyhow::Result<String> {
        Ok(sealer.seal(&purpose(name), &Secret::new(serde_json::to_string(value)?))?)
    };
    let sealed = value.map(seal).transpose()?;
    store.set_acme_value(name, sealed.as_deref()).await.context("failed to write the database")
}
