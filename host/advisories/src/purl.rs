//! Package URLs: names of packages in the form `pkg:type/namespace/name@1.0.0`. The descriptions of
//! the formats define the types.

use packhouse_runtime::Description;

/// Syntax of the package URLs of one ecosystem, from a format's description.
#[derive(Clone, Copy, Debug)]
pub struct PurlType<'a> {
    /// Type in the package URL, such as `npm`.
    pub kind: &'a str,
    /// Character between namespace and name in the package's own name.
    pub joint: char,
    /// Name of the ecosystem in OSV.
    pub ecosystem: &'a str,
}

impl<'a> PurlType<'a> {
    /// Returns the syntax for a format, or `None` if its description contains no package URL type.
    pub fn of(description: &'a Description) -> Option<PurlType<'a>> {
        let purl = description.purl.as_ref()?;
        let joint = purl.joint.chars().next().unwrap_or('/');
        Some(PurlType { kind: &purl.kind, joint, ecosystem: &description.ecosystem })
    }
}

/// Parses a package URL into ecosystem, package and version. Returns `None` if the URL is malformed
/// or its type is not among `types`.
pub fn parse<'a>(
    purl: &str,
    mut types: impl Iterator<Item = PurlType<'a>>,
) -> Option<(String, String, Option<String>)> {
    let rest = purl.strip_prefix("pkg:")?.trim_start_matches('/');
    let rest = rest.split(['?', '#']).next()?;
    let (kind, path) = rest.split_once('/')?;
    let PurlType { ecosystem, joint, .. } = types.find(|known| known.kind.eq_ignore_ascii_case(kind))?;
    let (path, version) = match path.rsplit_once('@') {
        Some((path, version)) if !path.is_empty() => (path, Some(decoded(version)?)),
        _ => (path, None),
    };
    let segments: Option<Vec<String>> =
        path.split('/').filter(|part| !part.is_empty()).map(decoded).collect();
    let (name, namespace) = segments.as_deref()?.split_last()?;
    let mut package = namespace.join("/");
    if !package.is_empty() {
        package.push(joint);
    }
    package.push_str(name);
    Some((ecosystem.to_owned(), package, version.filter(|version| !version.is_empty())))
}

/// Returns the package URL of a version of a package.
pub fn write(of: PurlType<'_>, package: &str, version: &str) -> String {
    let segments: Vec<String> = package.split(['/', of.joint]).map(encoded).collect();
    format!("pkg:{}/{}@{}", of.kind, segments.join("/"), encoded(version))
}

/// Percent-encodes a text as the specification of package URLs requires.
fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        let (high, low) = (digit(rest.next())?, digit(rest.next())?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TYPES: [(&str, &str, char); 5] = [
        ("npm", "npm", '/'),
        ("pypi", "PyPI", '/'),
        ("maven", "Maven", ':'),
        ("golang", "Go", '/'),
        ("composer", "Packagist", '/'),
    ];

    fn types() -> impl Iterator<Item = PurlType<'static>> {
        TYPES.into_iter().map(|(kind, ecosystem, joint)| PurlType { kind, joint, ecosystem })
    }

    fn of(kind: &str) -> PurlType<'static> {
        types().find(|known| known.kind == kind).unwrap()
    }

    #[test]
    fn package_urls_name_packages_as_osv_does() {
        for (purl, ecosystem, name, version) in [
            ("pkg:npm/%40acme/lib@1.0.0", "npm", "@acme/lib", Some("1.0.0")),
            ("pkg:npm/%40acme/lib", "npm", "@acme/lib", None),
            ("pkg:pypi/django@4.2?a=b#c", "PyPI", "django", Some("4.2")),
            ("pkg:maven/org.example/lib@1.0", "Maven", "org.example:lib", Some("1.0")),
            ("pkg:golang/github.com/a/b@v1.0.0", "Go", "github.com/a/b", Some("v1.0.0")),
            ("pkg:composer/acme/lib@1.0", "Packagist", "acme/lib", Some("1.0")),
        ] {
            let version = version.map(str::to_owned);
            assert_eq!(
                parse(purl, types()),
                Some((ecosystem.to_owned(), name.to_owned(), version)),
                "{purl}"
            );
        }
        for wrong in ["", "pkg:npm", "npm/a", "pkg:deb/debian/curl@1", "pkg:npm/%zz", "pkg:npm/"] {
            assert_eq!(parse(wrong, types()), None, "{wrong}");
        }
        assert_eq!(write(of("npm"), "@acme/lib", "1.0.0+b"), "pkg:npm/%40acme/lib@1.0.0%2Bb");
        assert_eq!(write(of("maven"), "org.example:lib", "1"), "pkg:maven/org.example/lib@1");
    }

    proptest! {
        #[test]
        fn written_package_urls_are_parsed(name in "[a-z%@+ é]{1,8}(/[a-z0-9.]{1,8})?", version in "[ -~]{1,12}") {
            let purl = write(of("npm"), &name, &version);
            prop_assert_eq!(parse(&purl, types()), Some(("npm".to_owned(), name, Some(version))));
        }
    }
}
