//! The task that holds the lease on a connection of its own: it joins, renews, and sends and
//! receives notices.
//!
//! All its steps happen in one order. Before the task extends the lease, it applies the changes
//! that the renewal read. It applies a notice before it sends the acknowledgement.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use sqlx::postgres::{PgListener, PgNotification, PgPoolOptions};
use tokio::sync::{Notify, mpsc};
use tokio::time::{sleep, timeout};

use super::clock::Moment;
use super::notice::{self, TransactionChange};
use super::position::Position;
use super::{LEASE, Order, Shared, UNUSED, apply, sql};
use crate::db::{LeaseHolder, Servers, max_lease_wait};
use crate::error::StoreError;

/// Interval between two renewals of the lease.
const EVERY: Duration = Duration::from_millis(250);
/// Maximum duration of a statement.
const STATEMENT: Duration = Duration::from_secs(3);
/// Pause between attempts to get a lease, and to renew one while another server renews its own.
const AGAIN: Duration = Duration::from_millis(500);
const SOON: Duration = Duration::from_millis(20);
/// Shortest and longest pause between two connections.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Age at which a lease must be taken again instead of renewed, because other servers may have
/// removed changes that this one has not read.
const TOO_OLD: Duration = Duration::from_secs(30);
/// Retention of changes, and the interval of their removal.
const CHANGES_RETAINED: Duration = Duration::from_mins(1);
const PRUNED: Duration = Duration::from_secs(20);
/// Maximum time until this connection receives its own notice. It receives none behind a pooler
/// that gives each transaction another connection.
const ECHO: Duration = Duration::from_secs(2);
const WITHOUT_NOTICES: Duration = Duration::from_mins(1);
/// Maximum number of orders handled together.
const AT_ONCE: usize = 256;

type Orders = mpsc::UnboundedReceiver<Order>;

