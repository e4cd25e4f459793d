//! Changes that are retried when a concurrent commit wins: read, decide and commit, then start
//! again if the commit was stale.

use crate::{Failure, Outcome, Repository, Transaction};

/// Largest number of attempts.
const TRIES: u32 = 100;

/// Next step after an attempt at a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<T> {
    /// Commit the change.
    Commit(T),
    /// Commit nothing.
    Done(T),
}

/// Change that was committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applied<T> {
    /// Revision of the commit.
    pub revision: u64,
    /// Value that the attempt returned.
    pub value: T,
}

/// Calls `attempt` until it returns `Some`, at most a hundred times, and returns that value. With
/// `None`, `attempt` reports that a concurrent change won.
///
/// # Errors
/// Returns the errors of `attempt`, or `busy` if every attempt lost the race.
pub fn retry<T>(
    busy: impl FnOnce() -> Failure,
    mut attempt: impl FnMut() -> Result<Option<T>, Failure>,
) -> Result<T, Failure> {
    for _ in 0..TRIES {
        if let Some(answer) = attempt()? {
            return Ok(answer);
        }
    }
    Err(busy())
}

impl Repository {
    /// Changes the repository. `attempt` reads records and prepares the change; this function
    /// commits it. If a concurrent commit wins, this function calls `attempt` again, at most a
    /// hundred times in all. [`Transaction::previous`] then returns the reason. Each attempt must
    /// read everything again.
    ///
    /// ```
    /// # use packhouse_sdk::{Expectation, Failure, Repository};
    /// fn count(repository: &Repository) -> Result<u64, Failure> {
    ///     let busy = || Failure::busy("the same counter");
    ///     let counted = repository.update(busy, |change| {
    ///         let before = repository.get_json::<u64>("count")?;
    ///         let next = before.as_ref().map_or(1, |entry| entry.value + 1);
    ///         change.put_json("count", &next, Expectation::unchanged(before.as_ref()), &[])?;
    ///         Ok(next)
    ///     })?;
    ///     Ok(counted.value)
    /// }
    /// ```
    ///
    /// # Errors
    /// Returns the errors of `attempt` and of a commit, or `busy` if every attempt lost the race.
    pub fn update<T>(
        &self,
        busy: impl FnOnce() -> Failure,
        mut attempt: impl FnMut(&mut Transaction) -> Result<T, Failure>,
    ) -> Result<Applied<T>, Failure> {
        let mut previous = None;
        retry(busy, || {
            let mut change = self.begin()?.after(previous.take());
            let value = attempt(&mut change)?;
            commit(change, value, &mut previous)
        })
    }

    /// Changes the repository like [`update`](Self::update), unless `attempt` finds that no change
    /// is needed ([`Step::Done`]). Returns the value of the last attempt.
    ///
    /// # Errors
    /// Fails like [`update`](Self::update).
    pub fn update_if_needed<T>(
        &self,
        busy: impl FnOnce() -> Failure,
        mut attempt: impl FnMut(&mut Transaction) -> Result<Step<T>, Failure>,
    ) -> Result<T, Failure> {
        let mut previous = None;
        retry(busy, || {
            let mut change = self.begin()?.after(previous.take());
            match attempt(&mut change)? {
                Step::Done(value) => Ok(Some(value)),
                Step::Commit(value) => Ok(commit(change, value, &mut previous)?.map(|applied| applied.value)),
            }
        })
    }
}

/// Returns `None` if the change was not applied, and stores the reason in `previous`.
fn commit<T>(
    change: Transaction,
    value: T,
    previous: &mut Option<Outcome>,
) -> Result<Option<Applied<T>>, Failure> {
    match change.commit()? {
        Outcome::Applied(revision) => Ok(Some(Applied { revision, value })),
        outcome => {
            *previous = Some(outcome);
            Ok(None)
        }
    }
}
