//! What is kept in the database of ordering certificates: the account, the certificate with its key, and what failed last. Sealed, each
//! for its own name.

use std::time::Duration;

use anyhow::Context;
use packhouse_config::Secret;
use packhouse_config::tls::AcmeSettings;
use packhouse_identity::Sealer;
use packhouse_store::{Store, now_ms};
use packhouse_wire::tls::{Certificate, CertificateError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A certificate as it is kept. Shows nothing of its key.
#[derive(Clone, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Kept {
    /// The certificate and those that signed it, as PEM.
    pub(super) chain: String,
    /// Its key, as PEM.
    pub(super) key: String,
}

impl Kept {
    /// What can be served of it.
    pub(crate) fn certificate(&self) -> Result<Certificate, CertificateError> {
        let places = ["the certificate that was ordered", "its key"];
        Certificate::from_pem(self.chain.as_bytes(), self.key.as_bytes(), places)
    }
}

/// What failed last.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Failure {
    /// How often in a row.
    pub(crate) count: u32,
    /// Why, for the operator.
    pub(crate) why: String,
    /// When, in ms since 1970.
    at: i64,
    /// When it is tried again.
    again: i64,
}

impl Failure {
    /// One that happened just now.
    pub(super) fn now(count: u32, why: String, pause: Duration) -> Failure {
        let at = now_ms();
        Failure {
            count,
            why,
            at,
            again: at.saturating_add(i64::try_from(pause.as_millis()).unwrap_or(i64::MAX)),
        }
    }

    /// How long it is not tried again.
    pub(super) fn pause_left(&self) -> Duration {
        Duration::from_millis(u64::try_from(self.again.saturating_sub(now_ms())).unwrap_or_default())
    }

    /// What the operator reads.
    pub(crate) fn sentence(&self) -> String {
        let (times, minutes) = (self.count, self.pause_left().as_secs() / 60 + 1);
        let why = self.why.trim_end_matches('.');
        format!(
            "no certificate could be ordered ({times} times in a row): {why}. It is tried again in {minutes} minutes, or at once \
             after SIGHUP"
        )
    }
}

/// The place of one directory and one list of names.
pub(crate) struct Shelf {
    account: String,
    certificate: String,
    failure: String,
}

impl Shelf {
    /// For these settings.
    pub(crate) fn new(settings: &AcmeSettings) -> Shelf {
        let (directory, domains) = (&settings.directory, settings.domains.join(","));
        Shelf {
            account: format!("account {directory}"),
            certificate: format!("certificate {directory} {domains}"),
            failure: format!("failure {directory} {domains}"),
        }
    }

    /// Under which name the turn to order is taken.
    pub(super) fn name(&self) -> &str {
        &self.certificate
    }

    /// The certificate; none where none was ordered, or another key sealed it.
    pub(crate) async fn certificate(&self, store: &Store, sealer: &Sealer) -> anyhow::Result<Option<Kept>> {
        read(store, sealer, &self.certificate).await
    }

    /// Keeps a certificate for all servers.
    pub(super) async fn keep_certificate(
        &self,
        store: &Store,
        sealer: &Sealer,
        kept: &Kept,
    ) -> anyhow::Result<()> {
        keep(store, sealer, &self.certificate, Some(kept)).await
    }

    /// What failed since the last success.
    pub(crate) async fn failure(&self, store: &Store, sealer: &Sealer) -> anyhow::Result<Option<Failure>> {
        read(store, sealer, &self.failure).await
    }

    /// Keeps what failed, or that nothing did.
    pub(super) async fn keep_failure(
        &self,
        store: &Store,
        sealer: &Sealer,
        failure: Option<&Failure>,
    ) -> anyhow::Result<()> {
        keep(store, sealer, &self.failure, failure).await
    }

    /// The account at the authority.
    pub(super) async fn account<T: DeserializeOwned>(
        &self,
        store: &Store,
        sealer: &Sealer,
    ) -> anyhow::Result<Option<T>> {
        read(store, sealer, &self.account).await
    }

    /// Keeps the account.
    pub(super) async fn keep_account(
        &self,
        store: &Store,
        sealer: &Sealer,
        account: &impl Serialize,
    ) -> anyhow::Result<()> {
        keep(store, sealer, &self.account, Some(account)).await
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
        // As good as none: it is ordered, or registered, anew.
        Err(error) => {
            tracing::warn!(%error, name, "what was kept for ACME cannot be opened");
            Ok(None)
        }
    }
}

async fn keep(
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
