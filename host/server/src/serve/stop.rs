//! Stopping. The server first reports not ready but keeps serving, so that load balancers send no
//! more requests. Then it accepts nothing new, finishes requests in flight and closes the store.
//! The stop ends in time even if something hangs.

use std::sync::mpsc;
use std::time::Duration;

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::timeout_at;

use super::Hosts;
use packhouse_app::App;

/// How long after the time limit of a stop the watchdog ends the process.
const LAST: Duration = Duration::from_millis(500);

/// The signals SIGTERM, SIGINT and SIGHUP. They are caught before anything listens.
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

    /// Waits for a signal that ends the server. Calls `reload` on SIGHUP and keeps waiting.
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

/// Stops a running server. A second signal ends the phase in which the server still serves but
/// reports not ready.
pub(super) async fn stop(app: &App, hosts: Hosts, signals: &mut Signals) {
    let limits = *app.live.limits.get();
    app.draining.cancel();
    if !limits.drain.is_zero() {
        tracing::info!("draining: reporting not ready, still serving");
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
        Err(_) => tracing::warn!("shutdown timed out; abandoning the remaining tasks"),
    }
    watchdog.call_off();
}

/// Ends the process when standard input ends, which happens when the parent process is gone for any
/// reason. There is no orderly stop, because the parent process no longer waits for one.
pub(crate) fn end_with_stdin(code: i32) {
    std::thread::spawn(move || {
        // The thread ignores the input itself, and treats an unreadable input as ended.
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        std::process::exit(code);
    });
}

/// A thread that ends the process if the tasks do not end in time. No task can block it.
struct Watchdog(mpsc::Sender<()>);

impl Watchdog {
    fn start(after: Duration) -> Self {
        let (call_off, called_off) = mpsc::channel();
        std::thread::spawn(move || {
            if called_off.recv_timeout(after) == Err(mpsc::RecvTimeoutError::Timeout) {
                // All acknowledged changes are durable, as after a power cut.
                std::process::exit(0);
            }
        });
        Self(call_off)
    }

    fn call_off(self) {
        // Sending fails only if the thread has ended, and then the process ends too.
        let _ = self.0.send(());
    }
}
