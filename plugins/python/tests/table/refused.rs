//! Refused uploads: forms, names, wheels, zips and sources that are wrong or ambiguous.

use super::wheel::{self, Faults};
use super::{form, get, upload};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use packhouse_testkit::Case;
use sha2::{Digest as _, Sha256, Sha512};

/// Forms with missing, repeated or wrong fields.
pub(super) fn refused_forms() -> Vec<Case> {
    let file = wheel::wheel("forms", "1.0", "");
    let name = "forms-1.0-py3-none-any.whl";
    let post = |name: &str, status| Case::new(name, "POST", "/", status);
    let whole = |name: &str, status| {
        form(name, "forms", "1.0", "forms-1.0-py3-none-any.whl", &wheel::wheel("forms", "1.0", ""), status)
    };
    let action = |word: &str| {
        post(word, 410).part(":action", None, word).code("not_supported").lacks("was ever registered")
    };
    vec![
        Case::new("no form at all", "POST", "/", 400).body("x"),
        post("no action and no file", 400).part("name", None, "forms").contains("`content` is missing"),
        post("an unknown action", 400).part(":action", None, "upload").contains(":action"),
        action("submit"),
        action("register"),
        action("doc_upload"),
        post("no file", 400).part(":action", None, "file_upload").contains("`content` is missing"),
        whole("the name twice", 400).part("name", None, "other").contains("`name` is in the form twice"),
        whole("two files", 400).part("content", Some(name), &file).contains("`content` is in the form twice"),
        whole("a wrong SHA-256", 400).part("sha256_digest", None, "0".repeat(64)).code("checksum_mismatch"),
        whole("a wrong MD5", 400).part("md5_digest", None, "0".repeat(32)).code("checksum_mismatch"),
        whole("a wrong BLAKE2", 400)
            .part("blake2_256_digest", None, "0".repeat(64))
            .code("checksum_mismatch"),
        whole("no digest", 400).part("md5_digest", None, "x").code("invalid_checksum"),
        whole("another protocol", 400).part("protocol_version", None, "2").contains("twice"),
        get("nothing was published", "/simple/forms/", 404),
    ]
}

/// Names and versions that are invalid or do not agree.
pub(super) fn refused_names() -> Vec<Case> {
    let file = wheel::wheel("names", "1.0", "");
    let name = "names-1.0-py3-none-any.whl";
    let sent = |case: &str, project: &str, version: &str, called: &str| {
        form(case, project, version, called, &file, 400)
    };
    vec![
        sent("another project in the form", "other", "1.0", name).contains("the form is for other 1.0"),
        sent("another version in the form", "names", "2.0", name).contains("the form is for names 2.0"),
        sent("no name", "-names", "1.0", name).contains("not a valid project name"),
        sent("no version", "names", "one", name).contains("PEP 440"),
        sent("a name with a path", "names", "1.0", "../names-1.0-py3-none-any.whl")
            .contains("not a valid name for a distribution file"),
        sent("a Windows program", "names", "1.0", "names-1.0.win32.exe").contains("neither a wheel"),
        sent("invalid tags", "names", "1.0", "names-1.0-py3-none.whl").contains("NAME-VERSION-TAGS.whl"),
        form("another type", "names", "1.0", "names-1.0.tar.gz", &file, 400).contains("gzip"),
        get("nothing was published", "/simple/names/", 404),
    ]
}

/// Wheels whose contents do not match their name.
pub(super) fn refused_wheels() -> Vec<Case> {
    let name = "mine-1.0-py3-none-any.whl";
    let sent = |case: &str, file: &[u8], words: &str| {
        form(case, "mine", "1.0", name, file, 400).code("invalid_distribution").contains(words)
    };
    let changed = |end: &str, change: &dyn Fn(&[u8]) -> Option<Vec<u8>>| {
        let files = wheel::wheel_files("mine", "1.0", "");
        let files = files.into_iter().filter_map(|(name, content)| {
            if name.ends_with(end) {
                change(&content).map(|content| (name, content))
            } else {
                Some((name, content))
            }
        });
        wheel::zip(&wheel::borrowed(&files.collect::<Vec<_>>()))
    };
    let replaced = |from: &'static str, to: &'static str| {
        move |content: &[u8]| Some(String::from_utf8_lossy(content).replace(from, to).into_bytes())
    };
    let mut added = wheel::wheel_files("mine", "1.0", "");
    added.insert(0, ("mine/evil.py".to_owned(), b"import os".to_vec()));
    vec![
        sent(
            "another project's wheel",
            &wheel::wheel("victim", "1.0", ""),
            "belongs to another name or version",
        ),
        sent(
            "another version's wheel",
            &wheel::wheel("mine", "2.0", ""),
            "belongs to another name or version",
        ),
        sent(
            "metadata of another project",
            &changed("METADATA", &replaced("Name: mine", "Name: victim")),
            "\"victim 1.0\"",
        ),
        sent(
            "metadata of another version",
            &changed("METADATA", &replaced("Version: 1.0", "Version: 1.1")),
            "not for mine 1.0",
        ),
        sent(
            "two names",
            &changed("METADATA", &replaced("Name: mine", "Name: mine\nName: victim")),
            "name twice",
        ),
        sent(
            "no metadata",
            &changed("METADATA", &|_| None),
            "lists mine-1.0.dist-info/METADATA, which is not in the wheel",
        ),
        sent("no WHEEL", &changed("WHEEL", &|_| None), "WHEEL"),
        sent(
            "another format of wheel",
            &changed("WHEEL", &replaced("Wheel-Version: 1.0", "Wheel-Version: 2.0")),
            "1.x",
        ),
        sent("no RECORD", &changed("RECORD", &|_| None), "no file mine-1.0.dist-info/RECORD"),
        sent(
            "a file that RECORD does not name",
            &wheel::zip(&wheel::borrowed(&added)),
            "does not list its file mine/evil.py",
        ),
        sent("no archive", b"PK", "not a zip archive"),
        sent("nothing", b"", "not a zip archive"),
        get("nothing was published", "/simple/mine/", 404),
        get("nor under the other name", "/simple/victim/", 404),
    ]
}

