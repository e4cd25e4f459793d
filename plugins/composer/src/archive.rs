//! Reads the `composer.json` from a package's zip. The file is at the top of the zip or in a
//! top-level folder. The host unpacks this file, up to a size limit.

use packhouse_sdk::{Blob, Failure};
use packhouse_zip::{Archive, ArchiveError};

/// The size limit of a composer.json, in bytes.
const COMPOSER_JSON: u64 = 512 << 10;

/// Reads the package's own composer.json.
///
/// # Errors
/// 400 `invalid_package` in three cases: different programs could unpack different files from the
/// archive; the archive unpacks to far more than its size; or it is not clear which `composer.json`
/// is the package's own, because none or several are possible.
pub(crate) fn composer_json(zip: &Blob) -> Result<Vec<u8>, Failure> {
    let archive = Archive::read(zip).map_err(failure)?;
    archive.check_ratio(zip.size()?).map_err(failure)?;
    let own = find(archive.files())?;
    archive.content(zip, own, COMPOSER_JSON).map_err(failure)
}

fn failure(error: ArchiveError) -> Failure {
    match error {
        ArchiveError::Refused(text) => invalid_package(&format!("The zip is not accepted: {text}")),
        ArchiveError::Host(error) => error.into(),
    }
}

/// Returns 400 `invalid_package`, with a sentence for the publisher.
pub(crate) fn invalid_package(text: &str) -> Failure {
    Failure::new(400, "invalid_package", format!("This is not a valid Composer package. {text}"))
}

fn find<'a>(files: impl Iterator<Item = &'a str>) -> Result<&'a str, Failure> {
    let (mut top, mut below) = (Vec::new(), Vec::new());
    for name in files.filter(|name| name.rsplit('/').next() == Some("composer.json")) {
        match name.matches('/').count() {
            0 => top.push(name),
            1 => below.push(name),
            _ => {}
        }
    }
    match (top.as_slice(), below.as_slice()) {
        ([only], _) | ([], [only]) => Ok(only),
        ([], []) => {
            Err(invalid_package("It contains no composer.json, neither at the top nor in a top-level folder"))
        }
        _ => Err(invalid_package(
            "It contains more than one composer.json at the top or in a top-level folder",
        )),
    }
}
