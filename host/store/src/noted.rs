//! What is noted in memory and written late, many notes together, so that a request costs no write: when credentials and kept
//! answers were last used, and what was refused.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::db::Transaction;
use crate::error::StoreError;
use crate::store::{Inner, Store};

/// What a note is about: the key of the row that it is written to.
pub(crate) trait Note: Clone + Eq + Hash + Send + Sync + 'static {
    /// What is noted of it.
    type What: Copy + Send + Sync;

    /// How far behind the truth the table may be.
    const EVERY: Duration;
    /// How many are kept between two writings: what strangers choose must not grow without end.
    const MOST: usize;
    /// What the log says could not be written.
    const NAME: &'static str;

    /// The store's notes of this kind.
    fn notes(store: &Inner) -> &Notes<Self>;

    /// Two notes of the same thing as one, in whichever order they came.
    fn merge(one: Self::What, other: Self::What) -> Self::What;

    /// What is noted in its place once there is no room for it; none: it is let go.
    fn instead(self) -> Option<Self> {
        None
    }

    /// Writes all of them; the caller commits.
    fn write(
        notes: &HashMap<Self, Self::What>,
        transaction: &mut Transaction,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// What is not yet written, of one kind.
pub(crate) struct Notes<N: Note> {
    kept: Mutex<HashMap<N, N::What>>,
    /// Held while they are written: who has them written and finds none, knows that all were.
    writing: tokio::sync::Mutex<()>,
}

impl<N: Note> Default for Notes<N> {
    fn default() -> Notes<N> {
        Notes { kept: Mutex::default(), writing: tokio::sync::Mutex::default() }
    }
}

impl<N: Note> Notes<N> {
    /// Costs no SQL.
    pub(crate) fn add(&self, note: N, what: N::What) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let room = kept.len() < N::MOST || kept.contains_key(&note);
        if let Some(note) = if room { Some(note) } else { note.instead() } {
            kept.entry(note).and_modify(|known| *known = N::merge(*known, what)).or_insert(what);
        }
    }

    pub(crate) fn take(&self) -> HashMap<N, N::What> {
        std::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Starts the task that writes them, which ends with the store.
    pub(crate) fn write_now_and_then(store: &Arc<Inner>) {
        let store = Arc::downgrade(store);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(N::EVERY).await;
                let Some(inner) = store.upgrade() else { return };
                if let Err(problem) = (Store { inner }).write_notes::<N>().await {
                    tracing::warn!(%problem, "{} could not be written", N::NAME);
                }
            }
        });
    }
}

/// Notes on their way into the database. They are kept for the next time if they do not get there: after an error, and when the
/// request that asked for it is given up halfway.
struct Taken<'a, N: Note> {
    notes: HashMap<N, N::What>,
    from: &'a Notes<N>,
}

impl<N: Note> Drop for Taken<'_, N> {
    fn drop(&mut self) {
        self.notes.drain().for_each(|(note, what)| self.from.add(note, what));
    }
}

impl Store {
    /// Writes what was noted before this was called. `Unavailable` when it could not be, or it is not known whether it was: it is
    /// kept then, and written again.
    pub(crate) async fn write_notes<N: Note>(&self) -> Result<(), StoreError> {
        let notes = N::notes(&self.inner);
        let _alone = notes.writing.lock().await;
        let mut taken = Taken { notes: notes.take(), from: notes };
        if taken.notes.is_empty() {
            return Ok(());
        }
        let mut transaction = self.inner.db.begin().await?;
        let before = self.generation();
        N::write(&taken.notes, &mut transaction).await?;
        transaction.commit().await?;
        taken.notes.clear();
        self.nothing_changed_since(before);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Notes a number of another, the highest; two at a time.
    #[derive(Clone, PartialEq, Eq, Hash, Debug)]
    struct Highest(u8);

    impl Note for Highest {
        type What = u8;
        const EVERY: Duration = Duration::from_secs(3600);
        const MOST: usize = 2;
        const NAME: &'static str = "numbers";

        fn notes(_: &Inner) -> &Notes<Highest> {
            unreachable!("nothing is written here")
        }

        fn merge(one: u8, other: u8) -> u8 {
            one.max(other)
        }

        async fn write(_: &HashMap<Highest, u8>, _: &mut Transaction) -> Result<(), StoreError> {
            unreachable!("nothing is written here")
        }
    }

    #[test]
    fn a_known_thing_is_noted_though_there_is_no_room_for_more() {
        let notes = Notes::default();
        for (note, what) in [(1, 5), (2, 1), (3, 9), (2, 7), (1, 4)] {
            notes.add(Highest(note), what);
        }
        assert_eq!(notes.take(), HashMap::from([(Highest(1), 5), (Highest(2), 7)]));
    }

    #[test]
    fn what_was_not_written_is_kept_and_nothing_newer_lost() {
        let notes = Notes::default();
        notes.add(Highest(1), 5);
        let taken = Taken { notes: notes.take(), from: &notes };
        notes.add(Highest(1), 3);
        notes.add(Highest(2), 1);
        drop(taken);
        assert_eq!(notes.take(), HashMap::from([(Highest(1), 5), (Highest(2), 1)]));
    }
}
