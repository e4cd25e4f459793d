//! The task that holds the lease, on a connection of its own: it joins, renews, tells and is told. All that it does is in one order, so
//! what a renewal read is dropped before the lease goes on, and what a notice told before it is answered.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use sqlx::postgres::{PgListener, PgNotification, PgPoolOptions};
use tokio::sync::{Notify, mpsc};
use tokio::time::{sleep, timeout};

use super::clock::Moment;
use super::notice::{self, Change};
use super::position::Position;
use super::{LEASE, Order, Shared, UNUSED, apply, sql};
use crate::db::{Holder, Servers, outlasting};
use crate::error::StoreError;

/// How often a lease is renewed.
const EVERY: Duration = Duration::from_millis(250);
/// How long a statement may take.
const STATEMENT: Duration = Duration::from_secs(3);
/// Between two attempts to take a lease, and to renew one while another server renews its own.
const AGAIN: Duration = Duration::from_millis(500);
const SOON: Duration = Duration::from_millis(20);
/// Between two connections.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// A lease that was not renewed for so long is begun anew: changes may have been removed that were not read.
const TOO_OLD: Duration = Duration::from_secs(30);
/// Changes are kept for so long, and removed so often.
const KEPT: Duration = Duration::from_mins(1);
const PRUNED: Duration = Duration::from_secs(20);
/// How long a notice to oneself may take. A pooler that gives each transaction another connection passes none on.
const ECHO: Duration = Duration::from_secs(2);
const WITHOUT_NOTICES: Duration = Duration::from_mins(1);
/// Orders that are carried out at once.
const AT_ONCE: usize = 256;

type Orders = mpsc::UnboundedReceiver<Order>;

/// Runs sessions one after the other, until the last handle is gone or told to leave.
pub(super) async fn run(shared: Weak<Shared>, servers: Arc<Servers>, mut orders: Orders) {
    let mut pause = PAUSE;
    loop {
        let begun = Instant::now();
        let ended = match Session::begin(&shared, &servers).await {
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
                "notices of the database do not arrive, as behind a pooler that gives each transaction another connection: \
                 each request asks the database"
            );
            pause = WITHOUT_NOTICES;
        }
        if !idle(&shared, &mut orders, pause).await {
            return;
        }
    }
}

/// Waits for so long without a connection; false when it is to end. Whoever waits for others waits for the ends of their leases: what is not
/// announced here is in no later answer either.
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

