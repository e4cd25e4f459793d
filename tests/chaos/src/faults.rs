//! The faults: how each begins and how it ends.

use crate::cluster::{Cluster, Node};
use crate::formats::PackageVersion;
use crate::history::{Operation, Outcome, Way};
use crate::load::Load;
use crate::random::Random;
use packhouse_tests::database::OpenTransaction;
use packhouse_tests::fault_proxy::Mode;
use std::time::Duration;

/// How far a clock jumps, in seconds.
const JUMP: i64 = 3_600;
/// Delay of every packet of a slow connection.
const SLOW: Duration = Duration::from_millis(40);
/// Number of files that lose their objects at one time.
const LOST: usize = 6;
/// Faults that happen while lost objects are repaired.
const BESIDE: [Fault; 3] = [Fault::ServerKilled, Fault::DiskFull, Fault::S3Away];

macro_rules! faults {
    ($($(#[$about:meta])* $name:ident = $text:literal,)*) => {
        /// A fault.
        #[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
        pub enum Fault { $($(#[$about])* $name,)* }

        impl Fault {
            /// All faults.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The name in reports and on the command line.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

faults! {
    /// SIGKILL to a server, which is then restarted.
    ServerKilled = "server-killed",
    /// SIGSTOP to a server: it is silent for a while and then continues.
    ServerStopped = "server-stopped",
    /// No bytes pass between one server and its database and S3.
    ServerCutOff = "server-cut-off",
    /// A server's clock jumps one hour ahead, then one hour back.
    ClockJump = "clock-jump",
    /// A server's disk is full.
    DiskFull = "disk-full",
    /// SIGQUIT to PostgreSQL, which is then restarted.
    DatabaseRestart = "database-restart",
    /// SIGKILL to one PostgreSQL process: PostgreSQL ends the others and recovers.
    DatabaseCrash = "database-crash",
    /// All connections to PostgreSQL are closed.
    ConnectionsCut = "connections-cut",
    /// All traffic with PostgreSQL is delayed.
    DatabaseSlow = "database-slow",
    /// SIGSTOP to all PostgreSQL processes.
    DatabaseFrozen = "database-frozen",
    /// The proxies to PostgreSQL pass no bytes for a while.
    ConnectionsFrozen = "connections-frozen",
    /// Another session holds the lock of a repository's row.
    RowLocked = "row-locked",
    /// PostgreSQL is lost, and its standby replaces it.
    Failover = "failover",
    /// S3 answers 500.
    S3Errors = "s3-errors",
    /// All traffic with S3 is delayed.
    S3Slow = "s3-slow",
    /// S3 accepts requests and answers nothing.
    S3Hangs = "s3-hangs",
    /// SIGSTOP to S3.
    S3Stopped = "s3-stopped",
    /// S3 accepts no connections.
    S3Away = "s3-away",
    /// SIGKILL to S3, which is then restarted.
    S3Killed = "s3-killed",
    /// Objects of acknowledged files disappear from S3. While clients publish the bytes again, one
    /// more fault happens: a server is killed, its disk is full, or S3 accepts no connections.
    S3ObjectsLost = "s3-objects-lost",
}

/// A fault that has begun.
#[derive(Debug)]
pub struct ActiveFault {
    fault: Fault,
    node: usize,
    held: Option<OpenTransaction>,
    beside: Option<Box<ActiveFault>>,
}

impl Fault {
    /// Finds a fault by its name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|fault| fault.name() == name)
    }

    /// Begins the fault; the affected server is chosen at random.
    pub fn begin(self, cluster: &mut Cluster, load: &Load<'_>, random: &mut Random) -> ActiveFault {
        let number = random.below(cluster.nodes.len());
        let (mut held, mut beside) = (None, None);
        match self {
            Self::ServerKilled => cluster.nodes[number].server.kill9(),
            Self::ServerStopped => cluster.nodes[number].signal("-STOP"),
            Self::ServerCutOff => cut_off(&cluster.nodes[number], Mode::Freeze),
            Self::ClockJump => {
                cluster.nodes[number].clock.set(if random.percent(50) { JUMP } else { -JUMP });
            }
            Self::DiskFull if cluster.nodes[number].disk.own() => cluster.nodes[number].disk.fill(),
            Self::DiskFull => packhouse_tests::skip("a full disk", "mounting needs root"),
            Self::DatabaseRestart => cluster.postgres.stop(),
            Self::DatabaseCrash => cluster.postgres.kill_a_backend(),
            Self::ConnectionsCut => cluster.nodes.iter().for_each(|node| node.database.cut()),
            Self::DatabaseSlow => cluster.databases(Mode::Slow(SLOW)),
            Self::DatabaseFrozen => cluster.postgres.freeze(),
            Self::ConnectionsFrozen => cluster.databases(Mode::Freeze),
            Self::RowLocked => {
                let sql = "select 1 from repositories where name = 'npm' for update";
                held = Some(cluster.postgres.hold(sql));
            }
            Self::Failover => fail_over(cluster),
            Self::S3Errors => cluster.blobs(Mode::Err),
            Self::S3Slow => cluster.blobs(Mode::Slow(SLOW)),
            Self::S3Hangs => cluster.blobs(Mode::Hang),
            Self::S3Stopped => cluster.s3.freeze(),
            Self::S3Away => cluster.blobs(Mode::Away),
            Self::S3Killed => cluster.s3.stop(),
            Self::S3ObjectsLost => {
                // The number of random numbers that this call draws depends on the servers'
                // answers. Drawing from a clone keeps the later faults reproducible.
                lose_objects(cluster, load, &mut random.clone());
                let other = BESIDE[random.below(BESIDE.len())];
                beside = Some(Box::new(other.begin(cluster, load, random)));
            }
        }
        ActiveFault { fault: self, node: number, held, beside }
    }
}

impl ActiveFault {
    /// Ends the fault and restores what it took away.
    pub fn end(self, cluster: &mut Cluster) {
        let node = self.node;
        match self.fault {
            Fault::ServerKilled => cluster.nodes[node].server.restart(),
            Fault::ServerStopped => cluster.nodes[node].signal("-CONT"),
            Fault::ServerCutOff => cut_off(&cluster.nodes[node], Mode::Pass),
            Fault::ClockJump => cluster.nodes[node].clock.set(0),
            Fault::DiskFull => cluster.nodes[node].disk.empty(),
            Fault::DatabaseRestart => cluster.postgres.resume(),
            Fault::DatabaseFrozen => cluster.postgres.thaw(),
            Fault::DatabaseSlow | Fault::ConnectionsFrozen => cluster.databases(Mode::Pass),
            Fault::RowLocked => drop(self.held),
            Fault::DatabaseCrash | Fault::ConnectionsCut | Fault::Failover => {}
            Fault::S3Errors | Fault::S3Slow | Fault::S3Away => cluster.blobs(Mode::Pass),
            Fault::S3Hangs => {
                // The proxy dropped bytes that nobody sends again, so close the connections that
                // lack them.
                cluster.blobs(Mode::Pass);
                cluster.nodes.iter().for_each(|node| node.blobs.cut());
            }
            Fault::S3Stopped => cluster.s3.thaw(),
            Fault::S3Killed => cluster.s3.resume(),
            Fault::S3ObjectsLost => {
                if let Some(beside) = self.beside {
                    beside.end(cluster);
                }
            }
        }
    }
}

fn cut_off(node: &Node, mode: Mode) {
    node.database.set(mode);
    node.blobs.set(mode);
}

/// Removes the objects of newly published files directly from S3. Afterwards the load repairs the
/// files.
fn lose_objects(cluster: &Cluster, load: &Load<'_>, random: &mut Random) {
    let files: Vec<PackageVersion> = (0..LOST).filter_map(|_| load.publish_object(random)).collect();
    assert!(!files.is_empty(), "no publish is acknowledged\n{}", cluster.logs(&[]));
    // Each server caches what it has read: small files in memory, and the object keys of large
    // files.
    files.iter().for_each(|file| load.read_everywhere(file));
    for file in &files {
        let digest = file.digest();
        let place = cluster.postgres.query(&format!("select place from blobs where sha256 = '\\x{digest}'"));
        assert!(!place.is_empty(), "{} has no object of its own", file.path());
        let begun = load.history.now();
        cluster.s3.remove(&format!("blobs/{place}"));
        load.history.record(begun, Way::Balanced, Operation::Loss { digest }, Outcome::Done, false);
        // For half of the lost files, a read notices the loss before a client publishes the bytes
        // again.
        if random.percent(50) {
            load.read_everywhere(file);
        }
    }
    load.lost.lock().unwrap().extend(files);
    load.repair_something(random);
}

/// Creates a standby, then kills the primary in the middle of the load; its clients lose their
/// connections.
fn fail_over(cluster: &mut Cluster) {
    let standby = cluster.postgres.standby().expect("a standby that follows");
    cluster.databases(Mode::Away);
    cluster.postgres.stop();
    standby.promote();
    cluster.postgres = standby;
    cluster.lead_to_the_database();
    cluster.databases(Mode::Pass);
}
