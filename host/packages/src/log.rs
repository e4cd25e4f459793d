//! Access log: one line for each request, without credentials and without the query.

use std::borrow::Cow;
use std::time::Duration;

use http::Response;
use http::request::Parts;
use http_body::Body as _;
use percent_encoding::percent_decode_str;

use crate::credential::PresentedCredential;
use crate::request_context::RequestContext;
use packhouse_identity as identity;
use packhouse_wire::body::Body;

/// Text that replaces a segment that may be a secret.
const HIDDEN: &str = "***";
/// Minimum length of a credential that is hidden even inside a segment. A shorter credential may
/// occur inside other words, so it is hidden only if it is the whole segment.
const SHORTEST: usize = 8;
/// Minimum number of letters and digits in a word that looks random.
const SHORTEST_RANDOM: usize = 20;
/// Minimum number of hexadecimal digits in a word that looks random.
const SHORTEST_HEX: usize = 32;
/// Prefixes of digests. Digests look random but are public.
const DIGESTS: [&str; 4] = ["sha256:", "sha512:", "sha256-", "sha512-"];

/// Writes the log line of a request.
pub(crate) fn line(parts: &Parts, response: &Response<Body>, context: &RequestContext, took: Duration) {
    if !tracing::enabled!(target: "packhouse::access", tracing::Level::INFO) {
        return;
    }
    let path = path(parts);
    tracing::info!(
        target: "packhouse::access",
        method = parts.method.as_str(),
        path = &*path,
        status = response.status().as_u16(),
        bytes = response.body().size_hint().exact().unwrap_or_default(),
        ms = took.as_secs_f64() * 1000.0,
        request_id = &*context.request_id,
        credential = context.credential.as_deref(),
        peer = %context.peer,
        "request"
    );
}

/// Returns the path as the client sent it, with possible secrets hidden. Possible secrets are
/// tokens of this server, the request's own credential, and words that look random. Tokens of other
/// servers look random.
pub(crate) fn path(parts: &Parts) -> Cow<'_, str> {
    let raw = parts.uri.path();
    let presented = PresentedCredential::read(&parts.headers);
    let credential = presented.secret().map_or("", |secret| secret.reveal());
    // A credential with unescaped slashes covers several segments.
    if credential.contains('/') && percent_decode_str(raw).decode_utf8_lossy().contains(credential) {
        return Cow::Borrowed(HIDDEN);
    }
    // Decode the segment first, because an escape may hide a secret.
    let is_secret =
        |segment: &str| may_be_secret(&percent_decode_str(segment).decode_utf8_lossy(), credential);
    if !raw.split('/').any(is_secret) {
        return Cow::Borrowed(raw);
    }
    let visible: Vec<&str> =
        raw.split('/').map(|segment| if is_secret(segment) { HIDDEN } else { segment }).collect();
    Cow::Owned(visible.join("/"))
}

fn may_be_secret(segment: &str, credential: &str) -> bool {
    let holds_credential = credential.len() >= SHORTEST && segment.contains(credential);
    let is_credential = !credential.is_empty() && segment == credential;
    is_credential || holds_credential || identity::holds_secret(segment) || holds_random_word(segment)
}

fn holds_random_word(segment: &str) -> bool {
    let joins = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    segment.len() >= SHORTEST_RANDOM
        && !DIGESTS.iter().any(|digest| segment.starts_with(digest))
        && segment
            .split(|letter: char| !joins(letter))
            .any(|word| word.len() >= SHORTEST_RANDOM && is_random(word))
}

/// Reports whether a word looks random: it contains both letters and digits, which alternate more
/// often than in names.
fn is_random(word: &str) -> bool {
    let letters: Vec<u8> = word.bytes().filter(u8::is_ascii_alphanumeric).collect();
    let is_mixed = letters.iter().any(u8::is_ascii_digit) && letters.iter().any(u8::is_ascii_alphabetic);
    let is_hex = letters.len() >= SHORTEST_HEX && letters.iter().all(u8::is_ascii_hexdigit);
    let kind = |letter: &u8| (letter.is_ascii_digit(), letter.is_ascii_lowercase());
    let changes = letters.iter().zip(letters.iter().skip(1)).filter(|&(one, next)| kind(one) != kind(next));
    let alternates = letters.len() >= SHORTEST_RANDOM && changes.count() * 100 >= letters.len() * 35;
    is_mixed && (is_hex || alternates)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the logged path of a request with this `Authorization`; an empty one means none.
    fn logged(target: &str, authorization: &str) -> String {
        let request = http::Request::get(target);
        let request = match authorization {
            "" => request,
            field => request.header("Authorization", field),
        };
        let (parts, ()) = request.body(()).unwrap().into_parts();
        path(&parts).into_owned()
    }

    #[test]
    fn a_secret_in_a_path_is_not_logged() {
        let poll = format!("/-/v1/login/{}", identity::mint_poll());
        // These credentials are `me:brought-in`, `me:abc` and `me:with/slash`.
        let (long, short, slash) =
            ("Basic bWU6YnJvdWdodC1pbg==", "Basic bWU6YWJj", "Basic bWU6d2l0aC9zbGFzaA==");
        for (target, authorization, expected) in [
            ("/repositories/r/a%20b", "", "/repositories/r/a%20b"),
            ("/repositories/r/a?token=x&y", "", "/repositories/r/a"),
            ("/-/user/token/pkh_abc", "", "/-/user/token/***"),
            ("/-/user/token/%70kh_abc/x", "", "/-/user/token/***/x"),
            ("/-/user/token/pkb_abc", "", "/-/user/token/***"),
            ("/-/user/token/pka_abc", "", "/-/user/token/***"),
            (&poll, "", "/-/v1/login/***"),
            ("/r/-/token/brought-in", "Bearer brought-in", "/r/-/token/***"),
            ("/r/-/token/brought-in", "brought-in", "/r/-/token/***"),
            ("/r/-/token/x-brought%2Din-x/y", long, "/r/-/token/***/y"),
            ("/r/-/token/brought-in", "", "/r/-/token/brought-in"),
            ("/abc/abcd", short, "/***/abcd"),
            ("/r/with%2fslash", slash, "***"),
            ("/r/with/slash/x", slash, "***"),
            ("/a//b/", "Basic bWU6", "/a//b/"),
        ] {
            assert_eq!(logged(target, authorization), expected, "{target} {authorization}");
        }
    }

    #[test]
    fn words_that_look_random_are_not_logged() {
        for word in [
            "AKCp8k9QxT3mZ7vR2bN5wL",
            "glpat-x7Qm2Zt9Lk4Rp8Vn3Ws6",
            "550e8400-e29b-41d4-a716-446655440000",
            "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
        ] {
            assert_eq!(logged(&format!("/r/{word}/x"), ""), "/r/***/x", "{word}");
        }
        let digest = format!("sha256:{}", "0123456789abcdef".repeat(4));
        for name in [
            "org/springframework/boot/spring-boot-starter-web-3.2.1.jar",
            "AbstractHttp11JsseProtocol",
            "a-1.0-20240102.030405-6.jar",
            "@v/v0.0.0-20191109021931-daa7c04131f5.zip",
            "numpy-2.0.0-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
            "this-is-a-very-long-name-of-a-package-2",
            "20240102030405060708090",
            digest.as_str(),
            digest.replace(':', "-").as_str(),
        ] {
            let path = format!("/repositories/r/{name}");
            assert_eq!(logged(&path, ""), path);
        }
    }
}
