//! The program under test: the release binary, on ports of its own, over a data folder that goes when it goes.

use crate::clock::JumpingClock;
use crate::http::Client;
use crate::race::Ended;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The owner of the organization that a first start makes.
pub const OWNER: &str = "owner@example.com";
/// The owner's password.
pub const PASSWORD: &str = "correct horse battery staple";

/// How long a start or a stop may take on a machine with other work.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(10);
/// Ports that tests give to servers: below those that the system gives to connections, which could take the place of a server that is
/// about to start again. Each process begins at another of them, so that two do not try the same one at the same moment.
const PORTS: Range<u16> = 10_240..32_000;
const STRIDE: u32 = 101;

/// What differs from an ordinary start.
#[derive(Clone, Debug, Default)]
pub struct ServerBuilder {
    data: Option<PathBuf>,
    environment: Vec<(String, String)>,
    arguments: Vec<String>,
    wrapper: Vec<String>,
    ca: Option<PathBuf>,
    proxied: bool,
    shared: bool,
}

impl ServerBuilder {
    /// Keeps its data in this folder, which is left behind.
    pub fn data(mut self, folder: &Path) -> Self {
        self.data = Some(folder.to_owned());
        self
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Gives it this clock.
    pub fn clock(self, clock: &JumpingClock) -> Self {
        clock.environment().into_iter().fold(self, |with, (name, value)| with.env(name, &value))
    }

    /// Adds an argument to `packhouse serve`.
    pub fn arg(mut self, argument: &str) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// The API speaks TLS too, with a certificate of this authority.
    pub fn secured(mut self, ca: &Path) -> Self {
        self.ca = Some(ca.to_owned());
        self
    }

    /// One listener serves packages, portal and API.
    pub fn on_one_listener(mut self) -> Self {
        self.shared = true;
        self
    }

    /// Ports that nobody holds, for packages and API.
    fn free_ports(&self) -> [u16; 2] {
        let packages = free_port();
        [packages, if self.shared { packages } else { free_port() }]
    }

    /// It wants to be told by a PROXY header whose connections are.
    pub fn speaking_for_proxies(mut self) -> Self {
        self.proxied = true;
        self
    }

    /// Starts it through another program, which must leave it the child process that it is (`strace -D`).
    pub fn wrapped_in(mut self, command: &[&str]) -> Self {
        self.wrapper = command.iter().map(|word| (*word).to_owned()).collect();
        self
    }

    /// Starts it and waits until it is ready.
    pub fn start(self) -> Server {
        let server = self.launch();
        server.unwrap_or_else(|log| panic!("the server did not start:\n{log}"))
    }

    /// Starts it and expects it to end by itself; answers how it ended and what it said.
    pub fn start_refused(self) -> (ExitStatus, String) {
        let home = TempDir::new().expect("a folder for the data");
        let data = self.data.clone().unwrap_or_else(|| home.path().join("data"));
        // What refuses it may come behind its plugins. A folder that a test names and has not made is not made here.
        if self.data.is_none() || data.is_dir() {
            share_compiled(&data);
        }
        let log = home.path().join("server.log");
        let mut child = self.spawn(&data, &log, self.free_ports());
        let status = wait(&mut child).unwrap_or_else(|| {
            let _ = child.kill();
            panic!("it did not end by itself:\n{}", read(&log))
        });
        (status, read(&log))
    }

    /// Starts it, and says how it went: a start that a fault ends is no failure of the test. Ports that somebody else took in
    /// the meantime are tried again.
    pub fn launch(self) -> Result<Server, String> {
        let home = TempDir::new().expect("a folder for the data");
        let data = self.data.clone().unwrap_or_else(|| home.path().join("data"));
        share_compiled(&data);
        let log = home.path().join("server.log");
        let mut last = String::new();
        for _ in 0..5 {
            let ports = self.free_ports();
            let child = self.spawn(&data, &log, ports);
            let [packages, api] = ports.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
            let mut server = Server {
                builder: self.clone(),
                child,
                packages,
                api,
                data: data.clone(),
                log: log.clone(),
                home: None,
            };
            if server.wait_ready() {
                server.home = Some(home);
                return Ok(server);
            }
            last = server.log();
            if !last.contains("in use") {
                break;
            }
        }
        Err(last)
    }

    /// Starts it and waits for nothing: it may not be ready for a long time.
    pub fn begin(self) -> Server {
        let home = TempDir::new().expect("a folder for the data");
        let data = self.data.clone().unwrap_or_else(|| home.path().join("data"));
        share_compiled(&data);
        let (log, ports) = (home.path().join("server.log"), self.free_ports());
        let child = self.spawn(&data, &log, ports);
        let [packages, api] = ports.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        Server { builder: self, child, packages, api, data, log, home: Some(home) }
    }

    fn spawn(&self, data: &Path, log: &Path, [packages, api]: [u16; 2]) -> Child {
        let program = program();
        let mut words = self.wrapper.clone();
        words.push(program.to_string_lossy().into_owned());
        let output = File::options().create(true).append(true).open(log).expect("a file for the log");
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).arg("serve").arg("--data").arg(data);
        command.args([
            "--packages-listen",
            &format!("127.0.0.1:{packages}"),
            "--api-listen",
            &format!("127.0.0.1:{api}"),
        ]);
        command.args(&self.arguments);
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PACKHOUSE_"))
        {
            command.env_remove(name);
        }
        // A machine whose disk is nearly full is no reason to fail.
        command.env("PACKHOUSE_STAGING_KEEP_FREE_BYTES", "16 MiB");
        // Nothing in front of it waits for a sign that it stops.
        command.env("PACKHOUSE_LIMITS_DRAIN_MS", "0");
        command.env("PACKHOUSE_OWNER_EMAIL", OWNER).env("PACKHOUSE_OWNER_PASSWORD", PASSWORD);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(output.try_clone().expect("the log twice")).stderr(output);
        command.spawn().unwrap_or_else(|error| panic!("{}: {error}", words[0]))
    }
}

