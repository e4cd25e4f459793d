//! The parts: servers, each with its own way to PostgreSQL and to S3, its own disk and clock; the balancer before them.

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

/// How long a server gives S3 for a byte.
const BLOBS_IDLE_MS: &str = "1000";
/// How long what nothing names is kept.
pub const GRACE: Duration = Duration::from_secs(2);
/// How long what was uploaded is kept for a publish to name it: longer than a client takes for a publish under faults.
pub const LEASE: Duration = Duration::from_secs(15);
/// How long a client waits for a byte of an answer.
pub const PATIENCE: Duration = Duration::from_secs(6);

/// A server with what is its own.
#[derive(Debug)]
pub struct Node {
    /// The program.
    pub server: Server,
    /// Its way to PostgreSQL.
    pub database: FaultProxy,
    /// Its way to S3.
    pub blobs: FaultProxy,
    /// Its clock.
    pub clock: JumpingClock,
    /// Its disk.
    pub disk: Disk,
}

/// All parts. What runs is ended when this is dropped.
#[derive(Debug)]
pub struct Cluster {
    /// The servers.
    pub nodes: Vec<Node>,
    /// The balancer before them.
    pub balancer: Balancer,
    /// The database that they are led to.
    pub postgres: Postgres,
    /// The storage of blobs.
    pub s3: S3,
}

/// Where clients find the servers: what a load needs to know of a cluster.
#[derive(Clone, Debug)]
pub struct Addresses {
    /// Each server's, for packages.
    pub servers: Vec<SocketAddr>,
    /// The balancer's, for packages.
    pub balancer: SocketAddr,
    /// The balancer's, for the API.
    pub api: SocketAddr,
}

impl Cluster {
    /// Starts so many servers and all that they need; the reason when something is not to be had here.
    pub fn start(servers: usize) -> Result<Self, String> {
        let s3 = S3::start().ok_or("no weed: `./bootstrap test` installs it")?;
        let postgres = Postgres::start()?;
        let nodes: Vec<Node> = (0..servers).map(|_| Node::start(&postgres, &s3)).collect();
        let addresses: Vec<_> =
            nodes.iter().map(|node| (node.server.packages(), node.server.api())).collect();
        let balancer = Balancer::start(&addresses);
        Ok(Self { nodes, balancer, postgres, s3 })
    }

    /// Where clients go.
    pub fn addresses(&self) -> Addresses {
        Addresses {
            servers: self.nodes.iter().map(|node| node.server.packages()).collect(),
            balancer: self.balancer.packages(),
            api: self.balancer.api(),
        }
    }

    /// Sets every server's way to PostgreSQL.
    pub fn databases(&self, mode: Mode) {
        self.nodes.iter().for_each(|node| node.database.set(mode));
    }

    /// Sets every server's way to S3.
    pub fn blobs(&self, mode: Mode) {
        self.nodes.iter().for_each(|node| node.blobs.set(mode));
    }

    /// Leads every server to the database of now.
    pub fn lead_to_the_database(&self) {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.postgres.port()));
        self.nodes.iter().for_each(|node| node.database.lead_to(address));
    }

    /// What the servers have said that is worth a look: all of the requests that these texts name, and the ends of their logs.
    pub fn logs(&self, told: &[String]) -> String {
        let ids: Vec<&str> = told.iter().filter_map(|text| request_id(text)).collect();
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

/// The id of the request that an error's text names.
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

    /// Sends its process a signal, as `-STOP`.
    pub fn signal(&self, name: &str) {
        let _ = Command::new("kill").args([name, &self.server.pid().to_string()]).status();
    }

    /// Whether it says that all is well.
    pub fn well(&self) -> bool {
        let client = Client::new(self.server.packages()).within(Duration::from_secs(1));
        client
            .try_send(packhouse_tests::Request::new("GET", "/readyz"))
            .is_ok_and(|answer| answer.status == 200 && answer.field("status") == "ready")
    }
}

/// A disk of a server's own, in memory; a plain folder where it cannot be mounted.
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

    /// Whether it can be filled without filling others.
    pub fn own(&self) -> bool {
        self.mounted
    }

    fn filler(&self) -> std::path::PathBuf {
        Path::new(self.folder.path()).join("filler")
    }

    /// Leaves no room on it.
    pub fn fill(&self) {
        let zeros = vec![0; 1 << 16];
        let mut file = std::fs::File::create(self.filler()).expect("a file");
        while std::io::Write::write_all(&mut file, &zeros).is_ok() {}
    }

    /// Gives the room back.
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
