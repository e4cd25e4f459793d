//! The `composer.json` of a package's zip: at the top, or in a folder right below the top. The
//! host unpacks it, up to a limit.

use packhouse_sdk::{Blob, Failure};
use packhouse_zip::{Archive, ArchiveError};

/// The size limit of a composer.json, in bytes.
const COMPOSER_JSON: u64 = 512 << 10;

/// Reads the package's own composer.json.
///
/// # Errors
/// 400 `invalid_package` for an archive that programs could unpack differently, and for one that
/// unpacks to far more than its size.
pub(crate) fn composer_json(zip: &Blob) -> Result<Vec<u8>, Failure> {
    let archive = Archive::read(zip).map_err(refused)?;
    archive.check_ratio(zip.size()?).map_err(refused)?;
    let own = find(archive.files())?;
    archive.content(zip, own, COMPOSER_JSON).map_err(refused)
}

fn refused(error: ArchiveError) -> Failure {
    match error {
        ArchiveError::Refused(text) => bad(&format!("Of the file: {text}")),
        ArchiveError::Host(error) => error.into(),
    }
}

/// 400 with a sentence for the sender of the zip.
pub(crate) fn bad(text: &str) -> Failure {
    Failure::new(400, "invalid_package", format!("This is no zip of a Composer package. {text}"))
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
        ([], []) => Err(bad("It holds no composer.json, neither at its top nor in a folder right below")),
        _ => Err(bad("It holds more than one composer.json that could be the package's own")),
    }
}
