//! A test's own PgBouncer in front of a PostgreSQL.

use crate::clients::has;
use crate::database::{Postgres, is_root};
use crate::server::{eventually, free_port};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A running PgBouncer; dropping this value ends it.
#[derive(Debug)]
pub struct Pooler {
    child: Child,
    port: u16,
    _home: TempDir,
}

impl Pooler {
    /// Starts PgBouncer with this `pool_mode`; the error says why it did not start.
    pub fn start(database: &Postgres, mode: &str) -> Result<Self, String> {
        if !has("pgbouncer") {
            return Err("no pgbouncer on the path".to_owned());
        }
        let home = TempDir::new().map_err(|error| error.to_string())?;
        let port = free_port();
        let settings = format!(
            "[databases]\npackhouse = host=127.0.0.1 port={} dbname=packhouse user=packhouse\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = {mode}\ndefault_pool_size = 40\nmax_client_conn = 200\n",
            database.port()
        );
        let file = home.path().join("pgbouncer.ini");
        std::fs::write(&file, settings).map_err(|error| error.to_string())?;
        // PgBouncer, like PostgreSQL, refuses to run as root.
        let mut command = Command::new(if is_root() { "runuser" } else { "pgbouncer" });
        if is_root() {
            let owned = Command::new("chown").args(["-R", "postgres"]).arg(home.path()).status();
            owned.map_err(|error| error.to_string())?;
            command.args(["-u", "postgres", "--", "pgbouncer"]);
        }
        command.arg("-q").arg(&file).current_dir("/").stdin(Stdio::null());
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let pooler = Self { child: child.map_err(|error| error.to_string())?, port, _home: home };
        eventually("pgbouncer listens", || TcpStream::connect(("127.0.0.1", port)).ok());
        Ok(pooler)
    }

    /// The port for clients.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        // runuser passes SIGTERM on, but not SIGKILL.
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let _ = self.child.wait();
    }
}
