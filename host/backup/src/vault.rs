//! A place of backups with its keys: files that are encrypted, or not, and hashed on their way.

use age::x25519::{Identity, Recipient};
use age::{Decryptor, Encryptor};
use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use futures::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, Cursor};
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt, TryStreamExt};
use packhouse_store::Sha256;
use serde::{Deserialize, Serialize};
use sha2::Digest as _;
use tokio_util::compat::TokioAsyncWriteCompatExt as _;

use crate::boxed;
use crate::keys::{Encryption, KeyFiles};
use crate::manifest::Manifest;
use crate::place::{FOREIGN, HEADER, Place};
use crate::proof::{self, Demand, MacKey, Proof, SigningKey};

/// The layout of places that this program knows.
const FORMAT: u32 = 1;
/// The error where nothing is.
const NONE: &str = "there are no backups at this place";
/// Bytes that are read at a time.
const CHUNK: usize = 256 * 1024;

/// A place that can be written to or read, or both.
pub struct Vault {
    pub(crate) place: Place,
    encryption: Encryption,
    /// The header as it is stored.
    header: Vec<u8>,
    sealing: Vec<Recipient>,
    opening: Vec<Identity>,
    mac: Option<MacKey>,
    demand: Demand,
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
    #[boxed]
    pub async fn for_taking(place: Place, keys: &KeyFiles) -> anyhow::Result<Vault> {
        let found = match header(&place).await? {
            Some(found) => found,
            None => begin(&place, keys).await?,
        };
        let sealing = keys.sealing(&found.0)?;
        Ok(Vault { sealing: sealing.keys, mac: sealing.mac, ..Vault::closed(place, found) })
    }

    /// To read backups in that are what the reader demands. An error where it is no place of backups, or where the keys do not open it.
    #[boxed]
    pub async fn for_reading(place: Place, keys: &KeyFiles, demand: Demand) -> anyhow::Result<Vault> {
        let found = header(&place).await?.context(NONE)?;
        let opening = keys.opening(&found.0)?;
        Ok(Vault { opening: opening.keys, mac: opening.mac, demand, ..Vault::closed(place, found) })
    }

    /// To list and prune backups, which takes no key.
    #[boxed]
    pub async fn for_looking(place: Place) -> anyhow::Result<Vault> {
        let found = header(&place).await?.context(NONE)?;
        Ok(Vault::closed(place, found))
    }

    fn closed(place: Place, (encryption, header): (Encryption, Vec<u8>)) -> Vault {
        let (sealing, opening, mac, demand) = (Vec::new(), Vec::new(), None, Demand::default());
        Vault { place, encryption, header, sealing, opening, mac, demand }
    }

    /// Writes the proof of a manifest that will be stored as this text.
    pub(crate) async fn prove(
        &self,
        id: &str,
        manifest: &[u8],
        key: Option<&SigningKey>,
    ) -> anyhow::Result<()> {
        let proof = Proof::make(&proof::statement(&self.header, manifest), self.mac.as_ref(), key);
        let text = serde_json::to_vec(&proof).context("failed to write JSON")?;
        self.place.write(&Manifest::proof(id), text).await
    }

    /// The manifest of the backup of this id, if its proof shows what the reader demands. The error says what is wrong.
    pub(crate) async fn proven(&self, id: &str) -> anyhow::Result<Manifest> {
        let text = self.place.read(&Manifest::file(id)).await?.context("the manifest is missing")?;
        let proof = match self.place.read(&Manifest::proof(id)).await? {
            Some(proof) => serde_json::from_slice(&proof).unwrap_or_default(),
            None => Proof::default(),
        };
        let statement = proof::statement(&self.header, &text);
        proof.check(&statement, &self.encryption, self.mac.as_ref(), &self.demand)?;
        let manifest = Manifest::from_text(&String::from_utf8_lossy(&text))?;
        ensure!(manifest.id == id, "its manifest is that of {}", manifest.id);
        Ok(manifest)
    }

    /// Whether reading it shows who made it.
    #[must_use]
    pub fn is_authenticated(&self) -> bool {
        !self.demand.unauthenticated && (self.mac.is_some() || self.demand.signed_by.is_some())
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
        ensure!(self.is_encrypted() != self.sealing.is_empty(), "this place was not opened for writing");
        let mut file = self.place.create(path).await.with_context(failed)?;
        let writer = (&mut file.to).compat_write();
        let filled = if self.is_encrypted() {
            let recipients = self.sealing.iter().map(|recipient| recipient as &dyn age::Recipient);
            let encryptor = Encryptor::with_recipients(recipients).with_context(failed)?;
            let writer = encryptor.wrap_async_output(writer).await.with_context(failed)?;
            fill(writer, bytes, expected).await
        } else {
            fill(writer, bytes, expected).await
        };
        let filled = filled.with_context(failed)?;
        file.finish().await.with_context(failed)?;
        Ok(filled)
    }

    /// The bytes of a file, as they are read. An error where it is not there, or was not encrypted for these keys.
    pub(crate) async fn get(&self, path: &str) -> anyhow::Result<BoxStream<'static, anyhow::Result<Bytes>>> {
        let reader = self.place.open(path).await?.with_context(|| format!("{path} is missing"))?;
        self.decrypted(path, reader).await
    }

    /// The whole of a small file, of which these bytes were stored.
    pub(crate) async fn opened(&self, path: &str, stored: Vec<u8>) -> anyhow::Result<Vec<u8>> {
        let mut pieces = self.decrypted(path, Cursor::new(stored)).await?;
        let mut whole = Vec::new();
        while let Some(piece) = pieces.try_next().await? {
            whole.extend_from_slice(&piece);
        }
        Ok(whole)
    }

    async fn decrypted(
        &self,
        path: &str,
        reader: impl AsyncRead + Unpin + Send + 'static,
    ) -> anyhow::Result<BoxStream<'static, anyhow::Result<Bytes>>> {
        let name = path.to_owned();
        let pieces = if self.is_encrypted() {
            let decryptor = Decryptor::new_async(reader).await;
            let decryptor = decryptor.with_context(|| format!("failed to read {path}"))?;
            let identities = self.opening.iter().map(|identity| identity as &dyn age::Identity);
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

/// What a place says of itself, and the text of it; none when it is no place of backups.
async fn header(place: &Place) -> anyhow::Result<Option<(Encryption, Vec<u8>)>> {
    let Some(text) = place.read(HEADER).await? else { return Ok(None) };
    let header: Header = serde_json::from_slice(&text).with_context(|| format!("{HEADER} is damaged"))?;
    ensure!(
        header.format == FORMAT,
        "the backups of this place were made by a newer version of this program: use that one"
    );
    Ok(Some((header.encryption, text)))
}

async fn begin(place: &Place, keys: &KeyFiles) -> anyhow::Result<(Encryption, Vec<u8>)> {
    if !place.is_empty().await? {
        bail!(FOREIGN);
    }
    let header = Header { format: FORMAT, encryption: keys.begin()? };
    let text = serde_json::to_vec_pretty(&header).context("failed to write JSON")?;
    if place.write_new(HEADER, text.clone()).await? {
        return Ok((header.encryption, text));
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
