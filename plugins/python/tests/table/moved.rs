//! Files that are moved from another server. The server accepts such files even if it would refuse
//! a new release with the same contents, and serves them unchanged.

use super::{JSON, form, get, upload, wheel};
use packhouse_testkit::Case;

/// Marks a request as a move from another server.
fn moved(case: Case) -> Case {
    case.with("packhouse-published-at", "unknown")
}

/// Wheels and source distributions whose archives the server refuses in a new release.
pub(super) fn moved_wheels() -> Vec<Case> {
    let changed = |version: &str, end: &str, change: &dyn Fn(Vec<u8>) -> Vec<u8>| {
        wheel::changed_wheel("old", version, end, change)
    };
    let line =
        |lines: Vec<u8>, from: &str, to: &str| String::from_utf8_lossy(&lines).replace(from, to).into_bytes();
    let surplus = changed("1.0", "RECORD", &|lines| [&lines[..], b"old/gone.py,,\n"].concat());
    let lacking = changed("1.1", "RECORD", &|lines| line(lines, "old/__init__.py,,\n", ""));
    let wrong = changed("1.2", "RECORD", &|lines| line(lines, "init__.py,,", "init__.py,sha256=x,"));
    let latin = changed("1.3", "METADATA", &|fields| [&fields[..], b"Author: Andr\xe9\n"].concat());
    let info = [wheel::metadata("old", "1.4", "").as_bytes(), b"Author: Andr\xe9\n"].concat();
    let source = wheel::tar_gz(&[("old-1.4/PKG-INFO", &info)]);
    let sent = |case: &str, version: &str, file: &[u8]| moved(upload(case, "old", version, file, 200));
    let at = |version: &str, name: &str| format!("/packages/old/{version}/{name}");
    vec![
        upload("new: a row too many", "old", "1.0", &surplus, 400).contains("which is not in the wheel"),
        upload("new: a row too few", "old", "1.1", &lacking, 400).contains("does not list its file"),
        upload("new: a wrong digest", "old", "1.2", &wrong, 400).contains("a wrong sha256 for its file"),
        upload("new: in Latin-1", "old", "1.3", &latin, 400).contains("not UTF-8"),
        form("new: a source in Latin-1", "old", "1.4", "old-1.4.tar.gz", &source, 400).contains("not UTF-8"),
        get("none of them was published", "/simple/old/", 404),
        sent("moved: a row too many", "1.0", &surplus),
        sent("moved: a row too few", "1.1", &lacking),
        sent("moved: a wrong digest", "1.2", &wrong),
        sent("moved: in Latin-1", "1.3", &latin),
        moved(form("moved: a source in Latin-1", "old", "1.4", "old-1.4.tar.gz", &source, 200)),
        sent("moved: no archive at all", "1.5", b"PK"),
        moved(upload("moved: the same again", "old", "1.0", &surplus, 409)).code("version_already_exists"),
        get("its bytes", &at("1.0", "old-1.0-py3-none-any.whl"), 200).content(&surplus),
        get("its metadata", &at("1.0", "old-1.0-py3-none-any.whl.metadata"), 200).contains("Name: old"),
        get("metadata that installers cannot read", &at("1.3", "old-1.3-py3-none-any.whl.metadata"), 404),
        get("the same metadata of a source", &at("1.4", "old-1.4.tar.gz.metadata"), 200).content(&info),
        get("no metadata", &at("1.5", "old-1.5-py3-none-any.whl.metadata"), 404),
        get("all are listed", "/simple/old/", 200)
            .with("accept", JSON)
            .contains(r#""versions":["1.0","1.1","1.2","1.3","1.4","1.5"]"#),
        get("Latin-1 text", "/pypi/old/1.4/json", 200).contains("Andr\u{e9}"),
        get("a document without metadata", "/pypi/old/1.5/json", 200).contains(r#""version":"1.5""#),
    ]
}

/// Kinds of files that can no longer be published.
pub(super) fn moved_files() -> Vec<Case> {
    let sent = |name: &str, status| {
        let case = Case::new(name, "POST", "/", status).part(":action", None, "file_upload");
        let case = case.part("name", None, "kinds").part("requires_python", None, ">=2.7");
        moved(case.part("content", Some(name), name))
    };
    let first = wheel::wheel("kinds", "1.0", "Requires-Python: >=3.8\n");
    let page = get("all are listed", "/simple/kinds/", 200).with("accept", JSON).contains(">=2.7");
    let names = [
        "kinds-1.0.tar.bz2",
        "Kinds-1.0.tgz",
        "kinds-1.0.tar.xz",
        "kinds-1.0-py2.7.egg",
        "kinds-1.0.win32-py2.7.exe",
        "kinds-1.0.win32-py2.7.msi",
        "kinds-1.0-1.noarch.rpm",
        "kinds-0.9.linux-x86_64.tar.gz",
    ];
    let listed = |name: &&str| format!("{:?}:{name:?}", "filename");
    let page = names.iter().map(listed).fold(page, |page, listed| page.contains(&listed));
    let egg = "/packages/kinds/1.0/kinds-1.0-py2.7.egg";
    let mut cases = vec![
        upload("a wheel", "kinds", "1.0", &first, 200),
        form("a new egg", "kinds", "1.0", "kinds-1.0-py2.7.egg", b"egg", 400).contains("neither a wheel"),
    ];
    cases.extend(names.iter().map(|name| sent(name, 200)));
    cases.extend([
        sent("kinds-trunk.zip", 400).contains("a PEP 440 version"),
        sent("other-1.0.egg", 400).contains("a file of kinds"),
        sent("kinds-1.0.txt", 400),
        sent("kinds-1.0-py2.7.egg", 409),
        page,
        get("its bytes", egg, 200).content("kinds-1.0-py2.7.egg"),
        get("no metadata of an egg", &format!("{egg}.metadata"), 404),
        get("the wheel's metadata is used", "/pypi/kinds/1.0/json", 200)
            .contains(r#""summary":"About kinds""#)
            .contains(r#""packagetype":"bdist_wininst""#),
        get("a version without metadata", "/pypi/kinds/0.9/json", 200).contains(r#""name":"kinds""#),
        Case::new("deleted", "DELETE", egg, 204),
        get("it is gone", egg, 404),
    ]);
    cases
}
