//! A PostgreSQL of the tests' own: Debian's package, in a temporary folder, on a free port.
//!
//! A shell is the server's parent. Once the test process has ended in any way, the shell ends the
//! server and removes its folder.

use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

const WATCH: &str = r#"
home=$1; shift
"$@" & server=$!
read -r word
kill -QUIT $server; wait $server
[ "$word" = keep ] || rm -rf "$home"
"#;

pub struct Cluster {
    binaries: PathBuf,
    home: PathBuf,
    port: u16,
    process: Mutex<Option<Child>>,
    databases: AtomicU32,
}

/// The server of this test binary; `None`, with a printed reason, if the package is not installed.
pub fn shared() -> Option<&'static Cluster> {
    static CLUSTER: OnceLock<Option<Cluster>> = OnceLock::new();
    CLUSTER.get_or_init(Cluster::start).as_ref()
}

impl Cluster {
    /// Starts a server; `None`, with a printed reason, if the package is not installed.
    pub fn start() -> Option<Cluster> {
        let Some(binaries) = binaries() else {
            println!("skipped: PostgreSQL suite: not installed");
            return None;
        };
        let home = tempfile::Builder::new().prefix("packhouse-postgres-").tempdir().unwrap().keep();
        if is_root() {
            run(Command::new("chown").arg("postgres:postgres").arg(&home));
        }
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let cluster =
            Cluster { binaries, home, port, process: Mutex::default(), databases: AtomicU32::new(0) };
        let data = cluster.home.join("data");
        let mut initdb = cluster.unprivileged("initdb");
        run(initdb.arg("-D").arg(data).args([
            "-U",
            "packhouse",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "-N",
            "--locale=C.UTF-8",
        ]));
        cluster.resume();
        Some(cluster)
    }

    /// The URL of a new database.
    pub fn create_database(&self) -> String {
        let name = format!("test{}", self.databases.fetch_add(1, Ordering::Relaxed));
        run(self.client("createdb").arg(&name));
        format!("postgres://packhouse@127.0.0.1:{}/{name}", self.port)
    }

    /// Creates a database that exists until the caller drops the result. Without this, hundreds of
    /// databases would fill a small disk.
    pub fn lend_database(&'static self) -> LentDatabase {
        LentDatabase { cluster: self, url: self.create_database() }
    }

    /// Runs a statement with psql, bypassing the store under test; returns the output.
    pub fn sql(&self, database_url: &str, sql: &str) -> String {
        let output = Command::new(self.binaries.join("psql"))
            .args(["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-d", database_url, "-c", sql])
            .output()
            .unwrap();
        assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Stops the server immediately; its data stay.
    pub fn stop(&self) {
        let mut child = self.process.lock().unwrap().take().unwrap();
        child.stdin.take().unwrap().write_all(b"keep\n").unwrap();
        child.wait().unwrap();
    }

    /// Starts the server, and returns when it answers.
    pub fn resume(&self) {
        let server = self.unprivileged("postgres");
        let mut watch = Command::new("sh");
        watch.args(["-c", WATCH, "sh"]).arg(&self.home).arg(server.get_program()).args(server.get_args());
        watch.arg("-D").arg(self.home.join("data")).arg("-k").arg(&self.home).args(["-h", "127.0.0.1"]);
        watch.args(["-p", &self.port.to_string(), "-c", "max_connections=400", "-c", "fsync=off"]);
        // These settings save disk space: PostgreSQL also writes each new database to its log.
        watch.args(["-c", "wal_level=minimal", "-c", "max_wal_senders=0", "-c", "max_wal_size=128MB"]);
        watch.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/");
        *self.process.lock().unwrap() = Some(watch.spawn().unwrap());
        while !self.client("pg_isready").arg("-q").status().unwrap().success() {
            std::thread::yield_now();
        }
    }

    fn client(&self, program: &str) -> Command {
        let mut command = Command::new(self.binaries.join(program));
        command.args(["-h", "127.0.0.1", "-U", "packhouse", "-p", &self.port.to_string()]);
        command
    }

    /// A command that runs one of PostgreSQL's programs. PostgreSQL refuses to run as root; under
    /// root the command uses the user that its package created.
    fn unprivileged(&self, program: &str) -> Command {
        let program = self.binaries.join(program);
        if !is_root() {
            return Command::new(program);
        }
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid=postgres", "--regid=postgres", "--init-groups", "--"])
            .arg(program)
            .current_dir("/");
        command
    }
}

/// The database of one test.
pub struct LentDatabase {
    cluster: &'static Cluster,
    /// Its URL.
    pub url: String,
}

impl Drop for LentDatabase {
    /// Drops the database and ignores errors: a failed test reports its own error.
    fn drop(&mut self) {
        if let Some((_, name)) = self.url.rsplit_once('/') {
            let _ = self.cluster.client("dropdb").args(["--force", name]).output();
        }
    }
}

fn binaries() -> Option<PathBuf> {
    let mut versions: Vec<PathBuf> = Path::new("/usr/lib/postgresql")
        .read_dir()
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    versions.sort();
    versions
        .into_iter()
        .rev()
        .map(|version| version.join("bin"))
        .find(|folder| folder.join("initdb").is_file())
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().unwrap().stdout == b"0\n"
}

#[track_caller]
fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
