//! The parts of a cluster. Each server has its own proxies to PostgreSQL and S3, its own disk and
//! its own clock. The balancer stands in front of the servers.

use crate::balancer::Balancer;
use packhouse_tests::clock::JumpingClock;
use packhouse_tests::database::{Postgres, is_root};
use packhouse_tests::fault_proxy::{FaultProxy, Mode};
use packhouse_tests::s3::{self, S3};
use packhouse_tests::{Client, Server};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// Time limit of a server for the next byte from S3.
const BLOBS_IDLE_MS: &str = "1000";
/// Grace period before unreferenced blobs are deleted.
pub const GRACE: Duration = Duration::from_secs(2);
/// How long the server pins an uploaded blob until a publish refers to it. The time must be longer
/// than a publish takes under faults.
pub const LEASE: Duration = Duration::from_secs(15);
/// How long a client waits for the next byte of an answer.
pub const PATIENCE: Duration = Duration::from_secs(6);

/// A server with its own proxies, clock and disk.
#[derive(Debug)]
pub struct Node {
    /// The server process.
    pub server: Server,
    /// Its proxy to PostgreSQL.
    pub database: FaultProxy,
    /// Its proxy to S3.
    pub blobs: FaultProxy,
    /// Its clock.
    pub clock: JumpingClock,
    /// Its disk.
    pub disk: Disk,
}

/// A complete cluster. Dropping it ends its processes.
#[derive(Debug)]
pub struct Cluster {
    /// The servers.
    pub nodes: Vec<Node>,
    /// The balancer in front of them.
    pub balancer: Balancer,
    /// The database that the servers' proxies lead to.
    pub postgres: Postgres,
    /// The blob storage.
    pub s3: S3,
}

/// The addresses of a cluster, as a load uses them.
#[derive(Clone, Debug)]
pub struct Addresses {
    /// Package address of each server.
    pub servers: Vec<SocketAddr>,
    /// Package address of the balancer.
    pub balancer: SocketAddr,
    /// API address of the balancer.
    pub api: SocketAddr,
}

impl Cluster {
    /// Starts this number of servers, and the balancer, database and storage for them. The error
    /// names a program that is not installed here.
    pub fn start(servers: usize) -> Result<Self, String> {
        let s3 = S3::start().ok_or("weed is missing: `./bootstrap test` installs it")?;
        let postgres = Postgres::start()?;
        let nodes: Vec<Node> = (0..servers).map(|_| Node::start(&postgres, &s3)).collect();
        let addresses: Vec<_> =
            nodes.iter().map(|node| (node.server.packages(), node.server.api())).collect();
        let balancer = Balancer::start(&addresses);
        Ok(Self { nodes, balancer, postgres, s3 })
    }

    /// The addresses for clients.
    pub fn addresses(&self) -> Addresses {
        Addresses {
            servers: self.nodes.iter().map(|node| node.server.packages()).collect(),
            balancer: self.balancer.packages(),
            api: self.balancer.api(),
        }
    }

    /// Sets the mode of every server's proxy to PostgreSQL.
    pub fn databases(&self, mode: Mode) {
        self.nodes.iter().for_each(|node| node.database.set(mode));
    }

    /// Sets the mode of every server's proxy to S3.
    pub fn blobs(&self, mode: Mode) {
        self.nodes.iter().for_each(|node| node.blobs.set(mode));
    }

    /// Points every server's proxy to the current database.
    pub fn lead_to_the_database(&self) {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.postgres.port()));
        self.nodes.iter().for_each(|node| node.database.lead_to(address));
    }

    /// Returns excerpts of the servers' logs: every line about a request whose id these texts
    /// contain, and the end of each log.
    pub fn logs(&self, texts: &[String]) -> String {
        let ids: Vec<&str> = texts.iter().filter_map(|text| request_id(text)).collect();
        let logs: Vec<String> = self.nodes.iter().map(|node| node.server.log()).collect();
        let mut text = String::new();
        for line in
            logs.iter().flat_map(|log| log.lines()).filter(|line| ids.iter().any(|id| line.contains(id)))
        {
            text += &format!("{line}\n");
        }
        for (number, log) in logs.iter().enumerate() {
            let worth = |line: &&str| {
                !line.contains("packhouse::access")
                    || line.contains("\"status\":500")
                    || line.contains("panic")
            };
            let lines: Vec<&str> = log.lines().filter(worth).collect();
            let end = lines.iter().skip(lines.len().saturating_sub(60)).copied();
            text += &format!("--- server {number}\n{}\n", end.collect::<Vec<_>>().join("\n"));
        }
        text
    }
}

