//! Commits whose callers wait until no other server answers from the state before them.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::db::LeaseHolder;

/// Waits of this process, keyed by the number of their announcement.
#[derive(Default)]
pub(super) struct Waits(Mutex<WaitsState>);

#[derive(Default)]
struct WaitsState {
    last: u64,
    waiting: BTreeMap<u64, Wait>,
}

struct Wait {
    holders: Vec<LeaseHolder>,
    /// True once the announcement was sent. An acknowledgement cannot end a wait before that.
    announced: bool,
    done: oneshot::Sender<()>,
}

impl Waits {
    fn state(&self) -> MutexGuard<'_, WaitsState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a wait for these servers. Calls `announce` with the number of the wait, in the order
    /// of the numbers.
    pub(super) fn begin(
        &self,
        holders: Vec<LeaseHolder>,
        announce: impl FnOnce(u64),
    ) -> (u64, oneshot::Receiver<()>) {
        let (done, ended) = oneshot::channel();
        let mut state = self.state();
        state.last += 1;
        let number = state.last;
        state.waiting.insert(number, Wait { holders, announced: false, done });
        announce(number);
        (number, ended)
    }

    /// Number of the last wait.
    pub(super) fn last(&self) -> u64 {
        self.state().last
    }

    /// Records that these announcements were sent.
    pub(super) fn announced(&self, numbers: &[u64]) {
        let mut state = self.state();
        for number in numbers {
            if let Some(wait) = state.waiting.get_mut(number) {
                wait.announced = true;
            }
        }
    }

    /// Handles an acknowledgement: `holder` has dropped what the announcements up to this number
    /// affect. Does not end waits whose announcement was not sent.
    pub(super) fn dropped(&self, holder: &str, up_to: u64) {
        self.release(up_to, |announced, waited| announced && waited.id == holder);
    }

    /// Handles the end of the lease of `holder`, which it may have held when these waits began.
    pub(super) fn ran_out(&self, holder: &str, up_to: u64) {
        self.release(up_to, |_, waited| waited.id == holder);
    }

    /// Ends waits for servers that are not in `present`, because these servers have no lease any
    /// more.
    pub(super) fn gone(&self, present: &[LeaseHolder], up_to: u64) {
        self.release(up_to, |_, waited| !present.iter().any(|holder| holder.id == waited.id));
    }

    /// Removes servers from waits if `released` returns true. The arguments of `released` are true
    /// if the announcement was sent, and the server.
    fn release(&self, up_to: u64, released: impl Fn(bool, &LeaseHolder) -> bool) {
        let mut state = self.state();
        let mut ended = Vec::new();
        for (number, wait) in state.waiting.range_mut(..=up_to) {
            wait.holders.retain(|holder| !released(wait.announced, holder));
            if wait.holders.is_empty() {
                ended.push(*number);
            }
        }
        for number in ended {
            if let Some(wait) = state.waiting.remove(&number) {
                // The caller of the commit may have stopped waiting.
                let _ = wait.done.send(());
            }
        }
    }

    /// Ends this wait and returns the servers that it still waited for. Their leases have expired.
    pub(super) fn end(&self, number: u64) -> Vec<LeaseHolder> {
        self.state().waiting.remove(&number).map(|wait| wait.holders).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn holder(id: &str) -> LeaseHolder {
        LeaseHolder { id: id.to_owned(), renewal: 1, lease: Duration::from_secs(1) }
    }

    #[test]
    fn a_wait_ends_with_the_last_of_its_servers() {
        let waits = Waits::default();
        let (first, mut one) = waits.begin(vec![holder("a"), holder("b")], |_| ());
        let (second, mut two) = waits.begin(vec![holder("a")], |_| ());
        waits.announced(&[first, second]);
        waits.dropped("a", first);
        assert!(one.try_recv().is_err() && two.try_recv().is_err());
        waits.dropped("b", second);
        assert!(one.try_recv().is_ok() && two.try_recv().is_err());
        // A wait that began after the request for the list is not ended by it.
        waits.gone(&[], first);
        assert!(two.try_recv().is_err());
        waits.gone(&[holder("b")], second);
        assert!(two.try_recv().is_ok());
        // An unannounced wait is not ended by the acknowledgement of the next one, but by the end
        // of the lease.
        let (unsent, mut one) = waits.begin(vec![holder("a")], |_| ());
        let (sent, mut two) = waits.begin(vec![holder("a")], |_| ());
        waits.announced(&[sent]);
        waits.dropped("a", sent);
        assert!(one.try_recv().is_err() && two.try_recv().is_ok());
        waits.ran_out("a", unsent);
        assert!(one.try_recv().is_ok());
        let (third, _three) = waits.begin(vec![holder("c")], |_| ());
        assert_eq!(waits.end(third), vec![holder("c")]);
        assert!(waits.end(third).is_empty());
    }
}
