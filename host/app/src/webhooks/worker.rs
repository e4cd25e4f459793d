//! Processing of one webhook's queue: claim the webhook, send its deliveries, and release it.
//!
//! Events about one package are sent one after another. The next event is sent only after the
//! result of the previous one is stored. If a server dies in between, the receiver gets the same
//! event again, but never an older one.

use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use packhouse_identity::{Secret, sign_webhook};
use packhouse_store::{ClaimedWebhook, DueDelivery, Reported, StoreError, Try, WebhookId, now_ms};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::{message, pausing};
use crate::App;

/// Maximum number of concurrent deliveries to one receiver. A failing receiver gets one delivery at
/// a time.
const AT_ONCE: usize = 4;
/// Maximum time that a stop waits for deliveries in flight.
const AT_STOP: Duration = Duration::from_secs(2);
/// Number of deliveries that are read from the store at a time.
const ROUND: u32 = 32;
/// Time by which a claim outlasts the longest delivery.
const MARGIN: Duration = Duration::from_secs(5);
/// Minimum and maximum interval of the search for new events while a delivery waits for its next
/// attempt.
const LOOK: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];
/// Maximum pause between two attempts, in ms: one hour.
const LONGEST_PAUSE_MS: i64 = 60 * 60 * 1000;

/// Claim of this server on a webhook.
struct Claim<'a> {
    app: &'a App,
    hook: WebhookId,
    number: i64,
    /// Time before which no other server sends deliveries of this webhook.
    until: Instant,
}

impl Claim<'_> {
    /// Reports whether the claim lasts long enough for one more delivery.
    fn allows_send(&self) -> bool {
        Instant::now() + patience(self.app) < self.until
    }

    async fn renew(&mut self) -> Result<bool, StoreError> {
        let until = Instant::now() + lasts(self.app);
        let held = self.app.store.claim_webhook(self.hook, self.number, lasts_ms(self.app)).await?;
        if held {
            self.until = until;
        }
        Ok(held)
    }

    async fn report(&mut self, reported: &[Reported]) -> Result<bool, StoreError> {
        let until = Instant::now() + lasts(self.app);
        let store = &self.app.store;
        let held = store.report_tries(self.hook, self.number, lasts_ms(self.app), reported).await?;
        if held {
            self.until = until;
        }
        Ok(held)
    }
}

fn patience(app: &App) -> Duration {
    app.config.webhooks.timeout
}

fn lasts(app: &App) -> Duration {
    patience(app) * 2 + MARGIN
}

fn lasts_ms(app: &App) -> i64 {
    i64::try_from(lasts(app).as_millis()).unwrap_or(i64::MAX)
}

/// Sends the waiting deliveries of a webhook. Ends when none are left, when another server has
/// claimed the webhook, or when the server stops.
pub(super) async fn work(app: &App, hook: WebhookId, wake: &Notify) {
    let number = i64::from(rand::random::<u32>()) + 1;
    let mut claim = Claim { app, hook, number, until: Instant::now() };
    match claim.renew().await {
        Ok(true) => {}
        Ok(false) => return,
        Err(error) => return tracing::debug!(%error, %hook, "could not claim a webhook"),
    }
    if let Err(error) = go_through(&mut claim, wake).await {
        tracing::warn!(%error, %hook, "could not read or write the deliveries of a webhook; will retry");
    }
    if let Err(error) = app.store.leave_webhook(hook, number).await {
        tracing::debug!(%error, %hook, "could not release a claim; it expires by itself");
    }
}

async fn go_through(claim: &mut Claim<'_>, wake: &Notify) -> Result<(), StoreError> {
    let app = claim.app;
    let (mut after, mut pause) = (i64::MIN, LOOK[0]);
    let mut works = true;
    while !app.stop.is_cancelled() {
        if !claim.allows_send() && !claim.renew().await? {
            return Ok(());
        }
        let Some(hook) = app.store.claimed_webhook(claim.hook, claim.number).await? else { return Ok(()) };
        let mut due = app.store.requested_deliveries(hook.id, ROUND).await?;
        if hook.active && due.is_empty() {
            due = app.store.due_deliveries(hook.id, after, ROUND).await?;
            after = due
                .iter()
                .map(|one| one.lane)
                .max()
                .filter(|_| u32::try_from(due.len()) == Ok(ROUND))
                .unwrap_or(i64::MIN);
        }
        if due.is_empty() {
            if after != i64::MIN {
                after = i64::MIN;
                continue;
            }
            let next = if hook.active { app.store.next_delivery_at(hook.id).await? } else { None };
            let Some(next) = next else { return Ok(()) };
            let left = u64::try_from(next.saturating_sub(app.store.now_ms())).unwrap_or(0);
            tokio::select! {
                () = wake.notified() => pause = LOOK[0],
                () = tokio::time::sleep(pause.min(Duration::from_millis(left))) => {
                    pause = (pause * 2).min(LOOK[1]);
                }
                () = app.stop.cancelled() => {}
            }
            continue;
        }
        // The deliveries should be sent in the order of their events, where such an order exists.
        due.sort_by_key(|one| (one.at, one.id));
        let Some(succeeded) = send_all(claim, &hook, due, works).await? else { return Ok(()) };
        works = succeeded;
    }
    Ok(())
}

