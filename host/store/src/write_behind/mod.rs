//! Write-behind: writes that may come late are gathered in memory and flushed together, so that a request costs none. They say
//! when credentials and cached answers were last used, what was refused, how often files were fetched, and by which tokens.

pub(crate) mod answers;
mod credentials;
pub(crate) mod downloads;
mod fetches;
mod refusals;

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub(crate) use answers::UsedAnswer;
pub(crate) use credentials::UsedCredential;
pub(crate) use downloads::{Downloaded, Downloads};
pub use fetches::FETCH_DAYS;
pub(crate) use fetches::Fetched;
pub use refusals::Refusal;
pub(crate) use refusals::{Count, RefusalsOfMinute};

use crate::accounts::Snapshots;
use crate::db::{Database, Transaction};
use crate::error::StoreError;

/// A kind of write that may come late. A value is the key of the row that is written.
pub(crate) trait DeferredWrite: Clone + Eq + Hash + Send + Sync + 'static {
    /// What is written to the row.
    type Value: Copy + Send + Sync;

    /// How far the table may lag behind.
    const INTERVAL: Duration;
    /// How many rows wait between two flushes: what strangers choose must not grow without end.
    const CAPACITY: usize;
    /// What the log says could not be written.
    const NAME: &'static str;

    /// Two values for one row as one, in whichever order they came.
    fn merge(one: Self::Value, other: Self::Value) -> Self::Value;

    /// The row that is written in its place when there is no room for it; none: the write is dropped.
    fn when_full(self) -> Option<Self> {
        None
    }

    /// Writes all of them; the caller commits.
    fn write(
        pending: &HashMap<Self, Self::Value>,
        transaction: &mut Transaction,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// Rows that are written in one transaction. More than a statement has the time for would be begun anew each time, and hold locks meanwhile.
const PIECE: usize = 1_000;

/// The deferred writes of one kind, and where they go.
pub(crate) struct WriteBehind<W: DeferredWrite> {
    pending: Pending<W>,
    /// Held during a flush: a second one that finds nothing pending knows that all is written.
    flushing: tokio::sync::Mutex<()>,
    database: Database,
    snapshots: Arc<Snapshots>,
}

impl<W: DeferredWrite> WriteBehind<W> {
    /// Starts the task that flushes, which ends with the last handle.
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
            loop {
                tokio::time::sleep(W::INTERVAL).await;
                let Some(this) = this.upgrade() else { return };
                if let Err(problem) = this.flush().await {
                    tracing::warn!(%problem, "{} could not be written", W::NAME);
                }
            }
        });
    }

    /// Defers a write. Costs no SQL.
    pub(crate) fn add(&self, write: W, value: W::Value) {
        self.pending.add(write, value);
    }

    /// Writes what was added before this was called. `Unavailable` when it could not be written, or it is not known whether it
    /// was: it stays pending then, and is written again.
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

/// What is not yet written.
struct Pending<W: DeferredWrite>(Mutex<HashMap<W, W::Value>>);

impl<W: DeferredWrite> Default for Pending<W> {
    fn default() -> Pending<W> {
        Pending(Mutex::default())
    }
}

impl<W: DeferredWrite> Pending<W> {
    fn add(&self, write: W, value: W::Value) {
        let mut pending = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = pending.len() < W::CAPACITY || pending.contains_key(&write);
        if let Some(write) = if room { Some(write) } else { write.when_full() } {
            pending.entry(write).and_modify(|known| *known = W::merge(*known, value)).or_insert(value);
        }
    }

    fn take(&self) -> HashMap<W, W::Value> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Writes on their way into the database. They become pending again if they do not get there: after an error, and when the
/// request that asked for the flush is given up halfway.
struct InFlight<'a, W: DeferredWrite> {
    pieces: Vec<HashMap<W, W::Value>>,
    from: &'a Pending<W>,
}

/// These, of which no more than a piece goes together.
fn pieces<W: DeferredWrite>(writes: HashMap<W, W::Value>) -> Vec<HashMap<W, W::Value>> {
    if writes.len() <= PIECE {
        return Some(writes).filter(|writes| !writes.is_empty()).into_iter().collect();
    }
    let mut pieces: Vec<HashMap<W, W::Value>> = Vec::new();
    for (number, (write, value)) in writes.into_iter().enumerate() {
        if number % PIECE == 0 {
            pieces.push(HashMap::with_capacity(PIECE));
        }
        if let Some(piece) = pieces.last_mut() {
            piece.insert(write, value);
        }
    }
    pieces
}

impl<W: DeferredWrite> Drop for InFlight<'_, W> {
    fn drop(&mut self) {
        self.pieces.drain(..).flatten().for_each(|(write, value)| self.from.add(write, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The highest number of each; two at a time.
    #[derive(Clone, PartialEq, Eq, Hash, Debug)]
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
    fn a_known_row_is_updated_though_there_is_no_room_for_more() {
        let pending = Pending::default();
        for (write, value) in [(1, 5), (2, 1), (3, 9), (2, 7), (1, 4)] {
            pending.add(Highest(write), value);
        }
        assert_eq!(pending.take(), HashMap::from([(Highest(1), 5), (Highest(2), 7)]));
    }

    /// A number, once.
    #[derive(Clone, PartialEq, Eq, Hash, Debug)]
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
            assert_eq!(found.iter().map(HashMap::len).sum::<usize>(), count);
            assert_eq!(found.into_iter().flatten().collect::<HashMap<_, _>>(), all);
        }
    }

    #[test]
    fn what_was_not_written_is_kept_and_nothing_newer_is_lost() {
        let pending = Pending::default();
        pending.add(Highest(1), 5);
        let in_flight = InFlight { pieces: pieces(pending.take()), from: &pending };
        pending.add(Highest(1), 3);
        pending.add(Highest(2), 1);
        drop(in_flight);
        assert_eq!(pending.take(), HashMap::from([(Highest(1), 5), (Highest(2), 1)]));
    }
}
