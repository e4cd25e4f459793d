//! The faults: what each does to which part, and how it is ended.

use crate::cluster::{Cluster, Node};
use crate::formats::Item;
use crate::history::{Outcome, Way, What};
use crate::load::Load;
use crate::random::Random;
use packhouse_tests::database::Held;
use packhouse_tests::fault_proxy::Mode;
use std::time::Duration;

/// How far a clock jumps, in seconds.
const JUMP: i64 = 3_600;
/// What every piece of a slow way waits.
const SLOW: Duration = Duration::from_millis(40);
/// Files that lose their objects at one time.
const LOST: usize = 6;
/// What else goes wrong while lost objects are repaired.
const BESIDE: [Fault; 3] = [Fault::ServerKilled, Fault::DiskFull, Fault::S3Away];

macro_rules! faults {
    ($($(#[$about:meta])* $name:ident = $text:literal,)*) => {
        /// Something that goes wrong.
        #[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
        pub enum Fault { $($(#[$about])* $name,)* }

        impl Fault {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// As reports and the command line call it.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

faults! {
    /// SIGKILL to a server, which is started again.
    ServerKilled = "server-killed",
    /// SIGSTOP to a server: it is silent, and then goes on as if nothing had been.
    ServerStopped = "server-stopped",
    /// Nothing passes between a server and database and S3.
    ServerCutOff = "server-cut-off",
    /// A server's clock jumps an hour ahead, then an hour behind.
    ClockJump = "clock-jump",
    /// A server's disk has no room left.
    DiskFull = "disk-full",
    /// SIGQUIT to PostgreSQL, which is started again.
    DatabaseRestart = "database-restart",
    /// SIGKILL to one of its processes: it ends all others and recovers.
    DatabaseCrash = "database-crash",
    /// All connections to it are closed.
    ConnectionsCut = "connections-cut",
    /// All that is said to it, and by it, is late.
    DatabaseSlow = "database-slow",
    /// SIGSTOP to all its processes.
    DatabaseFrozen = "database-frozen",
    /// The ways to it are silent, and then go on.
    ConnectionsFrozen = "connections-frozen",
    /// Somebody holds the lock of a repository's row.
    RowLocked = "row-locked",
    /// It is lost, and a standby that follows it takes its place.
    Failover = "failover",
    /// S3 answers 500.
    S3Errors = "s3-errors",
    /// All that is said to it, and by it, is late.
    S3Slow = "s3-slow",
    /// It takes what comes and says nothing.
    S3Hangs = "s3-hangs",
    /// SIGSTOP to it.
    S3Stopped = "s3-stopped",
    /// It takes no connections.
    S3Away = "s3-away",
    /// SIGKILL to it, and it is started again.
    S3Killed = "s3-killed",
    /// Objects of acknowledged files are removed from it. While their bytes are published again, a server is killed or has no room on its
    /// disk, or S3 takes no connections.
    S3ObjectsLost = "s3-objects-lost",
}

/// A fault that is there.
#[derive(Debug)]
pub struct Active {
    fault: Fault,
    node: usize,
    held: Option<Held>,
    beside: Option<Box<Active>>,
}

impl Fault {
    /// That of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|fault| fault.name() == name)
    }

    /// Lets it begin; which server it meets is chance.
    pub fn begin(self, cluster: &mut Cluster, load: &Load<'_>, random: &mut Random) -> Active {
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
                // How many numbers it draws depends on answers, and the faults after it must not.
                lose_objects(cluster, load, &mut random.clone());
                let other = BESIDE[random.below(BESIDE.len())];
                beside = Some(Box::new(other.begin(cluster, load, random)));
            }
        }
        Active { fault: self, node: number, held, beside }
    }
}

impl Active {
    /// Ends it: what was taken away is there again.
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
                // What was swallowed is not said again: those connections are of no use any more.
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

/// Removes the objects of files that were just acknowledged, behind the servers' backs. The load repairs them from then on.
fn lose_objects(cluster: &Cluster, load: &Load<'_>, random: &mut Random) {
    let files: Vec<Item> = (0..LOST).filter_map(|_| load.publish_object(random)).collect();
    assert!(!files.is_empty(), "no publish is acknowledged\n{}", cluster.logs(&[]));
    // Each server keeps what it has read: small files in memory, of large ones the keys of their objects.
    files.iter().for_each(|file| load.read_everywhere(file));
    for file in &files {
        let digest = file.digest();
        let place = cluster.postgres.query(&format!("select place from blobs where sha256 = '\\x{digest}'"));
        assert!(!place.is_empty(), "{} is no object of its own", file.path());
        let begun = load.history.now();
        cluster.s3.remove(&format!("blobs/{place}"));
        load.history.record(begun, Way::Balanced, What::Loss { digest }, Outcome::Done, false);
        // Some losses are noticed by a read before the bytes come again, and the others are not.
        if random.percent(50) {
            load.read_everywhere(file);
        }
    }
    load.lost.lock().unwrap().extend(files);
    load.repair_something(random);
}

/// A standby is made and follows; the first is lost in the middle of the load, and clients of it with it.
fn fail_over(cluster: &mut Cluster) {
    let standby = cluster.postgres.standby().expect("a standby that follows");
    cluster.databases(Mode::Away);
    cluster.postgres.stop();
    standby.promote();
    cluster.postgres = standby;
    cluster.lead_to_the_database();
    cluster.databases(Mode::Pass);
}
