//! Notifications for a supervisor such as systemd (`sd_notify(3)`): ready, reloading, stopping and,
//! with a watchdog, alive. Without a supervisor nothing happens.

use std::time::Duration;

use sd_notify::NotifyState;

/// Reports that both hosts are serving.
pub(super) fn ready(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// Reports that the settings are being reloaded; [`ready`] ends this state.
pub(super) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(_) => tell(&[NotifyState::Reloading]),
    }
}

/// Reports that the server is about to stop.
pub(super) fn stopping() {
    tell(&[NotifyState::Stopping]);
}

/// Reports twice per watchdog interval that the server is alive, until the process ends. It is an
/// ordinary task: if tasks are no longer scheduled, the reports stop, and the supervisor notices.
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
        tracing::warn!(%error, "sd_notify failed");
    }
}
