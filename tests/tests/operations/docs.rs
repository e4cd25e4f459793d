//! Documentation: generated pages match the program, the table of contents lists every page, links
//! lead to existing targets, and the settings that pages name exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use packhouse_tests::checkout;
use packhouse_tests::clients::run;
use packhouse_tests::server::program;
use tempfile::TempDir;

/// Pages outside of docs/.
const OTHER_PAGES: [&str; 6] = [
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
    "SECURITY.md",
    "plugins/README.md",
    "policies/README.md",
];

/// README.md fits on two screens.
const README_LINES: usize = 100;

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All Markdown files below a folder, in order.
fn markdown_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

fn pages() -> Vec<PathBuf> {
    let mut pages = markdown_files(&checkout().join("docs"));
    pages.extend(OTHER_PAGES.map(|page| checkout().join(page)));
    pages
}

/// The lines of a page outside of fenced code.
fn text_lines(page: &str) -> Vec<&str> {
    let mut is_code = false;
    let is_text = |line: &&str| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    };
    page.lines().filter(is_text).collect()
}

/// The targets of the links of a page, outside of code.
fn links(page: &str) -> Vec<String> {
    let text = text_lines(page).join("\n");
    let text: String = text.split('`').step_by(2).collect::<Vec<_>>().join("`");
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.map(|target| target.split(' ').next().unwrap_or_default().to_owned()).collect()
}

/// The anchors of the headings of a page, as mdBook and forges make them.
fn anchors(page: &str) -> BTreeSet<String> {
    let (mut anchors, mut counts) = (BTreeSet::new(), BTreeMap::<String, usize>::new());
    for line in text_lines(page) {
        let Some(heading) = line.strip_prefix('#') else { continue };
        let Some((_, title)) = heading.split_once(' ') else { continue };
        // A link in a heading contributes only its text to the anchor.
        let title: Vec<&str> = title
            .split("](")
            .enumerate()
            .map(|(index, part)| if index == 0 { part } else { after_link(part) })
            .collect();
        let anchor: String = title
            .concat()
            .trim()
            .chars()
            .filter(|letter| letter.is_alphanumeric() || "-_ ".contains(*letter))
            .map(|letter| if letter == ' ' { '-' } else { letter.to_ascii_lowercase() })
            .collect();
        let count = counts.entry(anchor.clone()).or_default();
        anchors.insert(if *count == 0 { anchor } else { format!("{anchor}-{count}") });
        *count += 1;
    }
    anchors
}

fn after_link(part: &str) -> &str {
    part.split_once(')').map_or("", |(_, rest)| rest)
}

#[test]
fn generated_pages_match_the_program() {
    let folder = TempDir::new().unwrap();
    let mut command = Command::new(program());
    command.arg("docs").arg("--from").arg(checkout()).arg("--into").arg(folder.path());
    run(&mut command).success();
    let made = markdown_files(folder.path());
    assert!(made.len() >= 6, "{made:?}");
    let outdated: Vec<_> = made
        .iter()
        .map(|page| page.file_name().unwrap())
        .filter(|name| {
            let checked_in = fs::read_to_string(checkout().join("docs/reference").join(name));
            checked_in.ok() != Some(read(&folder.path().join(name)))
        })
        .collect();
    assert!(outdated.is_empty(), "run `just docs`: docs/reference has outdated pages: {outdated:?}");
    let marked = markdown_files(&checkout().join("docs/reference"));
    let marked = marked.iter().filter(|page| read(page).starts_with("<!-- Generated")).count();
    assert_eq!(marked, made.len(), "docs/reference has a generated page that the program does not make");
}

#[test]
fn the_table_of_contents_has_every_page() {
    let docs = checkout().join("docs");
    let listed: BTreeSet<PathBuf> =
        links(&read(&docs.join("SUMMARY.md"))).iter().map(|target| docs.join(target)).collect();
    let mut pages: BTreeSet<PathBuf> = markdown_files(&docs).into_iter().collect();
    pages.remove(&docs.join("SUMMARY.md"));
    let missing: Vec<_> = pages.difference(&listed).collect();
    assert!(missing.is_empty(), "docs/SUMMARY.md does not list {missing:?}");
    let gone: Vec<_> = listed.difference(&pages).collect();
    assert!(gone.is_empty(), "docs/SUMMARY.md lists pages that do not exist: {gone:?}");
}