/// Sends these deliveries and stores each result. Returns whether the last delivery succeeded.
/// Returns `None` if another server has claimed the webhook, if the server stops, or if the webhook
/// is paused.
async fn send_all(
    claim: &mut Claim<'_>,
    hook: &ClaimedWebhook,
    due: Vec<DueDelivery>,
    works: bool,
) -> Result<Option<bool>, StoreError> {
    let app = claim.app;
    let secret = app.sealer.open(&pausing::purpose(hook.id), &hook.secret);
    let secret = secret
        .map_err(|error| tracing::error!(%error, hook = %hook.id, "cannot read the secret of a webhook"))
        .ok();
    // A failing receiver gets one delivery at a time.
    let at_once = if works { AT_ONCE } else { 1 };
    let mut queue = due.into_iter();
    let mut arrived = works;
    loop {
        if app.stop.is_cancelled() || !claim.allows_send() && !claim.renew().await? {
            return Ok(None);
        }
        let round: Vec<DueDelivery> = queue.by_ref().take(at_once).collect();
        if round.is_empty() {
            return Ok(Some(arrived));
        }
        let sends = FuturesUnordered::new();
        for one in &round {
            sends.push(send(app, hook, secret.as_ref(), one));
        }
        let mut ended = sends.ready_chunks(at_once);
        loop {
            let next = tokio::select! {
                next = ended.next() => next,
                // The server that continues this work sends deliveries again that complete after
                // this moment.
                () = soon_after_stop(app) => return Ok(None),
            };
            let Some(tried) = next else { break };
            let over = tried.iter().any(|tried| tried.over);
            arrived = tried.iter().all(|tried| tried.reported.delivered);
            let reported: Vec<Reported> = tried.into_iter().map(|tried| tried.reported).collect();
            if !claim.report(&reported).await? {
                return Ok(None);
            }
            if over {
                pausing::pause(app, hook).await?;
                return Ok(None);
            }
        }
    }
}

/// Waits until a stop has given deliveries in flight enough time.
async fn soon_after_stop(app: &App) {
    app.stop.cancelled().await;
    tokio::time::sleep(AT_STOP).await;
}

struct Tried {
    reported: Reported,
    /// True if the delivery was retried for the whole configured time.
    over: bool,
}

async fn send(app: &App, hook: &ClaimedWebhook, secret: Option<&Secret>, due: &DueDelivery) -> Tried {
    let at = app.store.now_ms();
    let body = message::body(app, hook, due);
    let sent = match secret.and_then(|secret| headers(secret, due, &body)) {
        Some(headers) => {
            let sent = app.receivers.send(&hook.url, headers, Bytes::from(body), patience(app)).await;
            sent.map_err(|error| error.to_string())
        }
        None => {
            Err("the webhook's secret was encrypted with another key: create the webhook again".to_owned())
        }
    };
    let delivered = sent.as_ref().is_ok_and(|answer| (200..300).contains(&answer.status));
    let of_try = match sent {
        Ok(answer) => {
            let error = (300..400).contains(&answer.status).then(|| "redirects are not followed".to_owned());
            Try { at, status: Some(answer.status), answer: Some(answer.beginning), error }
        }
        Err(error) => Try { at, status: None, answer: None, error: Some(error) },
    };
    let outcome = if delivered { "delivered" } else { "failed" };
    metrics::counter!("packhouse_webhook_tries_total", "outcome" => outcome).increment(1);
    let now = app.store.now_ms();
    let retried = !delivered && !due.once;
    let tried_for = now.saturating_sub(due.since.unwrap_or(at));
    let retry_for = i64::try_from(app.config.webhooks.retry_for.as_millis()).unwrap_or(i64::MAX);
    let again_at = retried.then(|| now.saturating_add(pause_after(due.failures)));
    let reported = Reported { id: due.id, tries: due.tries, of_try, delivered, again_at };
    Tried { over: retried && tried_for >= retry_for, reported }
}

fn headers(secret: &Secret, due: &DueDelivery, body: &[u8]) -> Option<HeaderMap> {
    let id = message::wire_id(due.event);
    let at = now_ms().div_euclid(1000);
    let signature = sign_webhook(secret, &id, at, body)?;
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(message::CONTENT_TYPE));
    headers.insert("webhook-id", HeaderValue::from_str(&id).ok()?);
    headers.insert("webhook-timestamp", HeaderValue::from(at));
    headers.insert("webhook-signature", HeaderValue::from_str(&signature).ok()?);
    Some(headers)
}

/// Returns the pause in ms after this number of earlier failures. It is one second, doubled after
/// each failure, and at most one hour.
fn pause_after(failures: u32) -> i64 {
    1000_i64.checked_shl(failures.min(30)).map_or(LONGEST_PAUSE_MS, |pause| pause.min(LONGEST_PAUSE_MS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_doubled_to_an_hour() {
        let pauses: Vec<i64> = [0, 1, 2, 11, 12, 30, 31, u32::MAX].map(pause_after).to_vec();
        assert_eq!(pauses, [1000, 2000, 4000, 2_048_000, 3_600_000, 3_600_000, 3_600_000, 3_600_000]);
    }
}
