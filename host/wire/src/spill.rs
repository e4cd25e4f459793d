//! Temporary files for response documents when memory has no room for them. The files have no
//! names, so nothing is left of them when the response or the program ends. One connection and one
//! client network get only a part of the space, so that a slow client cannot take all of it.

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

/// Maximum bytes of all temporary files.
const MAX_BYTES: u64 = 1 << 30;
/// Divisor for one network: its connections may use at most half of the space. The share is this
/// large because one address may serve a whole office; the limit for the number of its connections
/// is a half too.
const NETWORK_PART: u64 = 2;
/// Divisor for one connection: it may use at most an eighth of the space, which is a document of 1
/// MiB on each of 128 HTTP/2 streams. Other connections of its network can then still use three
/// quarters of the network's share.
const CONNECTION_PART: u64 = 8;

/// Temporary files for responses; see the module documentation.
#[derive(Debug)]
pub struct Spill {
    folder: PathBuf,
    most: u64,
    used: Arc<SpillUsage>,
}

impl Spill {
    /// Places temporary files in this folder. None exist yet.
    pub fn in_folder(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), most: MAX_BYTES, used: Arc::default() }
    }

    /// Writes a document for this connection to a file. Returns its content in pieces of `piece`
    /// bytes. `Unavailable` if the disk is full, or if the server, the client network or the
    /// connection has reached its limit.
    pub async fn write(
        &self,
        parts: Vec<Bytes>,
        piece: usize,
        connection: Option<&Arc<ConnectionState>>,
    ) -> Result<impl Stream<Item = Result<Bytes, StoreError>> + Send + use<>, StoreError> {
        let length = parts.iter().map(|part| part.len() as u64).sum();
        let reservation = self.reserve(length, connection)?;
        let folder = self.folder.clone();
        let write = move || {
            let mut file = tempfile::tempfile_in(folder)?;
            parts.iter().try_for_each(|part| file.write_all(part))?;
            Ok(file)
        };
        let file = spawn_blocking(write).await.map_err(io::Error::other).flatten().map_err(unavailable)?;
        metrics::counter!("packhouse_answers_spilled_total").increment(1);
        let document = SpilledDocument { file: Arc::new(file), at: 0, length, _reservation: reservation };
        Ok(stream::try_unfold(document, move |document| document.next(piece)))
    }

    fn reserve(
        &self,
        bytes: u64,
        connection: Option<&Arc<ConnectionState>>,
    ) -> Result<SpillReservation, StoreError> {
        let owners = owners(connection);
        self.used.take(&owners, bytes, self.most).map_err(unavailable)?;
        Ok(SpillReservation { used: Arc::clone(&self.used), owners, bytes, _connection: connection.cloned() })
    }
}

/// Owner of temporary files. All files of an owner have a common limit.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum SpillOwner {
    Server,
    Network(ClientNetwork),
    /// A connection, identified by the address of its state. The address is unique as long as a
    /// reservation keeps the state alive.
    Connection(usize),
}

impl SpillOwner {
    /// Returns the maximum bytes of this owner if the server may use `most`.
    fn share(self, most: u64) -> u64 {
        match self {
            SpillOwner::Server => most,
            SpillOwner::Network(_) => most / NETWORK_PART,
            SpillOwner::Connection(_) => most / CONNECTION_PART,
        }
    }

    /// Returns the error for an owner that has reached its limit.
    fn refusal(self) -> &'static str {
        match self {
            SpillOwner::Server => "too many responses wait for their clients",
            SpillOwner::Network(_) => "too many responses wait for the clients of this network",
            SpillOwner::Connection(_) => "too many responses wait on this connection",
        }
    }
}

/// Returns the owners of a file for this connection: the server, the connection, and the network of
/// its client.
fn owners(connection: Option<&Arc<ConnectionState>>) -> Vec<SpillOwner> {
    let network = connection.and_then(|connection| connection.network()).map(SpillOwner::Network);
    let connection = connection.map(|connection| SpillOwner::Connection(Arc::as_ptr(connection).addr()));
    [Some(SpillOwner::Server), network, connection].into_iter().flatten().collect()
}

