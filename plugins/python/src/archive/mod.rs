//! What a distribution's archive says of itself: a wheel's METADATA, a source's PKG-INFO. An archive that two programs could
//! unpack differently is refused, and so is one that grows out of all proportion, or a wheel whose RECORD is not right.

mod record;
mod tar;

use crate::filename::{Filename, Kind};
use crate::metadata::{self, Metadata};
use crate::name;
use crate::version::Version;
use packhouse_sdk::{Blob, Error, Failure, VersionDocument};
use packhouse_zip::{Archive, ArchiveError, most};
use record::Record;

/// Bytes of a wheel's RECORD: a line for each file.
const RECORD_LIMIT: u64 = 16 << 20;
/// Bytes of a wheel's WHEEL: a few lines.
const WHEEL_LIMIT: u64 = 64 << 10;

/// Files of a wheel that are compared with its RECORD: where the upload lies in S3, each is a request of its own …
const COMPARED: usize = 500;
/// … and their bytes together, unpacked.
const COMPARED_BYTES: u64 = 4 << 30;

/// Bills of materials of a wheel that are kept beside it.
const SBOMS: usize = 16;
/// Bytes of all of them.
const SBOMS_LIMIT: u64 = 16 << 20;
/// Bytes of what one is called.
const SBOM_NAME: usize = 200;

/// The answer to who sent `file`.
pub(crate) fn failure(error: ArchiveError, file: &str) -> Failure {
    match error {
        ArchiveError::Refused(text) => {
            Failure::new(400, "invalid_distribution", format!("{file} is refused: {text}"))
        }
        ArchiveError::Host(error) => error.into(),
    }
}

/// What an archive holds of its metadata; nothing of one that nobody reads here.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) metadata: Option<Metadata>,
    /// Byte by byte as it lies in the archive, where installers can read it.
    pub(crate) bytes: Option<Vec<u8>>,
    /// A wheel's bills of materials (PEP 770), each under its name there.
    pub(crate) sboms: Vec<Member>,
}

/// Which rules an archive must keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rules {
    /// Those for a new release.
    New,
    /// Those for a file that another server had: of a wheel, METADATA alone is read, in Latin-1 too.
    Moved,
}

/// Reads the archive of a file that is called so, and checks it by these rules.
pub(crate) fn inspect(filename: &Filename, blob: &Blob, rules: Rules) -> Result<Found, ArchiveError> {
    let (bytes, sboms) = match filename.kind {
        Kind::Wheel => wheel(filename, blob, rules)?,
        Kind::Zip => (zipped_source(blob)?, Vec::new()),
        Kind::Tar => (tar::package_info(&unpacked(blob)?)?, Vec::new()),
        Kind::Other(_) => return Ok(Found::default()),
    };
    let is_utf8 = core::str::from_utf8(&bytes).is_ok();
    if rules == Rules::New && !is_utf8 {
        return Err(ArchiveError::refused("its metadata are not UTF-8"));
    }
    let metadata = Metadata::parse(&bytes).map_err(ArchiveError::Refused)?;
    let (project, version) = (metadata.project(), metadata.version());
    if project.as_deref() != Some(&filename.project) || version.as_ref() != Some(&filename.version) {
        let said = [metadata.get("name"), metadata.get("version")].map(Option::unwrap_or_default).join(" ");
        let text =
            format!("its metadata are those of {said:?}, not of {} {}", filename.project, filename.version);
        return Err(ArchiveError::refused(text));
    }
    // Those of a wheel are announced to installers, which read them as UTF-8.
    let bytes = Some(bytes).filter(|_| is_utf8 || filename.kind != Kind::Wheel);
    Ok(Found { metadata: Some(metadata), bytes, sboms })
}

/// A file of an archive: what it is called, and its bytes.
type Member = (String, Vec<u8>);

/// Its METADATA and its bills of materials.
fn wheel(filename: &Filename, blob: &Blob, rules: Rules) -> Result<(Vec<u8>, Vec<Member>), ArchiveError> {
    let archive = Archive::read(blob)?;
    archive.check_ratio(blob.size()?)?;
    let folder = dist_info(&archive, filename)?;
    let record = match rules {
        Rules::New => Some(checked_record(&archive, blob, &folder)?),
        Rules::Moved => None,
    };
    let metadata = archive.content(blob, &format!("{folder}/METADATA"), metadata::LIMIT)?;
    let sboms = sboms(&archive, blob, &folder)?;
    // Last, because the host bounds what it unpacks in one call.
    if let Some(record) = record {
        compare(&archive, blob, &record)?;
    }
    Ok((metadata, sboms))
}

