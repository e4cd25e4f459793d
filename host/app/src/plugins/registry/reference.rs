//! References to artifacts: `oci://HOST/PATH:TAG` and `oci://HOST/PATH@sha256:…`.

use std::fmt;
use std::str::FromStr;

use url::{Host, Url};

use super::RegistryError;
use super::protocol::SCHEME;

/// Maximum lengths in characters: of a path, and of a tag.
const PATH: usize = 255;
const TAG: usize = 128;

/// Reference to an artifact by a tag or a digest.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Reference {
    /// Host name, with the port if the text states one.
    host: String,
    path: String,
    version: ReferenceVersion,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum ReferenceVersion {
    Tag(String),
    Digest(String),
}

impl Reference {
    /// Returns the registry's address. It begins with http for a loopback host, and with https for
    /// others.
    pub fn registry(&self) -> Result<Url, RegistryError> {
        let wrong = || RegistryError::new(format!("{:?} is not the host of a registry", self.host));
        let url: Url = format!("https://{}/", self.host).parse().map_err(|_| wrong())?;
        let loopback = match url.host().ok_or_else(wrong)? {
            Host::Ipv4(ip) => ip.is_loopback(),
            Host::Ipv6(ip) => ip.is_loopback(),
            Host::Domain(name) => name == "localhost",
        };
        // Parse again, because `Url` drops the default port of the scheme.
        if loopback { format!("http://{}/", self.host).parse().map_err(|_| wrong()) } else { Ok(url) }
    }

    /// Returns the host as the text states it. Credentials are looked up under this name.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the repository's name in the registry.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the tag, or `None` if the reference contains a digest.
    pub fn tag(&self) -> Option<&str> {
        match &self.version {
            ReferenceVersion::Tag(tag) => Some(tag),
            ReferenceVersion::Digest(_) => None,
        }
    }

    pub fn digest(&self) -> Option<&str> {
        match &self.version {
            ReferenceVersion::Digest(digest) => Some(digest),
            ReferenceVersion::Tag(_) => None,
        }
    }

    /// Returns the name of the manifest in the registry's API, which is the digest or the tag.
    pub(super) fn version(&self) -> &str {
        match &self.version {
            ReferenceVersion::Digest(text) | ReferenceVersion::Tag(text) => text,
        }
    }

    /// Returns a reference to the same artifact by this digest.
    #[must_use]
    pub fn pinned(&self, digest: &str) -> Reference {
        Reference { version: ReferenceVersion::Digest(digest.to_owned()), ..self.clone() }
    }

    /// Returns a reference to another tag of the same artifact.
    pub(super) fn tagged(&self, tag: &str) -> Reference {
        Reference { version: ReferenceVersion::Tag(tag.to_owned()), ..self.clone() }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Reference { host, path, version } = self;
        match version {
            ReferenceVersion::Tag(tag) => write!(f, "{SCHEME}{host}/{path}:{tag}"),
            ReferenceVersion::Digest(digest) => write!(f, "{SCHEME}{host}/{path}@{digest}"),
        }
    }
}

impl FromStr for Reference {
    type Err = RegistryError;

    fn from_str(text: &str) -> Result<Reference, RegistryError> {
        let wrong = |why: &str| {
            // Do not repeat a text that may contain a credential.
            let named = if text.contains('@') && !text.contains("@sha256:") { "it" } else { text };
            RegistryError::new(format!(
                "{named} is not a reference such as {SCHEME}HOST/PATH@sha256:…: {why}"
            ))
        };
        let rest =
            text.strip_prefix(SCHEME).ok_or_else(|| wrong(&format!("it does not begin with {SCHEME}")))?;
        let (host, rest) = rest.split_once('/').ok_or_else(|| wrong("it has no path"))?;
        let (rest, digest) = match rest.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest)),
            None => (rest, None),
        };
        let (path, tag) = match rest.split_once(':') {
            Some((path, tag)) => (path, Some(tag)),
            None => (rest, None),
        };
        if !is_host(host) {
            return Err(wrong("the host is not valid"));
        }
        if !is_path(path) {
            return Err(wrong(
                "the path may contain only lower-case letters and digits, with single `.`, `_` or `-` \
                 between them",
            ));
        }
        if tag.is_some_and(|tag| !is_tag(tag)) {
            return Err(wrong("the tag is not valid"));
        }
        let version = match (digest, tag) {
            (Some(digest), _) if is_digest(digest) => ReferenceVersion::Digest(digest.to_owned()),
            (Some(_), _) => return Err(wrong("the digest must be sha256: and 64 hexadecimal digits")),
            (None, Some(tag)) => ReferenceVersion::Tag(tag.to_owned()),
            (None, None) => return Err(wrong("it has neither a tag nor a digest")),
        };
        Ok(Reference { host: host.to_owned(), path: path.to_owned(), version })
    }
}

fn is_host(host: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte);
    let url = format!("https://{host}/").parse::<Url>();
    host.bytes().all(plain) && url.is_ok_and(|url| url.host().is_some() && url.path() == "/")
}

/// Reports whether this is a valid repository name in the OCI distribution specification.
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

/// Reports whether the text is `sha256:` and 64 lower-case hexadecimal digits.
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
    fn an_invalid_reference_is_refused() {
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
