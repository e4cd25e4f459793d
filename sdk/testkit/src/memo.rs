//! Cache for pieces that plugins make. A piece is valid until a record that was read for it
//! changes. The cache has the host's rules, but does not limit its total size.

use crate::blob::MemoryBlob;
use crate::call::Rights;
use crate::pieces::{KeyRange, MemoryPiece, PieceKey, RecordedReads, TrackedRead};
use crate::state::{Bytes, RepositoryState, State};
use packhouse_sdk::host::{HostBlob, HostMaking, HostPiece};
use packhouse_sdk::{Error, PIECE_BYTES};
use std::ops::Bound;

/// Longest name in bytes.
const NAME: usize = 16 << 10;
/// Largest total size of the notes in one result, in bytes.
const NOTES: usize = 16 << 20;
/// Largest number of names in one call.
const NAMES: usize = 1_000;

impl KeyRange {
    /// Returns the keys and revisions of a repository in this range.
    pub(crate) fn of(&self, state: &RepositoryState) -> Vec<(String, u64)> {
        let records = state.records.range((self.from.clone(), Bound::Unbounded));
        records
            .take_while(|(key, _)| key.starts_with(&self.prefix))
            .take_while(|(key, _)| self.last.as_ref().is_none_or(|last| *key <= last))
            .map(|(key, record)| (key.clone(), record.revision))
            .collect()
    }
}

impl TrackedRead {
    /// True if a repository would return the same result now.
    fn holds(&self, state: &RepositoryState) -> bool {
        match self {
            Self::Key(key, revision) => state.records.get(key).map(|record| record.revision) == *revision,
            Self::Range(range, found) => range.of(state) == *found,
            Self::Blob(digest) => state.holds(digest),
        }
    }
}

/// Piece that is being made.
struct MemoryMaking {
    rights: Rights,
    key: PieceKey,
}

impl Rights {
    /// Records that a record or a blob was read.
    pub(crate) fn record_read(&self, repository: &str, read: TrackedRead) {
        if let Some(recorded) = self.making.borrow_mut().as_mut() {
            if recorded.repository == repository {
                recorded.reads.push(read);
            } else {
                recorded.untracked = true;
            }
        }
    }

    /// Records that the call used something that can change without a commit.
    pub(crate) fn mark_untracked(&self) {
        if let Some(recorded) = self.making.borrow_mut().as_mut() {
            recorded.untracked = true;
        }
    }

    fn piece_key(&self, repository: &str, name: &str) -> Result<PieceKey, Error> {
        if name.is_empty() || name.len() > NAME {
            return Err(Error::Invalid(format!("a piece's name of {} bytes", name.len())));
        }
        let host = self.host.borrow();
        let state = host.repositories.get(repository);
        let (format, settings) =
            state.map(|state| (state.format.clone(), state.settings.clone())).unwrap_or_default();
        Ok((format, repository.to_owned(), settings, name.to_owned()))
    }

    /// `memo.find-noted`.
    pub(crate) fn find_pieces(
        &self,
        repository: &str,
        names: &[String],
    ) -> Result<Vec<Option<HostPiece>>, Error> {
        if names.len() > NAMES {
            return Err(Error::Invalid(format!("{} names of pieces", names.len())));
        }
        let found: Vec<_> =
            names.iter().map(|name| self.find_piece(repository, name)).collect::<Result<_, _>>()?;
        match found.iter().flatten().map(|found| found.note.len()).sum::<usize>() {
            notes if notes > NOTES => Err(Error::TooLarge(notes as u64)),
            _ => Ok(found),
        }
    }

    fn find_piece(&self, repository: &str, name: &str) -> Result<Option<HostPiece>, Error> {
        let key = self.piece_key(repository, name)?;
        let mut host = self.host.borrow_mut();
        let State { pieces, repositories, pieces_found, .. } = &mut *host;
        let Some(state) = repositories.get(repository) else { return Ok(None) };
        let Some(piece) = pieces.get(&key).filter(|piece| piece.reads.iter().all(|read| read.holds(state)))
        else {
            return Ok(None);
        };
        *pieces_found += 1;
        piece.reads.iter().for_each(|read| self.record_read(repository, read.clone()));
        Ok(Some(HostPiece {
            note: piece.note.to_vec(),
            body: MemoryBlob::boxed(piece.bytes.clone()),
            size: piece.bytes.len() as u64,
        }))
    }