/// The RECORD of a wheel whose WHEEL is right, and which names the wheel's files.
fn checked_record(archive: &Archive, blob: &Blob, folder: &str) -> Result<Record, ArchiveError> {
    let about = archive.content(blob, &format!("{folder}/WHEEL"), WHEEL_LIMIT)?;
    let of_version_1 =
        |line: &str| line.strip_prefix("Wheel-Version:").is_some_and(|v| v.trim().starts_with("1."));
    if !String::from_utf8_lossy(&about).lines().any(of_version_1) {
        return Err(ArchiveError::refused("its WHEEL does not say Wheel-Version: 1.x"));
    }
    let lines = archive.content(blob, &format!("{folder}/RECORD"), RECORD_LIMIT)?;
    let record = Record::read(&lines, folder)?;
    record.check_names(archive.files())?;
    Ok(record)
}

/// Compares files with the digests that a RECORD states. What goes beyond the bounds is not compared: the host unpacks every file for it.
fn compare(archive: &Archive, blob: &Blob, record: &Record) -> Result<(), ArchiveError> {
    let mut room = COMPARED_BYTES;
    let stated = archive.members().filter_map(|file| Some((file, record.digest(file.name())?)));
    for (file, stated) in stated.take(COMPARED) {
        if file.size() > room {
            continue;
        }
        room -= file.size();
        let found = file.digest(blob, stated.algorithm)?;
        if found.is_some_and(|found| !stated.is_of(&found)) {
            let (name, algorithm) = (file.name(), stated.algorithm);
            let text = format!("its RECORD states a {algorithm} of its file {name} that is not the file's");
            return Err(ArchiveError::refused(text));
        }
    }
    Ok(())
}

/// What lies in a wheel's folder `sboms`. What goes beyond the bounds stays in the wheel alone.
fn sboms(archive: &Archive, blob: &Blob, folder: &str) -> Result<Vec<Member>, ArchiveError> {
    let (inside, mut room) = (format!("{folder}/sboms/"), SBOMS_LIMIT);
    let mut found = Vec::new();
    for name in archive.files() {
        let Some(called) = name.strip_prefix(&inside).filter(|called| called.len() <= SBOM_NAME) else {
            continue;
        };
        let size = archive.size_of(name).unwrap_or(u64::MAX);
        if VersionDocument::media_type_of(called).is_none() || size > room || found.len() == SBOMS {
            continue;
        }
        room -= size;
        found.push((called.to_owned(), archive.content(blob, name, size)?));
    }
    Ok(found)
}

/// The one folder `NAME-VERSION.dist-info`, which must be called like the wheel.
fn dist_info(archive: &Archive, filename: &Filename) -> Result<String, ArchiveError> {
    let tops = archive.names().filter_map(|name| name.split_once('/').map(|(top, _)| top));
    let mut folders: Vec<&str> = tops.filter(|top| top.ends_with(".dist-info")).collect();
    folders.sort_unstable();
    folders.dedup();
    let [folder] = folders.as_slice() else {
        return Err(ArchiveError::refused(format!(
            "it has {} folders NAME-VERSION.dist-info, not one",
            folders.len()
        )));
    };
    let stem = folder.strip_suffix(".dist-info").unwrap_or_default();
    let of_this = stem.rsplit_once('-').is_some_and(|(project, version)| {
        name::project(project).as_ref() == Some(&filename.project)
            && Version::parse(version).is_some_and(|version| version == filename.version)
    });
    if of_this {
        Ok((*folder).to_owned())
    } else {
        Err(ArchiveError::refused(format!("its folder {folder} belongs to another name or version")))
    }
}

fn zipped_source(blob: &Blob) -> Result<Vec<u8>, ArchiveError> {
    let archive = Archive::read(blob)?;
    archive.check_ratio(blob.size()?)?;
    let top = archive.names().next().and_then(|name| name.split('/').next()).unwrap_or_default().to_owned();
    let inside = |name: &str| name.split_once('/').is_some_and(|(first, _)| first == top);
    if !archive.names().all(inside) {
        return Err(ArchiveError::refused("its files do not all lie in one folder NAME-VERSION"));
    }
    archive.content(blob, &format!("{top}/PKG-INFO"), metadata::LIMIT)
}

/// The tar in a `.tar.gz`.
fn unpacked(blob: &Blob) -> Result<Blob, ArchiveError> {
    match blob.decode("gzip", most(blob.size()?), &[]) {
        Ok(tar) => Ok(tar),
        Err(Error::TooLarge(_)) => Err(ArchiveError::bomb()),
        Err(Error::Invalid(_)) => Err(ArchiveError::refused("it is not compressed by gzip, or is damaged")),
        Err(error) => Err(ArchiveError::Host(error)),
    }
}
