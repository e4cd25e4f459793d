//! Signed statements about packages, judged: whether a signature holds, who made it, and what it is about. The same for every format,
//! without a network: against roots, keys and identities that the operator names.
//!
//! [`Trust`] is what is trusted; [`judge`] tells what a statement is worth by it. A statement comes in one of a few forms
//! ([`form`]): Sigstore's bundle, cosign's older form of a signature or an envelope beside its certificate, and OpenPGP's, of which
//! nothing but the key's number is read.

mod facts;
pub mod form;
mod keys;
mod pgp;
mod roots;
mod subject;
mod trust;

pub use facts::Facts;
pub use trust::{Expected, Trust, TrustError, TrustFiles};

use form::Signed;
use subject::Subject;

/// Bytes of a statement that are looked at, at most.
pub const MAX_BYTES: usize = 512 << 10;

/// What a statement is worth.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// Its signature holds under what is trusted, it is about this very digest, and who made it is expected.
    Verified,
    /// As verified, but for who made it: identities are named, and it is none of them.
    OtherIdentity,
    /// It was looked at and does not hold.
    Failed,
    /// Nothing here can tell: no root or key is named, or the form is one that is not verified here.
    Unverifiable,
}

impl Verdict {
    /// As it is stored and shown.
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

/// What came of judging a statement.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Judgement {
    /// What it is worth.
    pub verdict: Verdict,
    /// Why it is not verified, as a sentence; empty where it is.
    pub reason: String,
    /// What it says of who made it and from what. Of a statement that is not verified it is a claim that anybody could make.
    pub facts: Facts,
}

impl Judgement {
    fn of(verdict: Verdict, reason: impl Into<String>, facts: Facts) -> Judgement {
        Judgement { verdict, reason: reason.into(), facts }
    }
}

/// Judges a statement of the form `kind` that is to be about `subject` (`sha256:…` or `sha512:…`, in lower-case hex).
#[must_use]
pub fn judge(trust: &Trust, kind: &str, subject: &str, bytes: &[u8]) -> Judgement {
    let failed = |reason: String| Judgement::of(Verdict::Failed, reason, Facts::default());
    if bytes.len() > MAX_BYTES {
        return failed(format!("It has {} bytes, and at most {MAX_BYTES} are looked at.", bytes.len()));
    }
    if bytes.is_empty() {
        let reason = "It is too large to be looked at here.";
        return Judgement::of(Verdict::Unverifiable, reason, Facts::default());
    }
    let Some(subject) = Subject::parse(subject) else {
        return failed(format!("What it is to be about, {subject}, is neither SHA-256 nor SHA-512."));
    };
    match form::read(kind, bytes) {
        Ok(Signed::Bundle(bundle)) => judge_signed(trust, &bundle, None, &subject),
        Ok(Signed::Message(bundle, message)) => judge_signed(trust, &bundle, Some(&message), &subject),
        Ok(Signed::Pgp) => pgp::judge(bytes),
        Ok(Signed::Unknown) => {
            let reason = "It is kept as it came: signatures of this kind are not verified here.";
            Judgement::of(Verdict::Unverifiable, reason, Facts::default())
        }
        Err(why) => failed(format!("It cannot be read: {why}.")),
    }
}

/// `message` is what was signed, where that is not the subject's own bytes but a document that names it.
fn judge_signed(
    trust: &Trust,
    bundle: &sigstore_verify::types::Bundle,
    message: Option<&[u8]>,
    subject: &Subject,
) -> Judgement {
    let facts = Facts::claimed(bundle);
    if message.is_some_and(|message| !subject.is_named_by(message)) {
        return Judgement::of(Verdict::Failed, subject.mismatch(), facts);
    }
    let case = roots::Case { bundle, message, subject };
    if bundle.signing_certificate().is_some() {
        let expects = |identity: &str, issuer: &str| trust.expects(identity, issuer);
        roots::judge(&trust.roots, expects, &case, facts)
    } else {
        keys::judge(&trust.keys, &trust.roots, &case, facts)
    }
}
