//! A package's zip: its `composer.json`, at the top or in the one folder that all is in. The host unpacks it, to a limit.

use packhouse_sdk::{Blob, Failure};
use packhouse_zip::{Archive, ArchiveError};

/// Bytes of a composer.json.
const COMPOSER_JSON: u64 = 512 << 10;

/// The bytes of a package's own composer.json.
///
/// # Errors
/// 400 `invalid_package` for what programs could unpack differently, or far beyond its size.
pub(crate) fn composer_json(zip: &Blob) -> Result<Vec<u8>, Failure> {
    let archive = Archive::read(zip).map_err(refused)?;
    archive.check_ratio(zip.size()?).map_err(refused)?;
    let name = find(&archive)?;
    archive.content(zip, name, COMPOSER_JSON).map_err(refused)
}

/// 400 with a sentence for who sent the zip.
pub(crate) fn bad(text: impl Into<String>) -> Failure {
    Failure::new(400, "invalid_package", format!("This is no zip of a Composer package. {}", text.into()))
}

fn refused(error: ArchiveError) -> Failure {
    match error {
        ArchiveError::Refused(text) => bad(format!("Of the file: {text}")),
        ArchiveError::Host(error) => error.into(),
    }
}

fn find(archive: &Archive) -> Result<&str, Failure> {
    let outside =
        |name: &str| name.starts_with('/') || name.contains('\\') || name.split('/').any(|part| part == "..");
    if archive.names().any(outside) {
        return Err(bad("A name in it leads out of its folder"));
    }
    let at = |depth: usize| {
        let own = archive.files().filter(|name| name.rsplit('/').next() == Some("composer.json"));
        own.filter(|name| name.matches('/').count() == depth).collect::<Vec<_>>()
    };
    let [top, below] = [at(0), at(1)];
    match (top.as_slice(), below.as_slice()) {
        ([name], _) | ([], [name]) => Ok(name),
        ([], []) => Err(bad("It holds no composer.json, neither at its top nor in a folder right below")),
        _ => Err(bad("It holds more than one composer.json that could be the package's own")),
    }
}
