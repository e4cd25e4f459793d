//! The queue of one hook: claimed, gone through, and left.
//!
//! What is told of one package is sent one after the other: the next once what became of the one before is durable. So whoever is told
//! twice, because a server died in between, is told the same again and nothing older.

use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use packhouse_identity::{Secret, sign_webhook};
use packhouse_store::{DueDelivery, HookAtWork, Reported, StoreError, Try, WebhookId, now_ms};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::{message, told};
use crate::App;

/// Sends to one hook at one time, and to one that does not take what it is told.
const AT_ONCE: usize = 4;
/// How long a stop waits for the end of sends.
const AT_STOP: Duration = Duration::from_secs(2);
/// Deliveries that are read at a time.
const ROUND: u32 = 32;
/// By how much a claim outlasts the longest send.
const MARGIN: Duration = Duration::from_secs(5);
/// The shortest and the longest time until it is looked again for what others wrote, while something waits to be tried again.
const LOOK: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];
/// After so many failures in vain the pause is an hour.
const LONGEST_PAUSE_MS: i64 = 60 * 60 * 1000;

/// A claim that this server holds.
struct Claim<'a> {
    app: &'a App,
    hook: WebhookId,
    number: i64,
    /// Nobody else sends before this.
    until: Instant,
}

impl Claim<'_> {
    /// What of the claim is left is enough for one more send.
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

/// Sends what waits for a hook until nothing does, another server is at it, or the stop.
pub(super) async fn work(app: &App, hook: WebhookId, wake: &Notify) {
    let number = i64::from(rand::random::<u32>()) + 1;
    let mut claim = Claim { app, hook, number, until: Instant::now() };
    match claim.renew().await {
        Ok(true) => {}
        Ok(false) => return,
        Err(error) => return tracing::debug!(%error, %hook, "a webhook could not be claimed"),
    }
    if let Err(error) = go_through(&mut claim, wake).await {
        tracing::warn!(%error, %hook, "what a webhook is told could not be read or written; it is tried again");
    }
    if let Err(error) = app.store.leave_webhook(hook, number).await {
        tracing::debug!(%error, %hook, "a claim lasts until it runs out");
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
        let Some(hook) = app.store.webhook_at_work(claim.hook, claim.number).await? else { return Ok(()) };
        let mut due = app.store.asked_deliveries(hook.id, ROUND).await?;
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
        // In the order of what happened, as far as there is one.
        due.sort_by_key(|one| (one.at, one.id));
        let Some(succeeded) = send_all(claim, &hook, due, works).await? else { return Ok(()) };
        works = succeeded;
    }
    Ok(())
}

/// Sends these and writes what became of them as they end: whether the last arrived. None when the claim is another's, or it is time to
/// stop, or the hook is paused.
async fn send_all(
    claim: &mut Claim<'_>,
    hook: &HookAtWork,
    due: Vec<DueDelivery>,
    works: bool,
) -> Result<Option<bool>, StoreError> {
    let app = claim.app;
    let secret = app.sealer.open(&told::purpose(hook.id), &hook.secret);
    let secret = secret
        .map_err(|error| tracing::error!(%error, hook = %hook.id, "a webhook's secret cannot be read"))
        .ok();
    // One that takes nothing is asked one thing at a time.
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
                // What arrives after this is told again by whoever goes on.
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
                told::pause(app, hook).await?;
                return Ok(None);
            }
        }
    }
}

/// Returns when a stop has waited long enough for what is on its way.
async fn soon_after_stop(app: &App) {
    app.stop.cancelled().await;
    tokio::time::sleep(AT_STOP).await;
}

/// What became of one send.
struct Tried {
    reported: Reported,
    /// It was tried for as long as it is.
    over: bool,
}

async fn send(app: &App, hook: &HookAtWork, secret: Option<&Secret>, due: &DueDelivery) -> Tried {
    let at = app.store.now_ms();
    let body = message::body(app, hook, due);
    let sent = match secret.and_then(|secret| headers(secret, due, &body)) {
        Some(headers) => {
            let sent = app.receivers.send(&hook.url, headers, Bytes::from(body), patience(app)).await;
            sent.map_err(|error| error.to_string())
        }
        None => Err("the webhook's secret was sealed with another key: make the webhook anew".to_owned()),
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

/// The pause after so many failures before this one, in ms: a second, doubled each time, to an hour.
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
