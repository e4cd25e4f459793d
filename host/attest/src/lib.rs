//! Judges signed statements about packages: whether the signature is valid, who signed, and which
//! subject the statement is about. The verdict does not depend on the package format and needs no
//! network. The operator configures the trusted roots, keys and identities.
//!
//! [`Trust`] contains the operator's configuration, and [`judge`] returns the verdict on a
//! statement. Statements have one of a few formats ([`form`]): Sigstore bundles, OpenPGP, and
//! cosign's older format, whose certificate is separate from the signature or envelope. OpenPGP
//! signatures are not verified: the server reads only the key's id.

mod facts;
pub mod form;
mod keys;
mod pgp;
mod roots;
mod subject;
mod trust;

pub use facts::StatementFacts;
pub use trust::{ExpectedIdentity, Trust, TrustError, TrustFiles};

use form::ParsedStatement;
use subject::Subject;

/// Maximum size of a statement in bytes.
pub const MAX_BYTES: usize = 512 << 10;

/// Verdict on a statement, based on the roots, keys and identities that the operator trusts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// The signature is valid, the statement is about exactly this digest, and the operator expects
    /// this signer.
    Verified,
    /// Like `Verified`, but the signer is not among the configured identities.
    OtherIdentity,
    /// The check failed: the statement is not valid.
    Failed,
    /// The server cannot check the statement: no root or key is configured, or the server does not
    /// support the format.
    Unverifiable,
}

impl Verdict {
    /// The verdict's name in the database and in the API.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Verified => "verified",
            Verdict::OtherIdentity => "other_identity",
            Verdict::Failed => "failed",
            Verdict::Unverifiable => "unverifiable",
        }
    }
}

/// Result of judging a statement.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Judgement {
    pub verdict: Verdict,
    /// Sentence that explains why the statement is not verified. Empty for a verified statement.
    pub reason: String,
    /// The signer and the source that the statement names. If the statement is not verified, these
    /// are only claims that anyone could make.
    pub facts: StatementFacts,
}

impl Judgement {
    fn of(verdict: Verdict, reason: impl Into<String>, facts: StatementFacts) -> Judgement {
        Judgement { verdict, reason: reason.into(), facts }
    }
}

/// Judges a statement of the media type `kind` about `subject` (`sha256:…` or `sha512:…`, in
/// lower-case hex).
#[must_use]
pub fn judge(trust: &Trust, kind: &str, subject: &str, bytes: &[u8]) -> Judgement {
    let failed = |reason: String| Judgement::of(Verdict::Failed, reason, StatementFacts::default());
    if bytes.len() > MAX_BYTES {
        return failed(format!(
            "It has {} bytes, but only statements of at most {MAX_BYTES} bytes are verified.",
            bytes.len()
        ));
    }
    if bytes.is_empty() {
        let reason = "It is too large to be verified.";
        return Judgement::of(Verdict::Unverifiable, reason, StatementFacts::default());
    }
    let Some(subject) = Subject::parse(subject) else {
        return failed(format!("Its subject must have a SHA-256 or SHA-512 digest, but has {subject}."));
    };
    match form::read(kind, bytes) {
        Ok(ParsedStatement::Bundle(bundle)) => judge_signed(trust, &bundle, None, &subject),
        Ok(ParsedStatement::Message(bundle, message)) => {
            judge_signed(trust, &bundle, Some(&message), &subject)
        }
        Ok(ParsedStatement::Pgp) => pgp::judge(bytes),
        Ok(ParsedStatement::Unknown) => {
            let reason = "It is stored unchanged; this server does not verify signatures of this kind.";
            Judgement::of(Verdict::Unverifiable, reason, StatementFacts::default())
        }
        Err(why) => failed(format!("It cannot be read: {why}.")),
    }
}

/// Judges a parsed statement. `message` is the signed document that names the subject. It is `None`
/// if the signature covers the subject's own bytes.
fn judge_signed(
    trust: &Trust,
    bundle: &sigstore_verify::types::Bundle,
    message: Option<&[u8]>,
    subject: &Subject,
) -> Judgement {
    let facts = StatementFacts::claimed(bundle);
    if message.is_some_and(|message| !subject.is_named_by(message)) {
        return Judgement::of(Verdict::Failed, subject.mismatch(), facts);
    }
    let case = roots::StatementCase { bundle, message, subject };
    if bundle.signing_certificate().is_some() {
        let expects = |identity: &str, issuer: &str| trust.expects(identity, issuer);
        roots::judge(&trust.roots, expects, &case, facts)
    } else {
        keys::judge(&trust.keys, &trust.roots, &case, facts)
    }
}
