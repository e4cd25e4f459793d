//! A backup location with its keys. Files are encrypted if the location uses encryption, and hashed
//! while they stream.

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
use crate::location::{BackupLocation, FOREIGN, HEADER};
use crate::manifest::Manifest;
use crate::proof::{self, Demand, MacKey, Proof, SigningKey};

/// Version of the layout that this program reads and writes.
const FORMAT: u32 = 1;
/// Error for a location without a header.
const NO_BACKUPS: &str = "there are no backups at this location";
/// Size of the chunks that are read.
const CHUNK: usize = 256 * 1024;

/// A backup location, opened for writing, for reading, or for listing only.
pub struct Vault {
    pub(crate) location: BackupLocation,
    encryption: Encryption,
    /// The header as it is stored.
    header: Vec<u8>,
    sealing: Vec<Recipient>,
    opening: Vec<Identity>,
    mac: Option<MacKey>,
    demand: Demand,
}

#[derive(Serialize, Deserialize)]
struct LocationHeader {
    format: u32,
    #[serde(flatten)]
    encryption: Encryption,
}

impl Vault {
    /// Opens a location to take backups. An empty location becomes a backup location. It is an
    /// error if the location holds other files, or if the keys do not match it.
    #[boxed]
    pub async fn for_taking(location: BackupLocation, keys: &KeyFiles) -> anyhow::Result<Vault> {
        let (encryption, header) = match header(&location).await? {
            Some(found) => found,
            None => begin(&location, keys).await?,
        };
        let sealing = keys.sealing(&encryption)?;
        let vault = Vault::closed(location, encryption, header);
        Ok(Vault { sealing: sealing.keys, mac: sealing.mac, ..vault })
    }

    /// Opens a location to read backups that meet the reader's demand. It is an error if this is
    /// not a backup location, or if the keys do not open it.
    #[boxed]
    pub async fn for_reading(
        location: BackupLocation,
        keys: &KeyFiles,
        demand: Demand,
    ) -> anyhow::Result<Vault> {
        let (encryption, header) = header(&location).await?.context(NO_BACKUPS)?;
        let opening = keys.opening(&encryption)?;
        let vault = Vault::closed(location, encryption, header);
        Ok(Vault { opening: opening.keys, mac: opening.mac, demand, ..vault })
    }

    /// Opens a location to list or prune backups, which needs no key.
    #[boxed]
    pub async fn for_looking(location: BackupLocation) -> anyhow::Result<Vault> {
        let (encryption, header) = header(&location).await?.context(NO_BACKUPS)?;
        Ok(Vault::closed(location, encryption, header))
    }

    fn closed(location: BackupLocation, encryption: Encryption, header: Vec<u8>) -> Vault {
        let (sealing, opening, mac, demand) = (Vec::new(), Vec::new(), None, Demand::default());
        Vault { location, encryption, header, sealing, opening, mac, demand }
    }

    /// Writes the proof for a manifest that will be stored as this text.
    pub(crate) async fn prove(
        &self,
        id: &str,
        manifest: &[u8],
        key: Option<&SigningKey>,
    ) -> anyhow::Result<()> {
        let proof = Proof::make(&proof::statement(&self.header, manifest), self.mac.as_ref(), key);
        let text = serde_json::to_vec(&proof).context("failed to write JSON")?;
        self.location.write(&Manifest::proof(id), text).await
    }

    /// Returns the manifest of the backup with this id if its proof meets the reader's demand. The
    /// error says what is wrong.
    pub(crate) async fn proven(&self, id: &str) -> anyhow::Result<Manifest> {
        let text = self.location.read(&Manifest::file(id)).await?.context("the manifest is missing")?;
        let proof = match self.location.read(&Manifest::proof(id)).await? {
            Some(proof) => serde_json::from_slice(&proof).unwrap_or_default(),
            None => Proof::default(),
        };
        let statement = proof::statement(&self.header, &text);
        proof.check(&statement, &self.encryption, self.mac.as_ref(), &self.demand)?;
        let manifest = Manifest::from_text(&String::from_utf8_lossy(&text))?;
        ensure!(manifest.id == id, "its manifest belongs to the backup {}", manifest.id);
        Ok(manifest)
    }

    /// Reports whether reading verifies the origin of a backup.
    #[must_use]
    pub fn is_authenticated(&self) -> bool {
        !self.demand.unauthenticated && (self.mac.is_some() || self.demand.signed_by.is_some())
    }

    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.encryption != Encryption::None
    }

    /// Writes a file and returns the number of bytes and their SHA-256, both before encryption. The
    /// file gets its name once it is complete and, if `expected` is given, has that digest.
    pub(crate) async fn put(
        &self,
        path: &str,
        bytes: impl Stream<Item = anyhow::Result<Bytes>> + Unpin,
        expected: Option<Sha256>,
    ) -> anyhow::Result<(u64, Sha256)> {
        let failed = || format!("failed to write {path}");
        ensure!(self.is_encrypted() != self.sealing.is_empty(), "this location was not opened for writing");
        let mut file = self.location.create(path).await.with_context(failed)?;
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

    /// Streams the decrypted bytes of a file. It is an error if the file is missing or was not
    /// encrypted for these keys.
    pub(crate) async fn get(&self, path: &str) -> anyhow::Result<BoxStream<'static, anyhow::Result<Bytes>>> {
        let reader = self.location.open(path).await?.with_context(|| format!("{path} is missing"))?;
        self.decrypted(path, reader).await
    }

    /// Decrypts the stored bytes of a small file.
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

    /// Reads a file to its end. Returns the number of decrypted bytes and their SHA-256.
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

/// Reads a location's header: its encryption, and its text. `None` if this is not a backup
/// location.
async fn header(location: &BackupLocation) -> anyhow::Result<Option<(Encryption, Vec<u8>)>> {
    let Some(text) = location.read(HEADER).await? else { return Ok(None) };
    let header: LocationHeader =
        serde_json::from_slice(&text).with_context(|| format!("{HEADER} is damaged"))?;
    ensure!(
        header.format == FORMAT,
        "the backups of this location were made by a newer version of this program: use that version"
    );
    Ok(Some((header.encryption, text)))
}

async fn begin(location: &BackupLocation, keys: &KeyFiles) -> anyhow::Result<(Encryption, Vec<u8>)> {
    if !location.is_empty().await? {
        bail!(FOREIGN);
    }
    let header = LocationHeader { format: FORMAT, encryption: keys.begin()? };
    let text = serde_json::to_vec_pretty(&header).context("failed to write JSON")?;
    if location.write_new(HEADER, text.clone()).await? {
        return Ok((header.encryption, text));
    }
    self::header(location)
        .await?
        .context("another process began this location and removed its header again: try again")
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
        // After this error the writer is not closed, so the file never gets its name.
        ensure!(sha256 == expected, "the bytes in the storage are damaged: their SHA-256 is {sha256}");
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
