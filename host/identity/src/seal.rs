//! Sealing: encryption of secrets that the server must read again, for which storing a hash is not
//! enough. Examples are client secrets for sign-in providers and credentials for upstreams. The
//! cipher is XChaCha20-Poly1305 (RFC 8439 with the longer nonce).
//!
//! The setting `sealing_key` is any text of at least 16 characters. The key is its SHA-256 with a
//! domain prefix. Without the setting, a random key is created at first use and stored in the file
//! `sealing.key` of the data folder, readable only by the file's owner. Servers that share a
//! database must share the key. Each sealed text contains the id of its key, so that another key is
//! recognized.
//!
//! Keys for other uses are derived from the sealing key, so that only this key has to be stored.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead as _, Payload};
use chacha20poly1305::{Key, KeyInit as _, XChaCha20Poly1305, XNonce};
use hmac::{Hmac, Mac as _};
use sha2::{Digest as _, Sha256};

use packhouse_config::Secret;

/// File in the data folder with the generated key.
const FILE: &str = "sealing.key";
/// Prefix of every sealed text: the version of the sealing format.
const VERSION: &str = "v1";
/// Size of a nonce in bytes.
const NONCE: usize = 24;

/// Error of sealing or opening. It contains no secret.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// The key's file could not be read or created.
    #[error("the sealing key in {file} cannot be used: {source}")]
    Key { file: PathBuf, source: std::io::Error },
    /// The text was sealed with another key.
    #[error(
        "this was sealed with another key: set sealing_key to the one that all servers of this database share"
    )]
    OtherKey,
    /// The text was changed after it was sealed, or was sealed for another purpose.
    #[error("the sealed text is damaged, or was not sealed for {0}")]
    Damaged(String),
}

/// Seals secrets, opens them again, and derives other keys.
pub struct Sealer {
    chosen: Option<Secret>,
    file: PathBuf,
    key: OnceLock<LoadedKey>,
}

/// The sealing key, read and ready to use.
struct LoadedKey {
    key: [u8; 32],
    cipher: XChaCha20Poly1305,
    /// Identifies the key without disclosing it.
    id: String,
}

impl Sealer {
    /// Uses the operator's key, or the one in the data folder. The file is read at first use.
    pub fn new(chosen: Option<Secret>, data: &Path) -> Sealer {
        Sealer { chosen, file: data.join(FILE), key: OnceLock::new() }
    }

    /// Seals a secret for one purpose, such as `sso 7`. The sealed text opens only for this
    /// purpose, so that one database row cannot replace another. It has the form `v1.KEY.DATA`,
    /// where KEY is the id of the key, and may be stored in the database. Fails with `Key`.
    pub fn seal(&self, purpose: &str, secret: &Secret) -> Result<String, SealError> {
        let ready = self.ready()?;
        let nonce: [u8; NONCE] = rand::random();
        let payload = Payload { msg: secret.reveal().as_bytes(), aad: purpose.as_bytes() };
        let sealed = ready.cipher.encrypt(&XNonce::from(nonce), payload);
        let sealed = sealed.map_err(|_| SealError::Damaged(purpose.to_owned()))?;
        let data = URL_SAFE_NO_PAD.encode([nonce.as_slice(), &sealed].concat());
        Ok(format!("{VERSION}.{}.{data}", ready.id))
    }

    /// Opens a text that [`seal`](Sealer::seal) returned for this purpose. Fails with `OtherKey`,
    /// `Damaged` or `Key`.
    pub fn open(&self, purpose: &str, sealed: &str) -> Result<Secret, SealError> {
        let ready = self.ready()?;
        let damaged = || SealError::Damaged(purpose.to_owned());
        let (key, data) = sealed
            .strip_prefix(VERSION)
            .and_then(|rest| rest.strip_prefix('.')?.split_once('.'))
            .ok_or_else(damaged)?;
        if key != ready.id {
            return Err(SealError::OtherKey);
        }
        let bytes = URL_SAFE_NO_PAD.decode(data).map_err(|_| damaged())?;
        let (nonce, message) = bytes.split_first_chunk::<NONCE>().ok_or_else(damaged)?;
        let payload = Payload { msg: message, aad: purpose.as_bytes() };
        let opened = ready.cipher.decrypt(&XNonce::from(*nonce), payload).map_err(|_| damaged())?;
        String::from_utf8(opened).map(Secret::new).map_err(|_| damaged())
    }

    /// Derives a key for another use than sealing. The derived key is the same on every server with
    /// this sealing key, and does not disclose the sealing key. `salt` may be public. Fails with
    /// `Key`.
    pub fn derive(&self, purpose: &str, salt: &str) -> Result<[u8; 32], SealError> {
        let ready = self.ready()?;
        let mac = <Hmac<Sha256> as hmac::KeyInit>::new_from_slice(&ready.key);
        let mac = mac.map_err(|_| SealError::Damaged(purpose.to_owned()))?;
        let parts = ["packhouse derived key 1\0", purpose, "\0", salt];
        Ok(parts.iter().fold(mac, |mac, part| mac.chain_update(part)).finalize().into_bytes().into())
    }

    /// An identifier of the key that does not disclose it. Fails with `Key`.
    pub fn id(&self) -> Result<&str, SealError> {
        Ok(&self.ready()?.id)
    }

