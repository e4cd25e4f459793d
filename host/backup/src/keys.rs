//! Encryption of the files of a location: none, for age recipients, or with a passphrase.
//!
//! Each use of a passphrase takes a second of work, which is too much to repeat for every file. So
//! a location with a passphrase has a key pair of its own. The secret key of the pair is stored in
//! the location, encrypted with the passphrase. The first backup determines the encryption of the
//! location: later backups share its blobs, and their readers must be able to decrypt these blobs.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use age::scrypt;
use age::secrecy::{ExposeSecret, SecretString};
use age::x25519::{Identity, Recipient};
use anyhow::{Context, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::proof::MacKey;

/// Largest scrypt work factor that is accepted: about 20 seconds of work.
const MOST_WORK: u8 = 22;
/// Minimum length of a passphrase, in bytes.
const SHORTEST: usize = 8;

/// Keys for a location, read from the key files.
pub(crate) struct OpenedKeys<K> {
    /// Recipients to encrypt for, or identities to decrypt with.
    pub(crate) keys: K,
    /// Key for making and checking MACs, if the location has a passphrase.
    pub(crate) mac: Option<MacKey>,
}

impl<K> OpenedKeys<K> {
    fn without_mac(keys: K) -> OpenedKeys<K> {
        OpenedKeys { keys, mac: None }
    }
}

/// Files with keys, as given on the command line.
#[derive(Clone, Debug, Default)]
pub struct KeyFiles {
    /// Age recipients (`age1…`), one a line, for taking backups.
    pub recipients: Option<PathBuf>,
    /// Age identities, as `age-keygen` writes them, for reading backups.
    pub identities: Option<PathBuf>,
    /// File with a passphrase in its first line, for taking and for reading backups.
    pub passphrase: Option<PathBuf>,
}

/// Encryption of the files of a location, as its header states it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "encryption", rename_all = "snake_case")]
pub(crate) enum Encryption {
    None,
    /// Files are encrypted for these recipients. Their identities are not in the location.
    Recipients {
        recipients: Vec<String>,
    },
    /// Files are encrypted for the location's own key pair. `key` is the secret key of the pair,
    /// encrypted with the passphrase, in hex.
    Passphrase {
        recipient: String,
        key: String,
    },
}

impl Encryption {
    fn described(&self) -> &'static str {
        match self {
            Encryption::None => "not encrypted",
            Encryption::Recipients { .. } => "encrypted for recipients (--identity-file)",
            Encryption::Passphrase { .. } => "encrypted with a passphrase (--passphrase-file)",
        }
    }
}

impl KeyFiles {
    /// Chooses the encryption of a location that has no backups yet.
    pub(crate) fn begin(&self) -> anyhow::Result<Encryption> {
        match (&self.recipients, self.passphrase()?) {
            (Some(_), Some(_)) => {
                bail!("a backup location is encrypted for recipients or with a passphrase, not both")
            }
            (Some(file), None) => {
                let recipients = recipients(file)?;
                Ok(Encryption::Recipients {
                    recipients: recipients.iter().map(ToString::to_string).collect(),
                })
            }
            (None, Some(passphrase)) => {
                let identity = Identity::generate();
                let wrapped = age::encrypt(
                    &scrypt::Recipient::new(passphrase),
                    identity.to_string().expose_secret().as_bytes(),
                );
                let key = hex::encode(wrapped.context("failed to encrypt with the passphrase")?);
                Ok(Encryption::Passphrase { recipient: identity.to_public().to_string(), key })
            }
            (None, None) => Ok(Encryption::None),
        }
    }

    /// Returns the keys to write with. It is an error if the keys differ from those of the
    /// location's first backup: the existing files could not be read with them.
    pub(crate) fn sealing(&self, location: &Encryption) -> anyhow::Result<OpenedKeys<Vec<Recipient>>> {
        match location {
            Encryption::None => {
                ensure!(
                    self.recipients.is_none() && self.passphrase.is_none(),
                    "the backups of this location are not encrypted: use another location for encrypted backups"
                );
                Ok(OpenedKeys::without_mac(Vec::new()))
            }
            Encryption::Recipients { recipients: known } => {
                let file = self.recipients.as_ref().context(
                    "the backups of this location are encrypted for recipients: pass the file that lists them with --recipients-file",
                )?;
                let mut given: Vec<String> = recipients(file)?.iter().map(ToString::to_string).collect();
                let mut known = known.clone();
                given.sort();
                known.sort();
                ensure!(
                    given == known,
                    "the backups of this location are encrypted for other recipients ({}): use another location for the given ones",
                    known.join(", ")
                );
                let known: anyhow::Result<_> = known.iter().map(|text| parsed(text)).collect();
                known.map(OpenedKeys::without_mac)
            }
            Encryption::Passphrase { recipient, .. } => {
                // Anyone who can write to the location could have replaced the public key. Only
                // the key that the passphrase opens is trusted.
                let identity = self.unwrapped(location)?;
                ensure!(
                    identity.to_public().to_string() == *recipient,
                    "the public key of this backup location does not belong to the key that the passphrase opens"
                );
                Ok(OpenedKeys { keys: vec![identity.to_public()], mac: Some(MacKey::of(&identity)) })
            }
        }
    }

