//! Pieces of documents that the host remembers until something that was read for them changes.

use crate::{Blob, Error, ReadAt, Repository};

/// Bytes that the host remembers as one piece, at most.
pub const PIECE_BYTES: usize = 1 << 20;

/// Bytes of the longest name of a piece.
const NAME: usize = 16 << 10;
/// Bytes in front of a piece: how long its note is.
const HEAD: usize = 4;

/// What a piece is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PieceParts {
    /// What the plugin itself wants to know of the piece.
    pub note: String,
    /// What stands in a document.
    pub body: String,
}

/// A piece that the host remembers, or did not.
pub struct Piece {
    blob: Blob,
    /// Bytes of the note.
    note: u64,
    size: u64,
}

impl PieceParts {
    /// Whether the host may remember it: what is larger is written to a document directly.
    #[must_use]
    pub fn fits(&self) -> bool {
        HEAD + self.note.len() + self.body.len() <= PIECE_BYTES
    }

    fn into_bytes(self) -> Vec<u8> {
        let note = u32::try_from(self.note.len()).unwrap_or(u32::MAX);
        [&note.to_le_bytes()[..], self.note.as_bytes(), self.body.as_bytes()].concat()
    }
}

impl Piece {
    fn of(blob: Blob) -> Result<Self, Error> {
        let head = blob.read_exact_at(0, HEAD as u64)?;
        let note = head.first_chunk::<HEAD>().map(|head| u32::from_le_bytes(*head)).unwrap_or_default();
        Ok(Self { note: note.into(), size: blob.size()?, blob })
    }

    /// What the plugin noted when it made the piece.
    ///
    /// # Errors
    /// The host's.
    pub fn note(&self) -> Result<String, Error> {
        let bytes = self.blob.read_exact_at(HEAD as u64, self.note)?;
        String::from_utf8(bytes).map_err(|_| not_text())
    }

    /// All of it, in the plugin's memory.
    ///
    /// # Errors
    /// The host's.
    pub fn parts(&self) -> Result<PieceParts, Error> {
        let bytes = self.blob.read_exact_at(HEAD as u64, self.size.saturating_sub(HEAD as u64))?;
        let mut note = String::from_utf8(bytes).map_err(|_| not_text())?;
        let end = usize::try_from(self.note).unwrap_or(usize::MAX);
        let body = if note.is_char_boundary(end) { note.split_off(end) } else { return Err(not_text()) };
        Ok(PieceParts { note, body })
    }

    /// Bytes of what stands in a document.
    #[must_use]
    pub fn body_size(&self) -> u64 {
        self.size.saturating_sub(HEAD as u64 + self.note)
    }

    /// What stands in a document, for [`Output::append`](crate::Output::append).
    ///
    /// # Errors
    /// The host's.
    pub fn body(&self) -> Result<Blob, Error> {
        self.body_part(0, self.body_size())
    }

    /// So many bytes of that, from `offset` on.
    ///
    /// # Errors
    /// [`Error::Invalid`] when they do not lie within it; else the host's.
    pub fn body_part(&self, offset: u64, length: u64) -> Result<Blob, Error> {
        self.blob.slice(HEAD as u64 + self.note + offset, length)
    }
}

fn not_text() -> Error {
    Error::Other("a piece is not UTF-8".to_owned())
}

impl Repository {
    /// The piece of this name as the host remembers it, or else made now: remembered until a commit touches one of this
    /// repository's records that `make` reads, whether they are there or not. Whatever else goes into it must stand in the name:
    /// the address in a link, the form of a document, which keys there are. `make` must not ask for another piece.
    ///
    /// None where `make` answers none, because it is too large; and for a name over 16 KiB.
    ///
    /// ```
    /// # use packhouse_sdk::{Error, PieceParts, Repository};
    /// fn summaries(repository: &Repository, name: &str, keys: &[String]) -> Result<Option<String>, Error> {
    ///     let piece = repository.piece(&format!("summaries\n{}", keys.join("\n")), || {
    ///         let mut parts = PieceParts::default();
    ///         for entry in repository.neighbours("s/", None, keys) {
    ///             parts.note += &String::from_utf8_lossy(&entry?.value);
    ///         }
    ///         Ok::<_, Error>(parts.fits().then_some(parts))
    ///     })?;
    ///     piece.map(|piece| piece.note()).transpose()
    /// }
    /// ```
    ///
    /// # Errors
    /// Those of `make`; [`Error::Invalid`] while another piece is being made.
    pub fn piece<E: From<Error>>(
        &self,
        name: &str,
        make: impl FnOnce() -> Result<Option<PieceParts>, E>,
    ) -> Result<Option<Piece>, E> {
        if name.len() > NAME {
            return Ok(None);
        }
        if let Some(found) = self.host().find_piece(name)? {
            return Ok(Some(Piece::of(Blob::new(found))?));
        }
        let making = self.host().start_piece(name)?;
        let Some(parts) = make()? else { return Ok(None) };
        let made = making.finish(&parts.into_bytes())?;
        Ok(Some(Piece::of(Blob::new(made))?))
    }
}