    /// `making.start`.
    pub(crate) fn start_piece(&self, repository: &str, name: &str) -> Result<Box<dyn HostMaking>, Error> {
        let key = self.piece_key(repository, name)?;
        let mut making = self.making.borrow_mut();
        if making.is_some() {
            return Err(Error::Invalid("another piece is being made".to_owned()));
        }
        *making =
            Some(RecordedReads { repository: repository.to_owned(), reads: Vec::new(), untracked: false });
        Ok(Box::new(MemoryMaking { rights: self.clone(), key }))
    }
}

impl HostMaking for MemoryMaking {
    fn finish(self: Box<Self>, note: &[u8], bytes: &[u8]) -> Result<Box<dyn HostBlob>, Error> {
        let (note, bytes): (Bytes, Bytes) = (note.into(), bytes.into());
        let recorded = self.rights.making.borrow_mut().take();
        if let Some(RecordedReads { reads, untracked: false, .. }) =
            recorded.filter(|_| note.len() + bytes.len() <= PIECE_BYTES)
        {
            let mut host = self.rights.host.borrow_mut();
            host.pieces_made += 1;
            host.pieces.insert(self.key.clone(), MemoryPiece { note, bytes: bytes.clone(), reads });
        }
        Ok(MemoryBlob::boxed(bytes))
    }
}

impl Drop for MemoryMaking {
    fn drop(&mut self) {
        self.rights.making.borrow_mut().take();
    }
}

#[cfg(test)]
mod tests {
    use crate::MemoryHost;
    use crate::tests::{call, host};
    use packhouse_sdk::{Action, Error, PieceParts, Repository};

    fn set(host: &MemoryHost, repository: &str, key: &str, value: Option<&str>) {
        let (_, repository) = call(host, Some(Action::Publish), repository);
        let mut change = repository.begin().unwrap();
        match value {
            Some(value) => change.put(key, value.as_bytes(), packhouse_sdk::Expectation::Anything, &[]),
            None => change.remove(key, packhouse_sdk::Expectation::Anything),
        };
        let _applied = change.commit().unwrap();
    }

    /// Returns all values below `a/`, read in a new call, and true if they were cached.
    fn values(host: &MemoryHost, read: impl FnOnce(&Repository) -> Result<String, Error>) -> (String, bool) {
        let (_, repository) = call(host, Some(Action::Read), "r");
        host.take_piece_counts();
        let piece = repository.piece("values", || {
            Ok::<_, Error>(Some(PieceParts { note: "é".to_owned(), body: read(&repository)? }))
        });
        let piece = piece.unwrap().unwrap();
        assert_eq!(piece.note(), "é");
        (piece.text().unwrap(), host.take_piece_counts().1 == 1)
    }

    fn below(prefix: &'static str) -> impl Fn(&Repository) -> Result<String, Error> {
        move |repository| {
            repository.scan(prefix).map(|entry| Ok(String::from_utf8(entry?.value).unwrap())).collect()
        }
    }

    #[test]
    fn a_piece_is_cached_until_a_read_record_changes() {
        let host = host();
        set(&host, "r", "a/1", Some("x"));
        assert_eq!(values(&host, below("a/")), ("x".to_owned(), false));
        assert_eq!(values(&host, below("a/")), ("x".to_owned(), true));
        set(&host, "r", "b/1", Some("other"));
        set(&host, "p", "a/1", Some("of another repository"));
        assert_eq!(values(&host, below("a/")), ("x".to_owned(), true));
        set(&host, "r", "a/2", Some("y"));
        assert_eq!(values(&host, below("a/")), ("xy".to_owned(), false));
        set(&host, "r", "a/1", None);
        assert_eq!(values(&host, below("a/")), ("y".to_owned(), false));
        host.forget_pieces();
        assert_eq!(values(&host, below("a/")), ("y".to_owned(), false));
    }