/// Plugins are compiled once for all tests: a new data folder, which is made where it is not there, finds what another server has left.
pub fn share_compiled(data: &Path) {
    if data.join("cache").exists() {
        return;
    }
    let compiled = crate::checkout().join("target/compiled-plugins");
    let linked = fs::create_dir_all(&compiled)
        .and_then(|()| fs::create_dir_all(data))
        .and_then(|()| std::os::unix::fs::symlink(&compiled, data.join("cache")));
    linked.expect("a link in the folder for the data");
}

/// A running server; it is killed, and its data removed, when this is dropped.
#[derive(Debug)]
pub struct Server {
    builder: ServerBuilder,
    child: Child,
    packages: SocketAddr,
    api: SocketAddr,
    data: PathBuf,
    log: PathBuf,
    home: Option<TempDir>,
}

impl Server {
    /// Starts one with nothing special about it.
    pub fn start() -> Server {
        ServerBuilder::default().start()
    }

    /// For one that is started otherwise.
    pub fn with() -> ServerBuilder {
        ServerBuilder::default()
    }

    /// Where package clients go.
    pub fn packages(&self) -> SocketAddr {
        self.packages
    }

    /// Where the API answers.
    pub fn api(&self) -> SocketAddr {
        self.api
    }

    /// The address of the repository host, as clients write it.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.packages)
    }

    /// Its data folder.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// All that it has said.
    pub fn log(&self) -> String {
        read(&self.log)
    }

    /// A client of the repository host that shows no credential.
    pub fn anonymous(&self) -> Client {
        Client::new(self.packages)
    }

    /// Bytes of memory that it holds now.
    pub fn rss(&self) -> u64 {
        self.memory("VmRSS:")
    }

    /// The most that it ever held.
    pub fn peak_rss(&self) -> u64 {
        self.memory("VmHWM:")
    }

    /// Forgets it: what it holds now is the most, until it holds more.
    pub fn forget_peak(&self) {
        let path = format!("/proc/{}/clear_refs", self.pid());
        std::fs::write(&path, "5").unwrap_or_else(|error| panic!("{path}: {error}"));
    }

    /// Does `work` while its memory is looked at all the time; answers the most that was seen, in bytes.
    pub fn watched<T>(&self, work: impl FnOnce() -> T) -> (T, u64) {
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let watcher = scope.spawn(|| {
                let mut most = self.rss();
                while !done.load(Ordering::Relaxed) {
                    most = most.max(self.rss());
                    std::thread::sleep(PAUSE);
                }
                most
            });
            let ended = Ended(&done);
            let result = work();
            drop(ended);
            (result, watcher.join().expect("the watcher ends"))
        })
    }

    fn memory(&self, field: &str) -> u64 {
        let status = read(Path::new(&format!("/proc/{}/status", self.pid())));
        let line = status
            .lines()
            .find(|line| line.starts_with(field))
            .unwrap_or_else(|| panic!("no {field} in {status:?}"));
        let kib: u64 =
            line.split_whitespace().nth(1).and_then(|word| word.parse().ok()).expect("a number of kB");
        kib * 1024
    }

    /// Whether it still runs.
    pub fn running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits until it ends by itself.
    pub fn wait(&mut self) -> ExitStatus {
        wait(&mut self.child).unwrap_or_else(|| panic!("it did not end:\n{}", self.log()))
    }

    /// SIGKILL, and waits until it is gone.
    pub fn kill9(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// SIGTERM, without waiting.
    pub fn terminate(&self) {
        self.signal("-TERM");
    }

    /// Sends it a signal, as in `-HUP`.
    pub fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.pid().to_string()]).status().expect("kill");
        assert!(status.success(), "kill {signal} {}", self.pid());
    }

    /// Starts it again over the same data and at the same addresses, with nothing wrapped around it. It must come up.
    pub fn restart(&mut self) {
        self.kill9();
        self.builder.wrapper.clear();
        let ports = [self.packages.port(), self.api.port()];
        self.child = self.builder.spawn(&self.data, &self.log, ports);
        assert!(self.wait_ready(), "it did not come up again:\n{}", self.log());
    }

    /// Polls `/readyz`; false when the process ended, or is not ready in time.
    fn wait_ready(&mut self) -> bool {
        let client = Client::new(self.api);
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if !self.running() {
                return false;
            }
            let ready = match &self.builder.ca {
                Some(ca) => ready_over_tls(ca, self.api),
                None if self.builder.proxied => ready_behind_a_proxy(self.api),
                None => {
                    let answer = client.try_send(crate::Request::new("GET", "/readyz"));
                    answer.is_ok_and(|answer| answer.status == 200)
                }
            };
            if ready {
                return true;
            }
            std::thread::sleep(PAUSE);
        }
        false
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill9();
    }
}

