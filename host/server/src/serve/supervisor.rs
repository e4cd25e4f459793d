//! What a supervisor such as systemd is told (`sd_notify(3)`): that the server is ready, that it reads its settings again, that it
//! stops, and, where a watchdog is set, that it is alive. Without a supervisor nothing is done.

use std::time::Duration;

use sd_notify::NotifyState;

/// Both hosts serve.
pub(super) fn ready(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// The settings are read again; [`ready`] ends it.
pub(super) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(_) => tell(&[NotifyState::Reloading]),
    }
}

/// The server is about to stop.
pub(super) fn stopping() {
    tell(&[NotifyState::Stopping]);
}

/// Says that the server is alive, twice as often as is asked for, to the end of the process. It is said from among all other tasks:
/// where they do not come to their turn, this does not either.
pub(super) async fn watchdog() {
    let Some(limit) = sd_notify::watchdog_enabled() else { return };
    let pause = (limit / 2).max(Duration::from_millis(10));
    loop {
        tell(&[NotifyState::Watchdog]);
        tokio::time::sleep(pause).await;
    }
}

fn tell(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "the supervisor could not be told");
    }
}