/// Why a session ended.
#[derive(Debug, thiserror::Error)]
enum Ended {
    #[error("{0}")]
    Store(#[from] StoreError),
    #[error("no answer within {} ms", STATEMENT.as_millis())]
    Silent,
    #[error("the connection has ended")]
    Closed,
    #[error("the lease was taken away: it had run out")]
    Taken,
    #[error("notices do not arrive")]
    Deaf,
    /// The last handle is gone.
    #[error("nobody asks any more")]
    Unused,
}

/// One connection, as which there is at most one lease.
struct Session {
    listener: PgListener,
    shared: Weak<Shared>,
    missed: Arc<Notify>,
    id: String,
    /// What has been read; none: there is no lease.
    position: Option<Position>,
    /// Transactions after it whose changes are known from notices or made here.
    known: HashSet<u64>,
    /// When the last statement was sent that renewed the lease.
    renewed: Moment,
    next: Instant,
    /// The last renewal that was seen of each other server, and since when.
    observed: HashMap<String, (i64, Moment)>,
    history: VecDeque<(Moment, Position)>,
    pruned: Instant,
}

enum Event {
    Told(PgNotification),
    Ordered(Order),
    Due,
    End(Result<(), Ended>),
}

/// Runs a statement that is not waited for without end.
async fn run_within<T>(statement: impl Future<Output = Result<T, StoreError>>) -> Result<T, Ended> {
    timeout(STATEMENT, statement).await.map_err(|_| Ended::Silent)?.map_err(Ended::Store)
}

fn random() -> i64 {
    rand::random()
}

impl Session {
    /// Connects, listens, and sees that notices arrive.
    async fn begin(shared: &Weak<Shared>, servers: &Servers) -> Result<Session, Ended> {
        let missed = Arc::clone(&shared.upgrade().ok_or(Ended::Unused)?.missed);
        let id = hex::encode(rand::random::<[u8; 8]>());
        let options = run_within(async { servers.choose().await.map_err(StoreError::database) }).await?;
        // Renewals need no flush: the row itself was flushed when it was made.
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
        let heard = async {
            loop {
                match listener.try_recv().await {
                    Ok(Some(told)) if told.channel() == own => return Ok(()),
                    Ok(Some(_)) => {}
                    Ok(None) | Err(_) => return Err(Ended::Closed),
                }
            }
        };
        timeout(ECHO, heard).await.map_err(|_| Ended::Deaf)??;
        // What it held on a connection that is gone ended with that: nobody needs to wait for it.
        let former = shared.upgrade().ok_or(Ended::Unused)?.former();
        for id in former {
            run_within(sql::leave(&mut listener, &id)).await?;
        }
        let now = Instant::now();
        Ok(Session {
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
            let wanted = self.shared()?.asked().elapsed() < UNUSED;
            let event = self.next_event(orders, wanted).await;
            match event {
                Event::Told(told) => self.told(told).await?,
                Event::Ordered(Order::Leave(done)) => {
                    let left = run_within(sql::leave(&mut self.listener, &self.id)).await;
                    let _ = done.send(());
                    return left;
                }
                Event::Ordered(order) => self.carry_out(order, orders).await?,
                Event::Due => self.keep_up(wanted).await?,
                Event::End(end) => return end,
            }
        }
    }

    async fn next_event(&mut self, orders: &mut Orders, wanted: bool) -> Event {
        let joined = self.position.is_some();
        // Without a lease and without somebody who asks only the table is pruned.
        let next = if joined || wanted { self.next } else { self.pruned + PRUNED };
        tokio::select! {
            told = self.listener.try_recv() => match told {
                Ok(Some(told)) => Event::Told(told),
                Ok(None) => Event::End(Err(Ended::Closed)),
                Err(problem) => Event::End(Err(Ended::Store(StoreError::database(problem)))),
            },
            order = orders.recv() => order.map_or(Event::End(Ok(())), Event::Ordered),
            () = tokio::time::sleep_until(next.into()) => Event::Due,
            () = self.missed.notified(), if !joined && !wanted => Event::Due,
        }
    }

    /// What is due: a lease is taken, renewed or given up, the table pruned.
    async fn keep_up(&mut self, wanted: bool) -> Result<(), Ended> {
        if Instant::now() >= self.pruned + PRUNED {
            self.prune().await?;
        }
        let wanted = wanted || self.shared()?.asked().elapsed() < UNUSED;
        match (self.position.is_some(), wanted) {
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
        let asked = Moment::now();
        let lease_ms = i64::try_from(LEASE.as_millis()).unwrap_or(i64::MAX);
        let seen = run_within(sql::join(&mut self.listener, &self.id, random(), lease_ms)).await?;
        let pause = match seen.granted {
            Some(true) => {
                self.position = Some(seen.position);
                self.go_on(&shared, asked, 1);
                EVERY
            }
            Some(false) => AGAIN,
            None => SOON,
        };
        self.next = Instant::now() + pause;
        Ok(())
    }

    /// The lease lasts from the moment at which it was asked for: not from when the answer came.
    fn go_on(&mut self, shared: &Shared, asked: Moment, holders: usize) {
        self.renewed = asked;
        shared.until.store(asked.plus(LEASE).0, std::sync::atomic::Ordering::Release);
        shared.meters.renewed(asked, holders);
    }

    async fn renew(&mut self) -> Result<(), Ended> {
        let shared = self.shared()?;
        let Some(position) = self.position.clone().filter(|_| self.renewed.elapsed() < TOO_OLD) else {
            return Err(Ended::Taken);
        };
        let (asked, waits) = (Moment::now(), shared.waits.last());
        let known = self.known(&shared);
        let renewing = sql::renew(&mut self.listener, &self.id, random(), &position, known);
        let seen = run_within(renewing).await?;
        let (granted, others) = (seen.granted, seen.others.clone());
        self.take_in(&shared, seen);
        shared.waits.gone(&others, waits);
        shared.others.store(!others.is_empty(), std::sync::atomic::Ordering::Relaxed);
        self.next = Instant::now() + EVERY;
        match granted {
            Some(true) => self.go_on(&shared, asked, others.len() + 1),
            Some(false) => return Err(Ended::Taken),
            None => self.next = Instant::now() + SOON,
        }
        self.remove_dead(&others).await
    }

    fn known(&mut self, shared: &Shared) -> Vec<String> {
        self.known.extend(shared.take_own());
        self.known.iter().map(u64::to_string).collect()
    }

    /// Drops what the changes touch that were read.
    fn take_in(&mut self, shared: &Shared, seen: sql::Seen) {
        if !seen.changes.is_empty() {
            shared.meters.recovered(seen.changes.len());
        }
        apply::all(shared, seen.changes.into_iter());
        self.known.retain(|xid| !seen.position.saw(*xid));
        self.position = Some(seen.position);
    }

    /// Rows of servers that did not renew their leases for longer than they last, by this machine's clock.
    async fn remove_dead(&mut self, others: &[Holder]) -> Result<(), Ended> {
        self.observed.retain(|id, _| others.iter().any(|other| other.id == *id));
        for other in others {
            let seen = (other.renewal, Moment::now());
            let known = self.observed.entry(other.id.clone()).or_insert(seen);
            if known.0 != other.renewal {
                *known = seen;
            } else if known.1.elapsed() > outlasting(other.lease) {
                run_within(sql::remove(&mut self.listener, other)).await?;
            }
        }
        Ok(())
    }

    async fn prune(&mut self) -> Result<(), Ended> {
        self.pruned = Instant::now();
        let now = Moment::now();
        let seen = run_within(sql::position(&mut self.listener)).await?;
        self.history.push_back((now, seen.position));
        let mut old = None;
        while self.history.front().is_some_and(|(at, _)| at.elapsed() > KEPT) {
            old = self.history.pop_front();
        }
        match old {
            Some((_, position)) => run_within(sql::prune(&mut self.listener, &position)).await,
            None => Ok(()),
        }
    }

    /// Notices that came: those on the channel of all are taken in and answered, those on its own end waits.
    async fn told(&mut self, first: PgNotification) -> Result<(), Ended> {
        let shared = self.shared()?;
        let mut notices = vec![first];
        while let Some(next) = self.listener.next_buffered() {
            notices.push(next);
        }
        shared.meters.received(notices.len());
        let (mut changes, mut answers, mut unread) = (Vec::new(), HashMap::new(), false);
        for told in &notices {
            if told.channel() != notice::OF_ALL {
                if let Some((from, number)) = notice::read_dropped(told.payload()) {
                    shared.waits.dropped(from, number);
                }
            } else if let Some((from, number, told)) = notice::read_announcement(told.payload()) {
                if from == self.id || self.position.is_none() {
                    continue;
                }
                answers.insert(from.to_owned(), number);
                for one in told {
                    unread |= one.change.is_none();
                    changes.extend(one.change.map(|change| (one.xid, change)));
                }
            } else {
                unread = true;
            }
        }
        self.take_in_told(&shared, changes, unread).await?;
        let answers: Vec<(String, String)> = answers
            .into_iter()
            .map(|(to, number)| (notice::channel_of(&to), notice::dropped(&self.id, number)))
            .collect();
        self.notify(&shared, answers).await
    }

    /// Where a revision is missing in between, all is read, so that it comes in order.
    async fn take_in_told(
        &mut self,
        shared: &Shared,
        changes: Vec<(u64, Change)>,
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
        let seen = run_within(sql::catch_up(&mut self.listener, &self.id, &position, known)).await?;
        self.take_in(shared, seen);
        Ok(())
    }

    /// This order, and those that came with it.
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
            // Answers to it come on this connection, and are read later.
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

    /// Leases that were waited for to their ends. Whoever still waits for one of them need not.
    async fn expired(&mut self, shared: &Shared, holders: Vec<Holder>) -> Result<(), Ended> {
        for holder in holders {
            let waits = shared.waits.last();
            if run_within(sql::remove(&mut self.listener, &holder)).await? {
                tracing::info!(
                    server = holder.id,
                    "a server has not renewed its lease: it is not waited for any more"
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
