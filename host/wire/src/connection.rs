//! State of one open connection, shared by its listener and its requests. It has the client
//! network, the number of requests in flight and the idle time. It also counts the memory that
//! responses hold while the client does not read them.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use packhouse_config::client_network::ClientNetwork;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::send_budget::{BudgetShare, SendBudget};

/// Response bytes that one connection may hold before the server saves memory. Up to this limit it
/// holds documents in memory and reads stored files in large pieces, which is fastest.
const LARGE_PIECES_UNTIL: usize = 4 * 1024 * 1024;
/// Response bytes of one connection at which its next request must wait. Files in small pieces
/// never add up to this limit, even on all streams together, so a slow stream does not delay the
/// other streams. Only responses that [`ConnectionState::hold`] counts regardless of their size
/// reach the limit.
const MAX_HELD_BYTES: usize = 12 * 1024 * 1024;
/// Bytes of a small piece: the size of an HTTP/2 frame.
const SMALL_PIECE: usize = 16 * 1024;
/// Bytes of a small piece on HTTP/1.1, where a connection sends one response at a time.
const SMALL_PIECE_ALONE: usize = 64 * 1024;
/// Maximum pieces of a file in memory. One is being sent, and one waits to be sent. One is withheld
/// until the piece after it was checked, and one is read ahead.
const PIECES: usize = 4;

/// State shared by the listener, the connection's task and its requests.
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
    /// Memory budget of all connections.
    budget: Arc<SendBudget>,
    network: Mutex<Option<ClientNetwork>>,
}

impl ConnectionState {
    /// Creates the state of a new connection on a server without other connections.
    pub fn new() -> Arc<Self> {
        Self::until(&CancellationToken::new(), Arc::default(), None)
    }

    /// Creates the state of a new connection. The connection is closed at the latest when `stop` is
    /// cancelled, shares `budget` with other connections, and counts towards the limit of
    /// `network`.
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

    /// Returns the network whose limit the connection counts towards; `None` for a trusted proxy,
    /// which serves many clients.
    pub fn network(&self) -> Option<ClientNetwork> {
        *self.network.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the connection towards the limit of this network from now on. Returns the previous
    /// network.
    pub(crate) fn set_network(&self, network: ClientNetwork) -> Option<ClientNetwork> {
        self.network.lock().unwrap_or_else(PoisonError::into_inner).replace(network)
    }

    /// Marks the connection as one that speaks HTTP/2.
    pub fn set_http2(&self) {
        self.http2.store(true, Ordering::Release);
    }

    /// Returns whether the connection speaks HTTP/2.
    pub fn is_http2(&self) -> bool {
        self.http2.load(Ordering::Acquire)
    }

    /// Starts a request, which is in flight until the returned value is dropped.
    pub fn begin(self: &Arc<Self>) -> InFlightRequest {
        self.under_way.fetch_add(1, Ordering::AcqRel);
        InFlightRequest(Arc::clone(self))
    }

    /// Returns how long the connection has been idle; `None` while a request is in flight.
    pub fn idle_for(&self) -> Option<Duration> {
        if self.under_way.load(Ordering::Acquire) > 0 {
            return None;
        }
        let since = Duration::from_millis(self.idle_since.load(Ordering::Acquire));
        Some(self.opened.elapsed().saturating_sub(since))
    }

    /// Asks the connection's task to finish its requests and to close.
    pub fn close(&self) {
        self.close.cancel();
    }

    /// Waits until the connection must close.
    pub async fn closing(&self) {
        self.close.cancelled().await;
    }

    /// Waits until the responses on this connection hold less than their maximum of memory.
    pub async fn room(&self) {
        loop {
            let freed = self.room.notified();
            if self.held.load(Ordering::Acquire) < MAX_HELD_BYTES {
                return;
            }
            freed.await;
        }
    }

    /// Reserves `bytes` of memory for a response, even beyond the limit of the connection.
    pub fn hold(self: &Arc<Self>, bytes: usize) -> Hold {
        self.hold_as(bytes, None, None)
    }

    /// Reserves memory for a response whose content is in memory at this address. `None` if this
    /// connection or the whole server has reached its limit. Content that another response already
    /// holds needs no further memory.
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

    /// Reserves memory for a response of `length` bytes. The caller reads the response in pieces of
    /// `large` bytes, or in small pieces if the connection or the whole server already holds much.
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

/// A request in flight on a connection.
#[derive(Debug)]
pub struct InFlightRequest(Arc<ConnectionState>);

impl Drop for InFlightRequest {
    fn drop(&mut self) {
        let now = u64::try_from(self.0.opened.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.0.idle_since.store(now, Ordering::Release);
        self.0.under_way.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Memory that a response may hold. Dropping the `Hold` returns the memory to the budget.
#[derive(Debug)]
pub struct Hold {
    connection: Arc<ConnectionState>,
    bytes: usize,
    piece: Option<usize>,
    _share: Option<BudgetShare>,
}

impl Hold {
    /// Returns the size of small pieces; `None` if the response may use large ones.
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
        assert!(connection.held.load(Ordering::Relaxed) < MAX_HELD_BYTES);
        connection.room().await;
        drop(holds);
        assert_eq!(connection.held.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn a_request_waits_for_the_memory_of_others() {
        let connection = ConnectionState::new();
        let hold = connection.hold(MAX_HELD_BYTES);
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
    fn unread_documents_are_held_up_to_a_limit() {
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
            "the first is limited by its connection, the second by the server"
        );
        assert_eq!(two.hold_pieces(u64::MAX, LARGE).piece(), Some(SMALL_PIECE));
        let shared: Vec<Hold> = (0..STREAMS).filter_map(|_| two.hold_content(0, BYTES)).collect();
        assert_eq!(shared.len(), STREAMS, "content that is already held costs nothing");
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
