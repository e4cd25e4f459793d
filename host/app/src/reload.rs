//! Reloading of the settings while the server runs. Settings that may change take effect at once.
//! The result lists the settings that need a restart.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use packhouse_config::{Config, Inputs};
use serde::Serialize;
use tokio::sync::watch;

use crate::boxed;
use crate::{App, attestations};

/// Inputs of the settings, and the function that changes the log levels.
pub struct Reloading {
    inputs: Inputs,
    program: PathBuf,
    set_log: SetLog,
    one_at_a_time: Mutex<()>,
    done: watch::Sender<u64>,
}

/// Function that changes the log levels.
type SetLog = Box<dyn Fn(&str) -> anyhow::Result<()> + Send + Sync>;

/// Result of a reload: the names of changed settings.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Reloaded {
    /// Settings whose new values took effect.
    pub applied: Vec<String>,
    /// Settings whose new values take effect after a restart.
    pub needs_restart: Vec<String>,
}

impl Reloading {
    /// Prepares reloads with the flags and the environment from the start. Each reload reads the
    /// file again.
    pub fn new(
        inputs: Inputs,
        program: PathBuf,
        set_log: impl Fn(&str) -> anyhow::Result<()> + Send + Sync + 'static,
    ) -> Reloading {
        let (one_at_a_time, done) = (Mutex::default(), watch::Sender::default());
        Reloading { inputs, program, set_log: Box::new(set_log), one_at_a_time, done }
    }
}

impl App {
    /// Reads the settings again. The error lists every invalid setting, and in this case nothing
    /// changes.
    pub fn reload(&self) -> anyhow::Result<Reloaded> {
        let Some(reloading) = self.reloading.get() else {
            anyhow::bail!("the settings of this server cannot be read again");
        };
        let _one = reloading.one_at_a_time.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut new, warnings) = Config::load(&reloading.inputs, &reloading.program)?;
        warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
        let old = self.live.read.get();
        let mut changed = old.sources.changed(&new.sources);
        // A listener uses TLS either for its whole lifetime or never.
        let switched = |config: &Config| [config.tls.serves_packages(), config.tls.serves_api()];
        if switched(&self.config) != switched(&new) {
            let (tls, live) = changed.live.into_iter().partition(|name| name.starts_with("tls."));
            changed.live = live;
            changed.needs_restart.extend::<Vec<String>>(tls);
            new.tls = old.tls.clone();
        }
        // Compare with the settings from the start, so that every reload reports all settings that
        // wait for a restart.
        let waiting = self.config.sources.changed(&new.sources).needs_restart;
        changed.needs_restart.extend(waiting);
        changed.needs_restart.sort();
        changed.needs_restart.dedup();
        let trust = attestations::read(&new)?;
        (reloading.set_log)(&new.log)?;
        self.trust.set(trust);
        self.upstreams.allow(new.upstream_allow_networks.clone());
        self.providers.allow(&new.upstream_allow_networks);
        self.receivers.allow(&new.upstream_allow_networks);
        self.live.take(new);
        reloading.done.send_modify(|times| *times += 1);
        let reloaded = Reloaded { applied: changed.live, needs_restart: changed.needs_restart };
        tracing::info!(applied = ?reloaded.applied, needs_restart = ?reloaded.needs_restart, "settings reloaded");
        Ok(reloaded)
    }

    /// Returns a receiver that notices every reload from now on.
    pub fn reloads(&self) -> Reloads {
        Reloads(self.reloading.get().map(|reloading| reloading.done.subscribe()))
    }
}

/// Receiver of reloads. See [`App::reloads`].
pub struct Reloads(Option<watch::Receiver<u64>>);

impl Reloads {
    /// Waits for a reload. Returns at once if one happened since the last call.
    #[boxed]
    pub async fn next(&mut self) {
        if let Some(done) = &mut self.0
            && done.changed().await.is_ok()
        {
            return;
        }
        std::future::pending().await
    }
}
