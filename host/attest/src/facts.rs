//! Facts that a signed statement claims, such as its signer and the source of the build.

use serde_json::Value;
use sigstore_verify::crypto::{CertificateInfo, parse_certificate_info};
use sigstore_verify::types::{Bundle, SignatureContent};

/// Maximum size of one fact in bytes. Longer texts are truncated.
const MAX_FACT_BYTES: usize = 1000;

/// Facts of a statement. A field is empty if the statement does not contain it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct StatementFacts {
    /// The signer in the certificate: the URL of a workflow, or an e-mail address.
    pub identity: String,
    /// Issuer of the ID token with which the signer proved this identity.
    pub issuer: String,
    /// Repository of the source code.
    pub source: String,
    /// Branch or tag in the source repository.
    pub source_ref: String,
    /// Commit in the source repository.
    pub commit: String,
    /// URL of the workflow that ran, or its name.
    pub workflow: String,
    /// URL of the workflow run.
    pub run: String,
    /// Type of the statement's predicate.
    pub predicate_type: String,
    /// The public key, if the statement was signed with a key and has no certificate.
    pub key: String,
    /// Time of the signature in ms since 1970, attested by a log or a timestamp authority. Set only
    /// for a verified statement.
    pub signed_at: Option<i64>,
}

impl StatementFacts {
    /// Returns the facts that a bundle claims, without verifying them.
    pub(crate) fn claimed(bundle: &Bundle) -> StatementFacts {
        let certificate = bundle.signing_certificate().and_then(|der| parse_certificate_info(der).ok());
        let facts = certificate.as_ref().map(StatementFacts::of_certificate).unwrap_or_default();
        StatementFacts { predicate_type: predicate_type(bundle), ..facts }
    }

    fn of_certificate(certificate: &CertificateInfo) -> StatementFacts {
        let (claims, older) = (&certificate.ci_claims, &certificate.ci_claims.deprecated_github);
        let first = |all: [&Option<String>; 2]| {
            all.into_iter().flatten().next().map_or_else(String::new, |text| cut(text))
        };
        let one = |text: &Option<String>| first([text, &None]);
        StatementFacts {
            identity: certificate.identity.as_ref().map_or_else(String::new, |name| cut(name.as_str())),
            issuer: one(&certificate.issuer),
            source: first([&claims.source_repository_uri, &older.workflow_repository]),
            source_ref: first([&claims.source_repository_ref, &older.workflow_ref]),
            commit: first([&claims.source_repository_digest, &older.workflow_sha]),
            workflow: first([&claims.build_config_uri, &older.workflow_name]),
            run: one(&claims.run_invocation_uri),
            ..StatementFacts::default()
        }
    }
}

/// Returns the predicate type of an in-toto statement. Returns an empty text if the signature
/// covers the subject's own bytes.
fn predicate_type(bundle: &Bundle) -> String {
    let SignatureContent::DsseEnvelope(envelope) = &bundle.content else { return String::new() };
    let statement: Value = serde_json::from_slice(envelope.payload.as_bytes()).unwrap_or_default();
    cut(statement.get("predicateType").and_then(Value::as_str).unwrap_or_default())
}

/// Removes control characters from a text and truncates it to [`MAX_FACT_BYTES`].
pub(crate) fn cut(text: &str) -> String {
    let printable: String = text.chars().filter(|c| !c.is_control()).collect();
    printable.get(..printable.floor_char_boundary(MAX_FACT_BYTES)).unwrap_or_default().to_owned()
}
