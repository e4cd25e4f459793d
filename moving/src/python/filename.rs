//! Reads the type and the version of a wheel or a source distribution from its file name.

/// Normalizes the name of a project as indexes do (PEP 503).
pub(crate) fn normalized(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for symbol in name.trim().chars() {
        match symbol {
            '-' | '_' | '.' if out.ends_with('-') => {}
            '-' | '_' | '.' => out.push('-'),
            other => out.extend(other.to_lowercase()),
        }
    }
    out
}

/// The upload form's `filetype` and the version. `None` if the file is neither a wheel nor a source
/// distribution of the project.
pub(super) fn read(filename: &str, project: &str) -> Option<(&'static str, String)> {
    if let Some(stem) = filename.strip_suffix(".whl") {
        let parts: Vec<&str> = stem.split('-').collect();
        let (name, version) = (parts.first()?, parts.get(1)?);
        let whole = matches!(parts.len(), 5 | 6) && normalized(name) == project && !version.is_empty();
        return whole.then(|| ("bdist_wheel", (*version).to_owned()));
    }
    let stem = filename.strip_suffix(".tar.gz").or_else(|| filename.strip_suffix(".zip"))?;
    let mut splits = stem.match_indices('-').map(|(at, _)| at).rev();
    let version = splits.find_map(|at| {
        let (name, version) = (stem.get(..at)?, stem.get(at + 1..)?);
        (normalized(name) == project && !version.is_empty()).then(|| version.to_owned())
    });
    version.map(|version| ("sdist", version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read() {
        for (filename, project, expected) in [
            ("demo-1.0-py3-none-any.whl", "demo", Some(("bdist_wheel", "1.0"))),
            ("de_mo-1.0-1-py3-none-any.whl", "de-mo", Some(("bdist_wheel", "1.0"))),
            ("demo-1.0.tar.gz", "demo", Some(("sdist", "1.0"))),
            ("de-mo-1.0-1.zip", "de-mo", Some(("sdist", "1.0-1"))),
            ("demo-1.0.egg", "demo", None),
            ("demo-1.0.win32.exe", "demo", None),
            ("other-1.0.tar.gz", "demo", None),
            ("demo.tar.gz", "demo", None),
        ] {
            let expected = expected.map(|(filetype, version)| (filetype, version.to_owned()));
            assert_eq!(read(filename, project), expected, "{filename}");
        }
    }

    #[test]
    fn names_are_normalized() {
        for (name, expected) in [("Foo.Bar", "foo-bar"), ("a__b-.c", "a-b-c"), ("x", "x"), ("-a-", "-a-")] {
            assert_eq!(normalized(name), expected);
        }
    }
}
