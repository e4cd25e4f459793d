//! A second PostgreSQL that follows the first by streaming replication, and takes its place.

use super::{Postgres, is_root, run};
use crate::server::{eventually, free_port};
use std::process::Command;
use tempfile::TempDir;

impl Postgres {
    /// Starts one that follows this one, from a copy of it. From then on this one acknowledges a commit when the other has it on
    /// its disk too, so that it can be lost without losing a commit.
    ///
    /// A statement that times out while it waits for the other is committed all the same, says PostgreSQL, and is told as
    /// committed: have the other only for as long as it is well.
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
        eventually("the standby is waited for", || (self.query(waited) == "1").then_some(()));
        Ok(standby)
    }

    /// Ends following, and takes commits from now on.
    pub fn promote(&self) {
        run(self.command("pg_ctl").args(["promote", "-w", "-D"]).arg(self.folder()))
            .expect("pg_ctl promotes");
    }

    /// SIGKILL to one of the processes that serve connections: PostgreSQL ends all others, and recovers from its log.
    pub fn kill_a_backend(&self) {
        let pid = self.query(
            "select pid from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid() limit 1",
        );
        if !pid.is_empty() {
            let _ = Command::new("kill").args(["-KILL", &pid]).status();
        }
    }
}