    /// Returns the keys to read with. It is an error if keys of another kind were given: the caller
    /// expects backups that were made with those keys, and an attacker may have replaced the
    /// location.
    pub(crate) fn opening(&self, location: &Encryption) -> anyhow::Result<OpenedKeys<Vec<Identity>>> {
        let is_of_kind = match location {
            Encryption::None => self.identities.is_none() && self.passphrase.is_none(),
            Encryption::Recipients { .. } => self.passphrase.is_none(),
            Encryption::Passphrase { .. } => self.identities.is_none(),
        };
        ensure!(
            is_of_kind,
            "the backups of this location are {}, but a key of another kind was given: check that this is the right location and that nobody replaced it",
            location.described()
        );
        match location {
            Encryption::None => Ok(OpenedKeys::without_mac(Vec::new())),
            Encryption::Recipients { .. } => {
                let file = self.identities.as_ref().context(
                    "the backups of this location are encrypted for recipients: pass an identity with --identity-file",
                )?;
                identities(file).map(OpenedKeys::without_mac)
            }
            Encryption::Passphrase { .. } => {
                let identity = self.unwrapped(location)?;
                let mac = Some(MacKey::of(&identity));
                Ok(OpenedKeys { keys: vec![identity], mac })
            }
        }
    }

    fn unwrapped(&self, location: &Encryption) -> anyhow::Result<Identity> {
        let Encryption::Passphrase { key, .. } = location else {
            bail!("the backups of this location are not encrypted with a passphrase")
        };
        let passphrase = self.passphrase()?.context(
            "the backups of this location are encrypted with a passphrase: pass the file that holds it with --passphrase-file",
        )?;
        let mut with = scrypt::Identity::new(passphrase);
        with.set_max_work_factor(MOST_WORK);
        let wrapped = hex::decode(key).context("the key of this backup location is damaged")?;
        let opened = age::decrypt(&with, &wrapped);
        let opened = opened.map_err(|_| anyhow::anyhow!("this is not the passphrase of these backups"))?;
        let text = String::from_utf8(opened).context("the key of this backup location is damaged")?;
        Identity::from_str(&text).map_err(|_| anyhow::anyhow!("the key of this backup location is damaged"))
    }

    fn passphrase(&self) -> anyhow::Result<Option<SecretString>> {
        let Some(file) = &self.passphrase else { return Ok(None) };
        let text = read(file)?;
        let line = text.lines().next().unwrap_or_default();
        ensure!(
            line.len() >= SHORTEST,
            "the passphrase in {} must not be shorter than {SHORTEST} characters",
            file.display()
        );
        Ok(Some(SecretString::from(line.to_owned())))
    }
}

fn recipients(file: &Path) -> anyhow::Result<Vec<Recipient>> {
    let text = read(file)?;
    let recipients = entries(&text).map(|(_, line)| parsed(line)).collect::<anyhow::Result<Vec<_>>>()?;
    ensure!(!recipients.is_empty(), "{} names no recipient", file.display());
    Ok(recipients)
}

fn identities(file: &Path) -> anyhow::Result<Vec<Identity>> {
    let text = read(file)?;
    let identity = |(number, line): (usize, &str)| {
        // The error does not quote the line: it may be a mistyped secret.
        Identity::from_str(line).map_err(|why| {
            anyhow::anyhow!(
                "line {number} of {} is not an age identity (AGE-SECRET-KEY-1…): {why}",
                file.display()
            )
        })
    };
    let identities = entries(&text).map(identity).collect::<anyhow::Result<Vec<_>>>()?;
    ensure!(!identities.is_empty(), "{} holds no identity (AGE-SECRET-KEY-1…)", file.display());
    Ok(identities)
}

