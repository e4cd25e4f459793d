//! Snapshots whose file names have a timestamp and a build number:
//! `lib-1.0-20261121.050140-3-sources.jar`.

use std::collections::BTreeMap;

/// One build of a snapshot. The newest build is the greatest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Build {
    /// Time of the build: `20261121.050140`, UTC.
    pub(crate) timestamp: String,
    /// Number of the build, starting at 1.
    pub(crate) number: u32,
}

impl Build {
    /// The text in file names and, after the base version, in metadata: `20261121.050140-3`.
    pub(crate) fn qualifier(&self) -> String {
        format!("{}-{}", self.timestamp, self.number)
    }

    /// The value of metadata's `updated`: `20261121050140`.
    pub(crate) fn updated(&self) -> String {
        self.timestamp.replace('.', "")
    }
}

/// Parses the build at the start of `text`. Also returns the rest of the text.
pub(crate) fn build(text: &str) -> Option<(Build, &str)> {
    let (timestamp, rest) = text.split_at_checked(15)?;
    let (date, time) = timestamp.split_once('.')?;
    if date.len() != 8
        || !timestamp.bytes().all(|byte| byte == b'.' || byte.is_ascii_digit())
        || time.contains('.')
    {
        return None;
    }
    let rest = rest.strip_prefix('-')?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (number, tail) = rest.split_at_checked(digits)?;
    Some((Build { timestamp: timestamp.to_owned(), number: number.parse().ok()? }, tail))
}

/// Splits the rest of a file name after the version into classifier and extension. `None` if the
/// text has neither the form `.ext` nor `-classifier.ext`. The extension of a signature includes
/// the extension of the signed file: `jar.asc`.
pub(crate) fn split_tail(tail: &str) -> Option<(&str, &str)> {
    if let Some(extension) = tail.strip_prefix('.') {
        return (!extension.is_empty()).then_some(("", extension));
    }
    let rest = tail.strip_prefix('-')?;
    let mut end = rest.len();
    for suffix in [".asc", ".sigstore.json", ".sigstore"] {
        if let Some(signed) = rest.strip_suffix(suffix).filter(|signed| signed.contains('.')) {
            end = signed.len();
        }
    }
    let mut dot = rest.get(..end)?.rfind('.')?;
    // A classifier may contain dots (`jdk1.8`). The extension is therefore the text after the last
    // dot, except that `.tar.gz` and the like have two parts.
    if let Some(stem) = rest.get(..dot).and_then(|stem| stem.strip_suffix(".tar")) {
        dot = stem.len();
    }
    let (classifier, extension) = (rest.get(..dot)?, rest.get(dot + 1..)?);
    (!classifier.is_empty() && !extension.is_empty()).then_some((classifier, extension))
}

/// The newest build of each tail, such as `-sources.jar`, in a snapshot's folder.
#[derive(Debug, Default)]
pub(crate) struct NewestBuilds {
    builds: BTreeMap<String, Build>,
}

impl NewestBuilds {
    /// Adds a file with a timestamp.
    pub(crate) fn add(&mut self, tail: &str, build: Build) {
        match self.builds.get_mut(tail) {
            Some(newest) if *newest >= build => {}
            Some(newest) => *newest = build,
            None => drop(self.builds.insert(tail.to_owned(), build)),
        }
    }

    /// The newest build that has a file with this tail.
    pub(crate) fn of(&self, tail: &str) -> Option<&Build> {
        self.builds.get(tail)
    }

    /// The newest build of all files.
    pub(crate) fn build(&self) -> Option<&Build> {
        self.builds.values().max()
    }

    /// Each classifier and extension with its newest build, in the order of the tails.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &str, &Build)> {
        self.builds.iter().filter_map(|(tail, build)| {
            let (classifier, extension) = split_tail(tail)?;
            Some((classifier, extension, build))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_build_is_read() {
        let (build, tail) = build("20261121.050140-12-sources.jar").unwrap();
        assert_eq!((build.qualifier().as_str(), tail), ("20261121.050140-12", "-sources.jar"));
        assert_eq!(build.updated(), "20261121050140");
        for text in
            ["2026112.1050140-1.jar", "20261121-050140-1.jar", "20261121.050140-.jar", "20261121.050140", "é"]
        {
            assert!(super::build(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_later_build_is_newer() {
        let at = |text: &str| build(text).unwrap().0;
        assert!(at("20261121.050140-10") > at("20261121.050140-9"));
        assert!(at("20261122.000000-1") > at("20261121.235959-9"));
    }

    #[test]
    fn tails_are_split() {
        for (tail, expected) in [
            (".jar", Some(("", "jar"))),
            (".tar.gz", Some(("", "tar.gz"))),
            ("-sources.jar", Some(("sources", "jar"))),
            ("-bin.tar.gz", Some(("bin", "tar.gz"))),
            ("-jdk1.8.jar", Some(("jdk1.8", "jar"))),
            ("-sources.jar.asc", Some(("sources", "jar.asc"))),
            ("-bin.tar.gz.sigstore.json", Some(("bin", "tar.gz.sigstore.json"))),
            (".pom.asc", Some(("", "pom.asc"))),
            ("-.jar", None),
            ("-x", None),
            (".", None),
            ("x.jar", None),
            ("", None),
        ] {
            assert_eq!(split_tail(tail), expected, "{tail}");
        }
    }

    #[test]
    fn the_newest_build_of_each_tail_is_found() {
        let mut newest = NewestBuilds::default();
        for (tail, text) in [
            (".jar", "20261121.050140-2"),
            (".jar", "20261121.050139-1"),
            ("-sources.jar", "20261121.050139-1"),
        ] {
            newest.add(tail, build(text).unwrap().0);
        }
        assert_eq!(newest.of(".jar").unwrap().number, 2);
        assert_eq!(newest.of("-sources.jar").unwrap().number, 1);
        assert_eq!(newest.build().unwrap().number, 2);
        assert_eq!(
            newest.files().map(|(classifier, extension, _)| (classifier, extension)).collect::<Vec<_>>(),
            [("sources", "jar"), ("", "jar"),]
        );
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "[0-9.\\-a-z]{0,30}|\\PC{0,30}") {
            let _ = build(&text);
            let _ = split_tail(&text);
        }
    }
}
