//! Documents that wait for their clients in files, where memory has no room for them. The files have no names: nothing is left of
//! them when the answer or the program ends. One connection, and one client network, gets only a part of the room, so that a slow
//! client cannot take it from others.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use futures::{Stream, stream};
use packhouse_config::client_network::ClientNetwork;
use packhouse_store::StoreError;
use tokio::task::spawn_blocking;

use crate::connection::ConnectionState;

/// Bytes of all such files.
const MOST: u64 = 1 << 30;
/// All connections of one network have at most half of them, as they have at most half of all connections: one address may stand for
/// a whole office.
const NETWORK_PART: u64 = 2;
/// One connection has at most an eighth: a document of 1 MiB on each of 128 HTTP/2 streams. That leaves three quarters of its
/// network's share to others there.
const CONNECTION_PART: u64 = 8;

/// See the module.
#[derive(Debug)]
pub struct Spill {
    folder: PathBuf,
    most: u64,
    used: Arc<Used>,
}

impl Spill {
    /// For files in this folder, which holds none yet.
    pub fn in_folder(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), most: MOST, used: Arc::default() }
    }

    /// Writes a document for this connection to a file. Returns it in pieces of so many bytes. `Unavailable` where the disk has no room, or
    /// where the files of the server, of the connection's network or of the connection have as many bytes as they may.
    pub async fn write(
        &self,
        parts: Vec<Bytes>,
        piece: usize,
        connection: Option<&Arc<ConnectionState>>,
    ) -> Result<impl Stream<Item = Result<Bytes, StoreError>> + Send + use<>, StoreError> {
        let length = parts.iter().map(|part| part.len() as u64).sum();
        let lease = self.lease(length, connection)?;
        let folder = self.folder.clone();
        let write = move || {
            let mut file = tempfile::tempfile_in(folder)?;
            parts.iter().try_for_each(|part| file.write_all(part))?;
            Ok(file)
        };
        let file = spawn_blocking(write).await.map_err(io::Error::other).flatten().map_err(unavailable)?;
        metrics::counter!("packhouse_answers_spilled_total").increment(1);
        let waiting = Waiting { file: Arc::new(file), at: 0, length, _lease: lease };
        Ok(stream::try_unfold(waiting, move |waiting| waiting.next(piece)))
    }

    fn lease(&self, bytes: u64, connection: Option<&Arc<ConnectionState>>) -> Result<Lease, StoreError> {
        let holders = holders(connection);
        self.used.take(&holders, bytes, self.most).map_err(unavailable)?;
        Ok(Lease { used: Arc::clone(&self.used), holders, bytes, _connection: connection.cloned() })
    }
}

/// Whose files count together.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Holder {
    Server,
    Network(ClientNetwork),
    /// By the address of its state, which no other connection has while a lease keeps the state alive.
    Connection(usize),
}

impl Holder {
    /// Bytes that it may have where the server has so many.
    fn share(self, most: u64) -> u64 {
        match self {
            Holder::Server => most,
            Holder::Network(_) => most / NETWORK_PART,
            Holder::Connection(_) => most / CONNECTION_PART,
        }
    }

    /// The error where it has as many as it may.
    fn refusal(self) -> &'static str {
        match self {
            Holder::Server => "as many answers wait for their clients as may",
            Holder::Network(_) => "as many answers wait for the clients of this network as may",
            Holder::Connection(_) => "as many answers wait on this connection as may",
        }
    }
}

/// The server, the connection, and the network that the connection counts as.
fn holders(connection: Option<&Arc<ConnectionState>>) -> Vec<Holder> {
    let network = connection.and_then(|connection| connection.network()).map(Holder::Network);
    let connection = connection.map(|connection| Holder::Connection(Arc::as_ptr(connection).addr()));
    [Some(Holder::Server), network, connection].into_iter().flatten().collect()
}

/// Bytes of the files of each holder.
#[derive(Debug, Default)]
struct Used(Mutex<HashMap<Holder, u64>>);