/// Used bytes of each owner.
#[derive(Debug, Default)]
struct SpillUsage(Mutex<HashMap<SpillOwner, u64>>);

impl SpillUsage {
    fn lock(&self) -> MutexGuard<'_, HashMap<SpillOwner, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds bytes for all of these owners, or for none of them if one would exceed its share of
    /// `most`.
    fn take(&self, owners: &[SpillOwner], bytes: u64, most: u64) -> io::Result<()> {
        let mut used = self.lock();
        for owner in owners {
            let before = used.get(owner).copied().unwrap_or_default();
            if before.saturating_add(bytes) > owner.share(most) {
                return Err(io::Error::other(owner.refusal()));
            }
        }
        for owner in owners {
            *used.entry(*owner).or_default() += bytes;
        }
        Ok(())
    }

    fn give_back(&self, owners: &[SpillOwner], bytes: u64) {
        let mut used = self.lock();
        for owner in owners {
            if let Entry::Occupied(mut entry) = used.entry(*owner) {
                *entry.get_mut() = entry.get().saturating_sub(bytes);
                if *entry.get() == 0 {
                    entry.remove();
                }
            }
        }
    }
}

/// A spilled document and the position up to which it was read.
struct SpilledDocument {
    file: Arc<File>,
    at: u64,
    length: u64,
    _reservation: SpillReservation,
}

impl SpilledDocument {
    async fn next(mut self, piece: usize) -> Result<Option<(Bytes, SpilledDocument)>, StoreError> {
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

/// Reserved bytes of one file. Dropping the reservation returns the bytes.
#[derive(Debug)]
struct SpillReservation {
    used: Arc<SpillUsage>,
    owners: Vec<SpillOwner>,
    bytes: u64,
    _connection: Option<Arc<ConnectionState>>,
}

impl Drop for SpillReservation {
    fn drop(&mut self) {
        self.used.give_back(&self.owners, self.bytes);
    }
}

fn unavailable(error: io::Error) -> StoreError {
    StoreError::Unavailable {
        what: "the folder for responses that wait for their clients",
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
        assert!(spill.write(parts(), 4, None).await.is_err(), "there is room for one document only");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let pieces: Vec<Bytes> = pieces.try_collect().await.unwrap();
        assert_eq!(pieces, ["hell", "o yo", "u"]);
        assert!(spill.used.lock().is_empty());
        assert!(spill.write(parts(), 4, None).await.is_ok());
        assert!(Spill::in_folder(&folder.path().join("missing")).write(parts(), 4, None).await.is_err());
    }

    #[test]
    fn one_client_leaves_room_for_others() {
        let spill = Spill { most: 16, ..Spill::in_folder(Path::new("unused")) };
        let connections = |address: Option<[u8; 4]>| -> [Arc<ConnectionState>; 5] {
            let network = address.map(|address| ClientNetwork::of(address.into()));
            std::array::from_fn(|_| {
                ConnectionState::until(&CancellationToken::new(), Arc::default(), network)
            })
        };
        let fill = |connection: &Arc<ConnectionState>| -> Vec<SpillReservation> {
            std::iter::from_fn(|| spill.reserve(1, Some(connection)).ok()).collect()
        };
        let slow = connections(Some([192, 0, 2, 1])).each_ref().map(fill);
        assert_eq!(
            slow.each_ref().map(Vec::len),
            [2, 2, 2, 2, 0],
            "each connection is limited, and their network too"
        );
        let others = connections(Some([192, 0, 2, 2])).each_ref().map(fill);
        assert_eq!(others.each_ref().map(Vec::len), [2, 2, 2, 2, 0], "another network has as much");
        assert!(spill.reserve(1, None).is_err(), "and that is all");
        drop((slow, others));
        assert!(spill.used.lock().is_empty());
        let through_proxies = connections(None).each_ref().map(fill);
        assert_eq!(through_proxies.each_ref().map(Vec::len), [2; 5], "a proxy stands for many networks");
    }
}
