//! With what the files of a place are encrypted: nothing, recipients of age, or a passphrase.
//!
//! A passphrase takes a second of work each time, which is too much for each of many files. So a place with a passphrase has a key pair of
//! its own, whose secret half lies there encrypted with the passphrase. A place is of one kind from its first backup on: otherwise
//! a blob that is there already could not be read by whoever reads a later backup that names it.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use age::scrypt;
use age::secrecy::{ExposeSecret, SecretString};
use age::x25519::{Identity, Recipient};
use anyhow::{Context, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::proof::MacKey;

/// The most work that is done for a passphrase: some 20 seconds.
const MOST_WORK: u8 = 22;
/// The shortest passphrase, in bytes.
const SHORTEST: usize = 8;

/// For what a place is opened with a key.
pub(crate) struct Opened<K> {
    /// What encrypts or decrypts.
    pub(crate) keys: K,
    /// What makes and checks MACs, of a place with a passphrase.
    pub(crate) mac: Option<MacKey>,
}

impl<K> Opened<K> {
    fn without_mac(keys: K) -> Opened<K> {
        Opened { keys, mac: None }
    }
}

/// Where keys are read from, as the command line names it.
#[derive(Clone, Debug, Default)]
pub struct KeyFiles {
    /// Recipients of age, `age1…`, one a line: for taking backups.
    pub recipients: Option<PathBuf>,
    /// Identities of age, as `age-keygen` writes them: for reading backups.
    pub identities: Option<PathBuf>,
    /// The passphrase in its first line: for both.
    pub passphrase: Option<PathBuf>,
}

/// How the files of a place are encrypted, as the place says it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "encryption", rename_all = "snake_case")]
pub(crate) enum Encryption {
    /// Not at all.
    None,
    /// For these, who keep their identities elsewhere.
    Recipients { recipients: Vec<String> },
    /// For the place's own key, `key` being its secret half, encrypted with the passphrase, in hex.
    Passphrase { recipient: String, key: String },
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
    /// For a place that has no backups yet.
    pub(crate) fn begin(&self) -> anyhow::Result<Encryption> {
        match (&self.recipients, self.passphrase()?) {
            (Some(_), Some(_)) => {
                bail!("a place of backups is encrypted for recipients or with a passphrase, not both")
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

    /// Who files are encrypted for at a place that is encrypted so. An error where other keys were given: what is there could not be
    /// read with them.
    pub(crate) fn sealing(&self, place: &Encryption) -> anyhow::Result<Opened<Vec<Recipient>>> {
        match place {
            Encryption::None => {
                ensure!(
                    self.recipients.is_none() && self.passphrase.is_none(),
                    "the backups of this place are not encrypted: begin another place for those that are"
                );
                Ok(Opened::without_mac(Vec::new()))
            }
            Encryption::Recipients { recipients: known } => {
                let file = self.recipients.as_ref().context(
                    "the backups of this place are encrypted for recipients: name them with --recipients-file",
                )?;
                let mut given: Vec<String> = recipients(file)?.iter().map(ToString::to_string).collect();
                let mut known = known.clone();
                given.sort();
                known.sort();
                ensure!(
                    given == known,
                    "the backups of this place are encrypted for other recipients ({}): begin another place for these",
                    known.join(", ")
                );
                let known: anyhow::Result<_> = known.iter().map(|text| parsed(text)).collect();
                known.map(Opened::without_mac)
            }
            Encryption::Passphrase { recipient, .. } => {
                // Whoever can write to the place could have put a key of his own there: only the passphrase shows whose it is.
                let identity = self.unwrapped(place)?;
                ensure!(
                    identity.to_public().to_string() == *recipient,
                    "the key of this place of backups is not the one that the passphrase opens"
                );
                Ok(Opened { keys: vec![identity.to_public()], mac: Some(MacKey::of(&identity)) })
            }
        }
    }

    /// What opens the files of a place that is encrypted so. An error where keys of another kind were given: whoever names a key
    /// expects backups that were made with it, and somebody may have put others in their place.
    pub(crate) fn opening(&self, place: &Encryption) -> anyhow::Result<Opened<Vec<Identity>>> {
        let is_of_kind = match place {
            Encryption::None => self.identities.is_none() && self.passphrase.is_none(),
            Encryption::Recipients { .. } => self.passphrase.is_none(),
            Encryption::Passphrase { .. } => self.identities.is_none(),
        };
        ensure!(
            is_of_kind,
            "the backups of this place are {}, and a key of another kind was given: is it the right place, or did somebody replace it?",
            place.described()
        );
        match place {
            Encryption::None => Ok(Opened::without_mac(Vec::new())),
            Encryption::Recipients { .. } => {
                let file = self.identities.as_ref().context(
                    "the backups of this place are encrypted for recipients: name an identity with --identity-file",
                )?;
                identities(file).map(Opened::without_mac)
            }
            Encryption::Passphrase { .. } => {
                let identity = self.unwrapped(place)?;
                let mac = Some(MacKey::of(&identity));
                Ok(Opened { keys: vec![identity], mac })
            }
        }
    }

    fn unwrapped(&self, place: &Encryption) -> anyhow::Result<Identity> {
        let Encryption::Passphrase { key, .. } = place else {
            bail!("the backups of this place have no passphrase")
        };
        let passphrase = self.passphrase()?.context(
            "the backups of this place are encrypted with a passphrase: name the file that holds it with --passphrase-file",
        )?;
        let mut with = scrypt::Identity::new(passphrase);
        with.set_max_work_factor(MOST_WORK);
        let wrapped = hex::decode(key).context("the key of this place of backups is damaged")?;
        let opened = age::decrypt(&with, &wrapped);
        let opened = opened.map_err(|_| anyhow::anyhow!("this is not the passphrase of these backups"))?;
        let text = String::from_utf8(opened).context("the key of this place of backups is damaged")?;
        Identity::from_str(&text).map_err(|_| anyhow::anyhow!("the key of this place of backups is damaged"))
    }

    fn passphrase(&self) -> anyhow::Result<Option<SecretString>> {
        let Some(file) = &self.passphrase else { return Ok(None) };
        let text = read(file)?;
        let line = text.lines().next().unwrap_or_default();
        ensure!(
            line.len() >= SHORTEST,
            "the passphrase in {} is shorter than {SHORTEST} characters",
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
        // The error leaves the line out: it may be a secret with a typing error.
        Identity::from_str(line).map_err(|why| {
            anyhow::anyhow!(
                "line {number} of {} is not an identity of age (AGE-SECRET-KEY-1…): {why}",
                file.display()
            )
        })
    };
    let identities = entries(&text).map(identity).collect::<anyhow::Result<Vec<_>>>()?;
    ensure!(!identities.is_empty(), "{} holds no identity of age", file.display());
    Ok(identities)
}

/// The lines that are not comments, each with its number.
fn entries(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = (1..).zip(text.lines().map(str::trim));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

fn parsed(text: &str) -> anyhow::Result<Recipient> {
    Recipient::from_str(text).map_err(|why| anyhow::anyhow!("{text:?} is no recipient of age (age1…): {why}"))
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
    fn a_place_is_of_one_kind() {
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
        let place = recipients(&one).begin().unwrap();
        let refused = |keys: &KeyFiles, place| keys.sealing(place).err().unwrap().to_string();
        assert_eq!(recipients(&one).sealing(&place).unwrap().keys.len(), 1);
        assert!(refused(&recipients(&two), &place).contains("other recipients"));
        assert!(refused(&none, &place).contains("--recipients-file"));
        assert!(none.opening(&place).err().unwrap().to_string().contains("--identity-file"));
        assert_eq!(none.begin().unwrap(), Encryption::None);
        assert!(refused(&recipients(&one), &Encryption::None).contains("not encrypted"));
    }

    #[test]
    fn a_place_is_not_opened_with_keys_of_another_kind() {
        let folder = tempfile::tempdir().unwrap();
        let passphrase =
            KeyFiles { passphrase: file(folder.path(), "p", "correct horse\n"), ..KeyFiles::default() };
        let text = Identity::generate().to_string();
        let identities =
            KeyFiles { identities: file(folder.path(), "i", text.expose_secret()), ..KeyFiles::default() };
        let of_recipients =
            Encryption::Recipients { recipients: vec![Identity::generate().to_public().to_string()] };
        let of_passphrase = passphrase.begin().unwrap();
        let opens = |keys: &KeyFiles, place: &Encryption| keys.opening(place).is_ok();
        assert!(opens(&KeyFiles::default(), &Encryption::None));
        assert!(!opens(&passphrase, &Encryption::None) && !opens(&identities, &Encryption::None));
        assert!(opens(&passphrase, &of_passphrase) && !opens(&identities, &of_passphrase));
        assert!(opens(&identities, &of_recipients) && !opens(&passphrase, &of_recipients));
    }

    #[test]
    fn a_file_of_identities_has_comments_and_its_errors_hide_secrets() {
        let folder = tempfile::tempdir().unwrap();
        let place = Encryption::Recipients { recipients: Vec::new() };
        let opening = |text: &str| {
            let keys = KeyFiles { identities: file(folder.path(), "i", text), ..KeyFiles::default() };
            keys.opening(&place).map(|opened| opened.keys.len())
        };
        let (one, two) = (Identity::generate().to_string(), Identity::generate().to_string());
        let both = format!("# created: today\n{}\n\n  {}\r\n", one.expose_secret(), two.expose_secret());
        assert_eq!(opening(&both).unwrap(), 2);
        let wrong = opening("# mine\nAGE-SECRET-KEY-1TYPO\n").unwrap_err().to_string();
        assert!(wrong.contains("line 2 of") && !wrong.contains("TYPO"), "{wrong}");
        assert!(opening("# nothing\n").unwrap_err().to_string().contains("holds no identity"));
    }

    #[test]
    fn a_passphrase_opens_the_key_of_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let phrase = |name: &str, text: &str| KeyFiles {
            passphrase: file(folder.path(), name, text),
            ..KeyFiles::default()
        };
        let right = phrase("right", "correct horse\n");
        let place = right.begin().unwrap();
        assert_eq!(right.sealing(&place).unwrap().keys.len(), 1);
        assert_eq!(right.opening(&place).unwrap().keys.len(), 1);
        let wrong = phrase("wrong", "battery staple").opening(&place).err().unwrap().to_string();
        assert_eq!(wrong, "this is not the passphrase of these backups");
        assert!(phrase("short", "abc").begin().unwrap_err().to_string().contains("shorter"));
        let Encryption::Passphrase { key, .. } = place else { panic!("no passphrase") };
        let another = Encryption::Passphrase { recipient: Identity::generate().to_public().to_string(), key };
        assert!(right.sealing(&another).is_err(), "a key that somebody put there");
    }
}