    #[test]
    fn a_full_page_depends_only_on_its_keys() {
        let host = host();
        for key in ["a/1", "a/3", "a/5"] {
            set(&host, "r", key, Some(key));
        }
        let keys = ["a/3".to_owned()];
        let one = |repository: &Repository| {
            repository
                .neighbours("a/", Some("a/1"), &keys)
                .map(|entry| Ok(String::from_utf8(entry?.value).unwrap()))
                .collect()
        };
        assert_eq!(values(&host, one), ("a/3".to_owned(), false));
        set(&host, "r", "a/4", Some("behind it"));
        set(&host, "r", "a/1", None);
        assert_eq!(values(&host, one), ("a/3".to_owned(), true));
        set(&host, "r", "a/2", Some("in front of it"));
        assert_eq!(values(&host, one), ("a/3".to_owned(), false));
        set(&host, "r", "a/3", None);
        assert_eq!(values(&host, one), (String::new(), false));
        assert_eq!(values(&host, one), (String::new(), true));
    }

    #[test]
    fn a_piece_with_untracked_reads_is_not_cached() {
        let host = host();
        let search = |repository: &Repository| {
            repository.search("", 0, 1)?;
            Ok("found".to_owned())
        };
        assert_eq!(values(&host, search), ("found".to_owned(), false));
        assert_eq!(values(&host, search), ("found".to_owned(), false));
        let (_, other) = call(&host, Some(Action::Read), "s");
        let of_another = |_: &Repository| Ok(other.get("a")?.map(|_| String::new()).unwrap_or_default());
        assert_eq!(values(&host, of_another), (String::new(), false));
    }

    #[test]
    fn only_missing_pieces_are_made() {
        let host = host();
        let (_, r) = call(&host, Some(Action::Read), "r");
        let made = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let mut made = Vec::new();
            let pieces = r.pieces(&names, |at| {
                made.push(at);
                let parts = PieceParts { note: at.to_string(), body: names[at].clone() };
                Ok::<_, Error>((names[at] != "none").then_some(parts))
            });
            let content = |piece: &packhouse_sdk::Piece| (piece.note().to_owned(), piece.text().unwrap());
            let contents: Vec<_> = pieces.unwrap().iter().map(|piece| piece.as_ref().map(content)).collect();
            (made, contents)
        };
        let long = "n".repeat(20_000);
        let piece = |note: &str, body: &str| Some((note.to_owned(), body.to_owned()));
        assert_eq!(made(&["a", &long, "c"]), (vec![0, 2], vec![piece("0", "a"), None, piece("2", "c")]));
        let found = made(&["none", "c", &long, "b", "a"]);
        assert_eq!(found, (vec![0, 3], vec![None, piece("2", "c"), None, piece("3", "b"), piece("0", "a")]));
        let names = ["m"; 20].map(str::to_owned);
        let large = |_| Ok::<_, Error>(Some(PieceParts { note: "n".repeat(1 << 20), body: String::new() }));
        assert!(r.pieces(&names, large).unwrap().iter().flatten().all(|piece| piece.note().len() == 1 << 20));
        let many: Vec<String> = (0..2_500).map(|number| format!("many {number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(made(&many).0.len(), 2_500);
        assert_eq!(made(&many).0.len(), 0);
    }

    #[test]
    fn one_piece_is_made_at_a_time() {
        let host = host();
        let (_, r) = call(&host, Some(Action::Read), "r");
        let within = r.piece("outer", || r.piece("inner", || Ok::<_, Error>(None)).map(|_| None));
        assert!(matches!(within, Err(Error::Invalid(_))));
        assert!(r.piece("after it", || Ok::<_, Error>(Some(PieceParts::default()))).unwrap().is_some());
        assert!(matches!(r.piece("", || Ok(None)), Err(Error::Invalid(_))));
        assert!(r.piece(&"n".repeat(20_000), || Err(Error::Denied)).unwrap().is_none());
    }
}
