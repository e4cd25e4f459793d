//! Certificates by ACME (RFC 8555). The server orders a missing certificate, and renews each one
//! after two thirds of its validity. Account and certificate are sealed in the database, and all
//! its servers share them. Only one server orders at a time. After each consecutive failure, all
//! servers wait longer before the next order.

mod client;
mod order;
mod store;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use packhouse_config::tls::AcmeSettings;
use packhouse_store::now_ms;
use packhouse_wire::tls::{Certificate, Tls};
use tokio::sync::Mutex;

use packhouse_app::App;
use packhouse_app::jobs::{Job, Next};
use packhouse_app::metrics::ORDERS;

use self::store::{OrderFailure, StoredCertificate};

pub(crate) use self::store::AcmeStore;

/// How often to check the database for a certificate that another server ordered.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// Minimum time between two checks.
const SOONEST: Duration = Duration::from_millis(500);
/// Time limit of an order, and how long a server holds the lock for it.
const ORDER: Duration = Duration::from_secs(4 * 60);
const TURN: Duration = Duration::from_secs(5 * 60);
/// Pause after the first failure. Each further failure doubles it.
const FIRST_PAUSE: Duration = Duration::from_secs(60);
const LONGEST_PAUSE: Duration = Duration::from_secs(6 * 60 * 60);

/// Name under which ACME problems are reported.
const WHAT: &str = "acme";

/// The job that orders and renews certificates. `None` without ACME in the settings.
pub(super) fn job(app: &Arc<App>) -> Option<Job> {
    let orderer = Arc::new(Orderer::new(app, app.config.tls.acme.clone()?));
    let served = Arc::new(Mutex::new(None));
    let reloads = Arc::new(Mutex::new(app.reloads()));
    let reloaded = Arc::new(AtomicBool::new(false));
    let at_once = Arc::clone(&reloaded);
    let job = Job::with_state("renew-acme-certificates", CHECK_INTERVAL, move || {
        let (orderer, served, at_once) = (Arc::clone(&orderer), Arc::clone(&served), Arc::clone(&at_once));
        Box::pin(async move {
            let mut served = served.lock().await;
            Ok(Next::After(orderer.check(&mut served, at_once.swap(false, Ordering::Relaxed)).await?))
        })
    });
    // A reload of the settings wakes the job. The operator may have fixed the cause of a failure,
    // so the next attempt does not wait until the pause ends.
    Some(job.woken_by(move || {
        let (reloads, reloaded) = (Arc::clone(&reloads), Arc::clone(&reloaded));
        Box::pin(async move {
            reloads.lock().await.next().await;
            reloaded.store(true, Ordering::Relaxed);
        })
    }))
}

struct Orderer {
    app: Arc<App>,
    settings: AcmeSettings,
    acme_store: AcmeStore,
    /// TLS of the hosts without certificate files.
    listeners: Vec<Arc<Tls>>,
    /// Identifies this server among the servers that share the database.
    holder: String,
}

impl Orderer {
    fn new(app: &Arc<App>, settings: AcmeSettings) -> Orderer {
        let (files, secured) = (&app.config.tls, app.secured());
        let without = [(files.packages.is_empty(), secured.packages), (files.api.is_empty(), secured.api)];
        let listeners = without.into_iter().filter_map(|(without, tls)| tls.filter(|_| without)).collect();
        let holder = format!("{:016x}", rand::random::<u64>());
        Orderer { acme_store: AcmeStore::new(&settings), app: Arc::clone(app), settings, listeners, holder }
    }

    /// Serves the stored certificate and orders a new one if it is due. Returns the time until the
    /// next check.
    async fn check(&self, served: &mut Option<StoredCertificate>, at_once: bool) -> anyhow::Result<Duration> {
        let app = &self.app;
        let (store, sealer) = (&app.store, &app.sealer);
        let stored = self.acme_store.certificate(store, sealer).await?;
        let wait = match &stored {
            Some(stored) => until(self.serve(stored, served)?),
            None => Duration::ZERO,
        };
        if !wait.is_zero() {
            app.certificates.note(WHAT, None);
            return Ok(wait.clamp(SOONEST, CHECK_INTERVAL));
        }
        let failure = self.acme_store.failure(store, sealer).await?;
        if let Some(failure) = &failure {
            app.certificates.note(WHAT, Some(failure.sentence()));
            if failure.pause_left() > Duration::ZERO && !at_once {
                return Ok(failure.pause_left().clamp(SOONEST, CHECK_INTERVAL));
            }
        }
        if !store.acquire_acme_lock(self.acme_store.name(), &self.holder, TURN).await? {
            return Ok(SOONEST * 2);
        }
        // The previous holder of the lock may have ordered a certificate.
        let again = self.acme_store.certificate(store, sealer).await?;
        let done = match again.filter(|again| Some(again) != stored.as_ref()) {
            Some(newer) => self.serve(&newer, served).map(|_| ()),
            None => self.order(served, failure).await,
        };
        store.release_acme_lock(self.acme_store.name(), &self.holder).await?;
        done.map(|()| SOONEST)
    }

