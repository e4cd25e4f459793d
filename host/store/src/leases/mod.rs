//! Leases: on PostgreSQL each server answers look-ups from memory for as long as it holds a lease, and a change is acknowledged to
//! its caller once no server answers any more what was before it. `docs/LEASES.md` has the protocol and why it holds.
//!
//! One task has one connection of its own, on which it holds the lease and tells and is told of changes ([`session`]). Whoever commits
//! comes by [`Leases::committed`], whoever asks by [`Leases::facts`].

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

use crate::accounts::{Facts, LeasedFacts, Revisions};
use crate::changes::{ChangeLog, Touched};
use crate::db::{Acknowledgement, Announcer, Committed, Database, Holder, outlasting};
use crate::ids::RepositoryId;
use clock::Moment;
use meters::Meters;
use waits::Waits;

/// For how long a server answers from memory after it began to ask for it.
const LEASE: Duration = Duration::from_secs(1);
/// Nobody has asked anything for so long: the lease is given up, so that no commit waits for this server.
const UNUSED: Duration = Duration::from_mins(1);
/// How long a commit waits for what others have committed in between, before it does without.
const CATCH_UP: Duration = Duration::from_millis(500);
/// How long a close waits for the lease to be given up.
const LEAVING: Duration = Duration::from_millis(300);
/// As which a lease was held that are remembered.
const FORMER: usize = 8;
/// Own transactions that are remembered so as not to be read again.
const OWN: usize = 10_000;

/// Cheap to clone.
#[derive(Clone)]
pub(crate) struct Leases(Arc<Shared>);

struct Shared {
    facts: LeasedFacts,
    changes: Arc<ChangeLog>,
    /// The lease lasts up to this [`Moment`]; 0: there is none.
    until: AtomicU64,
    /// When somebody asked last.
    asked: AtomicU64,
    /// A number of this process's own, and whether it knows of others.
    process: i64,
    others: AtomicBool,
    /// Somebody asked, and there was no lease.
    missed: Arc<Notify>,
    /// As which this process holds it and held it before, so that it does not wait for itself: the last is the present one.
    ids: Mutex<Vec<String>>,
    /// Transactions of this process whose changes are remembered already.
    own: Mutex<Vec<u64>>,
    waits: Waits,
    orders: mpsc::UnboundedSender<Order>,
    meters: Meters,
}

/// What the task is to do.
enum Order {
    /// Tell others of a commit; its number.
    Announce(u64, Committed),
    /// Read what has been committed and was not seen yet.
    CatchUp(oneshot::Sender<()>),
    /// These servers were waited for up to the end of their leases.
    Expired(Vec<Holder>),
    /// Give up the lease and end.
    Leave(oneshot::Sender<()>),
}

impl Leases {
    /// Starts the task, which ends with the last handle; none with SQLite.
    pub(crate) fn start(database: &Database, changes: &Arc<ChangeLog>) -> Option<Leases> {
        let servers = database.servers()?;
        let (orders, queue) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            facts: LeasedFacts::default(),
            changes: Arc::clone(changes),
            until: AtomicU64::new(0),
            asked: AtomicU64::new(0),
            process: rand::random(),
            others: AtomicBool::new(false),
            missed: Arc::default(),
            ids: Mutex::default(),
            own: Mutex::default(),
            waits: Waits::default(),
            orders,
            meters: Meters::default(),
        });
        tokio::spawn(session::run(Arc::downgrade(&shared), servers, queue));
        database.announce_to(Arc::new(Leases(Arc::clone(&shared))));
        Some(Leases(shared))
    }

    /// The answers of look-ups, if they may be given out at this moment.
    pub(crate) fn facts(&self) -> Option<&LeasedFacts> {
        let now = Moment::now();
        self.0.asked.store(now.0, Ordering::Relaxed);
        if now.0 < self.0.until.load(Ordering::Acquire) {
            return Some(&self.0.facts);
        }
        self.0.missed.notify_one();
        None
    }

    /// The number of this process, where others share the database; none while no other is known.
    pub(crate) fn beside_others(&self) -> Option<i64> {
        self.0.others.load(Ordering::Relaxed).then_some(self.0.process)
    }

    /// Whether a lease is held.
    pub(crate) fn are_held(&self) -> bool {
        Moment::now().0 < self.0.until.load(Ordering::Acquire)
    }

    /// A durable commit of the writer's touched this. Where others committed in between, that is read first, so that what neither has
    /// touched stays good.
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

    /// Gives up the lease.
    pub(crate) async fn leave(&self) {
        let held = self.are_held();
        self.0.until.store(0, Ordering::Release);
        let (done, left) = oneshot::channel();
        // Without a lease there is nothing that others would wait for.
        if self.0.orders.send(Order::Leave(done)).is_ok() && held {
            let _ = timeout(LEAVING, left).await;
        }
    }
}

impl Shared {
    fn remember(&self, touched: BTreeMap<RepositoryId, Touched>, moved: &Revisions) {
        // First what was touched: whoever sees a new revision shall find out what it left alone.
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

    /// The lease will be held as this one.
    fn is_now(&self, id: &str) {
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        if ids.last().is_none_or(|last| last != id) {
            ids.push(id.to_owned());
        }
        let more = ids.len().saturating_sub(FORMER);
        ids.drain(..more);
    }

    /// As which it was held.
    fn former(&self) -> Vec<String> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The lease is over, and what was kept under it.
    fn end(&self) {
        self.until.store(0, Ordering::Release);
        self.facts.clear();
    }

    fn drop_touched(&self, facts: &Facts) {
        self.meters.dropped(self.facts.drop_touched(facts));
    }

    /// When somebody asked last.
    fn asked(&self) -> Moment {
        Moment(self.asked.load(Ordering::Relaxed))
    }
}

impl Announcer for Leases {
    fn committed(&self, mut committed: Committed) -> Acknowledgement {
        let shared = Arc::clone(&self.0);
        let xid = committed.xid;
        if !committed.is_announced() {
            return Acknowledgement::at_once();
        }
        shared.drop_touched(&Facts::read(&committed.facts));
        let own = shared.former();
        let mut holders = std::mem::take(&mut committed.holders);
        holders.retain(|holder| !own.contains(&holder.id));
        let Some(longest) = holders.iter().map(|holder| outlasting(holder.lease)).max() else {
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