/// The request id in an error's text.
fn request_id(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("request_id\":\"")?;
    rest.split('"').next()
}

impl Node {
    fn start(postgres: &Postgres, s3: &S3) -> Self {
        let database = FaultProxy::start(SocketAddr::from((Ipv4Addr::LOCALHOST, postgres.port())));
        let blobs = FaultProxy::start(s3.endpoint());
        let (clock, disk) = (JumpingClock::new(), Disk::new());
        let ms = |time: Duration| time.as_millis().to_string();
        let mut builder = Server::with()
            .data(&disk.folder.path().join("data"))
            .env("PACKHOUSE_DATABASE_URL", &postgres.url_through(database.address().port()))
            .env("PACKHOUSE_BLOBS", &s3::address(blobs.address(), "any", "any"))
            .env("PACKHOUSE_SEALING_KEY", "one key for all of the servers")
            .env("PACKHOUSE_STAGING_KEEP_FREE_BYTES", "0")
            .env("PACKHOUSE_BLOBS_IDLE_MS", BLOBS_IDLE_MS)
            .env("PACKHOUSE_READINESS_INTERVAL_MS", "300")
            .env("PACKHOUSE_DATABASE_STATEMENT_TIMEOUT_MS", "2000")
            .env("PACKHOUSE_DATABASE_LOCK_TIMEOUT_MS", "1000")
            .env("PACKHOUSE_LIMITS_DRAIN_MS", "1000")
            .env("PACKHOUSE_GC_INTERVAL_MS", "1500")
            .env("PACKHOUSE_GC_GRACE_MS", &ms(GRACE))
            .env("PACKHOUSE_GC_LEASE_MS", &ms(LEASE))
            .env("PACKHOUSE_GC_UPLOAD_TTL_MS", &ms(LEASE));
        for (name, value) in clock.environment() {
            builder = builder.env(name, &value);
        }
        Self { server: builder.start(), database, blobs, clock, disk }
    }

    /// Sends the process a signal such as `-STOP`.
    pub fn signal(&self, name: &str) {
        let _ = Command::new("kill").args([name, &self.server.pid().to_string()]).status();
    }

    /// Returns true if the server reports that it is ready.
    pub fn is_healthy(&self) -> bool {
        let client = Client::new(self.server.packages()).within(Duration::from_secs(1));
        client
            .try_send(packhouse_tests::Request::new("GET", "/readyz"))
            .is_ok_and(|answer| answer.status == 200 && answer.field("status") == "ready")
    }
}

/// A server's own disk in memory, or a plain folder if the test may not mount file systems.
#[derive(Debug)]
pub struct Disk {
    folder: TempDir,
    mounted: bool,
}

impl Disk {
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=128m", "tmpfs"]).arg(folder.path());
        let mounted = is_root() && mount.status().is_ok_and(|status| status.success());
        Self { folder, mounted }
    }

    /// Returns true if this is a separate disk, so that filling it fills no other disk.
    pub fn own(&self) -> bool {
        self.mounted
    }

    fn filler(&self) -> std::path::PathBuf {
        Path::new(self.folder.path()).join("filler")
    }

    /// Fills the disk.
    pub fn fill(&self) {
        let zeros = vec![0; 1 << 16];
        let mut file = std::fs::File::create(self.filler()).expect("a file");
        while std::io::Write::write_all(&mut file, &zeros).is_ok() {}
    }

    /// Frees the space again.
    pub fn empty(&self) {
        let _ = std::fs::remove_file(self.filler());
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if self.mounted {
            let _ = Command::new("umount").arg("-l").arg(self.folder.path()).output();
        }
    }
}
