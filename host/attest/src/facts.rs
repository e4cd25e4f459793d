//! What a statement says of who made it, and from what.

use serde_json::Value;
use sigstore_verify::crypto::{CertificateInfo, parse_certificate_info};
use sigstore_verify::types::{Bundle, SignatureContent};

/// Bytes of one fact: what is longer is cut.
const MOST: usize = 1000;

/// Facts of a statement, each empty where it says nothing of it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Facts {
    /// Who made it, as the certificate names them: an address of a workflow, an e-mail.
    pub identity: String,
    /// Who vouched for that identity: an issuer of ID tokens.
    pub issuer: String,
    /// The repository of the source.
    pub source: String,
    /// Its branch or tag.
    pub source_ref: String,
    /// Its commit.
    pub commit: String,
    /// What was run.
    pub workflow: String,
    /// The run.
    pub run: String,
    /// What kind of statement it is.
    pub predicate_type: String,
    /// The key, where it was signed by a key and no certificate.
    pub key: String,
    /// When it was signed, in ms since 1970, as a log or an authority for time has attested. Only of what is verified.
    pub signed_at: Option<i64>,
}

impl Facts {
    /// What a bundle claims.
    pub(crate) fn claimed(bundle: &Bundle) -> Facts {
        let certificate = bundle.signing_certificate().and_then(|der| parse_certificate_info(der).ok());
        let facts = certificate.as_ref().map(Facts::of_certificate).unwrap_or_default();
        Facts { predicate_type: predicate_type(bundle), ..facts }
    }

    fn of_certificate(certificate: &CertificateInfo) -> Facts {
        let (claims, older) = (&certificate.ci_claims, &certificate.ci_claims.deprecated_github);
        let first = |all: [&Option<String>; 2]| {
            all.into_iter().flatten().next().map_or_else(String::new, |text| cut(text))
        };
        let one = |text: &Option<String>| first([text, &None]);
        Facts {
            identity: certificate.identity.as_ref().map_or_else(String::new, |name| cut(name.as_str())),
            issuer: one(&certificate.issuer),
            source: first([&claims.source_repository_uri, &older.workflow_repository]),
            source_ref: first([&claims.source_repository_ref, &older.workflow_ref]),
            commit: first([&claims.source_repository_digest, &older.workflow_sha]),
            workflow: first([&claims.build_config_uri, &older.workflow_name]),
            run: one(&claims.run_invocation_uri),
            ..Facts::default()
        }
    }
}

/// The type that an in-toto statement gives itself; that a signature of the bytes themselves has none.
fn predicate_type(bundle: &Bundle) -> String {
    let SignatureContent::DsseEnvelope(envelope) = &bundle.content else { return String::new() };
    let statement: Value = serde_json::from_slice(envelope.payload.as_bytes()).unwrap_or_default();
    cut(statement.get("predicateType").and_then(Value::as_str).unwrap_or_default())
}

/// At most so many bytes, and nothing that is no text for people.
pub(crate) fn cut(text: &str) -> String {
    let shown: String = text.chars().filter(|c| !c.is_control()).collect();
    shown.get(..shown.floor_char_boundary(MOST)).unwrap_or_default().to_owned()
}
