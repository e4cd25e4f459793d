//! Certificates by ACME (RFC 8555): ordered when there is none, and again when two thirds of its time are over. Account and certificate
//! are sealed in the database, so that all its servers have them; one of them orders at a time, and what failed makes all of them
//! wait longer.

mod client;
mod kept;
mod order;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use packhouse_config::tls::AcmeSettings;
use packhouse_store::now_ms;
use packhouse_wire::tls::{Certificate, Tls};

use packhouse_app::App;
use packhouse_app::metrics::ORDERS;

use self::kept::{Failure, Kept};

pub(crate) use self::kept::Shelf;

/// How often the database is asked for what another server ordered.
const LOOK: Duration = Duration::from_secs(5);
/// How soon another look is taken at the soonest.
const SOONEST: Duration = Duration::from_millis(500);
/// How long one order may take, and for how much longer the turn is kept.
const ORDER: Duration = Duration::from_secs(4 * 60);
const TURN: Duration = Duration::from_secs(5 * 60);
/// After the first failure; each further one doubles it.
const FIRST_PAUSE: Duration = Duration::from_secs(60);
/// Up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(6 * 60 * 60);

/// What is amiss is noted under this.
const WHAT: &str = "acme";

/// Orders and renews until the stop.
pub(super) async fn run(app: Arc<App>) {
    let Some(settings) = app.config.tls.acme.clone() else { return };
    let orderer = Orderer::new(&app, settings);
    let mut served = None;
    let mut at_once = false;
    let mut reloads = app.reloads();
    loop {
        let next = match orderer.look(&mut served, at_once).await {
            Ok(next) => next,
            Err(error) => {
                tracing::warn!(error = %format!("{error:#}"), "the state of certificates cannot be read or kept");
                LOOK
            }
        };
        tokio::select! {
            () = tokio::time::sleep(next) => at_once = false,
            // Whoever mended something need not wait for the end of the pause.
            () = reloads.next() => at_once = true,
            () = app.stop.cancelled() => return,
        }
    }
}

struct Orderer {
    app: Arc<App>,
    settings: AcmeSettings,
    shelf: Shelf,
    /// Those of the listeners that have no files.
    listeners: Vec<Arc<Tls>>,
    /// Names this server among those of the database.
    holder: String,
}

impl Orderer {
    fn new(app: &Arc<App>, settings: AcmeSettings) -> Orderer {
        let (files, secured) = (&app.config.tls, app.secured());
        let without = [(files.packages.is_empty(), secured.packages), (files.api.is_empty(), secured.api)];
        let listeners = without.into_iter().filter_map(|(without, tls)| tls.filter(|_| without)).collect();
        let holder = format!("{:016x}", rand::random::<u64>());
        Orderer { shelf: Shelf::new(&settings), app: Arc::clone(app), settings, listeners, holder }
    }

    /// Serves what is kept, orders where that is due, and says when to look again.
    async fn look(&self, served: &mut Option<Kept>, at_once: bool) -> anyhow::Result<Duration> {
        let app = &self.app;
        let (store, sealer) = (&app.store, &app.sealer);
        let kept = self.shelf.certificate(store, sealer).await?;
        let wait = match &kept {
            Some(kept) => until(self.serve(kept, served)?),
            None => Duration::ZERO,
        };
        if !wait.is_zero() {
            app.certificates.note(WHAT, None);
            return Ok(wait.clamp(SOONEST, LOOK));
        }
        let failure = self.shelf.failure(store, sealer).await?;
        if let Some(failure) = &failure {
            app.certificates.note(WHAT, Some(failure.sentence()));
            if failure.pause_left() > Duration::ZERO && !at_once {
                return Ok(failure.pause_left().clamp(SOONEST, LOOK));
            }
        }
        if !store.take_acme_turn(self.shelf.name(), &self.holder, TURN).await? {
            return Ok(SOONEST * 2);
        }
        // Whoever had the turn before may have ordered.
        let again = self.shelf.certificate(store, sealer).await?;
        let done = match again.filter(|again| Some(again) != kept.as_ref()) {
            Some(newer) => self.serve(&newer, served).map(|_| ()),
            None => self.order(served, failure).await,
        };
        store.end_acme_turn(self.shelf.name(), &self.holder).await?;
        done.map(|()| SOONEST)
    }

    async fn order(&self, served: &mut Option<Kept>, failure: Option<Failure>) -> anyhow::Result<()> {
        let app = &self.app;
        let (store, sealer) = (&app.store, &app.sealer);
        tracing::info!(domains = ?self.settings.domains, directory = %self.settings.directory, "a certificate is ordered");
        let ordered = tokio::time::timeout(ORDER, order::order(app, &self.settings, &self.shelf)).await;
        let ordered =
            ordered.map_err(|_| anyhow::anyhow!("it took longer than {ORDER:?}")).and_then(|done| done);
        match ordered.and_then(|kept| self.checked(kept)) {
            Ok(kept) => {
                self.shelf.keep_certificate(store, sealer, &kept).await?;
                self.shelf.keep_failure(store, sealer, None).await?;
                metrics::counter!(ORDERS, "outcome" => "ok").increment(1);
                app.certificates.note(WHAT, None);
                let ends = self.serve(&kept, served)?.ends();
                tracing::info!(domains = ?self.settings.domains, ends, "a certificate was ordered");
                Ok(())
            }
            Err(error) => {
                let count = failure.map_or(0, |failure| failure.count).saturating_add(1);
                let failure = Failure::now(count, format!("{error:#}"), pause(count));
                metrics::counter!(ORDERS, "outcome" => "failed").increment(1);
                tracing::warn!(count, error = failure.why, "a certificate could not be ordered");
                app.certificates.note(WHAT, Some(failure.sentence()));
                self.shelf.keep_failure(store, sealer, Some(&failure)).await
            }
        }
    }

    /// What an authority sends is judged before it is kept.
    fn checked(&self, kept: Kept) -> anyhow::Result<Kept> {
        let certificate = kept.certificate().context("the authority sent what cannot be served")?;
        let missing = self.settings.domains.iter().find(|domain| !certificate.names().contains(domain));
        match missing {
            Some(domain) => anyhow::bail!("the authority sent a certificate that is not for {domain}"),
            None => Ok(kept),
        }
    }

    /// Serves a certificate from now on, unless it is already.
    fn serve(&self, kept: &Kept, served: &mut Option<Kept>) -> anyhow::Result<Certificate> {
        let certificate = kept.certificate().context("the certificate in the database cannot be served")?;
        if served.as_ref() != Some(kept) {
            self.listeners.iter().for_each(|tls| tls.serve(vec![certificate.clone()]));
            *served = Some(kept.clone());
        }
        Ok(certificate)
    }
}

/// How long until a certificate is to be renewed: at two thirds of its time.
fn until(certificate: Certificate) -> Duration {
    let (begins, ends) = (certificate.begins(), certificate.ends());
    let due = begins.saturating_add(ends.saturating_sub(begins) / 3 * 2);
    Duration::from_millis(u64::try_from(due.saturating_sub(now_ms())).unwrap_or_default())
}

/// How long is waited after so many failures in a row, a fifth more or less.
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
