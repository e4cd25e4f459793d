//! One open connection as the requests on it and its listener see it: whose it is, how many requests are under way, since when there
//! are none, and how much memory their answers may hold while the client does not take them.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use packhouse_config::client_network::ClientNetwork;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::send_budget::{BudgetShare, SendBudget};

/// Bytes of answers on one connection up to which documents are held in memory, and a stored file is read in the large pieces that are
/// fastest.
const LARGE_PIECES_UNTIL: usize = 4 * 1024 * 1024;
/// Bytes of answers on one connection from which on no further request of it is begun. Files in small pieces never come to this on all
/// streams together, so one slow stream does not hold up those beside it: only answers that are held whatever their size do.
const MOST: usize = 12 * 1024 * 1024;
/// A small piece, as large as a frame of HTTP/2.
const SMALL_PIECE: usize = 16 * 1024;
/// The same on HTTP/1.1, where one answer at a time is sent on a connection.
const SMALL_PIECE_ALONE: usize = 64 * 1024;
/// How many pieces of a file are in memory at most: one is sent, one waits behind it, one is held back until the next was checked, and
/// one is read ahead.
const PIECES: usize = 4;

/// See the module. Shared by the listener, the connection's task and its requests.
#[derive(Debug)]
pub struct ConnectionState {
    opened: Instant,
    under_way: AtomicUsize,
    /// Milliseconds from `opened` to the end of the last request.
    idle_since: AtomicU64,
    held: AtomicUsize,
    room: Notify,
    close: CancellationToken,
    http2: AtomicBool,
    /// What all connections may hold.
    budget: Arc<SendBudget>,
    network: Mutex<Option<ClientNetwork>>,
}

impl ConnectionState {
    /// Of a connection that has just been accepted, on a server without others.
    pub fn new() -> Arc<Self> {
        Self::until(&CancellationToken::new(), Arc::default(), None)
    }

    /// Of one that is to be closed when `stop` is cancelled at the latest, shares a budget with others, and counts as this network's.
    pub fn until(
        stop: &CancellationToken,
        budget: Arc<SendBudget>,
        network: Option<ClientNetwork>,
    ) -> Arc<Self> {
        Arc::new(Self {
            budget,
            network: Mutex::new(network),
            opened: Instant::now(),
            under_way: AtomicUsize::new(0),
            idle_since: AtomicU64::new(0),
            held: AtomicUsize::new(0),
            room: Notify::new(),
            close: stop.child_token(),
            http2: AtomicBool::new(false),
        })
    }

