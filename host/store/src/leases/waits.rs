//! Commits whose callers wait until no other server answers from memory what was before them.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::db::Holder;

/// The waits of this process, by the number of their announcement.
#[derive(Default)]
pub(super) struct Waits(Mutex<State>);

#[derive(Default)]
struct State {
    last: u64,
    waiting: BTreeMap<u64, Wait>,
}

struct Wait {
    holders: Vec<Holder>,
    /// Whether the others were told: one that could not be is in no answer to a later one.
    announced: bool,
    done: oneshot::Sender<()>,
}

impl Waits {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins one for these servers. `announce` gets its number: announcements are handed on in the order of their numbers.
    pub(super) fn begin(
        &self,
        holders: Vec<Holder>,
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

    /// The number of the last one.
    pub(super) fn last(&self) -> u64 {
        self.state().last
    }

    /// The others were sent these announcements.
    pub(super) fn announced(&self, numbers: &[u64]) {
        let mut state = self.state();
        for number in numbers {
            if let Some(wait) = state.waiting.get_mut(number) {
                wait.announced = true;
            }
        }
    }

    /// This server has dropped what the announcements up to this number touch: those that were sent.
    pub(super) fn dropped(&self, holder: &str, up_to: u64) {
        self.release(up_to, |announced, waited| announced && waited.id == holder);
    }

    /// The lease of this server, which it may have held when these waits began, has run out.
    pub(super) fn ran_out(&self, holder: &str, up_to: u64) {
        self.release(up_to, |_, waited| waited.id == holder);
    }

    /// Of the servers that held a lease when these waits began, only those in `present` may still have it.
    pub(super) fn gone(&self, present: &[Holder], up_to: u64) {
        self.release(up_to, |_, waited| !present.iter().any(|holder| holder.id == waited.id));
    }

    /// Ends waiting for servers, of which it is asked with whether the announcement was sent.
    fn release(&self, up_to: u64, released: impl Fn(bool, &Holder) -> bool) {
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
                // Whoever waited may have gone.
                let _ = wait.done.send(());
            }
        }
    }

    /// Ends this one: the leases of the servers that it still waited for have run out.
    pub(super) fn end(&self, number: u64) -> Vec<Holder> {
        self.state().waiting.remove(&number).map(|wait| wait.holders).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn holder(id: &str) -> Holder {
        Holder { id: id.to_owned(), renewal: 1, lease: Duration::from_secs(1) }
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
        // One that began after the list was asked for is not ended by it.
        waits.gone(&[], first);
        assert!(two.try_recv().is_err());
        waits.gone(&[holder("b")], second);
        assert!(two.try_recv().is_ok());
        // One that could not be announced is not ended by an answer to the next, and by the end of a lease.
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
