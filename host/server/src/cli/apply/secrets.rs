//! Secrets that documents refer to, and files for secrets that the server makes.

use crate::cli::json::Members as _;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use packhouse_config::Secret;
use serde_json::Value;
use tempfile::NamedTempFile;

use super::documents::ConfigDocument;

/// Passwords for upstreams by the names of the proxies.
#[derive(Debug, Default)]
pub(super) struct UpstreamPasswords(BTreeMap<String, Secret>);

impl UpstreamPasswords {
    /// Reads every secret that the documents refer to, so that a missing one stops the command
    /// before it changes anything. `folder` is the folder of the documents.
    pub(super) fn read(documents: &[ConfigDocument], folder: &Path) -> anyhow::Result<UpstreamPasswords> {
        let mut passwords = BTreeMap::new();
        for document in documents {
            if let Some(credentials) = &document.credentials {
                let secret = resolve(credentials.at("password"), folder);
                let secret = secret
                    .with_context(|| format!("{}: the secret cannot be read", document.place))
                    .context("nothing was changed")?;
                passwords.insert(document.name.clone(), secret);
            }
        }
        Ok(UpstreamPasswords(passwords))
    }

    pub(super) fn of(&self, proxy: &str) -> anyhow::Result<&Secret> {
        self.0.get(proxy).with_context(|| format!("the password for the upstream of {proxy} was not read"))
    }
}

/// Reads a secret from an environment variable, or from a file without the line breaks at its end.
fn resolve(reference: &Value, folder: &Path) -> anyhow::Result<Secret> {
    let text = match (reference.at("from_env").as_str(), reference.at("from_file").as_str()) {
        (Some(name), _) => {
            std::env::var(name).with_context(|| format!("the environment variable {name} is not set"))?
        }
        (None, Some(file)) => {
            let file = folder.join(file);
            std::fs::read_to_string(&file).with_context(|| format!("failed to read {}", file.display()))?
        }
        (None, None) => bail!("neither `from_env` nor `from_file` names it"),
    };
    let text = text.trim_end_matches(['\r', '\n']);
    ensure!(!text.is_empty(), "it is empty");
    Ok(Secret::new(text))
}

/// Private file for a secret, which does not exist under its name before the secret is in it.
pub(super) struct SecretFile {
    temporary: NamedTempFile,
    path: PathBuf,
}

impl SecretFile {
    /// Makes sure that the file can be written, before the server makes the secret.
    pub(super) fn prepare(path: PathBuf) -> anyhow::Result<SecretFile> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let temporary = NamedTempFile::new_in(folder)
            .with_context(|| format!("failed to write a file in {}", folder.display()))?;
        Ok(SecretFile { temporary, path })
    }

    pub(super) fn write(mut self, secret: &str) -> anyhow::Result<()> {
        let failed = || format!("failed to write {}", self.path.display());
        writeln!(self.temporary, "{secret}").with_context(failed)?;
        self.temporary.persist(&self.path).with_context(failed)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_secret_comes_from_a_file_or_the_environment() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("secret"), "a b\r\n").unwrap();
        std::fs::write(folder.path().join("empty"), "\n").unwrap();
        let read = |reference: Value| {
            let secret = resolve(&reference, folder.path());
            secret.map(|secret| secret.reveal().to_owned()).map_err(|error| error.to_string())
        };
        assert_eq!(read(json!({"from_file": "secret"})).unwrap(), "a b");
        assert!(read(json!({"from_file": "empty"})).unwrap_err().contains("empty"));
        assert!(read(json!({"from_file": "absent"})).unwrap_err().contains("absent"));
        assert!(read(json!({"from_env": "PACKHOUSE_NOT_SET_ANYWHERE"})).unwrap_err().contains("is not set"));
        assert!(!read(json!({"from_env": "PATH"})).unwrap().is_empty());
    }

    #[test]
    fn a_file_of_a_secret_is_complete_or_absent() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hook");
        drop(SecretFile::prepare(path.clone()).unwrap());
        assert!(!path.exists());
        SecretFile::prepare(path.clone()).unwrap().write("whsec_x").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "whsec_x\n");
        assert!(SecretFile::prepare(folder.path().join("absent").join("hook")).is_err());
    }
}
