//! A round: a cluster, a load, faults one after the other, rolling restarts, and the final check.

use crate::cluster::{Addresses, Cluster};
use crate::faults::Fault;
use crate::formats::TestRepositories;
use crate::history::{Event, History, Way};
use crate::load::Load;
use crate::random::Random;
use crate::report::{Incident, Report, Rolling};
use crate::tokens::Tokens;
use crate::verify;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Number of concurrent workers.
const WORKERS: u64 = 6;
/// Time limit until every server works again.
const RECOVERY: Duration = Duration::from_secs(60);

/// The plan of a round.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Seed of the random numbers.
    pub seed: u64,
    /// Two or three servers.
    pub servers: usize,
    /// The faults, each once, in an order that the seed determines.
    pub faults: Vec<Fault>,
    /// Minimum number of times that each fault happens.
    pub rounds: usize,
    /// Minimum time for which the round goes on with faults.
    pub time: Duration,
    /// How long a fault lasts.
    pub hold: Duration,
    /// Number of rolling restarts of all servers, alternately without and with retries.
    pub rolling: usize,
}

/// A round's cluster, addresses, repositories and history. They exist before the round is played,
/// and remain after it.
#[derive(Debug)]
pub struct RoundStage {
    /// The cluster.
    pub cluster: Cluster,
    /// Its addresses.
    pub addresses: Addresses,
    /// Its repositories.
    pub shop: TestRepositories,
    /// The history of the round.
    pub history: History,
}

impl RoundStage {
    /// Starts all parts.
    pub fn start(servers: usize) -> Result<Self, String> {
        let cluster = Cluster::start(servers)?;
        let addresses = cluster.addresses();
        let shop = TestRepositories::open(&cluster.nodes[0].server);
        Ok(Self { cluster, addresses, shop, history: History::default() })
    }

    /// Runs the plan. Calls `after` when everything was read and counted, before the cluster ends.
    pub fn play(
        &mut self,
        plan: &Plan,
        after: impl FnOnce(&mut Cluster, &Load<'_>, &Tokens<'_>, &Report),
    ) -> Report {
        let Self { cluster, addresses, shop, history } = self;
        let load = Load::new(addresses, shop, history, plan.seed);
        let tokens = Tokens::new(addresses, shop, history);
        let (incidents, rolling) = std::thread::scope(|scope| {
            for worker in 0..WORKERS {
                let load = &load;
                scope.spawn(move || load.work(worker));
            }
            scope.spawn(|| tokens.change(&load.stop, plan.seed));
            scope.spawn(|| tokens.try_them(&load.stop, plan.seed));
            // The threads of the load must end even if this code panics.
            let stop = StopOnDrop(&load);
            let incidents = trouble(cluster, &load, plan);
            let rolling = (0..plan.rolling).map(|number| roll(cluster, &load, number % 2 == 1)).collect();
            drop(stop);
            (incidents, rolling)
        });
        verify::read_all(&load, &tokens, plan.servers);
        verify::count_storage(cluster, &load);
        let mut report = Report::new(plan.seed, plan.servers, history.since(0), incidents, rolling);
        if !report.violations.is_empty() {
            let reasons: Vec<String> =
                report.violations.iter().map(|violation| violation.why.clone()).collect();
            report.logs = cluster.logs(&reasons);
        }
        after(cluster, &load, &tokens, &report);
        report
    }
}

struct StopOnDrop<'a>(&'a Load<'a>);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.stop.store(true, Ordering::SeqCst);
    }
}

/// Runs the faults.
fn trouble(cluster: &mut Cluster, load: &Load<'_>, plan: &Plan) -> Vec<Incident> {
    let mut random = Random::new(plan.seed, 3_000);
    let (began, mut incidents) = (Instant::now(), Vec::new());
    std::thread::sleep(Duration::from_secs(1));
    for round in 0.. {
        let mut faults = plan.faults.clone();
        random.shuffle(&mut faults);
        for fault in faults {
            if round >= plan.rounds && began.elapsed() >= plan.time {
                return incidents;
            }
            incidents.push(incident(fault, cluster, load, plan.hold, &mut random));
        }
    }
    incidents
}

fn incident(
    fault: Fault,
    cluster: &mut Cluster,
    load: &Load<'_>,
    hold: Duration,
    random: &mut Random,
) -> Incident {
    let begun = load.history.now();
    let active = fault.begin(cluster, load, random);
    std::thread::sleep(hold);
    active.end(cluster);
    let ended = load.history.now();
    recover(cluster, load, fault, &mut random.clone());
    let recovered = load.history.now();
    eprintln!(
        "{:>7.1} s  {:<20} recovered after {:.2} s",
        begun as f64 / 1e6,
        fault.name(),
        (recovered - ended) as f64 / 1e6
    );
    Incident { name: fault.name(), begun, ended, recovered }
}

/// Waits until each server is ready and has published and served a large file, and until every lost
/// file is repaired.
fn recover(cluster: &Cluster, load: &Load<'_>, fault: Fault, random: &mut Random) {
    let began = Instant::now();
    let wait = |missing: &str| {
        assert!(began.elapsed() < RECOVERY, "{fault:?}: {missing}\n{}", cluster.logs(&[]));
        std::thread::sleep(Duration::from_millis(50));
    };
    for (number, node) in cluster.nodes.iter().enumerate() {
        while !(node.is_healthy() && load.probe(Way::Server(number))) {
            wait(&format!("server {number} does not recover"));
        }
    }
    while load.has_lost() {
        load.repair_something(random);
        wait("the lost bytes cannot be published again");
    }
}

/// Restarts all servers, one after the other, while the load uses the balancer alone.
fn roll(cluster: &mut Cluster, load: &Load<'_>, retries: bool) -> Rolling {
    cluster.balancer.retry(retries);
    load.direct.store(false, Ordering::SeqCst);
    std::thread::sleep(Duration::from_millis(500));
    let (number, begun) = (load.history.len(), load.history.now());
    for node in &mut cluster.nodes {
        node.server.terminate();
        assert!(node.server.wait().success(), "{}", node.server.log());
        node.server.restart();
        // The balancer must notice this server's restart before the next server stops.
        std::thread::sleep(Duration::from_millis(500));
    }
    let took = load.history.now() - begun;
    let balanced = |event: &&Event| event.way == Way::Balanced && event.begun >= begun;
    let events = load.history.since(number);
    let requests = events.iter().filter(balanced).count();
    let failed = events.iter().filter(balanced).filter(|event| event.outcome.unknown()).count();
    cluster.balancer.retry(false);
    load.direct.store(true, Ordering::SeqCst);
    eprintln!("rolling restart: {failed} of {requests} failed");
    Rolling { retries, requests, failed, took }
}