    async fn order(
        &self,
        served: &mut Option<StoredCertificate>,
        failure: Option<OrderFailure>,
    ) -> anyhow::Result<()> {
        let app = &self.app;
        let (store, sealer) = (&app.store, &app.sealer);
        tracing::info!(domains = ?self.settings.domains, directory = %self.settings.directory, "ordering a certificate");
        let ordered = tokio::time::timeout(ORDER, order::order(app, &self.settings, &self.acme_store)).await;
        let ordered = ordered
            .map_err(|_| anyhow::anyhow!("the order took longer than {ORDER:?}"))
            .and_then(|done| done);
        match ordered.and_then(|stored| self.checked(stored)) {
            Ok(stored) => {
                self.acme_store.store_certificate(store, sealer, &stored).await?;
                self.acme_store.store_failure(store, sealer, None).await?;
                metrics::counter!(ORDERS, "outcome" => "ok").increment(1);
                app.certificates.note(WHAT, None);
                let ends = self.serve(&stored, served)?.ends();
                tracing::info!(domains = ?self.settings.domains, ends, "certificate ordered");
                Ok(())
            }
            Err(error) => {
                let count = failure.map_or(0, |failure| failure.count).saturating_add(1);
                let failure = OrderFailure::now(count, format!("{error:#}"), pause(count));
                metrics::counter!(ORDERS, "outcome" => "failed").increment(1);
                tracing::warn!(count, error = failure.why, "ordering a certificate failed");
                app.certificates.note(WHAT, Some(failure.sentence()));
                self.acme_store.store_failure(store, sealer, Some(&failure)).await
            }
        }
    }

    /// Checks a certificate from the authority before it is stored.
    fn checked(&self, stored: StoredCertificate) -> anyhow::Result<StoredCertificate> {
        let certificate = stored.certificate().context("the authority sent an unusable certificate")?;
        let missing = self.settings.domains.iter().find(|domain| !certificate.names().contains(domain));
        match missing {
            Some(domain) => anyhow::bail!("the authority sent a certificate that is not for {domain}"),
            None => Ok(stored),
        }
    }

    /// Serves a certificate, unless it is being served already.
    fn serve(
        &self,
        stored: &StoredCertificate,
        served: &mut Option<StoredCertificate>,
    ) -> anyhow::Result<Certificate> {
        let certificate = stored.certificate().context("the certificate in the database cannot be served")?;
        if served.as_ref() != Some(stored) {
            self.listeners.iter().for_each(|tls| tls.serve(vec![certificate.clone()]));
            *served = Some(stored.clone());
        }
        Ok(certificate)
    }
}

/// Time until a certificate is renewed, at two thirds of its validity.
fn until(certificate: Certificate) -> Duration {
    let (begins, ends) = (certificate.begins(), certificate.ends());
    let due = begins.saturating_add(ends.saturating_sub(begins) / 3 * 2);
    Duration::from_millis(u64::try_from(due.saturating_sub(now_ms())).unwrap_or_default())
}

/// Pause after this many failures in a row, plus or minus a fifth.
fn pause(count: u32) -> Duration {
    let doubled = FIRST_PAUSE.saturating_mul(1 << count.saturating_sub(1).min(16));
    doubled.min(LONGEST_PAUSE).mul_f64(0.8 + 0.4 * rand::random::<f64>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_six_hours() {
        for (count, least, most) in [(1, 48, 72), (2, 96, 144), (5, 768, 1152), (40, 17_280, 25_920)] {
            let seconds = pause(count).as_secs();
            assert!((least..=most).contains(&seconds), "{count}: {seconds}");
        }
    }
}
