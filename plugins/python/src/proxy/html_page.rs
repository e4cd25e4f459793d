//! Reads the links of an upstream's HTML page (PEP 503), and ignores everything else.

use super::json_page::{known_digests, of_project, with_digest};
use super::markup::{Markup, Tag, unescape};
use super::page::PageVisitor;
use super::url;
use crate::index::{MetadataFile, ProjectFile};
use packhouse_sdk::address::join;
use packhouse_sdk::{Failure, ReadAt};

/// Passes each file of the project `name` in a page to `take`. `base` is the page's URL.
pub(super) fn each<S: ReadAt + ?Sized>(
    page: &S,
    base: &str,
    name: &str,
    take: &mut PageVisitor<'_>,
) -> Result<(), Failure> {
    let mut base = base.to_owned();
    let mut markup = Markup::new(page);
    while let Some(tag) = markup.next()? {
        match tag.name.as_str() {
            "base" => {
                if let Some(joined) = tag.attributes.get("href").and_then(|href| join(&base, href)) {
                    base = joined;
                }
            }
            "a" => {
                if let Some(file) = link(&tag, &base, name)
                    && take(file)?.is_break()
                {
                    break;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn link(tag: &Tag, base: &str, name: &str) -> Option<ProjectFile> {
    let Tag { attributes, label, .. } = tag;
    let (address, fragment) = {
        let href = attributes.get("href")?;
        href.split_once('#').unwrap_or((href, ""))
    };
    let metadata = attributes.get("data-core-metadata").or(attributes.get("data-dist-info-metadata"));
    let metadata = match metadata.map(|value| value.strip_prefix("sha256=").ok_or(value)) {
        None => MetadataFile::Absent,
        Some(Ok(hex)) => with_digest(hex),
        Some(Err(_)) => MetadataFile::Unchecked,
    };
    let url = join(base, address)?;
    let named = url::last_segment(&url);
    let file = ProjectFile {
        url: Some(url),
        hashes: known_digests(fragment.split('&').filter_map(|pair| pair.split_once('='))),
        metadata,
        requires_python: attributes.get("data-requires-python").cloned(),
        yanked: attributes.get("data-yanked").cloned(),
        ..ProjectFile::default()
    };
    // The file name comes from the URL, because servers that list a folder shorten long names in
    // labels. The label is the fallback, as in installers.
    of_project(file.clone(), named, name).or_else(|| of_project(file, unescape(label.trim()), name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::ops::ControlFlow;

    fn read(page: &[u8], base: &str) -> Vec<ProjectFile> {
        let mut files = Vec::new();
        let mut take = |file| {
            files.push(file);
            Ok(ControlFlow::Continue(()))
        };
        each(page, base, "demo", &mut take).unwrap();
        files
    }

    #[test]
    fn links_of_any_dialect_are_read() {
        let page = r#"<!DOCTYPE html><html><head><BASE HREF="/files/"></head><body><!-- <a href="no">demo-9.tar.gz</a> -->
            <a href="demo-1.0.tar.gz#egg=demo&amp;SHA1=DA39A3EE5E6B4B0D3255BFEF95601890AFD80709" data-requires-python="&gt;=3.8" >demo-1.0.tar.gz</a>
            <A class=x HREF='https://cdn.example/a%20b/demo-1.1-py3-none-any.whl?x=1&amp;y=2' data-yanked data-core-metadata=true>
              demo-1.1-py3-none-any.whl </A>
            <a href="other-1.0.tar.gz">other-1.0.tar.gz</a> <a>demo-2.0.tar.gz</a> <a href="javascript:x">demo-3.0.tar.gz</a>
            <a href="demo-1.2%2Blocal.tar.gz#md5=short">demo-1.2+lo..&gt;</a> <a href="/get?id=7">demo-1.3.tar.gz</a>
            <a href="demo-4.0.tar.gz"#;
        let found = read(page.as_bytes(), "https://upstream.test/simple/demo/");
        let files: Vec<_> =
            found.iter().map(|file| (file.filename.as_str(), file.url.as_deref().unwrap())).collect();
        assert_eq!(
            files,
            [
                ("demo-1.0.tar.gz", "https://upstream.test/files/demo-1.0.tar.gz"),
                ("demo-1.1-py3-none-any.whl", "https://cdn.example/a%20b/demo-1.1-py3-none-any.whl?x=1&y=2"),
                ("demo-1.2+local.tar.gz", "https://upstream.test/files/demo-1.2%2Blocal.tar.gz"),
                ("demo-1.3.tar.gz", "https://upstream.test/get?id=7"),
            ]
        );
        assert_eq!(found[0].requires_python.as_deref(), Some(">=3.8"));
        let sha1 = "da39a3ee5e6b4b0d3255bfef95601890afd80709";
        assert_eq!(found[0].hashes, BTreeMap::from([("sha1".to_owned(), sha1.to_owned())]));
        assert!(found[2].hashes.is_empty(), "an invalid hash is ignored");
        assert_eq!((found[1].yanked.as_deref(), &found[1].metadata), (Some(""), &MetadataFile::Unchecked));
    }

    #[test]
    fn a_page_longer_than_a_window_is_read_in_windows() {
        let link = |number: usize| {
            let padding = "é".repeat(number % 97);
            format!("<!-- {padding} --><a href=\"demo-{number}.zip\" data-yanked=\"{padding}\">x</a>\n")
        };
        let page: String = (1..9_000).map(link).collect();
        let found = read(page.as_bytes(), "https://upstream.test/");
        assert_eq!(found.len(), 8_999);
        for (at, file) in found.iter().enumerate() {
            let number = at + 1;
            assert_eq!(file.filename, format!("demo-{number}.zip"));
            assert_eq!(file.yanked, Some("é".repeat(number % 97)), "{number}");
        }
    }

    #[test]
    fn a_page_in_another_charset_is_read() {
        let page = b"<title>Pak\xe9te</title><a href='demo-1.0.zip' data-yanked='kaputt \xfc'>demo</a>";
        assert_eq!(read(page, "https://upstream.test/")[0].filename, "demo-1.0.zip");
    }

    proptest! {
        #[test]
        fn any_page_is_read(page in "[<>a-z=\"' /!#&;-]{0,80}|.{0,80}") {
            let _ = read(page.as_bytes(), "https://upstream.test/");
        }
    }
}
