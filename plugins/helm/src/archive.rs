//! A chart's archive: Chart.yaml and README.md of its one folder, found by reading headers alone. The host unpacks it, to a limit.

use crate::chart::{CHART_YAML, Chart};
use packhouse_sdk::{Blob, Error, Failure, ReadAt, TarError, TarKind, TarReader, TarRules};

/// Bytes that a chart unpacks to at most, and how many times its size where it is small.
const UNPACKED: u64 = 256 << 20;
const TIMES: u64 = 100;
const SMALL: u64 = 16 << 20;
/// Entries of an archive.
const ENTRIES: u32 = 50_000;
/// Bytes of a header's extension.
const HEADER: u64 = 64 << 10;

/// The chart that an archive holds.
///
/// # Errors
/// 400 `invalid_chart` for what Helm could not install, and for what unpacks to too much.
pub(crate) fn chart(file: &Blob) -> Result<Chart, Failure> {
    let archive = unpack(file)?;
    let text = find(&archive, b"Chart.yaml", CHART_YAML).map_err(Refusal::into_failure)?;
    let text = text.ok_or_else(|| bad("It holds no Chart.yaml in its one folder"))?;
    Chart::read(&text).map_err(bad)
}

/// A file of the chart's folder, of at most so many bytes; none where there is none.
///
/// # Errors
/// As [`chart`].
pub(crate) fn file(file: &Blob, name: &str, limit: u64) -> Result<Option<Vec<u8>>, Failure> {
    find(&unpack(file)?, name.as_bytes(), limit).map_err(Refusal::into_failure)
}

fn unpack(file: &Blob) -> Result<Blob, Failure> {
    let limit = file.size()?.saturating_mul(TIMES).clamp(SMALL, UNPACKED);
    file.decode("gzip", limit, &[]).map_err(|error| match error {
        Error::TooLarge(_) => bad(format!("It unpacks to more than {limit} bytes")),
        Error::Invalid(_) => bad("It is no gzip file, or a damaged one"),
        other => other.into(),
    })
}

/// 400 with a sentence for who sent the chart.
pub(crate) fn bad(text: impl Into<String>) -> Failure {
    Failure::new(400, "invalid_chart", format!("This is no chart. {}", text.into()))
}

/// Why an archive is not accepted.
#[derive(Debug)]
pub(crate) enum Refusal {
    Bad(&'static str),
    Host(Error),
}

impl Refusal {
    fn into_failure(self) -> Failure {
        match self {
            Self::Bad(text) => bad(text),
            Self::Host(error) => error.into(),
        }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Host(error)
    }
}

impl From<TarError> for Refusal {
    fn from(error: TarError) -> Self {
        Self::Bad(match error {
            TarError::Header | TarError::Extended | TarError::Trailing => {
                "It is no tar archive, or a damaged one"
            }
            TarError::Size => "A size in it is no number",
            TarError::TooLarge => "A header in it is larger than 64 KiB",
            TarError::TooMany => "It holds too many headers",
            TarError::Truncated => "It breaks off",
            TarError::Host(error) => return Self::Host(error),
        })
    }
}

/// The bytes of `FOLDER/name`, of whatever folder. One that is there twice could be read as either.
pub(crate) fn find(
    archive: &(impl ReadAt + ?Sized),
    name: &[u8],
    limit: u64,
) -> Result<Option<Vec<u8>>, Refusal> {
    let mut reader = TarReader::new(archive, TarRules::Lenient, HEADER)?;
    let mut found = None;
    for _ in 0..ENTRIES {
        let Some(entry) = reader.next_entry()? else { return Ok(found) };
        if entry.kind == TarKind::Folder || inner(&entry.path) != Some(name) {
            continue;
        }
        if found.is_some() {
            return Err(Refusal::Bad("It holds one file twice"));
        }
        if entry.kind != TarKind::File || entry.size > limit {
            return Err(Refusal::Bad("A file in it that is read is larger than allowed, or a link"));
        }
        found = Some(reader.content(&entry)?);
    }
    Err(Refusal::Bad("It holds more than 50,000 entries"))
}

/// The name of a file right in the archive's folder.
fn inner(path: &[u8]) -> Option<&[u8]> {
    let mut parts = path.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".");
    let (_, file) = (parts.next()?, parts.next()?);
    parts.next().is_none().then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use packhouse_testkit::tar_archive;
    use proptest::prelude::*;

    #[test]
    fn the_chart_yaml_of_the_folder_is_found() {
        let sub = ("demo/charts/sub/Chart.yaml", b'0', &b"sub"[..]);
        let own = ("demo/Chart.yaml", b'0', &b"own"[..]);
        let found =
            |entries: &[(&str, u8, &[u8])]| find(tar_archive(entries, 1024).as_slice(), b"Chart.yaml", 10);
        assert_eq!(found(&[sub, own]).unwrap().unwrap(), b"own");
        assert_eq!(found(&[sub]).unwrap(), None);
        assert_eq!(found(&[("./demo//Chart.yaml", b'0', b"own")]).unwrap().unwrap(), b"own");
        assert!(found(&[own, ("other/Chart.yaml", b'0', b"x")]).is_err());
        assert!(found(&[("demo/Chart.yaml", b'0', b"longer than ten")]).is_err());
        assert!(found(&[("demo/Chart.yaml", b'2', b"")]).is_err());
        assert!(find(&b"nonsense"[..], b"Chart.yaml", 10).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_walked(bytes in prop::collection::vec(any::<u8>(), 0..1500)) {
            let _ = find(bytes.as_slice(), b"Chart.yaml", 1000);
        }
    }
}