/// Runs sessions one after the other, until the last handle is gone or the lease is given up.
pub(super) async fn run(shared: Weak<Shared>, servers: Arc<Servers>, mut orders: Orders) {
    let mut pause = PAUSE;
    loop {
        let begun = Instant::now();
        let ended = match LeaseSession::begin(&shared, &servers).await {
            Ok(mut session) => session.serve(&mut orders).await,
            Err(problem) => Err(problem),
        };
        let Some(strong) = shared.upgrade() else { return };
        strong.end();
        strong.meters.lost();
        drop(strong);
        let Err(problem) = ended else { return };
        if matches!(problem, Ended::Unused) {
            return;
        }
        tracing::debug!(%problem, "the connection that holds the lease has ended");
        pause = if begun.elapsed() > LONGEST_PAUSE { PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
        if matches!(problem, Ended::Deaf) {
            tracing::warn!(
                "database notifications do not arrive, as with a pooler that gives each transaction \
                 another connection: every request reads the database"
            );
            pause = WITHOUT_NOTICES;
        }
        if !idle(&shared, &mut orders, pause).await {
            return;
        }
    }
}

/// Waits without a connection; returns false if the task must end. Drops announcements. Their
/// commits wait until the leases end, because no later acknowledgement covers an unannounced
/// change.
async fn idle(shared: &Weak<Shared>, orders: &mut Orders, pause: Duration) -> bool {
    let over = sleep(pause);
    tokio::pin!(over);
    loop {
        tokio::select! {
            () = &mut over => return shared.strong_count() > 0,
            order = orders.recv() => match order {
                None => return false,
                Some(Order::Leave(done)) => {
                    let _ = done.send(());
                    return false;
                }
                Some(Order::CatchUp(done)) => drop(done),
                Some(Order::Announce(..) | Order::Expired(_)) => {}
            }
        }
    }
}

/// Reason why a session ended.
#[derive(Debug, thiserror::Error)]
enum Ended {
    #[error("{0}")]
    Store(#[from] StoreError),
    #[error("no answer within {} ms", STATEMENT.as_millis())]
    Silent,
    #[error("the connection has ended")]
    Closed,
    #[error("the lease expired and was removed")]
    Taken,
    #[error("notifications do not arrive")]
    Deaf,
    /// The last handle is gone.
    #[error("the lease is no longer used")]
    Unused,
}

/// One connection with at most one lease.
struct LeaseSession {
    listener: PgListener,
    shared: Weak<Shared>,
    missed: Arc<Notify>,
    id: String,
    /// Position up to which changes were read; `None` without a lease.
    position: Option<Position>,
    /// Transactions after the position whose changes are known, from notices or because this
    /// process made them.
    known: HashSet<u64>,
    /// Time at which the last successful renewal was sent.
    renewed: Moment,
    next: Instant,
    /// Last observed renewal of each other server, and the time of its first observation.
    observed: HashMap<String, (i64, Moment)>,
    history: VecDeque<(Moment, Position)>,
    pruned: Instant,
}

enum SessionEvent {
    Notification(PgNotification),
    Ordered(Order),
    Due,
    End(Result<(), Ended>),
}

/// Runs a statement with a time limit.
async fn run_within<T>(statement: impl Future<Output = Result<T, StoreError>>) -> Result<T, Ended> {
    timeout(STATEMENT, statement).await.map_err(|_| Ended::Silent)?.map_err(Ended::Store)
}

fn random() -> i64 {
    rand::random()
}

impl LeaseSession {
    /// Connects, listens, and verifies that notices arrive.
    async fn begin(shared: &Weak<Shared>, servers: &Servers) -> Result<LeaseSession, Ended> {
        let missed = Arc::clone(&shared.upgrade().ok_or(Ended::Unused)?.missed);
        let id = hex::encode(rand::random::<[u8; 8]>());
        let options = run_within(async { servers.choose().await.map_err(StoreError::database) }).await?;
        // Renewals need no flush, because the row was flushed when it was inserted.
        let options = options.options([("synchronous_commit", "off")]);
        let pool = PgPoolOptions::new().max_connections(1).max_lifetime(None).idle_timeout(None);
        let pool = pool.test_before_acquire(false).acquire_timeout(STATEMENT).connect_lazy_with(options);
        let mut listener =
            run_within(async { PgListener::connect_with(&pool).await.map_err(StoreError::database) }).await?;
        listener.eager_reconnect(false);
        let own = notice::channel_of(&id);
        let channels = [notice::OF_ALL, &own];
        run_within(async { listener.listen_all(channels).await.map_err(StoreError::database) }).await?;
        run_within(sql::notify(&mut listener, vec![(own.clone(), String::new())])).await?;
        let echo = async {
            loop {
                match listener.try_recv().await {
                    Ok(Some(received)) if received.channel() == own => return Ok(()),
                    Ok(Some(_)) => {}
                    Ok(None) | Err(_) => return Err(Ended::Closed),
                }
            }
        };
        timeout(ECHO, echo).await.map_err(|_| Ended::Deaf)??;
        // Former leases of this process ended with their connections, so no commit needs to wait
        // for them.
        let former = shared.upgrade().ok_or(Ended::Unused)?.former();
        for id in former {
            run_within(sql::leave(&mut listener, &id)).await?;
        }
        let now = Instant::now();
        Ok(LeaseSession {
            listener,
            shared: Weak::clone(shared),
            missed,
            id,
            position: None,
            known: HashSet::new(),
            renewed: Moment::default(),
            next: now,
            observed: HashMap::new(),
            history: VecDeque::new(),
            pruned: now,
        })
    }

    fn shared(&self) -> Result<Arc<Shared>, Ended> {
        self.shared.upgrade().ok_or(Ended::Unused)
    }

    async fn serve(&mut self, orders: &mut Orders) -> Result<(), Ended> {
        loop {
            let is_used = self.shared()?.last_look_up().elapsed() < UNUSED;
            let event = self.next_event(orders, is_used).await;
            match event {
                SessionEvent::Notification(first) => self.handle_notices(first).await?,
                SessionEvent::Ordered(Order::Leave(done)) => {
                    let left = run_within(sql::leave(&mut self.listener, &self.id)).await;
                    let _ = done.send(());
                    return left;
                }
                SessionEvent::Ordered(order) => self.carry_out(order, orders).await?,
                SessionEvent::Due => self.keep_up(is_used).await?,
                SessionEvent::End(end) => return end,
            }
        }
    }

    async fn next_event(&mut self, orders: &mut Orders, is_used: bool) -> SessionEvent {
        let joined = self.position.is_some();
        // Without a lease and without look-ups, only the table is pruned.
        let next = if joined || is_used { self.next } else { self.pruned + PRUNED };
        tokio::select! {
            received = self.listener.try_recv() => match received {
                Ok(Some(notice)) => SessionEvent::Notification(notice),
                Ok(None) => SessionEvent::End(Err(Ended::Closed)),
                Err(problem) => SessionEvent::End(Err(Ended::Store(StoreError::database(problem)))),
            },
            order = orders.recv() => order.map_or(SessionEvent::End(Ok(())), SessionEvent::Ordered),
            () = tokio::time::sleep_until(next.into()) => SessionEvent::Due,
            () = self.missed.notified(), if !joined && !is_used => SessionEvent::Due,
        }
    }

    /// Does what is due: takes, renews or gives up the lease, and prunes the table.
    async fn keep_up(&mut self, is_used: bool) -> Result<(), Ended> {
        if Instant::now() >= self.pruned + PRUNED {
            self.prune().await?;
        }
        let is_used = is_used || self.shared()?.last_look_up().elapsed() < UNUSED;
        match (self.position.is_some(), is_used) {
            (true, true) => self.renew().await,
            (true, false) => {
                self.shared()?.end();
                self.position = None;
                run_within(sql::leave(&mut self.listener, &self.id)).await
            }
            (false, true) => self.join().await,
            (false, false) => Ok(()),
        }
    }

    async fn join(&mut self) -> Result<(), Ended> {
        let shared = self.shared()?;
        shared.end();
        shared.take_own();
        self.known.clear();
        shared.is_now(&self.id);
        let requested = Moment::now();
        let lease_ms = i64::try_from(LEASE.as_millis()).unwrap_or(i64::MAX);
        let status = run_within(sql::join(&mut self.listener, &self.id, random(), lease_ms)).await?;
        let pause = match status.granted {
            Some(true) => {
                self.position = Some(status.position);
                self.extend_lease(&shared, requested, 1);
                EVERY
            }
            Some(false) => AGAIN,
            None => SOON,
        };
        self.next = Instant::now() + pause;
        Ok(())
    }

    /// Extends the lease. Its time begins with the request, not with the response.
    fn extend_lease(&mut self, shared: &Shared, requested: Moment, holders: usize) {
        self.renewed = requested;
        shared.until.store(requested.plus(LEASE).0, std::sync::atomic::Ordering::Release);
        shared.meters.renewed(requested, holders);
    }

    async fn renew(&mut self) -> Result<(), Ended> {
        let shared = self.shared()?;
        let Some(position) = self.position.clone().filter(|_| self.renewed.elapsed() < TOO_OLD) else {
            return Err(Ended::Taken);
        };
        let (requested, waits) = (Moment::now(), shared.waits.last());
        let known = self.known(&shared);
        let renewing = sql::renew(&mut self.listener, &self.id, random(), &position, known);
        let status = run_within(renewing).await?;
        let (granted, others) = (status.granted, status.others.clone());
        self.apply_read(&shared, status);
        shared.waits.gone(&others, waits);
        shared.others.store(!others.is_empty(), std::sync::atomic::Ordering::Relaxed);
        self.next = Instant::now() + EVERY;
        match granted {
            Some(true) => self.extend_lease(&shared, requested, others.len() + 1),
            Some(false) => return Err(Ended::Taken),
            None => self.next = Instant::now() + SOON,
        }
        self.remove_dead(&others).await
    }

    fn known(&mut self, shared: &Shared) -> Vec<String> {
        self.known.extend(shared.take_own());
        self.known.iter().map(u64::to_string).collect()
    }

    /// Applies the changes that a renewal read.
    fn apply_read(&mut self, shared: &Shared, status: sql::LeaseStatus) {
        if !status.changes.is_empty() {
            shared.meters.recovered(status.changes.len());
        }
        apply::all(shared, status.changes.into_iter());
        self.known.retain(|xid| !status.position.saw(*xid));
        self.position = Some(status.position);
    }

    /// Removes rows of servers that did not renew their leases in time, by this machine's clock.
    async fn remove_dead(&mut self, others: &[LeaseHolder]) -> Result<(), Ended> {
        self.observed.retain(|id, _| others.iter().any(|other| other.id == *id));
        for other in others {
            let latest = (other.renewal, Moment::now());
            let known = self.observed.entry(other.id.clone()).or_insert(latest);
            if known.0 != other.renewal {
                *known = latest;
            } else if known.1.elapsed() > max_lease_wait(other.lease) {
                run_within(sql::remove(&mut self.listener, other)).await?;
            }
        }
        Ok(())
    }

    async fn prune(&mut self) -> Result<(), Ended> {
        self.pruned = Instant::now();
        let now = Moment::now();
        let status = run_within(sql::position(&mut self.listener)).await?;
        self.history.push_back((now, status.position));
        let mut old = None;
        while self.history.front().is_some_and(|(at, _)| at.elapsed() > CHANGES_RETAINED) {
            old = self.history.pop_front();
        }
        match old {
            Some((_, position)) => run_within(sql::prune(&mut self.listener, &position)).await,
            None => Ok(()),
        }
    }

    /// Handles received notices. Announcements are applied and acknowledged; acknowledgements end
    /// waits.
    async fn handle_notices(&mut self, first: PgNotification) -> Result<(), Ended> {
        let shared = self.shared()?;
        let mut notices = vec![first];
        while let Some(next) = self.listener.next_buffered() {
            notices.push(next);
        }
        shared.meters.received(notices.len());
        let (mut changes, mut answers, mut unread) = (Vec::new(), HashMap::new(), false);
        for received in &notices {
            if received.channel() != notice::OF_ALL {
                if let Some((from, number)) = notice::read_dropped(received.payload()) {
                    shared.waits.dropped(from, number);
                }
            } else if let Some((from, number, transactions)) = notice::read_announcement(received.payload()) {
                if from == self.id || self.position.is_none() {
                    continue;
                }
                answers.insert(from.to_owned(), number);
                for one in transactions {
                    unread |= one.change.is_none();
                    changes.extend(one.change.map(|change| (one.xid, change)));
                }
            } else {
                unread = true;
            }
        }
        self.apply_announced(&shared, changes, unread).await?;
        let answers: Vec<(String, String)> = answers
            .into_iter()
            .map(|(to, number)| (notice::channel_of(&to), notice::dropped(&self.id, number)))
            .collect();
        self.notify(&shared, answers).await
    }

    /// Applies announced changes. If a revision is missing in between, reads all changes from the
    /// table, so that they are applied in order.
    async fn apply_announced(
        &mut self,
        shared: &Shared,
        changes: Vec<(u64, TransactionChange)>,
        unread: bool,
    ) -> Result<(), Ended> {
        let gap = apply::has_gap(shared, changes.iter().map(|(_, change)| change));
        if (unread || gap) && self.position.is_some() {
            return self.catch_up(shared).await;
        }
        self.known.extend(changes.iter().map(|(xid, _)| *xid));
        apply::all(shared, changes.into_iter().map(|(_, change)| change));
        Ok(())
    }

    async fn catch_up(&mut self, shared: &Shared) -> Result<(), Ended> {
        let Some(position) = self.position.clone() else { return Ok(()) };
        let known = self.known(shared);
        let status = run_within(sql::catch_up(&mut self.listener, &self.id, &position, known)).await?;
        self.apply_read(shared, status);
        Ok(())
    }

    /// Executes this order and the orders that arrived with it.
    async fn carry_out(&mut self, first: Order, orders: &mut Orders) -> Result<(), Ended> {
        let shared = self.shared()?;
        let (mut commits, mut numbers, mut caught_up) = (Vec::new(), Vec::new(), Vec::new());
        let mut next = Some(first);
        while let Some(order) = next {
            match order {
                Order::Announce(number, committed) => {
                    numbers.push(number);
                    commits.push(committed);
                }
                Order::CatchUp(done) => caught_up.push(done),
                Order::Expired(holders) => self.expired(&shared, holders).await?,
                Order::Leave(done) => {
                    let left = run_within(sql::leave(&mut self.listener, &self.id)).await;
                    let _ = done.send(());
                    left?;
                    return Err(Ended::Unused);
                }
            }
            next = if commits.len() < AT_ONCE { orders.try_recv().ok() } else { None };
        }
        if let Some(last) = numbers.last() {
            let text = notice::announcement(&self.id, *last, &commits);
            self.notify(&shared, vec![(notice::OF_ALL.to_owned(), text)]).await?;
            // Acknowledgements arrive on this same connection, so none can be handled before this
            // line.
            shared.waits.announced(&numbers);
        }
        if !caught_up.is_empty() {
            self.catch_up(&shared).await?;
            for done in caught_up {
                let _ = done.send(());
            }
        }
        Ok(())
    }

    /// Removes leases that expired while commits waited for them, so that no other commit waits for
    /// them.
    async fn expired(&mut self, shared: &Shared, holders: Vec<LeaseHolder>) -> Result<(), Ended> {
        for holder in holders {
            let waits = shared.waits.last();
            if run_within(sql::remove(&mut self.listener, &holder)).await? {
                tracing::info!(
                    server = holder.id,
                    "a server has not renewed its lease; commits no longer wait for it"
                );
                shared.waits.ran_out(&holder.id, waits);
            }
        }
        Ok(())
    }

    async fn notify(&mut self, shared: &Shared, notices: Vec<(String, String)>) -> Result<(), Ended> {
        if notices.is_empty() {
            return Ok(());
        }
        shared.meters.sent(notices.len());
        run_within(sql::notify(&mut self.listener, notices)).await
    }
}
