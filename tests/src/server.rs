//! The program under test: the release binary on its own ports, with a data folder that the test
//! removes at the end.

use crate::clock::JumpingClock;
use crate::http::Client;
use crate::race::SetOnDrop;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The owner of the organization that a first start creates.
pub const OWNER: &str = "owner@example.com";
/// The owner's password.
pub const PASSWORD: &str = "correct horse battery staple";

/// Time limit for a start or a stop, on a machine that has other work.
const PATIENCE: Duration = Duration::from_secs(180);
const PAUSE: Duration = Duration::from_millis(10);
/// Ports that tests give to servers. They are below the ports that the system assigns to outgoing
/// connections. Such a connection could otherwise take the port of a server that is about to
/// restart. Each test process begins at another port, so that two processes do not try the same
/// port at the same moment.
const PORTS: Range<u16> = 10_240..32_000;
const STRIDE: u32 = 101;

/// Options of a server start.
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
    /// Uses this data folder and leaves it in place at the end.
    pub fn data(mut self, folder: &Path) -> Self {
        self.data = Some(folder.to_owned());
        self
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Gives the server this clock.
    pub fn clock(self, clock: &JumpingClock) -> Self {
        clock.environment().into_iter().fold(self, |with, (name, value)| with.env(name, &value))
    }

    /// Adds an argument to `packhouse serve`.
    pub fn arg(mut self, argument: &str) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// States that the API uses TLS, with a certificate of this authority, so that the builder
    /// polls `/readyz` over TLS.
    pub fn secured(mut self, ca: &Path) -> Self {
        self.ca = Some(ca.to_owned());
        self
    }

    /// Serves packages, portal and API on one listener.
    pub fn on_one_listener(mut self) -> Self {
        self.shared = true;
        self
    }

    /// Free ports for packages and API.
    fn free_ports(&self) -> [u16; 2] {
        let packages = free_port();
        [packages, if self.shared { packages } else { free_port() }]
    }

    /// States that the server expects a PROXY header on each connection, so that the builder sends
    /// one when it polls `/readyz`.
    pub fn speaking_for_proxies(mut self) -> Self {
        self.proxied = true;
        self
    }

    /// Starts the server through another program. The server itself must become the direct child of
    /// the test process (`strace -D`).
    pub fn wrapped_in(mut self, command: &[&str]) -> Self {
        self.wrapper = command.iter().map(|word| (*word).to_owned()).collect();
        self
    }

    /// Starts the server and waits until it is ready.
    pub fn start(self) -> Server {
        let server = self.launch();
        server.unwrap_or_else(|log| panic!("the server did not start:\n{log}"))
    }

    /// Starts the server and expects it to end by itself; returns its exit status and its output.
    pub fn start_refused(self) -> (ExitStatus, String) {
        let home = TempDir::new().expect("a folder for the data");
        let data = self.data.clone().unwrap_or_else(|| home.path().join("data"));
        // The server may load its plugins before it refuses to start, so it uses the shared
        // compiled plugins. If the test names a data folder that does not exist, this function does
        // not create it.
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

    /// Starts the server and waits until it is ready. Returns the server's log as the error if it
    /// ends or is not ready in time. Tries other ports if another process took the first ones.
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

    /// Starts the server and does not wait until it is ready, because that may take long.
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
        // A nearly full disk of the machine must not fail a test.
        command.env("PACKHOUSE_STAGING_KEEP_FREE_BYTES", "16 MiB");
        // The tests have no load balancer that must first notice a shutdown.
        command.env("PACKHOUSE_LIMITS_DRAIN_MS", "0");
        command.env("PACKHOUSE_OWNER_EMAIL", OWNER).env("PACKHOUSE_OWNER_PASSWORD", PASSWORD);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(output.try_clone().expect("the log twice")).stderr(output);
        command.spawn().unwrap_or_else(|error| panic!("{}: {error}", words[0]))
    }
}

/// Lets a new data folder use the compiled plugins of earlier servers, so that tests compile
/// plugins only once. Creates the data folder if necessary.
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

/// A running server; dropping it kills it and removes its data.
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
    /// Starts a server with default options.
    pub fn start() -> Server {
        ServerBuilder::default().start()
    }

    /// Options for a server.
    pub fn with() -> ServerBuilder {
        ServerBuilder::default()
    }

    /// The address for package clients.
    pub fn packages(&self) -> SocketAddr {
        self.packages
    }

    /// The address of the API.
    pub fn api(&self) -> SocketAddr {
        self.api
    }

    /// The URL of the repository host, as clients write it.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.packages)
    }

    /// Its data folder.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Everything that the server has logged so far.
    pub fn log(&self) -> String {
        read(&self.log)
    }

    /// A client of the repository host without a credential.
    pub fn anonymous(&self) -> Client {
        Client::new(self.packages)
    }

    /// Its current memory use, in bytes.
    pub fn rss(&self) -> u64 {
        self.memory("VmRSS:")
    }

    /// Its peak memory use, in bytes.
    pub fn peak_rss(&self) -> u64 {
        self.memory("VmHWM:")
    }

    /// Resets the peak to the current memory use.
    pub fn forget_peak(&self) {
        let path = format!("/proc/{}/clear_refs", self.pid());
        std::fs::write(&path, "5").unwrap_or_else(|error| panic!("{path}: {error}"));
    }

    /// Runs `work` and samples the server's memory meanwhile. Returns the result and the largest
    /// sample, in bytes.
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
            let ended = SetOnDrop(&done);
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

    /// Returns true if the process still runs.
    pub fn running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits until the process ends by itself.
    pub fn wait(&mut self) -> ExitStatus {
        wait(&mut self.child).unwrap_or_else(|| panic!("it did not end:\n{}", self.log()))
    }

    /// SIGKILL, and waits until the process has ended.
    pub fn kill9(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// SIGTERM, without waiting.
    pub fn terminate(&self) {
        self.signal("-TERM");
    }

    /// Sends the server a signal such as `-HUP`.
    pub fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.pid().to_string()]).status().expect("kill");
        assert!(status.success(), "kill {signal} {}", self.pid());
    }

    /// Kills the server and starts it again with the same data and addresses, without a wrapper.
    /// Fails the test if the server does not become ready.
    pub fn restart(&mut self) {
        self.kill9();
        self.builder.wrapper.clear();
        let ports = [self.packages.port(), self.api.port()];
        self.child = self.builder.spawn(&self.data, &self.log, ports);
        assert!(self.wait_ready(), "it did not restart:\n{}", self.log());
    }

    /// Polls `/readyz`; returns false if the process ended or is not ready in time.
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

/// Calls `probe` until it returns a value; fails the test after one minute.
#[track_caller]
pub fn eventually<T>(what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = probe() {
            return value;
        }
        assert!(start.elapsed() < PATIENCE, "timed out: {what}");
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

/// A free port of 127.0.0.1.
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
