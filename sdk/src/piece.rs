//! Cached pieces of documents. The host caches a piece until a record that was read for it changes.

use crate::host::{HostPiece, HostWritten};
use crate::{Blob, Error, Repository};
use std::rc::Rc;

/// Largest piece that the host caches, in bytes.
pub const PIECE_BYTES: usize = 1 << 20;

/// Longest name of a piece, in bytes.
const NAME: usize = 16 << 10;
/// Number of names that are looked up in one call. The notes of so many pieces rarely exceed the
/// host's limit for one result.
const NAMES: usize = 250;

/// Content of a new piece.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PieceParts {
    /// Note that only the plugin reads.
    pub note: String,
    /// Text that is part of a document.
    pub body: String,
}

/// Piece of a document, cached or just made.
pub struct Piece {
    note: String,
    body: Rc<Blob>,
    size: u64,
}

impl PieceParts {
    /// True if the host can cache the piece. Write a larger text to the document directly.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.note.len() + self.body.len() <= PIECE_BYTES
    }
}

impl Piece {
    fn found(found: HostPiece) -> Result<Self, Error> {
        let HostPiece { note, body, size } = found;
        let note = String::from_utf8(note).map_err(|_| not_text())?;
        Ok(Self { note, body: Rc::new(Blob::new(body)), size })
    }

    /// Returns the note that the plugin stored with the piece.
    #[must_use]
    pub fn note(&self) -> &str {
        &self.note
    }

    /// Returns the text of the piece; this copies it into the plugin's memory.
    ///
    /// # Errors
    /// Returns the host's error.
    pub fn text(&self) -> Result<String, Error> {
        self.body.text(self.size)
    }

    /// Returns the size of the text in bytes.
    #[must_use]
    pub fn body_size(&self) -> u64 {
        self.size
    }

    /// Returns the text as a blob, for the content of a response.
    ///
    /// # Errors
    /// Returns the host's error.
    pub fn into_body(self) -> Result<Blob, Error> {
        match Rc::try_unwrap(self.body) {
            Ok(body) => Ok(body),
            Err(shared) => shared.slice(0, self.size),
        }
    }

    /// Returns `length` bytes of the text from `offset` on, for
    /// [`Output::add`](crate::Output::add).
    #[must_use]
    pub fn section(&self, offset: u64, length: u64) -> Section {
        Section { of: Rc::clone(&self.body), offset, length }
    }
}

/// Bytes of a piece, from [`Piece::section`].
pub struct Section {
    of: Rc<Blob>,
    offset: u64,
    length: u64,
}

impl Section {
    pub(crate) fn written(&self) -> HostWritten<'_> {
        HostWritten::Section { of: self.of.host(), offset: self.offset, length: self.length }
    }
}

fn not_text() -> Error {
    Error::Other("a piece's note is not UTF-8".to_owned())
}

impl Repository {
    /// Returns the cached piece of this name, or makes it with `make`. The host caches the piece
    /// until a commit touches a key of this repository that `make` reads, even a key without a
    /// record. The name must contain everything else that determines the piece. Examples are the
    /// address in a link, the form of a document, and the list of keys. `make` must not request
    /// another piece.
    ///
    /// Returns `None` if `make` returns `None`, for example because the piece is too large. Also
    /// returns `None` if the name exceeds 16 KiB.
    ///
    /// ```
    /// # use packhouse_sdk::{Error, PieceParts, Repository};
    /// fn summaries(
    ///     repository: &Repository,
    ///     name: &str,
    ///     keys: &[String],
    /// ) -> Result<Option<String>, Error> {
    ///     let piece = repository.piece(&format!("summaries\n{}", keys.join("\n")), || {
    ///         let mut parts = PieceParts::default();
    ///         for entry in repository.neighbours("s/", None, keys) {
    ///             parts.note += &String::from_utf8_lossy(&entry?.value);
    ///         }
    ///         Ok::<_, Error>(parts.fits().then_some(parts))
    ///     })?;
    ///     Ok(piece.map(|piece| piece.note().to_owned()))
    /// }
    /// ```
    ///
    /// # Errors
    /// Returns the errors of `make`, or [`Error::Invalid`] while another piece is being made.
    pub fn piece<E: From<Error>>(
        &self,
        name: &str,
        make: impl FnOnce() -> Result<Option<PieceParts>, E>,
    ) -> Result<Option<Piece>, E> {
        let mut make = Some(make);
        let found = self.pieces(&[name.to_owned()], |_| make.take().map_or(Ok(None), |make| make()))?;
        Ok(found.into_iter().next().flatten())
    }

    /// Returns the pieces of these names, in their order, like [`piece`](Repository::piece). `make`
    /// is called for each piece that is not cached, with the index of its name. One call to the
    /// host looks up all names.
    ///
    /// # Errors
    /// Fails like [`Repository::piece`].
    pub fn pieces<E: From<Error>>(
        &self,
        names: &[String],
        mut make: impl FnMut(usize) -> Result<Option<PieceParts>, E>,
    ) -> Result<Vec<Option<Piece>>, E> {
        let mut pieces = Vec::with_capacity(names.len());
        for chunk in names.chunks(NAMES) {
            let mut found = self.find_pieces(chunk)?.into_iter();
            for name in chunk {
                let (at, found) = (pieces.len(), found.next().flatten());
                pieces.push(match found {
                    Some(found) => Some(Piece::found(found)?),
                    None => self.make_piece(name, || make(at))?,
                });
            }
        }
        Ok(pieces)
    }

    /// Looks up the cached pieces. The result is `None` for names that are too long for the host.
    fn find_pieces(&self, names: &[String]) -> Result<Vec<Option<HostPiece>>, Error> {
        if names.iter().all(|name| name.len() <= NAME) {
            return self.look_up_pieces(names);
        }
        let short: Vec<String> = names.iter().filter(|name| name.len() <= NAME).cloned().collect();
        let mut found = self.look_up_pieces(&short)?.into_iter();
        let found = |name: &String| if name.len() <= NAME { found.next().flatten() } else { None };
        Ok(names.iter().map(found).collect())
    }

    /// Looks up the names together, or one by one if their notes exceed the host's limit for one
    /// result.
    fn look_up_pieces(&self, names: &[String]) -> Result<Vec<Option<HostPiece>>, Error> {
        match self.host().find_pieces(names) {
            Err(Error::TooLarge(_)) if names.len() > 1 => {
                let one = |name: &String| {
                    let found = self.host().find_pieces(std::slice::from_ref(name))?;
                    Ok(found.into_iter().next().flatten())
                };
                names.iter().map(one).collect()
            }
            found => found,
        }
    }

    fn make_piece<E: From<Error>>(
        &self,
        name: &str,
        make: impl FnOnce() -> Result<Option<PieceParts>, E>,
    ) -> Result<Option<Piece>, E> {
        if name.len() > NAME {
            return Ok(None);
        }
        let making = self.host().start_piece(name)?;
        let Some(PieceParts { note, body }) = make()? else { return Ok(None) };
        let made = making.finish(note.as_bytes(), body.as_bytes())?;
        Ok(Some(Piece { note, body: Rc::new(Blob::new(made)), size: body.len() as u64 }))
    }
}
