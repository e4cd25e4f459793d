//! Names in paths: repositories, images, tags, digests.

use crate::failure;
use packhouse_sdk::{Digest, Failure, Params, Request};

/// Characters of the longest `repositories/REPOSITORY/IMAGE`. Clients refuse longer names.
const NAME_LIMIT: usize = 255;
/// Characters of the longest tag.
const TAG_LIMIT: usize = 128;
/// Characters of the longest name of a repository.
const REPOSITORY_LIMIT: usize = 64;

/// The tag or digest in a request for a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reference {
    /// A name that a client can move to another manifest.
    Tag(String),
    /// The digest of the manifest.
    Digest(Digest),
}

/// The image in the parameter `image` of a request.
///
/// # Errors
/// 400 `NAME_INVALID`, with a message about the repository or about the image.
pub(crate) fn image(request: &Request, params: &Params) -> Result<String, Failure> {
    let repository = check_repository(request)?;
    let image = params.joined("image");
    let length = "repositories/".len() + repository.len() + 1 + image.len();
    if length <= NAME_LIMIT && is_image(&image) { Ok(image) } else { Err(failure::bad_image()) }
}

/// The repository's name.
///
/// # Errors
/// 400 `NAME_INVALID` for a name that no repository can have.
pub(crate) fn check_repository<'a>(request: &'a Request) -> Result<&'a str, Failure> {
    let name = repository(request);
    is_repository(name).then_some(name).ok_or_else(failure::bad_repository)
}

/// The parameter `reference`.
///
/// # Errors
/// 400 `NAME_INVALID` for an invalid tag, 400 `DIGEST_INVALID` for an invalid digest.
pub(crate) fn reference(params: &Params) -> Result<Reference, Failure> {
    let text = params.segment("reference");
    if text.contains(':') { Ok(Reference::Digest(digest(text)?)) } else { Ok(Reference::Tag(tag(text)?)) }
}

/// Checks a tag.
///
/// # Errors
/// 400 `NAME_INVALID`.
pub(crate) fn tag(text: &str) -> Result<String, Failure> {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let first = text.bytes().next().is_some_and(word);
    let rest = text.bytes().all(|byte| word(byte) || byte == b'.' || byte == b'-');
    if first && rest && text.len() <= TAG_LIMIT { Ok(text.to_owned()) } else { Err(failure::bad_tag()) }
}

/// Parses a SHA-256 digest.
///
/// # Errors
/// 400 `DIGEST_INVALID`.
pub(crate) fn digest(text: &str) -> Result<Digest, Failure> {
    let digest: Result<Digest, _> = text.parse();
    digest.ok().filter(|digest| digest.algorithm() == "sha256").ok_or_else(failure::bad_digest)
}

/// The repository's name. It is the last segment of the request's address, both for the
/// repository's own address and for the address of a claim below `/v2/`.
pub(crate) fn repository<'a>(request: &'a Request) -> &'a str {
    request.address().rsplit('/').next().unwrap_or_default()
}

/// The repository in the full name of an image, as in the parameter `from` of a mount.
pub(crate) fn repository_of(name: &str) -> Option<&str> {
    let (repository, _image) = name.strip_prefix("repositories/")?.split_once('/')?;
    is_repository(repository).then_some(repository)
}

/// The path for a `Location` or `Link` header. It has no host, because a reverse proxy may change
/// the host's name.
pub(crate) fn location(request: &Request, image: &str, rest: &str) -> String {
    let address = request.address().split_once("://").map_or("", |(_, address)| address);
    let path = address.find('/').and_then(|at| address.get(at..)).unwrap_or_default();
    // If the request came through a claim, the address already contains `/v2`.
    let registry = if request.claim.is_none() { "/v2" } else { "" };
    format!("{path}{registry}/{image}/{rest}")
}

fn is_repository(text: &str) -> bool {
    text.len() <= REPOSITORY_LIMIT && text.split(['.', '_', '-']).all(is_word)
}

/// Returns true if every part between slashes consists of words that are joined by `.`, `_`, `__`
/// or any number of `-`.
fn is_image(text: &str) -> bool {
    text.split('/').all(is_part)
}

fn is_part(part: &str) -> bool {
    let joins = |c: char| matches!(c, '.' | '_' | '-');
    let known = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || joins(c);
    let mut between = part.split(|c| !joins(c)).filter(|joint| !joint.is_empty());
    !part.is_empty()
        && part.chars().all(known)
        && !part.starts_with(joins)
        && !part.ends_with(joins)
        && between.all(|joint| matches!(joint, "." | "_" | "__") || joint.chars().all(|c| c == '-'))
}

fn is_word(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_names_are_words_with_separators() {
        for good in ["a", "a/b/c", "team/my-app", "a.b_c-d", "a__b", "a--b", "0", "x/manifests"] {
            assert!(is_image(good), "{good}");
        }
        for bad in
            ["", "/", "a/", "/a", "A", "a..b", "a___b", "a_", "-a", "a-/b", "a._b", "ä", "a b", "a:b", "__"]
        {
            assert!(!is_image(bad), "{bad}");
        }
    }

    #[test]
    fn tags_follow_the_specification() {
        for good in ["latest", "_x", "1.0-rc_1", &"a".repeat(128)] {
            assert!(tag(good).is_ok(), "{good}");
        }
        for bad in ["", ".x", "-x", "a b", "a/b", "ä", &"a".repeat(129)] {
            assert!(tag(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_source_of_a_mount_is_another_repositorys_image() {
        assert_eq!(repository_of("repositories/base/team/app"), Some("base"));
        for other in ["base/app", "repositories/base", "repositories//app", "repositories/A/app", ""] {
            assert_eq!(repository_of(other), None, "{other}");
        }
    }
}
