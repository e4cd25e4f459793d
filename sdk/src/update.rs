//! Changes that are tried again when others were faster: read, decide, commit, and from the start where a commit came too late.

use crate::{Failure, Outcome, Repository, Transaction};

/// How often a change is tried before it is given up.
const TRIES: u32 = 100;

/// How an attempt at a change goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<T> {
    /// What was put together is to be committed.
    Commit(T),
    /// There is nothing to commit.
    Done(T),
}

/// A change that was committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applied<T> {
    /// Of the commit.
    pub revision: u64,
    /// What the attempt answered.
    pub value: T,
}

/// Asks `attempt` until it answers something, at most a hundred times: none is for an attempt that others were faster than.
///
/// # Errors
/// Those of `attempt`; `busy` where others were faster each time.
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
    /// Changes the repository: `attempt` reads what it has to know and puts the change together, which then is committed. Where
    /// others were faster it is asked again, at most a hundred times; [`Transaction::previous`] tells it why. It must read anew
    /// each time.
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
    /// Those of `attempt` and of a commit; `busy` where others were faster each time.
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

    /// As [`update`](Self::update), for what may turn out to need no change.
    ///
    /// # Errors
    /// Those of [`update`](Self::update).
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

/// None where it was not applied; why is then in `previous`.
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