    fn ready(&self) -> Result<&LoadedKey, SealError> {
        if let Some(ready) = self.key.get() {
            return Ok(ready);
        }
        let text = match &self.chosen {
            Some(chosen) => chosen.clone(),
            None => read_or_create(&self.file)
                .map_err(|source| SealError::Key { file: self.file.clone(), source })?,
        };
        Ok(self.key.get_or_init(|| LoadedKey::from(&text)))
    }
}

impl From<&Secret> for LoadedKey {
    fn from(text: &Secret) -> LoadedKey {
        let key: [u8; 32] = Sha256::new_with_prefix("packhouse sealing key 1\0")
            .chain_update(text.reveal())
            .finalize()
            .into();
        let id = Sha256::new_with_prefix("packhouse sealing key id 1\0").chain_update(key).finalize();
        let id = id.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        LoadedKey { key, cipher: XChaCha20Poly1305::new(&Key::from(key)), id }
    }
}

/// Reads the key from the file, which is created if it is missing. If two processes create it at
/// the same time, both use the key of one of them. The key is written to a temporary file and then
/// linked, so that the file is complete as soon as it has its name.
fn read_or_create(file: &Path) -> std::io::Result<Secret> {
    match fs::read_to_string(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => make(file)?,
        read => return whole(&read?),
    }
    whole(&fs::read_to_string(file)?)
}

fn whole(text: &str) -> std::io::Result<Secret> {
    match text.trim() {
        key if key.len() >= packhouse_config::SHORTEST_SEALING_KEY => Ok(Secret::new(key)),
        _ => Err(std::io::Error::new(ErrorKind::InvalidData, "the file does not contain a key")),
    }
}

fn make(file: &Path) -> std::io::Result<()> {
    let bytes: [u8; 32] = rand::random();
    let beside = file.with_extension(format!("new-{:016x}", rand::random::<u64>()));
    let mut written = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    written.write_all(URL_SAFE_NO_PAD.encode(bytes).as_bytes())?;
    written.sync_all()?;
    let linked = fs::hard_link(&beside, file);
    fs::remove_file(&beside)?;
    match linked {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    // Makes the name durable before anything is sealed with the key.
    file.parent().map_or(Ok(()), |folder| fs::File::open(folder)?.sync_all())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn chosen(key: &str) -> Sealer {
        Sealer::new(Some(Secret::new(key)), Path::new("/nowhere"))
    }

    #[test]
    fn a_sealed_text_opens_only_for_its_purpose_and_with_its_key() {
        let sealer = chosen("an operator's own key");
        let sealed = sealer.seal("sso 7", &Secret::new("client secret")).unwrap();
        assert!(!sealed.contains("client"));
        assert_eq!(sealer.open("sso 7", &sealed).unwrap().reveal(), "client secret");
        assert!(matches!(sealer.open("sso 8", &sealed), Err(SealError::Damaged(_))));
        assert!(matches!(chosen("another key, not this").open("sso 7", &sealed), Err(SealError::OtherKey)));
        assert_ne!(sealer.seal("sso 7", &Secret::new("client secret")).unwrap(), sealed);
    }

    #[test]
    fn a_derived_key_depends_on_its_purpose_and_salt() {
        let sealer = chosen("an operator's own key");
        let key = sealer.derive("bearers", "1").unwrap();
        assert_eq!(chosen("an operator's own key").derive("bearers", "1").unwrap(), key);
        for other in [
            sealer.derive("bearers", "2").unwrap(),
            sealer.derive("bearer", "s1").unwrap(),
            chosen("another key, not this").derive("bearers", "1").unwrap(),
            Sha256::new_with_prefix("packhouse sealing key 1\0")
                .chain_update("an operator's own key")
                .finalize()
                .into(),
        ] {
            assert_ne!(other, key);
        }
        assert_eq!(sealer.id().unwrap(), chosen("an operator's own key").id().unwrap());
        assert_ne!(sealer.id().unwrap(), chosen("another key, not this").id().unwrap());
    }

    #[test]
    fn a_changed_text_does_not_open() {
        let sealer = chosen("an operator's own key");
        let sealed = sealer.seal("x", &Secret::new("secret")).unwrap();
        for at in 0..sealed.len() {
            let mut bytes = sealed.clone().into_bytes();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(bytes).unwrap();
            assert!(sealer.open("x", &changed).is_err(), "changed at {at}");
        }
        for text in ["", "v1", "v1.", "v1.00000000.", "v2.00000000.AAAA"] {
            assert!(sealer.open("x", text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_generated_key_is_stored_and_readable_only_by_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let first = Sealer::new(None, folder.path());
        assert!(!folder.path().join(FILE).exists(), "the key file is created at first use");
        let sealed = first.seal("x", &Secret::new("secret")).unwrap();
        let mode = fs::metadata(folder.path().join(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(Sealer::new(None, folder.path()).open("x", &sealed).unwrap().reveal(), "secret");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file remains");
        fs::write(folder.path().join(FILE), "").unwrap();
        assert!(matches!(
            Sealer::new(None, folder.path()).seal("x", &Secret::new("s")),
            Err(SealError::Key { .. })
        ));
    }

    #[test]
    fn concurrent_creators_all_use_one_key() {
        let folder = tempfile::tempdir().unwrap();
        let sealed: Vec<String> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| {
                    scope
                        .spawn(|| Sealer::new(None, folder.path()).seal("x", &Secret::new("secret")).unwrap())
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let reader = Sealer::new(None, folder.path());
        assert!(sealed.iter().all(|text| reader.open("x", text).is_ok()));
    }
}
