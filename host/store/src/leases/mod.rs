//! Leases of servers on PostgreSQL. A server with a lease answers look-ups from memory. A commit is
//! acknowledged once no server answers from the state before it. `docs/explanation/leases.md`
//! describes the protocol and why it is correct.
//!
//! One task owns one connection, on which it holds the lease and exchanges notices of changes
//! ([`session`]). Commits use [`Leases::committed`], look-ups use [`Leases::facts`].

mod apply;
mod clock;
mod meters;
mod notice;
mod position;
mod session;
mod sql;
mod waits;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::timeout;

use crate::accounts::{ChangedFacts, LeasedLookUps, Revisions};
use crate::changes::{ChangeLog, Touched};
use crate::db::{Acknowledgement, Announcer, Committed, Database, LeaseHolder, max_lease_wait};
use crate::ids::RepositoryId;
use clock::Moment;
use meters::LeaseMeters;
use waits::Waits;

/// Duration of a lease, from the moment at which it was requested.
const LEASE: Duration = Duration::from_secs(1);
/// Idle time without look-ups after which the lease is given up, so that commits do not wait for
/// this server.
const UNUSED: Duration = Duration::from_mins(1);
/// Maximum time that a commit waits until this server has read earlier commits of other servers.
const CATCH_UP: Duration = Duration::from_millis(500);
/// Maximum time that a close waits for the release of the lease.
const LEAVING: Duration = Duration::from_millis(300);
/// Number of former lease ids that are remembered.
const FORMER: usize = 8;
/// Number of own transactions to remember, so that this server does not read its own changes again.
const OWN: usize = 10_000;

/// Leases of this process. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Leases(Arc<Shared>);

struct Shared {
    facts: LeasedLookUps,
    changes: Arc<ChangeLog>,
    /// End of the lease as a [`Moment`]; 0 without a lease.
    until: AtomicU64,
    /// Time of the last look-up.
    last_look_up: AtomicU64,
    /// Random number of this process, and whether it knows of other processes.
    process: i64,
    others: AtomicBool,
    /// Signals a look-up without a lease.
    missed: Arc<Notify>,
    /// Present and former ids of the lease of this process, so that it does not wait for itself.
    /// The last one is the present id.
    ids: Mutex<Vec<String>>,
    /// Transactions of this process whose changes are already in the log.
    own: Mutex<Vec<u64>>,
    waits: Waits,
    orders: mpsc::UnboundedSender<Order>,
    meters: LeaseMeters,
}

/// An instruction for the task.
enum Order {
    /// Announce a commit to the other servers, with its number.
    Announce(u64, Committed),
    /// Read commits that were not read yet.
    CatchUp(oneshot::Sender<()>),
    /// The wait for these servers lasted until the ends of their leases.
    Expired(Vec<LeaseHolder>),
    /// Give up the lease and end.
    Leave(oneshot::Sender<()>),
}

