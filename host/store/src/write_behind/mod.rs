//! Write-behind: deferred writes are collected in memory and flushed together, so that requests do
//! not pay for them.
//!
//! The deferred writes are the last uses of credentials and of cached responses, refusals, and
//! downloads with their tokens.

pub(crate) mod answers;
mod credentials;
pub(crate) mod downloads;
mod fetches;
mod refusals;

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub(crate) use answers::UsedAnswer;
pub(crate) use credentials::UsedCredential;
pub use downloads::Downloaded;
pub(crate) use downloads::Downloads;
pub use fetches::FETCH_DAYS;
pub use refusals::Refusal;
pub(crate) use refusals::{Count, RefusalsOfMinute};

use tokio::sync::Notify;
use tokio::time::timeout;

use crate::accounts::Snapshots;
use crate::db::{Database, Transaction};
use crate::error::StoreError;

/// A kind of deferred write. A value of this type is the key of the row to write; `Value` is the
/// row's content.
pub(crate) trait DeferredWrite: Clone + Hash + Ord + Send + Sync + 'static {
    type Value: Copy + Send + Sync;

    /// Usual time between two flushes, and so the delay of the table.
    const INTERVAL: Duration;
    /// Maximum rows that wait between two flushes. The bound is necessary because unauthenticated
    /// clients can choose the keys.
    const CAPACITY: usize;
    /// Description for the log if a flush fails.
    const NAME: &'static str;

    /// Merges two values of one row; the order does not matter.
    fn merge(one: Self::Value, other: Self::Value) -> Self::Value;

    /// Replacement row if there is no room; `None` drops the write.
    fn when_full(self) -> Option<Self> {
        None
    }

    /// Writes all pending rows; the caller commits.
    fn write(
        pending: &HashMap<Self, Self::Value>,
        transaction: &mut Transaction,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// Share of the time that flushes may take: at most one part in `SHARE`. The bound limits row
/// writes if clients download a hundred thousand different files each second.
const SHARE: u32 = 20;
/// Maximum wait, independent of the duration of a flush. It bounds the delay of the counters, which
/// must be visible within half a minute.
const LONGEST_WAIT: Duration = Duration::from_secs(25);

/// Time to wait after a flush of this duration.
fn wait(interval: Duration, took: Duration) -> Duration {
    interval.max((took * SHARE).min(LONGEST_WAIT))
}

/// Rows of one transaction. A larger statement could exceed its time limit, would be retried each
/// time, and would hold locks meanwhile.
const PIECE: usize = 1_000;

/// Deferred writes of one kind, with their destination.
pub(crate) struct WriteBehind<W: DeferredWrite> {
    pending: Pending<W>,
    /// Lock during a flush. It makes a second flush wait, so that a flush that finds nothing
    /// pending knows that everything is written.
    flushing: tokio::sync::Mutex<()>,
    database: Database,
    snapshots: Arc<Snapshots>,
}

impl<W: DeferredWrite> WriteBehind<W> {
    /// Starts the flush task, which ends with the last handle.
    pub(crate) fn start(database: &Database, snapshots: &Arc<Snapshots>) -> Arc<WriteBehind<W>> {
        let started = Arc::new(WriteBehind {
            pending: Pending::default(),
            flushing: tokio::sync::Mutex::default(),
            database: database.clone(),
            snapshots: Arc::clone(snapshots),
        });
        Self::flush_periodically(&started);
        started
    }

    fn flush_periodically(this: &Arc<Self>) {
        let this = Arc::downgrade(this);
        tokio::spawn(async move {
            let mut next = W::INTERVAL;
            loop {
                let Some(is_nearly_full) =
                    this.upgrade().map(|this| Arc::clone(&this.pending.is_nearly_full))
                else {
                    return;
                };
                let _ = timeout(next, is_nearly_full.notified()).await;
                let Some(this) = this.upgrade() else { return };
                let begun = Instant::now();
                let flushed = this.flush().await;
                next = if flushed.is_ok() { wait(W::INTERVAL, begun.elapsed()) } else { W::INTERVAL };
                if let Err(problem) = flushed {
                    tracing::warn!(%problem, "could not write {}", W::NAME);
                }
            }
        });
    }

    /// Defers a write. Costs no SQL.
    pub(crate) fn add(&self, write: W, value: W::Value) {
        self.pending.add(write, value);
    }

    /// Writes everything that was added before this call. Returns `Unavailable` if the flush fails
    /// or its result is unknown; the writes stay pending and are written again.
    pub(crate) async fn flush(&self) -> Result<(), StoreError> {
        let _alone = self.flushing.lock().await;
        let mut in_flight = InFlight { pieces: pieces(self.pending.take()), from: &self.pending };
        while let Some(piece) = in_flight.pieces.last() {
            let mut transaction = self.database.begin().await?.uncounted();
            let expected = self.snapshots.expect(self.database.generation());
            W::write(piece, &mut transaction).await?;
            transaction.commit().await?;
            in_flight.pieces.pop();
            expected.carry_unchanged(self.database.generation());
        }
        Ok(())
    }
}

/// Writes that are not in the database yet.
struct Pending<W: DeferredWrite> {
    writes: Mutex<HashMap<W, W::Value>>,
    /// Signal that is sent once when nine tenths of the capacity are used.
    is_nearly_full: Arc<Notify>,
}

impl<W: DeferredWrite> Default for Pending<W> {
    fn default() -> Pending<W> {
        Pending { writes: Mutex::default(), is_nearly_full: Arc::default() }
    }
}

impl<W: DeferredWrite> Pending<W> {
    fn add(&self, write: W, value: W::Value) {
        let mut pending = self.writes.lock().unwrap_or_else(PoisonError::into_inner);
        let before = pending.len();
        let room = before < W::CAPACITY || pending.contains_key(&write);
        if let Some(write) = if room { Some(write) } else { write.when_full() } {
            pending.entry(write).and_modify(|known| *known = W::merge(*known, value)).or_insert(value);
        }
        if before < pending.len() && pending.len() == W::CAPACITY / 10 * 9 {
            self.is_nearly_full.notify_one();
        }
    }

    fn take(&self) -> HashMap<W, W::Value> {
        std::mem::take(&mut *self.writes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Writes in progress. They become pending again if the flush does not complete: after an error, or
/// if the request that runs the flush is cancelled.
struct InFlight<'a, W: DeferredWrite> {
    pieces: Vec<HashMap<W, W::Value>>,
    from: &'a Pending<W>,
}

/// Splits writes into pieces of neighbours, whose rows are on few pages of the database.
fn pieces<W: DeferredWrite>(writes: HashMap<W, W::Value>) -> Vec<HashMap<W, W::Value>> {
    if writes.len() <= PIECE {
        return Some(writes).filter(|writes| !writes.is_empty()).into_iter().collect();
    }
    let mut in_order: Vec<(W, W::Value)> = writes.into_iter().collect();
    in_order.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    in_order.chunks(PIECE).map(|piece| piece.iter().cloned().collect()).collect()
}

impl<W: DeferredWrite> Drop for InFlight<'_, W> {
    fn drop(&mut self) {
        self.pieces.drain(..).flatten().for_each(|(write, value)| self.from.add(write, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Retains the highest value of each number; capacity two.
    #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    struct Highest(u8);

    impl DeferredWrite for Highest {
        type Value = u8;
        const INTERVAL: Duration = Duration::from_secs(3600);
        const CAPACITY: usize = 2;
        const NAME: &'static str = "numbers";

        fn merge(one: u8, other: u8) -> u8 {
            one.max(other)
        }

        async fn write(_: &HashMap<Highest, u8>, _: &mut Transaction) -> Result<(), StoreError> {
            unreachable!("nothing is written here")
        }
    }

    #[test]
    fn long_flushes_come_seldom() {
        let (second, interval) = (Duration::from_secs(1), Duration::from_secs(10));
        for (took, waited) in [(second / 10, interval), (second, 20 * second), (60 * second, LONGEST_WAIT)] {
            assert_eq!(wait(interval, took), waited);
        }
    }

    #[tokio::test]
    async fn nearly_full_writes_are_flushed_early() {
        let pending = Pending::default();
        let signal = Arc::clone(&pending.is_nearly_full);
        (0..Once::CAPACITY / 10 * 9 - 1).for_each(|number| pending.add(Once(number), ()));
        let early = tokio::time::timeout(Duration::ZERO, signal.notified()).await;
        assert!(early.is_err(), "there is room");
        (0..Once::CAPACITY).for_each(|number| pending.add(Once(number), ()));
        signal.notified().await;
    }

    #[test]
    fn a_known_row_is_updated_though_there_is_no_room_for_more() {
        let pending = Pending::default();
        for (write, value) in [(1, 5), (2, 1), (3, 9), (2, 7), (1, 4)] {
            pending.add(Highest(write), value);
        }
        assert_eq!(pending.take(), HashMap::from([(Highest(1), 5), (Highest(2), 7)]));
    }

    /// A number without a value.
    #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    struct Once(usize);

    impl DeferredWrite for Once {
        type Value = ();
        const INTERVAL: Duration = Duration::from_secs(3600);
        const CAPACITY: usize = 100_000;
        const NAME: &'static str = "numbers";

        fn merge((): (), (): ()) {}

        async fn write(_: &HashMap<Once, ()>, _: &mut Transaction) -> Result<(), StoreError> {
            unreachable!("nothing is written here")
        }
    }

    #[test]
    fn many_go_in_pieces_and_none_twice() {
        for (count, expected) in [(0, 0), (1, 1), (PIECE, 1), (PIECE + 1, 2), (PIECE * 3, 3)] {
            let all: HashMap<Once, ()> = (0..count).map(|number| (Once(number), ())).collect();
            let found = pieces(all.clone());
            assert_eq!(found.len(), expected, "{count}");
            assert!(found.iter().all(|piece| piece.len() <= PIECE));
            let ends = found.iter().map(|piece| (piece.keys().min(), piece.keys().max()));
            assert!(ends.flat_map(|(first, last)| [first, last]).is_sorted(), "{count}");
            assert_eq!(found.iter().map(HashMap::len).sum::<usize>(), count);
            assert_eq!(found.into_iter().flatten().collect::<HashMap<_, _>>(), all);
        }
    }

    #[test]
    fn failed_writes_stay_pending_and_newer_values_win() {
        let pending = Pending::default();
        pending.add(Highest(1), 5);
        let in_flight = InFlight { pieces: pieces(pending.take()), from: &pending };
        pending.add(Highest(1), 3);
        pending.add(Highest(2), 1);
        drop(in_flight);
        assert_eq!(pending.take(), HashMap::from([(Highest(1), 5), (Highest(2), 1)]));
    }
}