/// Wheels whose RECORD has correct or wrong digests.
pub(super) fn refused_digests() -> Vec<Case> {
    let long = b"VERSION = 1 # and so on\n".repeat(1000);
    let sha256 = |bytes: &[u8]| format!("sha256={}", URL_SAFE_NO_PAD.encode(Sha256::digest(bytes)));
    let sha512 = |bytes: &[u8]| format!("sha512={}", URL_SAFE_NO_PAD.encode(Sha512::digest(bytes)));
    let sent = |case: &str, version: &str, short: &str, packed: &str, status| {
        let mut files = wheel::wheel_files("summed", version, "");
        if let Some((_, record)) = files.last_mut() {
            let stated = format!("summed/__init__.py,{short},");
            let lines = String::from_utf8_lossy(record).replace("summed/__init__.py,,", &stated);
            *record = format!("{lines}summed/long.py,{packed},\n").into_bytes();
        }
        files.push(("summed/long.py".to_owned(), long.clone()));
        upload(case, "summed", version, &wheel::zip(&wheel::borrowed(&files)), status)
    };
    let refused = |case: &str, short: &str, packed: &str, words: &str| {
        sent(case, "1.0", short, packed, 400).code("invalid_distribution").contains(words)
    };
    let short = b"VERSION = \"1.0\"\n";
    let (other, other_512) = (sha256(b"other"), sha512(b"other"));
    // The wheel has more files than the plugin compares. The RECORD states a wrong digest for the
    // file with the number `wrong`.
    let many = |case: &str, wrong: usize, status: u16| {
        let mut files = wheel::wheel_files("many", "1.0", "");
        let right = sha256(b"x");
        let names: Vec<String> = (0..=500).map(|number| format!("many/m{number}.py")).collect();
        if let Some((_, record)) = files.last_mut() {
            let stated = |at: usize| if at == wrong { &other } else { &right };
            let line = |(at, name): (usize, &String)| format!("{name},{},\n", stated(at));
            let lines: String = names.iter().enumerate().map(line).collect();
            record.extend(lines.into_bytes());
        }
        files.extend(names.into_iter().map(|name| (name, b"x".to_vec())));
        upload(case, "many", "1.0", &wheel::zip(&wheel::borrowed(&files)), status)
    };
    // The wheel has a file with a correct digest, but the file's header states `size` as the
    // unpacked size.
    let sized = |case: &str, size: usize| {
        let mut files = wheel::wheel_files("sized", "1.0", "");
        if let Some((_, record)) = files.last_mut() {
            record.extend(format!("sized/long.py,{},\n", sha256(&long)).into_bytes());
        }
        files.insert(0, ("sized/long.py".to_owned(), long.clone()));
        let faults = Faults { size: Some(size as u32), ..Faults::default() };
        upload(case, "sized", "1.0", &wheel::broken_zip(&wheel::borrowed(&files), &faults), 400)
            .code("invalid_distribution")
            .contains("its file sized/long.py unpacks to another size")
    };
    vec![
        refused(
            "a wrong digest of a stored file",
            &other,
            "",
            "a wrong sha256 for its file summed/__init__.py",
        ),
        refused(
            "a wrong digest of a compressed file",
            &sha256(short),
            &other,
            "a wrong sha256 for its file summed/long.py",
        ),
        refused("a wrong SHA-512", "", &other_512, "a wrong sha512 for its file summed/long.py"),
        refused("an invalid digest", "sha256=x", "", "a wrong sha256 for its file summed/__init__.py"),
        get("nothing was published", "/simple/summed/", 404),
        sent("right digests", "1.0", &sha256(short), &sha512(&long), 200),
        sent("a digest with padding", "1.1", "", &format!("{}=", sha256(&long)), 200),
        sent("algorithms that are not compared", "1.2", "md5=x", "sha384=x", 200),
        many("a wrong digest of the last compared file", 499, 400)
            .code("invalid_distribution")
            .contains("a wrong sha256 for its file many/m499.py"),
        many("a wrong digest after the limit", 500, 200),
        sized("a file longer than its header states", long.len() - 1),
        sized("a file shorter than its header states", long.len() + 1),
    ]
}