/// Lines that are neither empty nor comments, each with its number.
fn entries(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = (1..).zip(text.lines().map(str::trim));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

fn parsed(text: &str) -> anyhow::Result<Recipient> {
    Recipient::from_str(text)
        .map_err(|why| anyhow::anyhow!("{text:?} is not an age recipient (age1…): {why}"))
}

fn read(file: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(file).with_context(|| format!("failed to read {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(folder: &Path, name: &str, text: &str) -> Option<PathBuf> {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        Some(path)
    }

    #[test]
    fn a_location_keeps_its_kind_of_encryption() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (Identity::generate(), Identity::generate());
        let recipients = |identity: &Identity| KeyFiles {
            recipients: file(
                folder.path(),
                &identity.to_public().to_string(),
                &format!("# me\n{}\n", identity.to_public()),
            ),
            ..KeyFiles::default()
        };
        let none = KeyFiles::default();
        let location = recipients(&one).begin().unwrap();
        let refused = |keys: &KeyFiles, location| keys.sealing(location).err().unwrap().to_string();
        assert_eq!(recipients(&one).sealing(&location).unwrap().keys.len(), 1);
        assert!(refused(&recipients(&two), &location).contains("other recipients"));
        assert!(refused(&none, &location).contains("--recipients-file"));
        assert!(none.opening(&location).err().unwrap().to_string().contains("--identity-file"));
        assert_eq!(none.begin().unwrap(), Encryption::None);
        assert!(refused(&recipients(&one), &Encryption::None).contains("not encrypted"));
    }

    #[test]
    fn a_location_is_not_opened_with_keys_of_another_kind() {
        let folder = tempfile::tempdir().unwrap();
        let passphrase =
            KeyFiles { passphrase: file(folder.path(), "p", "correct horse\n"), ..KeyFiles::default() };
        let text = Identity::generate().to_string();
        let identities =
            KeyFiles { identities: file(folder.path(), "i", text.expose_secret()), ..KeyFiles::default() };
        let of_recipients =
            Encryption::Recipients { recipients: vec![Identity::generate().to_public().to_string()] };
        let of_passphrase = passphrase.begin().unwrap();
        let opens = |keys: &KeyFiles, location: &Encryption| keys.opening(location).is_ok();
        assert!(opens(&KeyFiles::default(), &Encryption::None));
        assert!(!opens(&passphrase, &Encryption::None) && !opens(&identities, &Encryption::None));
        assert!(opens(&passphrase, &of_passphrase) && !opens(&identities, &of_passphrase));
        assert!(opens(&identities, &of_recipients) && !opens(&passphrase, &of_recipients));
    }

    #[test]
    fn a_file_of_identities_has_comments_and_its_errors_hide_secrets() {
        let folder = tempfile::tempdir().unwrap();
        let location = Encryption::Recipients { recipients: Vec::new() };
        let opening = |text: &str| {
            let keys = KeyFiles { identities: file(folder.path(), "i", text), ..KeyFiles::default() };
            keys.opening(&location).map(|opened| opened.keys.len())
        };
        let (one, two) = (Identity::generate().to_string(), Identity::generate().to_string());
        let both = format!("# created: today\n{}\n\n  {}\r\n", one.expose_secret(), two.expose_secret());
        assert_eq!(opening(&both).unwrap(), 2);
        let wrong = opening("# mine\nAGE-SECRET-KEY-1TYPO\n").unwrap_err().to_string();
        assert!(wrong.contains("line 2 of") && !wrong.contains("TYPO"), "{wrong}");
        assert!(opening("# nothing\n").unwrap_err().to_string().contains("holds no identity"));
    }

    #[test]
    fn a_passphrase_opens_the_key_of_its_location() {
        let folder = tempfile::tempdir().unwrap();
        let phrase = |name: &str, text: &str| KeyFiles {
            passphrase: file(folder.path(), name, text),
            ..KeyFiles::default()
        };
        let right = phrase("right", "correct horse\n");
        let location = right.begin().unwrap();
        assert_eq!(right.sealing(&location).unwrap().keys.len(), 1);
        assert_eq!(right.opening(&location).unwrap().keys.len(), 1);
        let wrong = phrase("wrong", "battery staple").opening(&location).err().unwrap().to_string();
        assert_eq!(wrong, "this is not the passphrase of these backups");
        assert!(phrase("short", "abc").begin().unwrap_err().to_string().contains("shorter"));
        let Encryption::Passphrase { key, .. } = location else { panic!("no passphrase") };
        let another = Encryption::Passphrase { recipient: Identity::generate().to_public().to_string(), key };
        assert!(right.sealing(&another).is_err(), "the public key was replaced");
    }
}