impl Used {
    fn lock(&self) -> MutexGuard<'_, HashMap<Holder, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts more bytes for all of these holders, or for none where one of them would have more than its share of `most`.
    fn take(&self, holders: &[Holder], bytes: u64, most: u64) -> io::Result<()> {
        let mut used = self.lock();
        for holder in holders {
            let before = used.get(holder).copied().unwrap_or_default();
            if before.saturating_add(bytes) > holder.share(most) {
                return Err(io::Error::other(holder.refusal()));
            }
        }
        for holder in holders {
            *used.entry(*holder).or_default() += bytes;
        }
        Ok(())
    }

    fn give_back(&self, holders: &[Holder], bytes: u64) {
        let mut used = self.lock();
        for holder in holders {
            if let Entry::Occupied(mut entry) = used.entry(*holder) {
                *entry.get_mut() = entry.get().saturating_sub(bytes);
                if *entry.get() == 0 {
                    entry.remove();
                }
            }
        }
    }
}

/// A file and how far it was read.
struct Waiting {
    file: Arc<File>,
    at: u64,
    length: u64,
    _lease: Lease,
}

impl Waiting {
    async fn next(mut self, piece: usize) -> Result<Option<(Bytes, Waiting)>, StoreError> {
        let left = usize::try_from(self.length - self.at).unwrap_or(usize::MAX);
        let (file, at, size) = (Arc::clone(&self.file), self.at, left.min(piece));
        if size == 0 {
            return Ok(None);
        }
        let read = move || {
            let mut bytes = BytesMut::zeroed(size);
            file.read_exact_at(&mut bytes, at)?;
            Ok(bytes.freeze())
        };
        let bytes = spawn_blocking(read).await.map_err(io::Error::other).flatten().map_err(unavailable)?;
        self.at += size as u64;
        Ok(Some((bytes, self)))
    }
}

/// What a file has of the bounds, given back when this is dropped.
#[derive(Debug)]
struct Lease {
    used: Arc<Used>,
    holders: Vec<Holder>,
    bytes: u64,
    _connection: Option<Arc<ConnectionState>>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.used.give_back(&self.holders, self.bytes);
    }
}

fn unavailable(error: io::Error) -> StoreError {
    StoreError::Unavailable {
        what: "the folder of answers that wait for their clients",
        source: error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::TryStreamExt as _;
    use tokio_util::sync::CancellationToken;

    #[tokio::test]
    async fn a_document_comes_back_in_pieces_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let spill = Spill { most: 10, ..Spill::in_folder(folder.path()) };
        let parts = || vec![Bytes::from_static(b"hello"), Bytes::from_static(b" you")];
        let pieces = spill.write(parts(), 4, None).await.unwrap();
        assert!(spill.write(parts(), 4, None).await.is_err(), "there is room for one");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let pieces: Vec<Bytes> = pieces.try_collect().await.unwrap();
        assert_eq!(pieces, ["hell", "o yo", "u"]);
        assert!(spill.used.lock().is_empty());
        assert!(spill.write(parts(), 4, None).await.is_ok());
        assert!(Spill::in_folder(&folder.path().join("missing")).write(parts(), 4, None).await.is_err());
    }

    #[test]
    fn what_one_client_does_not_take_leaves_room_for_others() {
        let spill = Spill { most: 16, ..Spill::in_folder(Path::new("unused")) };
        let connections = |address: Option<[u8; 4]>| -> [Arc<ConnectionState>; 5] {
            let network = address.map(|address| ClientNetwork::of(address.into()));
            std::array::from_fn(|_| {
                ConnectionState::until(&CancellationToken::new(), Arc::default(), network)
            })
        };
        let fill = |connection: &Arc<ConnectionState>| -> Vec<Lease> {
            std::iter::from_fn(|| spill.lease(1, Some(connection)).ok()).collect()
        };
        let slow = connections(Some([192, 0, 2, 1])).each_ref().map(fill);
        assert_eq!(slow.each_ref().map(Vec::len), [2, 2, 2, 2, 0], "a share each, and one of the network");
        let others = connections(Some([192, 0, 2, 2])).each_ref().map(fill);
        assert_eq!(others.each_ref().map(Vec::len), [2, 2, 2, 2, 0], "another network has as much");
        assert!(spill.lease(1, None).is_err(), "and that is all");
        drop((slow, others));
        assert!(spill.used.lock().is_empty());
        let through_proxies = connections(None).each_ref().map(fill);
        assert_eq!(through_proxies.each_ref().map(Vec::len), [2; 5], "a proxy stands for many networks");
    }
}