/// Archives that two programs would unpack differently.
pub(super) fn refused_zips() -> Vec<Case> {
    let files = wheel::wheel_files("zips", "1.0", "");
    let files = wheel::borrowed(&files);
    let sent = |case: &str, file: &[u8], words: &str| {
        upload(case, "zips", "1.0", file, 400).code("invalid_distribution").contains(words)
    };
    let broken =
        |case: &str, faults: Faults, words: &str| sent(case, &wheel::broken_zip(&files, &faults), words);
    let with = |name: &'static str| [&files[..], &[(name, &b"x"[..])]].concat();
    let none = Faults::default;
    let whole = wheel::zip(&files);
    let bomb = vec![0_u8; 70 << 20];
    let mut large = with("zips/zeros");
    large.last_mut().unwrap().1 = &bomb;
    vec![
        broken(
            "another name in the local header",
            Faults { local_name: Some("zips/__evil__.py"), ..none() },
            "two headers that differ",
        ),
        broken("data in front", Faults { before: b"MZ", ..none() }, "before its first file"),
        broken("data in between", Faults { between: b"PK\x03\x04", ..none() }, "data after its file"),
        broken("data after the end", Faults { behind: b"PK", ..none() }, "after its end record"),
        sent("two archives", &[&whole[..], &whole].concat(), "do not agree"),
        broken("too few entries", Faults { more_entries: 1, ..none() }, "does not have as many entries"),
        broken("encrypted", Faults { flags: 1, ..none() }, "encrypted"),
        broken("another compression", Faults { method: Some(14), ..none() }, "neither stored nor deflated"),
        broken("a second name", Faults { extra: b"\x75\x70\x01\x00\x01", ..none() }, "two names"),
        broken("a damaged extra field", Faults { extra: b"\x01\x00\xff", ..none() }, "extra field"),
        broken("another size", Faults { size: Some(3), ..none() }, "packed and unpacked sizes differ"),
        sent("one file twice", &wheel::zip(&with("zips/__init__.py")), "twice"),
        sent("a file and a folder", &wheel::zip(&with("zips/__init__.py/")), "twice"),
        sent("a file above", &wheel::zip(&with("../evil.py")), "not a valid file name"),
        sent("an absolute file", &wheel::zip(&with("/evil.py")), "not a valid file name"),
        sent("a Windows path", &wheel::zip(&with("zips\\evil.py")), "not a valid file name"),
        sent("a zero in a name", &wheel::zip(&with("zips/a\0.py")), "not a valid file name"),
        sent("a bomb", &wheel::zip(&large), "100 times its size"),
        sent("cut off", &whole[..whole.len() - 1], "after its end record"),
        get("nothing was published", "/simple/zips/", 404),
    ]
}

pub(super) fn refused_sources() -> Vec<Case> {
    let info = wheel::metadata("source", "1.0", "");
    let info = info.as_bytes();
    let sent = |case: &str, file: &[u8], words: &str| {
        form(case, "source", "1.0", "source-1.0.tar.gz", file, 400)
            .code("invalid_distribution")
            .contains(words)
    };
    let tar = |files: &[(&str, &[u8])]| wheel::tar_gz(files);
    let whole = wheel::tar(&[("source-1.0/PKG-INFO", info)]);
    let bomb = wheel::gzip(&vec![0; 70 << 20]);
    vec![
        sent("no gzip", &whole, "not compressed with gzip"),
        sent("a bomb", &bomb, "100 times its size"),
        sent("no PKG-INFO", &tar(&[("source-1.0/setup.py", b"")]), "no file NAME-VERSION/PKG-INFO"),
        sent("two folders", &tar(&[("source-1.0/PKG-INFO", info), ("other/x", b"")]), "one folder"),
        sent("a file beside", &tar(&[("source-1.0/PKG-INFO", info), ("setup.py", b"")]), "one folder"),
        sent(
            "PKG-INFO twice",
            &tar(&[("source-1.0/PKG-INFO", info), ("source-1.0/PKG-INFO", info)]),
            "occurs twice",
        ),
        sent(
            "a file above",
            &tar(&[("source-1.0/PKG-INFO", info), ("source-1.0/../../x", b"")]),
            "not a valid file name",
        ),
        sent("another project's source", &wheel::sdist("victim", "1.0"), "\"victim 1.0\""),
        sent("cut off", &wheel::gzip(&whole[..700]), "it ends too early"),
        sent("data after the end", &wheel::gzip(&[&whole[..], b"more"].concat()), "data after its end"),
        sent("damaged", &wheel::gzip(&whole.iter().map(|byte| byte ^ 1).collect::<Vec<_>>()), "damaged"),
        form(
            "a zipped source",
            "source",
            "1.0",
            "source-1.0.zip",
            &wheel::zip(&[("source-1.0/PKG-INFO", info)]),
            200,
        ),
    ]
}
