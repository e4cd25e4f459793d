//! A round: a cluster, a load, faults one after the other, rolling restarts, and the end.

use crate::cluster::{Addresses, Cluster};
use crate::faults::Fault;
use crate::formats::Shop;
use crate::history::{Event, History, Way};
use crate::load::Load;
use crate::random::Random;
use crate::report::{Incident, Report, Rolling};
use crate::tokens::Tokens;
use crate::verify;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How many publish, read, list and delete at one time.
const WORKERS: u64 = 6;
/// How long it may take until every server serves again.
const RECOVERY: Duration = Duration::from_secs(60);

/// What a round is to do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Names the chance.
    pub seed: u64,
    /// Two or three.
    pub servers: usize,
    /// The faults, each once in an order of the seed's.
    pub faults: Vec<Fault>,
    /// How often all of them are gone through at least.
    pub rounds: usize,
    /// For how long it goes on with more of them.
    pub time: Duration,
    /// How long a fault lasts.
    pub hold: Duration,
    /// How often all servers are restarted one after the other: first without retries, then with, and so on.
    pub rolling: usize,
}

/// A round that came to its end, with all that it stood on still running.
#[derive(Debug)]
pub struct Stage {
    /// The parts.
    pub cluster: Cluster,
    /// Where they are found.
    pub addresses: Addresses,
    /// Whose repositories these are.
    pub shop: Shop,
    /// What clients saw.
    pub history: History,
}

impl Stage {
    /// Starts all parts.
    pub fn set(servers: usize) -> Result<Self, String> {
        let cluster = Cluster::start(servers)?;
        let addresses = cluster.addresses();
        let shop = Shop::open(&cluster.nodes[0].server);
        Ok(Self { cluster, addresses, shop, history: History::default() })
    }

    /// Goes through the plan; `after` is called when everything was read and counted, before the end.
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
            // Whatever happens here, the others end.
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
            let told: Vec<String> = report.violations.iter().map(|violation| violation.why.clone()).collect();
            report.logs = cluster.logs(&told);
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

/// Lets the faults happen.
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

/// Waits until each server says that all is well and publishes and reads something large, and what was lost is repaired.
fn recover(cluster: &Cluster, load: &Load<'_>, fault: Fault, random: &mut Random) {
    let began = Instant::now();
    let wait = |missing: &str| {
        assert!(began.elapsed() < RECOVERY, "{fault:?}: {missing}\n{}", cluster.logs(&[]));
        std::thread::sleep(Duration::from_millis(50));
    };
    for (number, node) in cluster.nodes.iter().enumerate() {
        while !(node.well() && load.probe(Way::Server(number))) {
            wait(&format!("server {number} does not recover"));
        }
    }
    while load.has_lost() {
        load.repair_something(random);
        wait("what was lost cannot be published again");
    }
}

/// Restarts all servers, one after the other, under the load through the balancer alone.
fn roll(cluster: &mut Cluster, load: &Load<'_>, retries: bool) -> Rolling {
    cluster.balancer.retry(retries);
    load.direct.store(false, Ordering::SeqCst);
    std::thread::sleep(Duration::from_millis(500));
    let (number, begun) = (load.history.len(), load.history.now());
    for node in &mut cluster.nodes {
        node.server.terminate();
        assert!(node.server.wait().success(), "{}", node.server.log());
        node.server.restart();
        // The balancer has seen it before the next one goes.
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
