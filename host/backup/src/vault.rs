//! A place of backups with its keys: files that are encrypted, or not, and hashed on their way.

use age::x25519::Recipient;
use age::{Decryptor, Encryptor};
use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use futures::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt, TryStreamExt};
use packhouse_store::Sha256;
use serde::{Deserialize, Serialize};
use sha2::Digest as _;

use crate::keys::{Encryption, Identities, KeyFiles};
use crate::place::{FOREIGN, HEADER, Place};

/// The layout of places that this program knows.
const FORMAT: u32 = 1;
/// Bytes that are written at a time: a part of an object in S3.
const PART: usize = 8 * 1024 * 1024;
/// Bytes that are read at a time.
const CHUNK: usize = 256 * 1024;

/// A place that can be written to or read, or both.
pub struct Vault {
    pub(crate) place: Place,
    encryption: Encryption,
    sealing: Vec<Recipient>,
    opening: Identities,
}

#[derive(Serialize, Deserialize)]
struct Header {
    format: u32,
    #[serde(flatten)]
    encryption: Encryption,
}

impl Vault {
    /// To take backups in: what is no place of backups yet becomes one if it is empty. An error where it is neither, or where the keys are
    /// not its own.
    pub async fn for_taking(place: Place, keys: &KeyFiles) -> anyhow::Result<Vault> {
        let encryption = match header(&place).await? {
            Some(encryption) => encryption,
            None => begin(&place, keys).await?,
        };
        let sealing = keys.sealing(&encryption)?;
        Ok(Vault { place, encryption, sealing, opening: Vec::new() })
    }

    /// To read backups in. An error where it is no place of backups, or where the keys do not open it.
    pub async fn for_reading(place: Place, keys: &KeyFiles) -> anyhow::Result<Vault> {
        let encryption = header(&place).await?.context("there are no backups at this place")?;
        let opening = keys.opening(&encryption)?;
        Ok(Vault { place, encryption, sealing: Vec::new(), opening })
    }

    /// To list and prune backups, which takes no key.
    pub async fn for_looking(place: Place) -> anyhow::Result<Vault> {
        let encryption = header(&place).await?.context("there are no backups at this place")?;
        Ok(Vault { place, encryption, sealing: Vec::new(), opening: Vec::new() })
    }

    /// Whether its files are encrypted.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.encryption != Encryption::None
    }

    /// Writes a file and answers how many bytes it was given, with their SHA-256. It has its name once it is whole; with `expected` only if
    /// that is the digest.
    pub(crate) async fn put(
        &self,
        path: &str,
        bytes: impl Stream<Item = anyhow::Result<Bytes>> + Unpin,
        expected: Option<Sha256>,
    ) -> anyhow::Result<(u64, Sha256)> {
        let failed = || format!("failed to write {path}");
        let writer = self.place.files.writer_with(path).chunk(PART).await.with_context(failed)?;
        let writer = writer.into_futures_async_write();
        if self.sealing.is_empty() {
            ensure!(!self.is_encrypted(), "this place was not opened for writing");
            return fill(writer, bytes, expected).await.with_context(failed);
        }
        let recipients = self.sealing.iter().map(|recipient| recipient as &dyn age::Recipient);
        let encryptor = Encryptor::with_recipients(recipients).with_context(failed)?;
        let writer = encryptor.wrap_async_output(writer).await.with_context(failed)?;
        fill(writer, bytes, expected).await.with_context(failed)
    }

    /// The bytes of a file, as they are read. An error where it is not there, or was not encrypted for these keys.
    pub(crate) async fn get(&self, path: &str) -> anyhow::Result<BoxStream<'static, anyhow::Result<Bytes>>> {
        let failed = || format!("failed to read {path}");
        let reader = self.place.files.reader(path).await.with_context(failed)?;
        let reader = reader.into_futures_async_read(..).await.with_context(failed)?;
        let name = path.to_owned();
        let pieces = if self.is_encrypted() {
            let decryptor = Decryptor::new_async(reader).await.with_context(failed)?;
            let identities = self.opening.iter().map(|identity| identity.as_ref() as &dyn age::Identity);
            let opened = decryptor.decrypt_async(identities);
            pieces(opened.with_context(|| format!("{path} cannot be opened with this key"))?).boxed()
        } else {
            pieces(reader).boxed()
        };
        Ok(pieces.map(move |piece| piece.with_context(|| format!("failed to read {name}"))).boxed())
    }

    /// Reads a file to its end; how many bytes it has, and their SHA-256.
    pub(crate) async fn measure(&self, path: &str) -> anyhow::Result<(u64, Sha256)> {
        let (mut hasher, mut bytes) = (sha2::Sha256::new(), 0);
        let mut pieces = self.get(path).await?;
        while let Some(piece) = pieces.try_next().await? {
            bytes += piece.len() as u64;
            hasher.update(&piece);
        }
        Ok((bytes, Sha256(hasher.finalize().into())))
    }
}

/// What a place says of itself; none when it is no place of backups.
async fn header(place: &Place) -> anyhow::Result<Option<Encryption>> {
    let Some(text) = place.read(HEADER).await? else { return Ok(None) };
    let header: Header = serde_json::from_slice(&text).with_context(|| format!("{HEADER} is damaged"))?;
    ensure!(
        header.format == FORMAT,
        "the backups of this place were made by a newer version of this program: use that one"
    );
    Ok(Some(header.encryption))
}

async fn begin(place: &Place, keys: &KeyFiles) -> anyhow::Result<Encryption> {
    if !place.is_empty().await? {
        bail!(FOREIGN);
    }
    let header = Header { format: FORMAT, encryption: keys.begin()? };
    let text = serde_json::to_vec_pretty(&header).context("failed to write JSON")?;
    if place.write_new(HEADER, text).await? {
        return Ok(header.encryption);
    }
    self::header(place).await?.context("another backup began at this place and is gone: try again")
}

async fn fill(
    mut writer: impl AsyncWrite + Unpin,
    mut bytes: impl Stream<Item = anyhow::Result<Bytes>> + Unpin,
    expected: Option<Sha256>,
) -> anyhow::Result<(u64, Sha256)> {
    let (mut hasher, mut length) = (sha2::Sha256::new(), 0);
    while let Some(piece) = bytes.try_next().await? {
        hasher.update(&piece);
        length += piece.len() as u64;
        writer.write_all(&piece).await?;
    }
    let sha256 = Sha256(hasher.finalize().into());
    if let Some(expected) = expected {
        // Without `close` the file never gets its name.
        ensure!(sha256 == expected, "the stored bytes are not what they were: their SHA-256 is {sha256}");
    }
    writer.close().await?;
    Ok((length, sha256))
}

fn pieces(reader: impl AsyncRead + Unpin + Send) -> impl Stream<Item = anyhow::Result<Bytes>> + Send {
    stream::try_unfold(reader, |mut reader| async move {
        let mut piece = vec![0; CHUNK];
        let read = reader.read(&mut piece).await?;
        piece.truncate(read);
        Ok((read > 0).then(|| (Bytes::from(piece), reader)))
    })
}
