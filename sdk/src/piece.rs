//! Pieces of documents that the host remembers until something that was read for them changes.

use crate::host::{HostNoted, HostWritten};
use crate::{Blob, Error, Repository};
use std::rc::Rc;

/// Bytes that the host remembers as one piece, at most.
pub const PIECE_BYTES: usize = 1 << 20;

/// Bytes of the longest name of a piece.
const NAME: usize = 16 << 10;
/// Names that the host is asked for at one time: what is noted of so many is seldom more than it answers.
const NAMES: usize = 250;

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
    note: String,
    body: Rc<Blob>,
    size: u64,
}

impl PieceParts {
    /// Whether the host may remember it: what is larger is written to a document directly.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.note.len() + self.body.len() <= PIECE_BYTES
    }
}

impl Piece {
    fn found(found: HostNoted) -> Result<Self, Error> {
        let HostNoted { note, body, size } = found;
        let note = String::from_utf8(note).map_err(|_| not_text())?;
        Ok(Self { note, body: Rc::new(Blob::new(body)), size })
    }

    /// What the plugin noted when it made the piece.
    #[must_use]
    pub fn note(&self) -> &str {
        &self.note
    }

    /// What stands in a document, in the plugin's memory.
    ///
    /// # Errors
    /// The host's.
    pub fn text(&self) -> Result<String, Error> {
        self.body.text(self.size)
    }

    /// Bytes of what stands in a document.
    #[must_use]
    pub fn body_size(&self) -> u64 {
        self.size
    }

    /// What stands in a document, as the content of an answer.
    ///
    /// # Errors
    /// The host's.
    pub fn into_body(self) -> Result<Blob, Error> {
        match Rc::try_unwrap(self.body) {
            Ok(body) => Ok(body),
            Err(shared) => shared.slice(0, self.size),
        }
    }

    /// So many bytes of what stands in a document, from `offset` on, for [`Output::add`](crate::Output::add).
    #[must_use]
    pub fn section(&self, offset: u64, length: u64) -> Section {
        Section { of: Rc::clone(&self.body), offset, length }
    }
}

/// Some of a piece's bytes, from [`Piece::section`].
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
    ///     Ok(piece.map(|piece| piece.note().to_owned()))
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
        let mut make = Some(make);
        let found = self.pieces(&[name.to_owned()], |_| make.take().map_or(Ok(None), |make| make()))?;
        Ok(found.into_iter().next().flatten())
    }

    /// The same for each of these names, in their order: `make` is told which of them it makes, and is called for those that the host
    /// does not remember. The host is asked once for all.
    ///
    /// # Errors
    /// As [`Repository::piece`].
    pub fn pieces<E: From<Error>>(
        &self,
        names: &[String],
        mut make: impl FnMut(usize) -> Result<Option<PieceParts>, E>,
    ) -> Result<Vec<Option<Piece>>, E> {
        let mut pieces = Vec::with_capacity(names.len());
        for asked in names.chunks(NAMES) {
            let mut found = self.find_pieces(asked)?.into_iter();
            for name in asked {
                let (at, found) = (pieces.len(), found.next().flatten());
                pieces.push(match found {
                    Some(found) => Some(Piece::found(found)?),
                    None => self.make_piece(name, || make(at))?,
                });
            }
        }
        Ok(pieces)
    }

    /// What the host remembers. It does not take a name that is too long: no such piece is asked for.
    fn find_pieces(&self, names: &[String]) -> Result<Vec<Option<HostNoted>>, Error> {
        if names.iter().all(|name| name.len() <= NAME) {
            return self.ask_for_pieces(names);
        }
        let short: Vec<String> = names.iter().filter(|name| name.len() <= NAME).cloned().collect();
        let mut found = self.ask_for_pieces(&short)?.into_iter();
        let found = |name: &String| if name.len() <= NAME { found.next().flatten() } else { None };
        Ok(names.iter().map(found).collect())
    }

    /// Asks for each by itself where too much is noted of all together.
    fn ask_for_pieces(&self, names: &[String]) -> Result<Vec<Option<HostNoted>>, Error> {
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
