//! Findings in the files of the checkout.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::names;
use super::words;

/// Most words of a sentence.
const SENTENCE_WORDS: usize = 25;

/// Scope of findings that belong to more than one crate.
pub(crate) const WHOLE: &str = "whole";
/// Scope of the documentation.
pub(crate) const DOCS: &str = "docs";

/// Longest line of a comment, in characters.
const COMMENT_WIDTH: usize = 100;
/// Largest number of words of a doc comment that only repeats a name.
const TRIVIAL_WORDS: usize = 4;
/// Smallest number of definitions with one name that makes this name a repeated type name.
const REPEATED: usize = 3;

/// First line of the generated pages, whose texts come from code.
const GENERATED: &str = "<!-- Generated";

/// Something that makes the project hard to read.
pub(crate) struct Finding {
    /// The measure, as in the file of bounds.
    pub(crate) measure: &'static str,
    /// The crate, or [`WHOLE`] or [`DOCS`].
    pub(crate) scope: String,
    /// The file and the line, or the file alone.
    pub(crate) place: String,
    /// The text.
    pub(crate) text: String,
}

/// All findings, and the number of sentences in the documentation.
#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) all: Vec<Finding>,
    pub(crate) sentences: usize,
}

/// Reads the files that git knows or would add. Fails if git cannot list them.
pub(crate) fn findings(root: &Path) -> Result<Findings> {
    let (mut findings, mut types) = (Findings::default(), BTreeMap::<String, Vec<String>>::new());
    for path in files(root)? {
        // Git lists a deleted file until the deletion is staged.
        let Ok(text) = std::fs::read_to_string(root.join(&path)) else { continue };
        if path.ends_with(".md") {
            findings.add_page(&path, &text);
            continue;
        }
        findings.add_code(&path, &text);
        for name in names::types(&text) {
            types.entry(name.to_owned()).or_default().push(path.clone());
        }
    }
    for (name, places) in types.into_iter().filter(|(_, places)| places.len() >= REPEATED) {
        let (place, text) = (places.join(", "), name);
        findings.all.push(Finding { measure: "repeated_types", scope: WHOLE.to_owned(), place, text });
    }
    Ok(findings)
}

fn files(root: &Path) -> Result<Vec<String>> {
    let mut git = Command::new("git");
    git.current_dir(root).args(["ls-files", "--cached", "--others", "--exclude-standard"]);
    let listed = git.args(["*.rs", "*.wit", "*.js", "docs/*.md"]).output().context("failed to start git")?;
    if !listed.status.success() {
        bail!("git cannot list the files of this checkout");
    }
    let listed = String::from_utf8(listed.stdout).context("a file's name is not UTF-8")?;
    Ok(listed.lines().map(str::to_owned).collect())
}

/// The crate of a file, such as `host/store`. A file outside of the folders of crates has its first
/// folder.
fn scope(path: &str) -> &str {
    let folder = path.split('/').next().unwrap_or(path);
    if !["host", "plugins", "policies", "sdk", "tests"].contains(&folder) {
        return folder;
    }
    let ends = path.match_indices('/').nth(1).map(|(index, _)| index);
    ends.and_then(|end| path.get(..end)).unwrap_or(folder)
}

impl Findings {
    fn add(&mut self, measure: &'static str, path: &str, number: usize, text: &str) {
        let scope = scope(path).to_owned();
        self.all.push(Finding { measure, scope, place: format!("{path}:{number}"), text: text.to_owned() });
    }

    fn add_code(&mut self, path: &str, text: &str) {
        let mut was_doc = false;
        for (number, line) in (1..).zip(text.lines()) {
            let code = line.trim();
            let doc = code.strip_prefix("///").or(code.strip_prefix("//!")).map(str::trim);
            if let Some(doc) = doc.filter(|doc| !was_doc && !doc.is_empty()) {
                if words::is_fragment(doc) {
                    self.add("openers", path, number, code);
                }
                // Other developers read the documentation of `sdk/` and of the contract, so only
                // the host is checked.
                if path.starts_with("host/") && doc.split_whitespace().count() <= TRIVIAL_WORDS {
                    self.add("trivial", path, number, code);
                }
            }
            was_doc = doc.is_some();
            if let Some(comment) = code.strip_prefix("//") {
                if words::negates_a_noun(comment.trim_start_matches(['/', '!'])) {
                    self.add("negations", path, number, code);
                }
                if line.chars().count() > COMMENT_WIDTH {
                    self.add("wide", path, number, code);
                }
                continue;
            }
            for literal in words::string_literals(line) {
                if words::negates_a_noun(literal) {
                    self.add("negations_in_strings", path, number, literal);
                }
            }
        }
        for name in names::defined(text).into_iter().filter(|name| names::is_jargon(name)) {
            let (scope, place) = (scope(path).to_owned(), path.to_owned());
            self.all.push(Finding { measure: "jargon", scope, place, text: name.to_owned() });
        }
    }

    fn add_page(&mut self, path: &str, text: &str) {
        if text.starts_with(GENERATED) {
            return;
        }
        for sentence in words::sentences(text) {
            self.sentences += 1;
            if sentence.split_whitespace().count() > SENTENCE_WORDS {
                let (scope, place) = (DOCS.to_owned(), path.to_owned());
                self.all.push(Finding { measure: "long_sentences", scope, place, text: sentence });
            }
        }
    }
}
