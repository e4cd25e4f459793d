//! Names the publisher in a provenance object. Clients know only the workflows of GitHub and
//! GitLab, and reject an object with any other publisher.
//!
//! The plugin reads the publisher from the attestation's certificate, and does not check whether
//! the certificate is trusted. A client that verifies the attestation checks the certificate, and
//! compares it with the publisher.

use serde_json::{Value, json};

/// Prefix of the DER object identifier of Fulcio's extensions, 1.3.6.1.4.1.57264.1, without the
/// last number.
const FULCIO: [u8; 11] = [0x06, 0x0a, 0x2b, 0x06, 0x01, 0x04, 0x01, 0x83, 0xbf, 0x30, 0x01];
const ISSUER: u8 = 8;
const SOURCE: u8 = 12;
const WORKFLOW: u8 = 18;

/// Reads the publisher from a DER certificate. Returns the kind `Packhouse` if the publisher is not
/// a workflow of GitHub or GitLab. Clients do not know this kind and therefore reject the object.
pub(crate) fn of(certificate: &[u8]) -> Value {
    let text = |number: u8| extension(certificate, number).unwrap_or_default();
    let (issuer, source, workflow) = (text(ISSUER), text(SOURCE), text(WORKFLOW));
    let workflow = workflow.rsplit_once('@').map_or(workflow, |(path, _)| path);
    let github = || {
        let repository = source.strip_prefix("https://github.com/")?;
        let workflow = workflow.strip_prefix(source)?.strip_prefix("/.github/workflows/")?;
        Some(json!({"kind": "GitHub", "repository": repository, "workflow": workflow, "environment": null}))
    };
    let gitlab = || {
        let repository = source.strip_prefix("https://gitlab.com/")?;
        let path = workflow.strip_prefix(source)?.strip_prefix("//")?;
        Some(
            json!({"kind": "GitLab", "repository": repository, "workflow_filepath": path, "environment": null}),
        )
    };
    let known = match issuer {
        "https://token.actions.githubusercontent.com" => github(),
        "https://gitlab.com" => gitlab(),
        _ => None,
    };
    known.unwrap_or_else(|| json!({"kind": "Packhouse", "claims": null}))
}

/// Returns the text of an extension, which is a UTF-8 string inside an octet string.
fn extension(certificate: &[u8], number: u8) -> Option<&str> {
    let name = [&FULCIO[..], &[number]].concat();
    let at = certificate.windows(name.len()).position(|window| window == name)?;
    let value = certificate.get(at + name.len()..)?;
    // The optional flag for critical extensions comes before the value.
    let value = value.strip_prefix(&[0x01, 0x01, 0xff]).unwrap_or(value);
    std::str::from_utf8(content(content(value, 0x04)?, 0x0c)?).ok()
}

/// Returns the content of the first DER value, if it has this tag.
fn content(der: &[u8], tag: u8) -> Option<&[u8]> {
    let (&first, rest) = der.split_first()?;
    let (&length, rest) = rest.split_first().filter(|_| first == tag)?;
    let (length, rest) = match length {
        0..=0x7f => (usize::from(length), rest),
        0x81 => (usize::from(*rest.first()?), rest.get(1..)?),
        0x82 => (usize::from(u16::from_be_bytes(rest.get(..2)?.try_into().ok()?)), rest.get(2..)?),
        _ => return None,
    };
    rest.get(..length)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests must fail loudly")]

    use super::*;

    fn certificate(facts: &[(u8, &str)]) -> Vec<u8> {
        let mut der = vec![0x30, 0x82, 1, 0];
        for (number, text) in facts {
            let length = u8::try_from(text.len()).unwrap();
            der.extend(FULCIO);
            der.extend([*number, 0x04, length + 2, 0x0c, length]);
            der.extend(text.as_bytes());
        }
        der
    }

    #[test]
    fn workflows_that_clients_know_are_named() {
        let github = [
            (8, "https://token.actions.githubusercontent.com"),
            (12, "https://github.com/acme/lib"),
            (18, "https://github.com/acme/lib/.github/workflows/release.yml@refs/tags/v1"),
        ];
        let named = json!({"kind": "GitHub", "repository": "acme/lib", "workflow": "release.yml", "environment": null});
        assert_eq!(of(&certificate(&github)), named);
        let gitlab = [
            (8, "https://gitlab.com"),
            (12, "https://gitlab.com/group/sub/lib"),
            (18, "https://gitlab.com/group/sub/lib//.gitlab-ci.yml@refs/heads/main"),
        ];
        let named = json!({"kind": "GitLab", "repository": "group/sub/lib", "workflow_filepath": ".gitlab-ci.yml", "environment": null});
        assert_eq!(of(&certificate(&gitlab)), named);
    }

    #[test]
    fn an_unknown_publisher_has_the_kind_packhouse() {
        let other = [
            (8, "https://token.actions.githubusercontent.com"),
            (12, "https://github.com/acme/lib"),
            (18, "https://github.com/acme/other/.github/workflows/release.yml@refs/tags/v1"),
        ];
        let whole = certificate(&other);
        for bytes in [&whole[..], &certificate(&other[..1]), b"certificate", b"", &whole[..whole.len() - 5]] {
            assert_eq!(of(bytes)["kind"], "Packhouse");
        }
    }
}
