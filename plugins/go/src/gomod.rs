//! The parts of a `go.mod` that the plugin uses: the module path, the Go version and the
//! requirements (https://go.dev/ref/mod#go-mod-file).

/// A parsed `go.mod`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct GoMod {
    /// The module's path.
    pub(crate) module: Option<String>,
    /// The version of Go that the module is written for.
    pub(crate) go: Option<String>,
    pub(crate) requires: Vec<Requirement>,
}

/// A required module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Requirement {
    pub(crate) path: String,
    pub(crate) version: String,
    /// True if only other dependencies need this module.
    pub(crate) indirect: bool,
}

impl GoMod {
    /// Reads a `go.mod` line by line. Skips unknown directives: the go command itself checks the
    /// file when it uses the module.
    pub(crate) fn read(text: &str) -> Self {
        let (mut read, mut block) = (Self::default(), None::<String>);
        for line in text.lines() {
            let (code, comment) = line.split_once("//").unwrap_or((line, ""));
            let words: Vec<String> = words(code);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            match (words.as_slice(), &block) {
                ([], _) => {}
                ([")"], Some(_)) => block = None,
                ([verb, "("], None) => block = Some((*verb).to_owned()),
                (arguments, Some(verb)) => read.line(&verb.clone(), arguments, comment),
                ([verb, arguments @ ..], None) => read.line(verb, arguments, comment),
            }
        }
        read
    }

    fn line(&mut self, verb: &str, arguments: &[&str], comment: &str) {
        match (verb, arguments) {
            ("module", [path]) => self.module = Some((*path).to_owned()),
            ("go", [version]) => self.go = Some((*version).to_owned()),
            ("require", [path, version]) => self.requires.push(Requirement {
                path: (*path).to_owned(),
                version: (*version).to_owned(),
                indirect: comment.trim_start().starts_with("indirect"),
            }),
            _ => {}
        }
    }
}

/// Splits a line into words. Removes quotes, and makes each bracket a word of its own.
fn words(line: &str) -> Vec<String> {
    let apart = line.replace('(', " ( ").replace(')', " ) ");
    let plain = |word: &str| word.trim_matches(['"', '`']).to_owned();
    apart.split_whitespace().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn modules_and_requirements_are_read() {
        let text = "// a comment\nmodule \"example.com/a\" // deprecated\n\ngo 1.22\n\nrequire example.com/b v1.0.0\n\
                    require (\n\texample.com/c/v2 v2.1.0 // indirect\n\t`example.com/d` v0.0.0-20261121050140-abcdefabcdef\n)\n\
                    replace (\n\texample.com/x => ./x\n)\nexclude example.com/y v1.0.0\nretract v0.9.0\n";
        let read = GoMod::read(text);
        assert_eq!((read.module.as_deref(), read.go.as_deref()), (Some("example.com/a"), Some("1.22")));
        let requires: Vec<(&str, &str, bool)> =
            read.requires.iter().map(|one| (one.path.as_str(), one.version.as_str(), one.indirect)).collect();
        let pseudo = "v0.0.0-20261121050140-abcdefabcdef";
        assert_eq!(
            requires,
            [
                ("example.com/b", "v1.0.0", false),
                ("example.com/c/v2", "v2.1.0", true),
                ("example.com/d", pseudo, false)
            ]
        );
        assert_eq!(GoMod::read("module (\n\texample.com/a\n)").module.as_deref(), Some("example.com/a"));
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "\\PC{0,200}", lines in "((require|module|go|\\(|\\)|\"a\"|//|\n) ?){0,30}") {
            let _ = (GoMod::read(&text), GoMod::read(&lines));
        }
    }
}
