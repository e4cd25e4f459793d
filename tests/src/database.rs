//! Access to a server's database from outside the server, and a PostgreSQL that tests can stop.

mod standby;

use crate::digests;
use crate::server::{Server, eventually, free_port};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use tempfile::TempDir;

/// Tables that a refused request must leave as they were.
const STORAGE: [&str; 7] = ["records", "record_blobs", "blobs", "uploads", "packages", "versions", "files"];

/// The SQLite file in a data folder.
pub fn sqlite_file(data: &Path) -> PathBuf {
    let entries = std::fs::read_dir(data).expect("the data folder");
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|end| end == "db" || end == "sqlite" || end == "sqlite3"))
        .unwrap_or_else(|| panic!("no SQLite file in {}", data.display()))
}

/// Runs SQL on the server's SQLite file from outside; returns the rows, with fields separated by
/// `|`.
#[track_caller]
pub fn sqlite(server: &Server, sql: &str) -> String {
    let output = Command::new("sqlite3")
        .arg("-cmd")
        .arg(".timeout 20000")
        .arg(sqlite_file(server.data()))
        .arg(sql)
        .output()
        .expect("sqlite3, which ./bootstrap test installs");
    assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Describes everything that the server stored: every row of the package tables, and every file of
/// the blob folders. Two equal texts mean that nothing changed.
pub fn fingerprint(server: &Server) -> String {
    let mut text = String::new();
    for table in STORAGE {
        text += &sqlite(
            server,
            &format!("select '{table}', count(*) from {table}; select * from {table} order by 1, 2, 3;"),
        );
    }
    let mut files = Vec::new();
    for folder in ["blobs", "staging"] {
        list(&server.data().join(folder), &mut files);
    }
    files.sort();
    text += &files.join("\n");
    digests::sha256(text.as_bytes())
}

/// All files below a folder, with their sizes.
pub fn list(folder: &Path, files: &mut Vec<String>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            list(&path, files);
        } else {
            files.push(format!(
                "{} {}",
                path.display(),
                entry.metadata().map_or(0, |metadata| metadata.len())
            ));
        }
    }
}

/// A PostgreSQL server of the test's own.
#[derive(Debug)]
pub struct Postgres {
    binaries: PathBuf,
    home: TempDir,
    port: u16,
    child: Option<Child>,
}

impl Postgres {
    /// Starts a PostgreSQL server; the error says why it did not start.
    pub fn start() -> Result<Self, String> {
        let binaries = binaries().ok_or("no PostgreSQL in /usr/lib/postgresql")?;
        let home = TempDir::new().map_err(|error| error.to_string())?;
        if is_root() {
            run(Command::new("chown").arg("postgres").arg(home.path()))?;
        }
        let mut postgres = Self { binaries, home, port: free_port(), child: None };
        let mut initdb = postgres.command("initdb");
        initdb.arg("-D").arg(postgres.folder()).args([
            "-U",
            "packhouse",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
        ]);
        run(&mut initdb)?;
        postgres.resume();
        run(Command::new(postgres.binaries.join("createdb")).args([
            "-h",
            "127.0.0.1",
            "-p",
            &postgres.port.to_string(),
            "-U",
            "packhouse",
            "packhouse",
        ]))?;
        Ok(postgres)
    }

    /// The value for `--database-url`.
    pub fn url(&self) -> String {
        format!("postgres://packhouse@127.0.0.1:{}/packhouse", self.port)
    }

    /// The database URL that connects to this port, such as the port of a proxy.
    pub fn url_through(&self, port: u16) -> String {
        format!("postgres://packhouse@127.0.0.1:{port}/packhouse")
    }

