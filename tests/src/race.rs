//! Callers that start at the same moment.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs `work` with each number below `count` at the same moment, each in its own thread; returns
/// the results in that order.
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

/// The index of the only status that is `won`; fails the test unless all others are `lost`.
#[track_caller]
pub fn winner(statuses: &[u16], won: u16, lost: u16) -> usize {
    let winners: Vec<usize> = (0..statuses.len()).filter(|number| statuses[*number] == won).collect();
    let losers = statuses.iter().filter(|status| **status == lost).count();
    assert_eq!((winners.len(), losers), (1, statuses.len() - 1), "{statuses:?}");
    winners[0]
}

/// Sets a flag when it is dropped. The flag tells a test's background threads to end. If a test
/// fails, the drop still sets the flag, so the thread scope does not wait for ever.
pub struct SetOnDrop<'a>(pub &'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