    /// The network as whose it counts; none for a trusted proxy's, which stands for many clients.
    pub fn network(&self) -> Option<ClientNetwork> {
        *self.network.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts it as this network's from now on. Returns the network before.
    pub(crate) fn set_network(&self, network: ClientNetwork) -> Option<ClientNetwork> {
        self.network.lock().unwrap_or_else(PoisonError::into_inner).replace(network)
    }

    /// A request came on it by HTTP/2.
    pub fn set_http2(&self) {
        self.http2.store(true, Ordering::Release);
    }

    /// Whether it speaks HTTP/2.
    pub fn is_http2(&self) -> bool {
        self.http2.load(Ordering::Acquire)
    }

    /// A request begins; it is under way until the value is dropped.
    pub fn begin(self: &Arc<Self>) -> UnderWay {
        self.under_way.fetch_add(1, Ordering::AcqRel);
        UnderWay(Arc::clone(self))
    }

    /// For how long nothing has been under way; none while something is.
    pub fn idle_for(&self) -> Option<Duration> {
        if self.under_way.load(Ordering::Acquire) > 0 {
            return None;
        }
        let since = Duration::from_millis(self.idle_since.load(Ordering::Acquire));
        Some(self.opened.elapsed().saturating_sub(since))
    }

    /// Asks the connection's task to finish what is under way and to close.
    pub fn close(&self) {
        self.close.cancel();
    }

    /// Resolves when the connection is to be closed.
    pub async fn closing(&self) {
        self.close.cancelled().await;
    }

    /// Waits while the answers on this connection hold as much memory as they may.
    pub async fn room(&self) {
        loop {
            let freed = self.room.notified();
            if self.held.load(Ordering::Acquire) < MOST {
                return;
            }
            freed.await;
        }
    }

    /// Memory for an answer of these bytes, whether or not there is room.
    pub fn hold(self: &Arc<Self>, bytes: usize) -> Hold {
        self.hold_as(bytes, None, None)
    }

    /// Memory for an answer whose content lies in memory at this address; none where this connection or the whole server holds as much as
    /// it may. What other answers hold already costs nothing more.
    pub fn hold_content(self: &Arc<Self>, address: usize, bytes: usize) -> Option<Hold> {
        if let Some(share) = self.budget.share(address) {
            return Some(self.hold_as(0, None, Some(share)));
        }
        if self.is_http2() && !self.has_room_for(bytes) {
            return None;
        }
        let share = self.budget.take_content(address, bytes)?;
        Some(self.hold_as(bytes, None, Some(share)))
    }

    fn has_room_for(&self, bytes: usize) -> bool {
        self.held.load(Ordering::Acquire).saturating_add(bytes) <= LARGE_PIECES_UNTIL
    }

    fn hold_as(self: &Arc<Self>, bytes: usize, piece: Option<usize>, share: Option<BudgetShare>) -> Hold {
        self.held.fetch_add(bytes, Ordering::AcqRel);
        Hold { connection: Arc::clone(self), bytes, piece, _share: share }
    }

    /// Memory for an answer of so many bytes that are read in pieces of `large` bytes, or in small ones where the answers on this connection
    /// or on the whole server hold much already.
    pub fn hold_pieces(self: &Arc<Self>, length: u64, large: usize) -> Hold {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let needed = length.min(large.saturating_mul(PIECES));
        let piece = if self.is_http2() { SMALL_PIECE } else { SMALL_PIECE_ALONE };
        let small = length.min(piece * PIECES);
        if needed <= small {
            return self.hold(needed);
        }
        match self.budget.take(needed).filter(|_| self.has_room_for(needed)) {
            Some(share) => self.hold_as(needed, None, Some(share)),
            None => self.hold_as(small, Some(piece), None),
        }
    }
}

/// A request under way on a connection.
#[derive(Debug)]
pub struct UnderWay(Arc<ConnectionState>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        let now = u64::try_from(self.0.opened.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.0.idle_since.store(now, Ordering::Release);
        self.0.under_way.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Memory that an answer may hold, given back when this is dropped.
#[derive(Debug)]
pub struct Hold {
    connection: Arc<ConnectionState>,
    bytes: usize,
    piece: Option<usize>,
    _share: Option<BudgetShare>,
}

impl Hold {
    /// Bytes of a piece where they are to be small ones.
    pub fn piece(&self) -> Option<usize> {
        self.piece
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.connection.held.fetch_sub(self.bytes, Ordering::AcqRel);
        self.connection.room.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: usize = 256 * 1024;
    const STREAMS: usize = 128;

    #[test]
    fn a_connection_is_idle_when_its_last_request_has_ended() {
        let connection = ConnectionState::new();
        assert!(connection.idle_for().is_some());
        let (one, two) = (connection.begin(), connection.begin());
        drop(one);
        assert!(connection.idle_for().is_none());
        drop(two);
        assert!(connection.idle_for().is_some());
    }

    #[tokio::test]
    async fn files_on_all_streams_leave_room_for_the_next_request() {
        let connection = ConnectionState::new();
        connection.set_http2();
        let holds: Vec<Hold> = (0..STREAMS).map(|_| connection.hold_pieces(u64::MAX, LARGE)).collect();
        assert_eq!(holds.iter().filter(|hold| hold.piece().is_none()).count(), 4);
        assert!(connection.held.load(Ordering::Relaxed) < MOST);
        connection.room().await;
        drop(holds);
        assert_eq!(connection.held.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn a_request_waits_for_the_memory_of_others() {
        let connection = ConnectionState::new();
        let hold = connection.hold(MOST);
        let waiting = tokio::spawn({
            let connection = Arc::clone(&connection);
            async move { connection.room().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(hold);
        waiting.await.unwrap();
    }

    #[test]
    fn documents_that_nobody_takes_are_held_up_to_a_bound() {
        const BYTES: usize = 1024 * 1024;
        let budget = Arc::new(SendBudget::within(6 * BYTES));
        let connection = || {
            let connection = ConnectionState::until(&CancellationToken::new(), Arc::clone(&budget), None);
            connection.set_http2();
            connection
        };
        let (one, two) = (connection(), connection());
        let hold = |connection: &Arc<ConnectionState>, from: usize| -> Vec<Hold> {
            (from..from + STREAMS).filter_map(|address| connection.hold_content(address, BYTES)).collect()
        };
        let (of_one, of_two) = (hold(&one, 0), hold(&two, STREAMS));
        assert_eq!(
            (of_one.len(), of_two.len()),
            (4, 2),
            "the connection's share, and the rest of the server's"
        );
        assert_eq!(two.hold_pieces(u64::MAX, LARGE).piece(), Some(SMALL_PIECE));
        let shared: Vec<Hold> = (0..STREAMS).filter_map(|_| two.hold_content(0, BYTES)).collect();
        assert_eq!(shared.len(), STREAMS, "what is held already costs nothing more");
        drop((of_one, of_two, shared));
        assert_eq!(hold(&two, 0).len(), 4);
    }

    #[test]
    fn a_small_file_holds_no_more_than_its_bytes() {
        let connection = ConnectionState::new();
        let _hold = connection.hold_pieces(100, LARGE);
        assert_eq!(connection.held.load(Ordering::Relaxed), 100);
    }
}
