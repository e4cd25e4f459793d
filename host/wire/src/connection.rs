//! One open connection as the requests on it and its listener see it: how many requests are under way, since when there are none, and
//! how much memory their answers may hold while the client does not take them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Bytes of answers on one connection up to which a stored file is read in the large pieces that are fastest.
const LARGE_PIECES_UNTIL: usize = 4 * 1024 * 1024;
/// Bytes of answers on one connection from which on no further request of it is begun. Files in small pieces never come to this on all
/// streams together, so one slow stream does not hold up those beside it.
const MOST: usize = 12 * 1024 * 1024;
/// A small piece, as large as a frame of HTTP/2.
const SMALL_PIECE: usize = 16 * 1024;
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
}

impl ConnectionState {
    /// Of a connection that has just been accepted.
    pub fn new() -> Arc<Self> {
        Self::until(&CancellationToken::new())
    }

    /// The same, which is to be closed when `stop` is cancelled at the latest.
    pub fn until(stop: &CancellationToken) -> Arc<Self> {
        Arc::new(Self {
            opened: Instant::now(),
            under_way: AtomicUsize::new(0),
            idle_since: AtomicU64::new(0),
            held: AtomicUsize::new(0),
            room: Notify::new(),
            close: stop.child_token(),
            http2: AtomicBool::new(false),
        })
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

    /// Memory for an answer of these bytes that are in memory already.
    pub fn hold(self: &Arc<Self>, bytes: usize) -> Hold {
        self.hold_as(bytes, None)
    }

    fn hold_as(self: &Arc<Self>, bytes: usize, piece: Option<usize>) -> Hold {
        self.held.fetch_add(bytes, Ordering::AcqRel);
        Hold { connection: Arc::clone(self), bytes, piece }
    }

    /// Memory for an answer of so many bytes that are read in pieces of `large` bytes, or in small ones where the answers on this connection
    /// hold much already.
    pub fn hold_pieces(self: &Arc<Self>, length: u64, large: usize) -> Hold {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let before = self.held.load(Ordering::Acquire);
        let needed = length.min(large.saturating_mul(PIECES));
        if before.saturating_add(needed) <= LARGE_PIECES_UNTIL {
            return self.hold(needed);
        }
        self.hold_as(length.min(SMALL_PIECE * PIECES), Some(SMALL_PIECE))
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
    fn a_small_file_holds_no_more_than_its_bytes() {
        let connection = ConnectionState::new();
        let _hold = connection.hold_pieces(100, LARGE);
        assert_eq!(connection.held.load(Ordering::Relaxed), 100);
    }
}
