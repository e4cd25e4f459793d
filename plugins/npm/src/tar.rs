//! The archive within a tarball: its own `package.json` and bills of materials, found by reading headers alone.
//!
//! Installers drop the first folder of every path and take the last file of a name. What they would find must be what the
//! registry was told, or a package could show one face here and another on disk.

use packhouse_sdk::{Error, ReadAt, TarEntry, TarError, TarKind, TarReader, TarRules, VersionDocument};

/// Entries of an archive.
const ENTRIES: u32 = 200_000;
/// What says what a package is.
const PACKAGE_JSON: &[u8] = b"package.json";
/// What pins the dependencies of a package for those who install it.
const SHRINKWRAP: &[u8] = b"npm-shrinkwrap.json";
/// Bytes of a `package.json`, and of an extended header.
const SMALL: u64 = 1 << 20;

/// Bills of materials that are looked at.
const SBOMS: usize = 16;
/// Bytes of what one is called.
const SBOM_NAME: usize = 200;

/// What an archive says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Contents {
    /// The bytes of the package's own `package.json`.
    pub(crate) package_json: Vec<u8>,
    /// Its bills of materials.
    pub(crate) sboms: Vec<Sbom>,
    /// Whether it pins what it depends on.
    pub(crate) has_shrinkwrap: bool,
    /// Whether there is something that clients build when they install it.
    pub(crate) has_gyp: bool,
}

/// A bill of materials in an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sbom {
    /// Its path in the package.
    pub(crate) title: String,
    pub(crate) media_type: &'static str,
    /// Offset of its bytes in the archive.
    pub(crate) offset: u64,
    /// How many bytes.
    pub(crate) size: u64,
}

/// Why an archive is not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The publisher's fault, in words.
    Bad(&'static str),
    /// The host's.
    Host(Error),
}

impl From<TarError> for Refusal {
    fn from(error: TarError) -> Self {
        Self::Bad(match error {
            TarError::Header | TarError::Extended | TarError::Trailing => "it is no tar archive, or damaged",
            TarError::Size => "a size in it is no number",
            TarError::TooLarge => "a header in it is larger than 1 MiB",
            TarError::TooMany => "it holds too many headers",
            TarError::Truncated => "it breaks off",
            TarError::Host(error) => return Self::Host(error),
        })
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Host(error)
    }
}

/// What the archive says of itself. Of bills of materials in one place the last counts.
///
/// # Errors
/// [`Refusal::Bad`] for what is no archive, one without a `package.json` or with more than one, and one with too many entries.
pub(crate) fn contents(archive: &impl ReadAt) -> Result<Contents, Refusal> {
    let mut reader = TarReader::new(archive, TarRules::Lenient, SMALL)?;
    let (mut found, mut seen) = (None, false);
    let mut sboms: Vec<Sbom> = Vec::new();
    let (mut has_shrinkwrap, mut has_gyp) = (false, false);
    for _ in 0..ENTRIES {
        let Some(entry) = reader.next_entry()? else {
            let package_json = found.ok_or(Refusal::Bad("it holds no package.json"))?;
            return Ok(Contents { package_json, sboms, has_shrinkwrap, has_gyp });
        };
        if let Some(sbom) = sbom(&entry) {
            sboms.retain(|before| before.title != sbom.title);
            if sboms.len() < SBOMS {
                sboms.push(sbom);
            }
        }
        let Some(name) = name_at_first_level(&entry.path) else { continue };
        has_shrinkwrap |= name == SHRINKWRAP && entry.kind == TarKind::File;
        has_gyp |= name.ends_with(b".gyp") && entry.kind == TarKind::File;
        if !name.eq_ignore_ascii_case(PACKAGE_JSON) {
            continue;
        }
        // On many a disk two names that differ in their case alone are one file.
        if seen {
            return Err(Refusal::Bad("it holds package.json more than once"));
        }
        seen = true;
        if name != PACKAGE_JSON {
            continue;
        }
        if entry.kind != TarKind::File || entry.size > SMALL {
            return Err(Refusal::Bad("its package.json is no file of at most 1 MiB"));
        }
        found = Some(reader.content(&entry)?);
    }
    Err(Refusal::Bad("it holds more than 200,000 entries"))
}

/// The bill of materials that an entry is: a file that is called so, at the first level or in the folder `sbom` or `sboms` of it.
fn sbom(entry: &TarEntry) -> Option<Sbom> {
    let path = std::str::from_utf8(&entry.path).ok()?;
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let title = match parts.as_slice() {
        [_, file] => (*file).to_owned(),
        [_, folder @ ("sbom" | "sboms"), file] => format!("{folder}/{file}"),
        _ => return None,
    };
    let media_type = VersionDocument::media_type_of(&title)?;
    let fits = entry.kind == TarKind::File && entry.size > 0 && entry.size <= VersionDocument::MAX_BYTES;
    let titled = title.len() <= SBOM_NAME && !title.contains('\0');
    (fits && titled).then(|| Sbom { title, media_type, offset: entry.offset(), size: entry.size })
}

