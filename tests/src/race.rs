//! Callers that start at the same moment.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs `work` with each of the numbers below `count` at the same moment, a thread each; what they answered, in that order.
pub fn at_once<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let start = Barrier::new(count);
    std::thread::scope(|scope| {
        let (start, work) = (&start, &work);
        let callers: Vec<_> = (0..count)
            .map(|number| {
                scope.spawn(move || {
                    start.wait();
                    work(number)
                })
            })
            .collect();
        callers.into_iter().map(|caller| caller.join().expect("a caller failed")).collect()
    })
}

/// The one number whose answer has this status; fails the test unless all others have `lost`.
#[track_caller]
pub fn winner(statuses: &[u16], won: u16, lost: u16) -> usize {
    let winners: Vec<usize> = (0..statuses.len()).filter(|number| statuses[*number] == won).collect();
    let losers = statuses.iter().filter(|status| **status == lost).count();
    assert_eq!((winners.len(), losers), (1, statuses.len() - 1), "{statuses:?}");
    winners[0]
}

/// Sets the flag that ends threads which work beside the test, when it is dropped: where the test fails, too, since a scope waits
/// for its threads before it fails.
pub struct Ended<'a>(pub &'a AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
