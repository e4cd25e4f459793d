//! A standby: a second PostgreSQL that replicates the first and can replace it (streaming
//! replication).

use super::{Postgres, is_root, run};
use crate::server::{eventually, free_port};
use std::process::Command;
use tempfile::TempDir;

impl Postgres {
    /// Starts a standby from a copy of this server; the standby then replicates this server.
    /// Afterwards this server acknowledges a commit only when the standby has the commit on disk
    /// too. If this server is lost, no acknowledged commit is lost.
    ///
    /// If a statement times out while PostgreSQL waits for the standby, PostgreSQL commits it
    /// anyway and reports it as committed. A test that relies on the standby must therefore keep it
    /// running.
    pub fn standby(&self) -> Result<Self, String> {
        let home = TempDir::new().map_err(|error| error.to_string())?;
        if is_root() {
            run(Command::new("chown").arg("postgres").arg(home.path()))?;
        }
        let mut standby = Self { binaries: self.binaries.clone(), home, port: free_port(), child: None };
        let mut copy = self.command("pg_basebackup");
        copy.args(["-h", "127.0.0.1", "-p", &self.port.to_string(), "-U", "packhouse"]);
        copy.args(["-R", "-X", "stream", "-c", "fast", "-D"]).arg(standby.folder());
        run(&mut copy)?;
        standby.resume();
        let following = "select count(*) from pg_stat_replication where state = 'streaming'";
        eventually("the standby follows", || (self.query(following) == "1").then_some(()));
        self.sql("alter system set synchronous_standby_names = '*'");
        self.sql("select pg_reload_conf()");
        let waited = "select count(*) from pg_stat_replication where sync_state = 'sync'";
        eventually("the standby takes part in commits", || (self.query(waited) == "1").then_some(()));
        Ok(standby)
    }

    /// Makes this standby the primary: it stops replicating and accepts commits.
    pub fn promote(&self) {
        run(self.command("pg_ctl").args(["promote", "-w", "-D"]).arg(self.folder()))
            .expect("pg_ctl promotes");
    }

    /// Sends SIGKILL to one of the processes that serve connections. PostgreSQL then ends all other
    /// processes and recovers from its log.
    pub fn kill_a_backend(&self) {
        let pid = self.query(
            "select pid from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid() limit 1",
        );
        if !pid.is_empty() {
            let _ = Command::new("kill").args(["-KILL", &pid]).status();
        }
    }
}