impl Leases {
    /// Starts the task, which ends with the last handle. Returns `None` with SQLite.
    pub(crate) fn start(database: &Database, changes: &Arc<ChangeLog>) -> Option<Leases> {
        let servers = database.servers()?;
        let (orders, queue) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            facts: LeasedLookUps::default(),
            changes: Arc::clone(changes),
            until: AtomicU64::new(0),
            last_look_up: AtomicU64::new(0),
            process: rand::random(),
            others: AtomicBool::new(false),
            missed: Arc::default(),
            ids: Mutex::default(),
            own: Mutex::default(),
            waits: Waits::default(),
            orders,
            meters: LeaseMeters::default(),
        });
        tokio::spawn(session::run(Arc::downgrade(&shared), servers, queue));
        database.announce_to(Arc::new(Leases(Arc::clone(&shared))));
        Some(Leases(shared))
    }

    /// Results of look-ups, if they may be used at this moment.
    pub(crate) fn facts(&self) -> Option<&LeasedLookUps> {
        let now = Moment::now();
        self.0.last_look_up.store(now.0, Ordering::Relaxed);
        if now.0 < self.0.until.load(Ordering::Acquire) {
            return Some(&self.0.facts);
        }
        self.0.missed.notify_one();
        None
    }

    /// Number of this process if it knows of other servers of the database.
    pub(crate) fn beside_others(&self) -> Option<i64> {
        self.0.others.load(Ordering::Relaxed).then_some(self.0.process)
    }

    /// True while a lease is held.
    pub(crate) fn are_held(&self) -> bool {
        Moment::now().0 < self.0.until.load(Ordering::Acquire)
    }

    /// Adds a durable commit of the writer to the log. If other servers committed in between, first
    /// reads their commits. So results that no commit touched stay valid.
    pub(crate) fn remember(
        &self,
        touched: BTreeMap<RepositoryId, Touched>,
        moved: Revisions,
        acknowledgement: Acknowledgement,
    ) -> Acknowledgement {
        let shared = Arc::clone(&self.0);
        let gap = touched.iter().any(|(id, touched)| shared.changes.has_gap(*id, touched.first));
        if gap && self.are_held() {
            let (done, caught_up) = oneshot::channel();
            let _ = shared.orders.send(Order::CatchUp(done));
            return Acknowledgement::after(async move {
                let _ = timeout(CATCH_UP, caught_up).await;
                shared.remember(touched, &moved);
                acknowledgement.wait().await;
            });
        }
        shared.own(acknowledgement.xid());
        shared.remember(touched, &moved);
        acknowledgement
    }

    /// Gives up the lease and ends the task.
    pub(crate) async fn leave(&self) {
        let held = self.are_held();
        self.0.until.store(0, Ordering::Release);
        let (done, left) = oneshot::channel();
        // Without a lease, no other server waits for this one.
        if self.0.orders.send(Order::Leave(done)).is_ok() && held {
            let _ = timeout(LEAVING, left).await;
        }
    }
}

impl Shared {
    fn remember(&self, touched: BTreeMap<RepositoryId, Touched>, moved: &Revisions) {
        // Updates the log before the revisions: a reader that sees the new revision must find in
        // the log what the commit touched.
        self.changes.remember(touched);
        self.facts.move_to(moved);
    }

    fn own(&self, xid: Option<u64>) {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        if own.len() >= OWN {
            own.clear();
        }
        own.extend(xid);
    }

    fn take_own(&self) -> Vec<u64> {
        std::mem::take(&mut *self.own.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sets the present id of the lease.
    fn is_now(&self, id: &str) {
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        if ids.last().is_none_or(|last| last != id) {
            ids.push(id.to_owned());
        }
        let more = ids.len().saturating_sub(FORMER);
        ids.drain(..more);
    }

    /// Present and former ids of the lease.
    fn former(&self) -> Vec<String> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends the lease and clears the look-ups that were cached under it.
    fn end(&self) {
        self.until.store(0, Ordering::Release);
        self.facts.clear();
    }

    fn drop_touched(&self, facts: &ChangedFacts) {
        self.meters.dropped(self.facts.drop_touched(facts));
    }

    /// Time of the last look-up.
    fn last_look_up(&self) -> Moment {
        Moment(self.last_look_up.load(Ordering::Relaxed))
    }
}

impl Announcer for Leases {
    fn committed(&self, mut committed: Committed) -> Acknowledgement {
        let shared = Arc::clone(&self.0);
        let xid = committed.xid;
        if !committed.is_announced() {
            return Acknowledgement::at_once();
        }
        shared.drop_touched(&ChangedFacts::read(&committed.facts));
        let own = shared.former();
        let mut holders = std::mem::take(&mut committed.holders);
        holders.retain(|holder| !own.contains(&holder.id));
        let Some(longest) = holders.iter().map(|holder| max_lease_wait(holder.lease)).max() else {
            return Acknowledgement::at_once().of(xid);
        };
        let announce = |number| drop(shared.orders.send(Order::Announce(number, committed)));
        let (number, dropped) = shared.waits.begin(holders, announce);
        let waiting = tokio::spawn(async move {
            let _meter = shared.meters.waiting();
            if timeout(longest, dropped).await.is_err() {
                shared.meters.expired();
                let _ = shared.orders.send(Order::Expired(shared.waits.end(number)));
            }
        });
        Acknowledgement::after(async move { drop(waiting.await) }).of(xid)
    }
}
