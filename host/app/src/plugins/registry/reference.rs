//! `oci://HOST/PATH:TAG` and `oci://HOST/PATH@sha256:…`.

use std::fmt;
use std::str::FromStr;

use url::{Host, Url};

use super::RegistryError;
use super::words::SCHEME;

/// Characters of a path, and of a tag, at most.
const PATH: usize = 255;
const TAG: usize = 128;

/// Where an artifact is, or one of its versions.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Reference {
    /// Host, with a port where one is named.
    host: String,
    path: String,
    version: Version,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum Version {
    Tag(String),
    /// `sha256:` and hex.
    Digest(String),
}

impl Reference {
    /// The registry's address: https, and http where the host is loopback.
    pub fn registry(&self) -> Result<Url, RegistryError> {
        let wrong = || RegistryError::new(format!("{:?} is no host of a registry", self.host));
        let url: Url = format!("https://{}/", self.host).parse().map_err(|_| wrong())?;
        let loopback = match url.host().ok_or_else(wrong)? {
            Host::Ipv4(ip) => ip.is_loopback(),
            Host::Ipv6(ip) => ip.is_loopback(),
            Host::Domain(name) => name == "localhost",
        };
        // Read anew, since a port that is the default of one scheme is none of the other's.
        if loopback { format!("http://{}/", self.host).parse().map_err(|_| wrong()) } else { Ok(url) }
    }

    /// The host as it was written, by which credentials are looked up.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The repository's name in the registry.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Its tag, where it has no digest.
    pub fn tag(&self) -> Option<&str> {
        match &self.version {
            Version::Tag(tag) => Some(tag),
            Version::Digest(_) => None,
        }
    }

    /// Its digest.
    pub fn digest(&self) -> Option<&str> {
        match &self.version {
            Version::Digest(digest) => Some(digest),
            Version::Tag(_) => None,
        }
    }

    /// As the registry's API names the manifest: the digest or the tag.
    pub(super) fn version(&self) -> &str {
        match &self.version {
            Version::Digest(text) | Version::Tag(text) => text,
        }
    }

    /// The same artifact by this digest.
    #[must_use]
    pub fn pinned(&self, digest: &str) -> Reference {
        Reference { version: Version::Digest(digest.to_owned()), ..self.clone() }
    }

    /// Another tag of the same artifact.
    pub(super) fn tagged(&self, tag: &str) -> Reference {
        Reference { version: Version::Tag(tag.to_owned()), ..self.clone() }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Reference { host, path, version } = self;
        match version {
            Version::Tag(tag) => write!(f, "{SCHEME}{host}/{path}:{tag}"),
            Version::Digest(digest) => write!(f, "{SCHEME}{host}/{path}@{digest}"),
        }
    }
}

impl FromStr for Reference {
    type Err = RegistryError;

    fn from_str(text: &str) -> Result<Reference, RegistryError> {
        let wrong = |why: &str| {
            // A part with a credential in it is not repeated.
            let shown = if text.contains('@') && !text.contains("@sha256:") { "it" } else { text };
            RegistryError::new(format!("{shown} is no reference such as {SCHEME}HOST/PATH@sha256:…: {why}"))
        };
        let rest =
            text.strip_prefix(SCHEME).ok_or_else(|| wrong(&format!("it does not begin with {SCHEME}")))?;
        let (host, rest) = rest.split_once('/').ok_or_else(|| wrong("there is no path"))?;
        let (rest, digest) = match rest.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest)),
            None => (rest, None),
        };
        let (path, tag) = match rest.split_once(':') {
            Some((path, tag)) => (path, Some(tag)),
            None => (rest, None),
        };
        if !is_host(host) {
            return Err(wrong("the host is none"));
        }
        if !is_path(path) {
            return Err(wrong(
                "the path is not made of lower-case letters, digits and single `.`, `_`, `-` between them",
            ));
        }
        if tag.is_some_and(|tag| !is_tag(tag)) {
            return Err(wrong("the tag is none"));
        }
        let version = match (digest, tag) {
            (Some(digest), _) if is_digest(digest) => Version::Digest(digest.to_owned()),
            (Some(_), _) => return Err(wrong("the digest is not sha256: and 64 hexadecimal digits")),
            (None, Some(tag)) => Version::Tag(tag.to_owned()),
            (None, None) => return Err(wrong("there is neither a tag nor a digest")),
        };
        Ok(Reference { host: host.to_owned(), path: path.to_owned(), version })
    }
}

fn is_host(host: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte);
    let url = format!("https://{host}/").parse::<Url>();
    host.bytes().all(plain) && url.is_ok_and(|url| url.host().is_some() && url.path() == "/")
}

/// Names as the OCI distribution specification has them.
fn is_path(path: &str) -> bool {
    let component = |part: &str| {
        let edge =
            |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
        edge(part.bytes().next())
            && edge(part.bytes().last())
            && part.bytes().all(inner)
            && !part.contains("..")
    };
    path.len() <= PATH && path.split('/').all(component)
}

fn is_tag(tag: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let begins = tag.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    begins && tag.len() <= TAG && tag.bytes().all(inner)
}

/// `sha256:` and 64 hexadecimal digits in lower case.
pub(super) fn is_digest(digest: &str) -> bool {
    let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    digest.strip_prefix("sha256:").is_some_and(|rest| rest.len() == 64 && rest.bytes().all(hex))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Reference, RegistryError> {
        text.parse()
    }

    #[test]
    fn references_are_written_as_they_are_read() {
        let digest = format!("sha256:{}", "0a".repeat(32));
        for (text, registry) in [
            (format!("oci://registry.example/team/raw@{digest}"), "https://registry.example/"),
            ("oci://127.0.0.1:8080/repositories/tools/raw:1.2".to_owned(), "http://127.0.0.1:8080/"),
            ("oci://[::1]:8080/raw:1".to_owned(), "http://[::1]:8080/"),
            ("oci://localhost:443/raw:1".to_owned(), "http://localhost:443/"),
            ("oci://10.0.0.1/raw:latest".to_owned(), "https://10.0.0.1/"),
        ] {
            let reference = read(&text).unwrap();
            assert_eq!(reference.to_string(), text);
            assert_eq!(reference.registry().unwrap().as_str(), registry, "{text}");
        }
        let both = read(&format!("oci://h.test/a/b:1.2@{digest}")).unwrap();
        assert_eq!((both.tag(), both.digest()), (None, Some(digest.as_str())));
        assert_eq!(
            read("oci://h.test/a:1").unwrap().pinned(&digest).to_string(),
            format!("oci://h.test/a@{digest}")
        );
    }

    #[test]
    fn what_is_no_reference_is_refused() {
        for (text, why) in [
            ("http://h.test/a:1", "does not begin with oci://"),
            ("oci://h.test", "no path"),
            ("oci://h.test/a", "neither a tag nor a digest"),
            ("oci://h.test/a:", "the tag"),
            ("oci://h.test/a@sha256:00", "the digest"),
            ("oci://h.test/a@sha512:00", "the digest"),
            ("oci://h.test/A:1", "the path"),
            ("oci://h.test/a/../b:1", "the path"),
            ("oci://h.test//a:1", "the path"),
            ("oci://h.test/a?x=y:1", "the path"),
            ("oci:///a:1", "the host"),
            ("oci://h.test:x/a:1", "the host"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
        let error = read("oci://user:secret@h.test/a:1").unwrap_err().to_string();
        assert!(error.contains("the host") && !error.contains("secret"), "{error}");
    }
}
