//! Checks of a crate file: all entries are in one folder `NAME-VERSION/`, and the `Cargo.toml` in
//! it states the published name and version.

use crate::metadata::{CrateMetadata, bad};
use packhouse_sdk::{Blob, Error, Failure, ReadAt, TarError, TarKind, TarReader, TarRules};
use serde::Deserialize;

/// Maximum number of entries in an archive.
const MAX_ENTRIES: u32 = 100_000;
/// Maximum size of the `Cargo.toml` and of an extended tar header, in bytes.
const MANIFEST_LIMIT: u64 = 2 << 20;
/// Maximum ratio of a crate's unpacked size to its compressed size.
const MAX_RATIO: u64 = 100;
/// Unpacked size, in bytes, that is allowed at any ratio.
const ALWAYS_ALLOWED: u64 = 64 << 20;
/// Maximum unpacked size of a crate, in bytes, at any ratio.
const UNPACKED_LIMIT: u64 = 10 << 30;

/// The members of a `Cargo.toml` that the plugin reads.
#[derive(Deserialize)]
struct CargoToml {
    package: PackageSection,
}

#[derive(Deserialize)]
struct PackageSection {
    name: String,
    version: String,
}

/// Refuses a file that does not belong to this version.
///
/// # Errors
/// 400 with the reason.
pub(crate) fn check(file: &Blob, metadata: &CrateMetadata) -> Result<(), Failure> {
    let size = file.size()?;
    let most = size.saturating_mul(MAX_RATIO).clamp(ALWAYS_ALLOWED, UNPACKED_LIMIT);
    let tar = file.decode("gzip", most, &[]).map_err(|error| match error {
        Error::TooLarge(_) => bad(format!("it unpacks to more than {MAX_RATIO} times its size")),
        Error::Invalid(_) => bad("it is not compressed with gzip, or it is damaged"),
        error => error.into(),
    })?;
    let folder = format!("{}-{}/", metadata.name, metadata.vers);
    let manifest = manifest(&tar, &folder)?;
    let text = std::str::from_utf8(&manifest).map_err(|_| bad("its Cargo.toml is not UTF-8"))?;
    let read: CargoToml = toml::from_str(text)
        .map_err(|error| bad(format!("its Cargo.toml has no valid name and version: {}", error.message())))?;
    if read.package.name != metadata.name || read.package.version != metadata.vers {
        let PackageSection { name, version } = read.package;
        return Err(bad(format!(
            "its Cargo.toml is for {name} {version}, not for {} {}",
            metadata.name, metadata.vers
        )));
    }
    Ok(())
}

/// Returns the bytes of the `Cargo.toml` directly in `folder`. Refuses an archive with an entry
/// outside of `folder`.
fn manifest(tar: &impl ReadAt, folder: &str) -> Result<Vec<u8>, Failure> {
    let mut reader = TarReader::new(tar, TarRules::Strict, MANIFEST_LIMIT)?;
    let mut found = None;
    for _ in 0..MAX_ENTRIES {
        let Some(entry) = reader.next_entry().map_err(refused)? else {
            return found.ok_or_else(|| bad(format!("it does not contain {folder}Cargo.toml")));
        };
        let path = String::from_utf8_lossy(&entry.path).into_owned();
        let is_safe = path.split('/').all(|part| !matches!(part, "." | "..")) && !path.contains('\\');
        if !path.starts_with(folder) || !is_safe {
            return Err(bad(format!("it contains {path:?}, which is not in {folder}")));
        }
        if entry.kind == TarKind::Other {
            return Err(bad(format!("it contains {path:?}, which is neither a file nor a folder")));
        }
        if path.strip_prefix(folder) != Some("Cargo.toml") {
            continue;
        }
        if found.is_some() || entry.kind != TarKind::File || entry.size > MANIFEST_LIMIT {
            return Err(bad(format!("{path} must be a single file of at most 2 MiB")));
        }
        found = Some(reader.content(&entry).map_err(refused)?);
    }
    Err(bad(format!("it contains more than {MAX_ENTRIES} entries")))
}

fn refused(error: TarError) -> Failure {
    bad(match error {
        TarError::Header | TarError::Extended | TarError::Trailing => {
            "it is not a tar archive, or it is damaged"
        }
        TarError::Size => "a size in it is not a number",
        TarError::TooLarge => "a header in it is too large",
        TarError::TooMany => "it has too many headers",
        TarError::Truncated => "it is truncated",
        TarError::Host(error) => return error.into(),
    })
}
