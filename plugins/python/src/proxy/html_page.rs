//! An upstream's page in HTML (PEP 503): its links, whatever stands around them.

use super::json_page::{checked, of_project, sound};
use super::url;
use crate::index::{File, Metadata, Project};
use packhouse_sdk::address::join;
use std::collections::BTreeMap;

/// Reads a page that came from `base`. None for what is no text.
pub(super) fn read(bytes: &[u8], base: &str, name: &str) -> Option<Project> {
    let text = core::str::from_utf8(bytes).ok()?;
    let mut base = base.to_owned();
    let mut files = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once('<') {
        rest = after;
        if let Some(comment) = rest.strip_prefix("!--") {
            rest = comment.split_once("-->").map_or("", |(_, after)| after);
            continue;
        }
        let Some((tag, attributes, after)) = element(rest) else { break };
        rest = after;
        match tag.to_ascii_lowercase().as_str() {
            "base" => {
                if let Some(joined) = attributes.get("href").and_then(|href| join(&base, href)) {
                    base = joined;
                }
            }
            "a" => {
                let label = rest.split_once('<').map_or(rest, |(label, _)| label);
                files.extend(link(&attributes, label, &base, name));
            }
            _ => {}
        }
    }
    Some(Project { name: name.to_owned(), display: name.to_owned(), files, ..Project::default() })
}

fn link(attributes: &BTreeMap<String, String>, label: &str, base: &str, name: &str) -> Option<File> {
    let (address, fragment) = {
        let href = attributes.get("href")?;
        href.split_once('#').unwrap_or((href, ""))
    };
    let metadata = attributes.get("data-core-metadata").or(attributes.get("data-dist-info-metadata"));
    let metadata = match metadata.map(|value| value.strip_prefix("sha256=").ok_or(value)) {
        None => Metadata::Absent,
        Some(Ok(hex)) => checked(hex),
        Some(Err(_)) => Metadata::Unchecked,
    };
    let url = join(base, address)?;
    let named = url::last_segment(&url);
    let file = File {
        url: Some(url),
        hashes: sound(fragment.split('&').filter_map(|pair| pair.split_once('='))),
        metadata,
        requires_python: attributes.get("data-requires-python").cloned(),
        yanked: attributes.get("data-yanked").cloned(),
        ..File::default()
    };
    // As installers do: a server that lists a folder cuts long names in its labels.
    of_project(file.clone(), named, name).or_else(|| of_project(file, unescape(label.trim()), name))
}

/// A tag's name, its attributes, and what follows it.
fn element(text: &str) -> Option<(&str, BTreeMap<String, String>, &str)> {
    let end = text.find(|symbol: char| symbol.is_whitespace() || symbol == '>').unwrap_or(text.len());
    let (tag, mut rest) = text.split_at_checked(end)?;
    let mut attributes = BTreeMap::new();
    loop {
        rest = rest.trim_start_matches(|symbol: char| symbol.is_whitespace() || symbol == '/');
        if let Some(after) = rest.strip_prefix('>') {
            return Some((tag, attributes, after));
        }
        let end = rest.find(|symbol: char| symbol.is_whitespace() || "=>/".contains(symbol))?;
        let (name, after) = rest.split_at_checked(end)?;
        rest = after.trim_start();
        let mut value = "";
        if let Some(after) = rest.strip_prefix('=') {
            (value, rest) = attribute(after.trim_start())?;
        } else if name.is_empty() {
            return None;
        }
        attributes.entry(name.to_ascii_lowercase()).or_insert_with(|| unescape(value));
    }
}

/// A value, quoted or not, and what follows it.
fn attribute(text: &str) -> Option<(&str, &str)> {
    for quote in ['"', '\''] {
        if let Some(quoted) = text.strip_prefix(quote) {
            return quoted.split_once(quote);
        }
    }
    let end = text.find(|symbol: char| symbol.is_whitespace() || symbol == '>')?;
    text.split_at_checked(end)
}

/// The few entities that such pages hold.
fn unescape(text: &str) -> String {
    let named =
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&#x27;", "'"), ("&#34;", "\"")];
    let text = named.iter().fold(text.to_owned(), |text, (entity, symbol)| text.replace(entity, symbol));
    text.replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn links_of_any_dialect_are_read() {
        let page = r#"<!DOCTYPE html><html><head><BASE HREF="/files/"></head><body><!-- <a href="no">demo-9.tar.gz</a> -->
            <a href="demo-1.0.tar.gz#egg=demo&amp;SHA1=DA39A3EE5E6B4B0D3255BFEF95601890AFD80709" data-requires-python="&gt;=3.8" >demo-1.0.tar.gz</a>
            <A class=x HREF='https://cdn.example/a%20b/demo-1.1-py3-none-any.whl?x=1&amp;y=2' data-yanked data-core-metadata=true>
              demo-1.1-py3-none-any.whl </A>
            <a href="other-1.0.tar.gz">other-1.0.tar.gz</a> <a>demo-2.0.tar.gz</a> <a href="javascript:x">demo-3.0.tar.gz</a>
            <a href="demo-1.2%2Blocal.tar.gz#md5=short">demo-1.2+lo..&gt;</a> <a href="/get?id=7">demo-1.3.tar.gz</a>
            <a href="demo-4.0.tar.gz"#;
        let project = read(page.as_bytes(), "https://upstream.test/simple/demo/", "demo").unwrap();
        let files: Vec<_> =
            project.files.iter().map(|file| (file.filename.as_str(), file.url.as_deref().unwrap())).collect();
        assert_eq!(
            files,
            [
                ("demo-1.0.tar.gz", "https://upstream.test/files/demo-1.0.tar.gz"),
                ("demo-1.1-py3-none-any.whl", "https://cdn.example/a%20b/demo-1.1-py3-none-any.whl?x=1&y=2"),
                ("demo-1.2+local.tar.gz", "https://upstream.test/files/demo-1.2%2Blocal.tar.gz"),
                ("demo-1.3.tar.gz", "https://upstream.test/get?id=7"),
            ]
        );
        assert_eq!(project.files[0].requires_python.as_deref(), Some(">=3.8"));
        let sha1 = "da39a3ee5e6b4b0d3255bfef95601890afd80709";
        assert_eq!(project.files[0].hashes, BTreeMap::from([("sha1".to_owned(), sha1.to_owned())]));
        assert!(project.files[2].hashes.is_empty(), "what is no hash is none");
        assert_eq!(
            (project.files[1].yanked.as_deref(), &project.files[1].metadata),
            (Some(""), &Metadata::Unchecked)
        );
    }

    proptest! {
        #[test]
        fn any_page_is_read(page in "[<>a-z=\"' /!#&;-]{0,80}|.{0,80}") {
            let _ = read(page.as_bytes(), "https://upstream.test/", "demo");
        }
    }
}