fn ready_behind_a_proxy(api: SocketAddr) -> bool {
    let ask = || {
        let mut stream = TcpStream::connect(api)?;
        stream.write_all(
            b"PROXY UNKNOWN\r\nGET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok::<_, std::io::Error>(answer)
    };
    ask().is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
}

fn ready_over_tls(ca: &Path, api: SocketAddr) -> bool {
    let mut command = Command::new("curl");
    command
        .args(["--silent", "--fail", "--max-time", "5", "--cacert"])
        .arg(ca)
        .arg(format!("https://{api}/readyz"));
    command.stdin(Stdio::null()).output().is_ok_and(|output| output.status.success())
}

/// Calls `probe` until it answers something; fails the test when it does not within a minute.
#[track_caller]
pub fn eventually<T>(what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = probe() {
            return value;
        }
        assert!(start.elapsed() < PATIENCE, "in vain: {what}");
        std::thread::sleep(PAUSE);
    }
}

/// The release binary, or the one that `PACKHOUSE_TEST_PROGRAM` names.
pub fn program() -> PathBuf {
    let named = std::env::var_os("PACKHOUSE_TEST_PROGRAM").map(PathBuf::from);
    let program = named.unwrap_or_else(|| crate::checkout().join("target/release/packhouse"));
    let plugins = program.with_file_name("plugins");
    assert!(
        program.is_file() && plugins.is_dir(),
        "the tests run {} and the plugins beside it: build them with `./bootstrap build`",
        program.display()
    );
    program
}

/// A port of 127.0.0.1 that nobody holds at the moment.
pub fn free_port() -> u16 {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    loop {
        let number =
            std::process::id().wrapping_mul(STRIDE).wrapping_add(GIVEN.fetch_add(1, Ordering::Relaxed));
        let port = PORTS.start + u16::try_from(number % u32::from(PORTS.end - PORTS.start)).expect("a port");
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}

fn wait(child: &mut Child) -> Option<ExitStatus> {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        std::thread::sleep(PAUSE);
    }
    None
}

fn read(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}
