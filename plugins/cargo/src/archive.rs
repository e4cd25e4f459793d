//! A crate file: all in one folder that is called like the version, with a manifest that says the same name and version.

use crate::metadata::{Metadata, bad};
use packhouse_sdk::{Blob, Error, Failure, ReadAt, TarError, TarKind, TarReader, TarRules};
use serde::Deserialize;

/// Entries of an archive.
const ENTRIES: u32 = 100_000;
/// Bytes of a manifest, and of an extended header.
const SMALL: u64 = 2 << 20;
/// A crate may unpack to so many times its size …
const RATIO: u64 = 100;
/// … and to so many bytes whatever its size, …
const ALWAYS: u64 = 64 << 20;
/// … and never to more.
const NEVER: u64 = 10 << 30;

/// What a manifest says of its package, which is all that is read of it.
#[derive(Deserialize)]
struct Manifest {
    package: Package,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
}

/// Refuses a file that is not that of this version.
///
/// # Errors
/// 400 with what is wrong.
pub(crate) fn check(file: &Blob, metadata: &Metadata) -> Result<(), Failure> {
    let size = file.size()?;
    let most = size.saturating_mul(RATIO).clamp(ALWAYS, NEVER);
    let tar = file.decode("gzip", most, &[]).map_err(|error| match error {
        Error::TooLarge(_) => bad(format!("it unpacks to more than {RATIO} times its size")),
        Error::Invalid(_) => bad("it is not compressed by gzip, or is damaged"),
        error => error.into(),
    })?;
    let folder = format!("{}-{}/", metadata.name, metadata.vers);
    let manifest = manifest(&tar, &folder)?;
    let text = std::str::from_utf8(&manifest).map_err(|_| bad("its Cargo.toml is not UTF-8"))?;
    let read: Manifest = toml::from_str(text)
        .map_err(|error| bad(format!("its Cargo.toml says no name and version: {}", error.message())))?;
    if read.package.name != metadata.name || read.package.version != metadata.vers {
        let Package { name, version } = read.package;
        return Err(bad(format!(
            "its Cargo.toml is that of {name} {version}, not of {} {}",
            metadata.name, metadata.vers
        )));
    }
    Ok(())
}

/// The bytes of the folder's own `Cargo.toml`.
fn manifest(tar: &impl ReadAt, folder: &str) -> Result<Vec<u8>, Failure> {
    let mut reader = TarReader::new(tar, TarRules::Strict, SMALL)?;
    let mut found = None;
    for _ in 0..ENTRIES {
        let Some(entry) = reader.next_entry().map_err(refused)? else {
            return found.ok_or_else(|| bad(format!("it holds no {folder}Cargo.toml")));
        };
        let path = String::from_utf8_lossy(&entry.path).into_owned();
        let harmless = path.split('/').all(|part| !matches!(part, "." | "..")) && !path.contains('\\');
        if !path.starts_with(folder) || !harmless {
            return Err(bad(format!("it holds {path:?}, which does not lie in {folder}")));
        }
        if entry.kind == TarKind::Other {
            return Err(bad(format!("it holds {path:?}, which is neither a file nor a folder")));
        }
        if path.strip_prefix(folder) != Some("Cargo.toml") {
            continue;
        }
        if found.is_some() || entry.kind != TarKind::File || entry.size > SMALL {
            return Err(bad(format!("its {path} is not one file of at most 2 MiB")));
        }
        found = Some(reader.content(&entry).map_err(refused)?);
    }
    Err(bad(format!("it holds more than {ENTRIES} entries")))
}

fn refused(error: TarError) -> Failure {
    bad(match error {
        TarError::Header | TarError::Extended | TarError::Trailing => "it is no tar archive, or damaged",
        TarError::Size => "a size in it is no number",
        TarError::TooLarge => "a header in it is too large",
        TarError::TooMany => "it holds too many headers",
        TarError::Truncated => "it breaks off",
        TarError::Host(error) => return error.into(),
    })
}