/// The name of a file of the archive's first level, as installers see it: whatever its folder is called.
fn name_at_first_level(path: &[u8]) -> Option<&[u8]> {
    let parts: Vec<&[u8]> =
        path.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".").collect();
    match parts.as_slice() {
        [_, file] => Some(file),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packhouse_testkit::tar_archive;
    use proptest::prelude::*;

    /// With what ends an archive.
    fn archive(entries: &[(&str, u8, &[u8])]) -> Vec<u8> {
        tar_archive(entries, 1024)
    }

    fn package_json(archive: &Vec<u8>) -> Result<Vec<u8>, Refusal> {
        contents(archive).map(|contents| contents.package_json)
    }

    #[test]
    fn bills_of_materials_are_found_where_installers_would_put_them() {
        let large = vec![b'x'; 600];
        let bytes = archive(&[
            ("package/bom.json", b'0', b"first"),
            ("package/package.json", b'0', b"{}"),
            ("package/sboms/lib.spdx.json", b'0', &large),
            ("package/src/bom.json", b'0', b"no"),
            ("package/link.cdx.json", b'2', b""),
            ("package/empty.cdx.json", b'0', b""),
            ("package/readme.json", b'0', b"no"),
            ("package/bom.json", b'0', b"last"),
        ]);
        let sboms = contents(&bytes).unwrap().sboms;
        let read = |sbom: &Sbom| {
            let offset = usize::try_from(sbom.offset).unwrap();
            bytes[offset..offset + usize::try_from(sbom.size).unwrap()].to_vec()
        };
        let told: Vec<_> = sboms.iter().map(|one| (one.title.as_str(), one.media_type, read(one))).collect();
        assert_eq!(
            told,
            [
                ("sboms/lib.spdx.json", VersionDocument::SPDX_JSON, large),
                ("bom.json", VersionDocument::CYCLONEDX_JSON, b"last".to_vec()),
            ]
        );
    }

    #[test]
    fn what_pins_and_what_is_built_is_found_at_the_first_level_alone() {
        let found = |path: &str, kind: u8| {
            let bytes = archive(&[("package/package.json", b'0', b"{}"), (path, kind, b"")]);
            let Contents { has_shrinkwrap, has_gyp, .. } = contents(&bytes).unwrap();
            (has_shrinkwrap, has_gyp)
        };
        assert_eq!(found("package/npm-shrinkwrap.json", b'0'), (true, false));
        assert_eq!(found("other/binding.gyp", b'0'), (false, true));
        assert_eq!(found("package/lib/npm-shrinkwrap.json", b'0'), (false, false));
        assert_eq!(found("package/npm-shrinkwrap.json", b'2'), (false, false));
        assert_eq!(found("package/package-lock.json", b'0'), (false, false));
    }

    #[test]
    fn the_file_of_the_first_level_is_found_whatever_its_folder_is_called() {
        let long = format!("{}/package.json", "f".repeat(150));
        let pax = format!("{} path={long}\n", long.len() + 10);
        for entries in [
            &[("package/package.json", b'0', &b"{}"[..])][..],
            &[("package/", b'5', b""), ("package/a/package.json", b'0', b"no"), ("x/package.json", 0, b"{}")],
            &[("./package/package.json", b'0', b"{}"), ("package.json", b'0', b"no")],
            &[("pax", b'x', pax.as_bytes()), ("cut", b'0', b"{}")],
            &[("long", b'L', b"package/package.json\0"), ("cut", b'0', b"{}")],
            &[("g", b'g', b"12 comment=x\n"), ("package/package.json", b'0', b"{}")],
        ] {
            assert_eq!(package_json(&archive(entries)), Ok(b"{}".to_vec()), "{entries:?}");
        }
    }

    #[test]
    fn what_could_show_two_faces_is_refused() {
        let two: &[(&str, u8, &[u8])] =
            &[("package/package.json", b'0', b"{}"), ("other/package.json", b'0', b"{}")];
        let case: &[(&str, u8, &[u8])] =
            &[("package/package.json", b'0', b"{}"), ("package/Package.JSON", b'0', b"{}")];
        let link: &[(&str, u8, &[u8])] = &[("package/package.json", b'2', b"")];
        for (bytes, words) in [
            (archive(two), "more than once"),
            (archive(case), "more than once"),
            (archive(link), "no file"),
            (archive(&[]), "no package.json"),
            (b"not a tar at all".to_vec(), "no tar"),
            (vec![b'x'; 2048], "no tar"),
            (archive(two)[..513].to_vec(), "breaks off"),
        ] {
            match package_json(&bytes) {
                Err(Refusal::Bad(said)) => assert!(said.contains(words), "{said} / {words}"),
                other => panic!("{words}: {other:?}"),
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_walked(bytes in prop::collection::vec(any::<u8>(), 0..3000)) {
            let _ = package_json(&bytes);
        }

        #[test]
        fn any_change_of_an_archive_is_walked(at in 0usize..1536, byte in any::<u8>()) {
            let mut bytes = archive(&[("package/package.json", b'0', b"{}")]);
            bytes[at] = byte;
            let _ = package_json(&bytes);
        }
    }
}
