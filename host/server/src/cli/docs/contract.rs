//! The page of the contracts of plugins and of policies, from their WIT files.

use std::path::Path;

use anyhow::Context as _;

use super::markdown::prose;

const INTRO: &str = "\
# Contract of plugins and policies

This page has the interfaces between the server and its WebAssembly components, in
[WIT](https://component-model.bytecodealliance.org/design/wit.html). [Create, build and test a
plugin](../plugins/project.md) explains how to use them.

";

/// Folders of the contracts, with the titles of their chapters.
const CONTRACTS: [(&str, &str); 2] = [("v0.1", "Format plugins"), ("policy-v0.1", "Policies")];

/// The page. Fails if a WIT file cannot be read.
pub(super) fn page(wit: &Path) -> anyhow::Result<String> {
    let mut text = INTRO.to_owned();
    for (folder, title) in CONTRACTS {
        text.push_str(&format!("## {title}\n\n"));
        let folder = wit.join(folder);
        let mut files = Vec::new();
        let entries = folder.read_dir().with_context(|| format!("failed to list {}", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "wit") {
                files.push(path);
            }
        }
        // The file with the worlds first.
        files.sort_by_key(|path| (!path.ends_with("format.wit"), path.clone()));
        for path in files {
            let file = std::fs::read_to_string(&path)
                .with_context(|| format!("failed to read {}", path.display()))?;
            text.push_str(&chapter(&file));
        }
    }
    Ok(text)
}

/// Interfaces and worlds of a file: their comments as paragraphs, and their contents as code.
fn chapter(file: &str) -> String {
    let (mut text, mut comment) = (String::new(), Vec::new());
    let mut lines = file.lines();
    while let Some(line) = lines.next() {
        if let Some(rest) = line.strip_prefix("///") {
            comment.push(rest.trim());
        } else if line.starts_with("package ") {
            text.push_str(&paragraphs(&comment));
            comment.clear();
        } else if let Some(head) = line.strip_suffix(" {") {
            let body = lines.by_ref().take_while(|line| *line != "}").collect::<Vec<_>>().join("\n");
            text.push_str(&format!("### {head}\n\n{}", paragraphs(&comment)));
            text.push_str(&format!("```wit\n{line}\n{body}\n}}\n```\n\n"));
            comment.clear();
        }
    }
    text
}

/// Lines of a comment as paragraphs; an empty line ends one.
fn paragraphs(comment: &[&str]) -> String {
    let paragraphs = comment.split(|line| line.is_empty()).filter(|lines| !lines.is_empty());
    paragraphs.map(|lines| format!("{}\n\n", prose(&lines.join(" ")))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_is_its_comment_and_its_code() {
        let file = "/// The contract\n/// of x.\npackage x:y@0.1.0;\n\n/// One.\n///\n/// Two.\ninterface z {\n    /// Asks.\n    f: func();\n}\n";
        let expected = "The contract of x.\n\n### interface z\n\nOne.\n\nTwo.\n\n```wit\ninterface z {\n    /// Asks.\n    f: func();\n}\n```\n\n";
        assert_eq!(chapter(file), expected);
    }
}
