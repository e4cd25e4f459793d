//! File of logins, `~/.config/packhouse/servers.toml`: the API token of each server. Only its
//! owner can read it.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

const HEAD: &str = "# API tokens of servers, written by `packhouse login`.\n";
/// Permission bits for accounts other than the owner.
const OTHERS: u32 = 0o077;

/// Login at a server, with the options of its connection.
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ServerProfile {
    pub(super) token: String,
    /// PEM file of certificate authorities that are trusted beside the system's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ca: Option<PathBuf>,
    /// Allows plain HTTP to another machine.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) insecure: bool,
}

/// Contents of the file of logins.
#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct ServerProfiles {
    /// Logins by the address of the server.
    #[serde(default)]
    servers: BTreeMap<String, ServerProfile>,
}

/// Returns the login at the server with this address.
pub(super) fn find(address: &str) -> anyhow::Result<Option<ServerProfile>> {
    match file() {
        Some(file) => Ok(read(&file)?.servers.remove(address)),
        None => Ok(None),
    }
}

/// Stores a login and returns the path of the file.
pub(super) fn store(address: String, profile: ServerProfile) -> anyhow::Result<PathBuf> {
    let file = file()
        .context("HOME is not set, so there is no place for a login: use PACKHOUSE_API_TOKEN instead")?;
    let mut profiles = read(&file)?;
    profiles.servers.insert(address, profile);
    write(&file, &profiles)?;
    Ok(file)
}

/// Removes the login at this address. Returns false if no login exists there.
pub(super) fn forget(address: &str) -> anyhow::Result<bool> {
    let Some(file) = file() else { return Ok(false) };
    let mut profiles = read(&file)?;
    if profiles.servers.remove(address).is_none() {
        return Ok(false);
    }
    write(&file, &profiles)?;
    Ok(true)
}

/// Returns the path of the file, or `None` without a home folder.
fn file() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let settings = folder("XDG_CONFIG_HOME").or_else(|| folder("HOME").map(|home| home.join(".config")))?;
    Some(settings.join("packhouse").join("servers.toml"))
}

fn read(file: &Path) -> anyhow::Result<ServerProfiles> {
    let failed = || format!("failed to read {}", file.display());
    let metadata = match std::fs::metadata(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(ServerProfiles::default()),
        found => found.with_context(failed)?,
    };
    ensure!(
        metadata.mode() & OTHERS == 0,
        "other accounts of this machine may use the API tokens in {0}: run `chmod 600 {0}`",
        file.display()
    );
    let text = std::fs::read_to_string(file).with_context(failed)?;
    // The parser's own message would repeat a line of the file, which may contain a token.
    toml::from_str(&text)
        .ok()
        .with_context(|| format!("{} is not a file of logins: remove it, and log in again", file.display()))
}

/// Replaces the file in one step, so that an interruption leaves the previous one.
fn write(file: &Path, profiles: &ServerProfiles) -> anyhow::Result<()> {
    let failed = || format!("failed to write {}", file.display());
    let folder = file.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).with_context(failed)?;
    // Only its owner can read a temporary file.
    let mut temporary = NamedTempFile::new_in(folder).with_context(failed)?;
    let text = format!("{HEAD}\n{}", toml::to_string(profiles).with_context(failed)?);
    temporary.write_all(text.as_bytes()).with_context(failed)?;
    temporary.persist(file).with_context(failed)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_file_of_logins_is_private_and_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("packhouse").join("servers.toml");
        let profile = |token: &str, ca: Option<&str>| ServerProfile {
            token: token.to_owned(),
            ca: ca.map(PathBuf::from),
            insecure: ca.is_none(),
        };
        let mut profiles = ServerProfiles::default();
        profiles.servers.insert("https://a.example/x".to_owned(), profile("pka_1", Some("/ca.pem")));
        profiles.servers.insert("http://b.example".to_owned(), profile("pka_2", None));
        write(&file, &profiles).unwrap();
        assert_eq!(std::fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
        let again = read(&file).unwrap().servers;
        assert_eq!((again.len(), again["http://b.example"].token.as_str()), (2, "pka_2"));
        assert!(again["http://b.example"].insecure && !again["https://a.example/x"].insecure);

        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(read(&file).err().unwrap().to_string().contains("chmod 600"));
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::write(&file, "token = \"pka_3\"").unwrap();
        let error = format!("{:#}", read(&file).err().unwrap());
        assert!(error.contains("not a file of logins") && !error.contains("pka_3"), "{error}");
    }
}