    /// The port on which it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Runs SQL in a transaction, like an abandoned session. The transaction stays open until the
    /// caller drops the result.
    #[track_caller]
    pub fn hold(&self, sql: &str) -> OpenTransaction {
        let mut psql = self.psql();
        psql.args(["-q", "-t", "packhouse"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = psql.spawn().expect("psql");
        let mut input = child.stdin.take().expect("its input");
        writeln!(input, "begin; {sql};\n\\echo held").expect("psql reads");
        let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let held = lines.map_while(Result::ok).any(|line| line.trim() == "held");
        assert!(held, "{sql}: psql has ended");
        OpenTransaction { child, _input: input }
    }

    /// Creates a role that owns the database but is not a superuser, so that its rights can be
    /// revoked. Returns the value for `--database-url`.
    pub fn url_of_a_plain_role(&self) -> String {
        self.sql("create role plain login; alter database packhouse owner to plain; grant all on schema public to plain");
        format!("postgres://plain@127.0.0.1:{}/packhouse", self.port)
    }

    /// Runs SQL as the superuser.
    #[track_caller]
    pub fn sql(&self, sql: &str) {
        let mut psql = self.psql();
        run(psql.args(["-q", "-c", sql, "packhouse"])).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    /// Runs SQL as the superuser; returns the rows, with fields separated by `|`.
    #[track_caller]
    pub fn query(&self, sql: &str) -> String {
        let output = self.psql().args(["-q", "-t", "-A", "-c", sql, "packhouse"]).output().expect("psql");
        assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    /// Serves TLS with this certificate from now on.
    #[track_caller]
    pub fn secure(&mut self, cert: &Path, key: &Path) {
        for (from, to) in [(cert, "server.crt"), (key, "server.key")] {
            let to = self.folder().join(to);
            std::fs::copy(from, &to).expect("a file of the database's");
            std::fs::set_permissions(&to, std::os::unix::fs::PermissionsExt::from_mode(0o600))
                .expect("its mode");
            if is_root() {
                run(Command::new("chown").arg("postgres").arg(&to)).expect("chown");
            }
        }
        self.sql("ALTER SYSTEM SET ssl = on");
        self.sql("SELECT pg_reload_conf()");
        eventually("PostgreSQL speaks TLS", || (self.query("SHOW ssl") == "on").then_some(()));
    }

    /// `psql` as the superuser; it stops at the first error.
    fn psql(&self) -> Command {
        let mut psql = Command::new(self.binaries.join("psql"));
        psql.args([
            "-h",
            "127.0.0.1",
            "-p",
            &self.port.to_string(),
            "-U",
            "packhouse",
            "-v",
            "ON_ERROR_STOP=1",
        ]);
        psql
    }

    /// Stops the server immediately.
    pub fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // SIGQUIT is an immediate shutdown. If the tests run as root, the child is runuser, so
            // pg_ctl finds the process.
            let mut stop = self.command("pg_ctl");
            let _ = run(stop.arg("-D").arg(self.folder()).args(["-m", "immediate", "stop"]));
            let _ = child.wait();
        }
    }

    /// Starts the server again.
    pub fn resume(&mut self) {
        let mut command = self.command("postgres");
        command.arg("-D").arg(self.folder()).arg("-k").arg(self.folder());
        command.args(["-h", "127.0.0.1", "-p", &self.port.to_string()]);
        self.child = Some(command.spawn().expect("postgres starts"));
        let port = self.port;
        let ready = self.binaries.join("pg_isready");
        eventually("PostgreSQL answers", || {
            TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
            let mut command = Command::new(&ready);
            command
                .args(["-q", "-h", "127.0.0.1", "-p", &port.to_string()])
                .status()
                .ok()?
                .success()
                .then_some(())
        });
    }

    /// SIGSTOP to all its processes: connections stay open but silent.
    pub fn freeze(&self) {
        self.signal("-STOP");
    }

    /// SIGCONT to all its processes, and to `runuser`, their parent, which stopped together with
    /// them.
    pub fn thaw(&self) {
        self.signal("-CONT");
        if let Some(child) = &self.child {
            let _ = Command::new("kill").args(["-CONT", &child.id().to_string()]).status();
        }
    }

    /// Signals the first process before its children. A stopped first process starts no more
    /// children while this function looks for them.
    fn signal(&self, name: &str) {
        let file = std::fs::read_to_string(self.folder().join("postmaster.pid")).unwrap_or_default();
        let Some(first) = file.lines().next() else { return };
        let kill = |pid: &str| Command::new("kill").args([name, pid]).status().expect("kill");
        kill(first);
        let children = Command::new("ps").args(["-o", "pid=", "--ppid", first]).output().expect("ps");
        String::from_utf8_lossy(&children.stdout).split_whitespace().for_each(|pid| {
            kill(pid);
        });
    }

    fn folder(&self) -> PathBuf {
        self.home.path().join("data")
    }

    /// A command that runs one of PostgreSQL's programs. PostgreSQL refuses to run as root; under
    /// root the command uses the user that its package created.
    fn command(&self, program: &str) -> Command {
        let program = self.binaries.join(program);
        let mut command = if is_root() {
            let mut command = Command::new("runuser");
            command.args(["-u", "postgres", "--"]).arg(program);
            command
        } else {
            Command::new(program)
        };
        command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }
}

/// An open transaction of another session.
#[derive(Debug)]
pub struct OpenTransaction {
    child: Child,
    _input: ChildStdin,
}

impl Drop for OpenTransaction {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // A frozen server would not receive the signal to stop.
        self.thaw();
        self.stop();
    }
}

fn binaries() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut folders: Vec<_> = versions.flatten().map(|version| version.path().join("bin")).collect();
    folders.sort();
    folders
        .into_iter()
        .rev()
        .find(|folder| folder.join("postgres").is_file() && folder.join("initdb").is_file())
}

/// Returns true if the tests run as root.
pub fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output();
    output.is_ok_and(|output| output.stdout == b"0\n")
}

fn run(command: &mut Command) -> Result<(), String> {
    let status = command.stdout(Stdio::null()).status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}")) }
}
