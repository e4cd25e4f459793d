//! The settings read again while the server runs: what may change takes effect at once, and what needs a restart is said.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use packhouse_config::{Config, Inputs};
use serde::Serialize;
use tokio::sync::watch;

use crate::boxed;
use crate::{App, attestations};

/// From what the settings are read again, and how the log takes another level.
pub struct Reloading {
    inputs: Inputs,
    program: PathBuf,
    set_log: SetLog,
    one_at_a_time: Mutex<()>,
    done: watch::Sender<u64>,
}

/// Makes the log take other directives.
type SetLog = Box<dyn Fn(&str) -> anyhow::Result<()> + Send + Sync>;

/// What came of reading the settings again: names of settings that differ from what holds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Reloaded {
    /// Those that hold from now on.
    pub applied: Vec<String>,
    /// Those that hold after a restart.
    pub needs_restart: Vec<String>,
}

impl Reloading {
    /// From the flags and the environment of the start, and the file as it is then.
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
    /// Reads the settings again. The error says every mistake in them; then nothing has changed.
    pub fn reload(&self) -> anyhow::Result<Reloaded> {
        let Some(reloading) = self.reloading.get() else {
            anyhow::bail!("this server was not started from settings that can be read again");
        };
        let _one = reloading.one_at_a_time.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut new, warnings) = Config::load(&reloading.inputs, &reloading.program)?;
        warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
        let old = self.live.read.get();
        let mut changed = old.sources.changed(&new.sources);
        // A listener speaks TLS for its whole life, or never.
        let switched = |config: &Config| [config.tls.serves_packages(), config.tls.serves_api()];
        if switched(&self.config) != switched(&new) {
            let (tls, live) = changed.live.into_iter().partition(|name| name.starts_with("tls."));
            changed.live = live;
            changed.needs_restart.extend::<Vec<String>>(tls);
            new.tls = old.tls.clone();
        }
        // Compared is always with what the program runs with, so what waits for a restart is said each time.
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
        tracing::info!(applied = ?reloaded.applied, needs_restart = ?reloaded.needs_restart, "the settings were read again");
        Ok(reloaded)
    }

    /// Tells when the settings have been read again; none of the times since is missed.
    pub fn reloads(&self) -> Reloads {
        Reloads(self.reloading.get().map(|reloading| reloading.done.subscribe()))
    }
}

/// See [`App::reloads`].
pub struct Reloads(Option<watch::Receiver<u64>>);

impl Reloads {
    /// Resolves once the settings were read again since this was asked last.
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