#[test]
fn every_link_of_a_page_leads_somewhere() {
    let mut broken = Vec::new();
    for page in pages() {
        let text = read(&page);
        for link in links(&text) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (path, anchor) = link.split_once('#').unwrap_or((link.as_str(), ""));
            let target = if path.is_empty() { page.clone() } else { page.parent().unwrap().join(path) };
            let is_page = target.extension().is_some_and(|extension| extension == "md");
            let leads = target.exists()
                && (anchor.is_empty() || !is_page || anchors(&read(&target)).contains(anchor));
            if !leads {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn the_readme_is_short() {
    let lines = read(&checkout().join("README.md")).lines().count();
    assert!(lines <= README_LINES, "README.md has {lines} lines; {README_LINES} are allowed");
}

/// Functions of the plugin contract whose names look like settings.
const NOT_SETTINGS: [&str; 1] = ["advisories.find"];

/// Returns the names of settings in a page: code spans such as `limits.drain_ms`, whose first word
/// is a table of the configuration file.
fn named_settings<'a>(page: &'a str, tables: &BTreeSet<&str>) -> Vec<&'a str> {
    let is_setting = |code: &&str| {
        let Some((table, rest)) = code.split_once('.') else { return false };
        let is_name = code.bytes().all(|byte| byte.is_ascii_lowercase() || b"._".contains(&byte));
        let is_file = ["crt", "json", "md", "pem", "py", "rs", "toml", "wit", "yml"].contains(&rest);
        tables.contains(table) && is_name && !is_file && !rest.is_empty() && !NOT_SETTINGS.contains(code)
    };
    page.split('`').skip(1).step_by(2).filter(is_setting).collect()
}

#[test]
fn settings_that_pages_name_exist() {
    let reference = read(&checkout().join("docs/reference/settings.md"));
    let rows = reference.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let settings: BTreeSet<&str> = rows.collect();
    let tables: BTreeSet<&str> = settings.iter().filter_map(|name| Some(name.split_once('.')?.0)).collect();
    let is_known = |name: &str| {
        let of_plugin = name.strip_prefix("plugins.").and_then(|rest| rest.split_once('.'));
        let name = of_plugin.map_or(name, |(_, setting)| setting);
        settings.contains(name) || tables.contains(name.trim_end_matches('.'))
    };
    assert!(is_known("tls.cert") && !is_known("tls.none") && is_known("plugins.npm.concurrency"));
    let mut unknown = Vec::new();
    for page in pages() {
        let text = text_lines(&read(&page)).join("\n");
        let names = named_settings(&text, &tables).into_iter().filter(|name| !is_known(name));
        unknown.extend(names.map(|name| format!("{}: {name}", page.display())));
    }
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
}

/// SECURITY.md once claimed that the program has no TLS.
#[test]
fn the_security_page_names_the_settings_of_tls() {
    let page = read(&checkout().join("SECURITY.md"));
    for setting in ["`tls.cert`", "`tls.key`", "`tls.acme.enabled`", "`trusted_proxies`"] {
        assert!(page.contains(setting), "SECURITY.md does not name {setting}");
    }
}

#[test]
fn anchors_are_made_of_headings() {
    let page = "# A `b.c` d\n## A b\n```\n# code\n```\n## A b\n### [x](y.md), z\n";
    let expected = ["a-b", "a-b-1", "a-bc-d", "x-z"].map(str::to_owned);
    assert_eq!(anchors(page), BTreeSet::from(expected));
    let text = "[a](b.md#c) `[d](e)` and [f](<g> \"title\")\n```\n[h](i)\n```\n";
    assert_eq!(links(text), ["b.md#c", "<g>"]);
}
