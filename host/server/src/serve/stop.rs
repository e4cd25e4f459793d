//! Stopping: first the server says that it is not ready and serves on, so that a balancer sends no more; then nothing new is accepted,
//! what is in flight is finished and the store is closed. It ends in time whatever hangs.

use std::sync::mpsc;
use std::time::Duration;

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::timeout_at;

use super::Hosts;
use packhouse_app::App;

/// How long after the end of the time for a stop the process is ended from outside of its tasks.
const LAST: Duration = Duration::from_millis(500);

/// SIGTERM, SIGINT and SIGHUP, caught from before anything listens.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    pub(super) fn catch() -> anyhow::Result<Signals> {
        let catch = |kind| signal(kind).context("failed to catch signals");
        Ok(Signals {
            terminate: catch(SignalKind::terminate())?,
            interrupt: catch(SignalKind::interrupt())?,
            hangup: catch(SignalKind::hangup())?,
        })
    }

    /// Waits for one that ends the server. At a SIGHUP `reload` is called, and the waiting goes on.
    pub(super) async fn wait(&mut self, reload: impl Fn()) {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return,
                _ = self.interrupt.recv() => return,
                _ = self.hangup.recv() => reload(),
            }
        }
    }
}

/// Stops a server that serves. A second signal ends the time in which it only says that it is not ready.
pub(super) async fn stop(app: &App, hosts: Hosts, signals: &mut Signals) {
    let limits = *app.live.limits.get();
    app.draining.cancel();
    if !limits.drain.is_zero() {
        tracing::info!("about to stop: not ready any more, and still serving");
        let _ = tokio::time::timeout(limits.drain, signals.wait(|| {})).await;
    }
    tracing::info!("stopping");
    let end = tokio::time::Instant::now() + limits.whole_stop();
    let watchdog = Watchdog::start(limits.whole_stop() + LAST);
    app.set_serving(false);
    app.stop.cancel();
    let close = async {
        hosts.finish(limits.in_flight()).await;
        app.store.close().await;
    };
    match timeout_at(end, close).await {
        Ok(()) => tracing::info!("stopped"),
        Err(_) => tracing::warn!("stopped with something still hanging, which was left"),
    }
    watchdog.call_off();
}

/// Ends the process when standard input ends, as it does when whoever holds the other end is gone, however that was killed. Nobody is
/// left to wait for an orderly stop.
pub(crate) fn end_with_stdin(code: i32) {
    std::thread::spawn(move || {
        // What comes is nothing to this process, and an input that cannot be read has ended.
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        std::process::exit(code);
    });
}

/// Ends the process should its tasks not come to it: a thread of its own, which no task can hold up.
struct Watchdog(mpsc::Sender<()>);

impl Watchdog {
    fn start(after: Duration) -> Self {
        let (call_off, called_off) = mpsc::channel();
        std::thread::spawn(move || {
            if called_off.recv_timeout(after) == Err(mpsc::RecvTimeoutError::Timeout) {
                // Everything that was acknowledged is durable by now, as after a power cut.
                std::process::exit(0);
            }
        });
        Self(call_off)
    }

    fn call_off(self) {
        // The thread is gone where it has ended the process, and nowhere else.
        let _ = self.0.send(());
    }
}
