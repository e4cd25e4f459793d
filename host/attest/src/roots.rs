//! Statements that were signed under a certificate: by the roots that are trusted.

use sigstore_verify::types::{Artifact, Bundle};
use sigstore_verify::{
    CertificateError, Error, TransparencyLogError, VerificationPolicy, VerificationResult, Verifier,
};

use crate::facts::{Facts, cut};
use crate::subject::Subject;
use crate::{Judgement, Verdict};

/// A statement and what it is to be about.
pub(crate) struct Case<'a> {
    pub(crate) bundle: &'a Bundle,
    /// What was signed, where that is a document that names the subject.
    pub(crate) message: Option<&'a [u8]>,
    pub(crate) subject: &'a Subject,
}

impl Case<'_> {
    /// What the signature is of.
    pub(crate) fn artifact(&self) -> Artifact<'_> {
        match self.message {
            Some(message) => Artifact::Blob(message),
            None => Artifact::Digest(self.subject.digest()),
        }
    }
}

/// A root: what one instance of Sigstore trusts in.
pub(crate) struct Root {
    verifier: Verifier,
    policy: VerificationPolicy,
}

impl Root {
    /// From `trusted_root.json`. An instance that runs no log of a kind asks for no entry in one: so it is with what GitHub makes of
    /// private repositories, which is attested by an authority for time alone.
    pub(crate) fn read(text: &str) -> Result<Root, String> {
        let root =
            sigstore_verify::trust_root::TrustedRoot::from_json(text).map_err(|error| error.to_string())?;
        if root.certificate_authorities.is_empty() {
            return Err("it names no certificate authority".to_owned());
        }
        let mut policy = VerificationPolicy::any_identity();
        if root.ctlogs.is_empty() {
            policy = policy.skip_sct();
        }
        if root.tlogs.is_empty() {
            policy = policy.skip_tlog_unsafe();
        }
        let verifier = Verifier::new(&root).map_err(|error| error.to_string())?;
        Ok(Root { verifier, policy })
    }

    fn verify(&self, case: &Case<'_>) -> Result<VerificationResult, Error> {
        self.verifier.verify(case.artifact(), case.bundle, &self.policy)
    }
}

/// Judges a statement under a certificate: verified where one of the roots says so, and the identity (the first) by its issuer is expected.
pub(crate) fn judge(
    roots: &[Root],
    expects: impl Fn(&str, &str) -> bool,
    case: &Case<'_>,
    facts: Facts,
) -> Judgement {
    if roots.is_empty() {
        let reason = "No root is trusted here by which it could be verified.";
        return Judgement::of(Verdict::Unverifiable, reason, facts);
    }
    let mut wrong: Option<Error> = None;
    for root in roots {
        match root.verify(case) {
            Ok(result) => return accepted(expects, &result, facts),
            // What a root says that knows the signer's log tells more than what one says that does not.
            Err(error) if wrong.as_ref().is_none_or(is_foreign) => wrong = Some(error),
            Err(_) => {}
        }
    }
    let reason = wrong.map_or_else(String::new, |error| sentence(&error, case.subject));
    Judgement::of(Verdict::Failed, reason, facts)
}

fn accepted(expects: impl Fn(&str, &str) -> bool, result: &VerificationResult, facts: Facts) -> Judgement {
    let signed_at = result.verified_timestamps().iter().min().map(|time| time.as_millisecond());
    let facts = Facts { signed_at, ..facts };
    if expects(&facts.identity, &facts.issuer) {
        return Judgement::of(Verdict::Verified, "", facts);
    }
    let reason = format!(
        "Its signature holds, but {} (by {}) is none of the identities that are expected here.",
        facts.identity, facts.issuer
    );
    Judgement::of(Verdict::OtherIdentity, reason, facts)
}

/// Whether the statement is of another instance than the root.
fn is_foreign(error: &Error) -> bool {
    let Error::TransparencyLog(problem) = error else { return false };
    match problem {
        TransparencyLogError::UnknownLog { .. } => true,
        TransparencyLogError::InclusionPromise(text) => text.starts_with("No log key"),
        _ => false,
    }
}

fn is_of_another_time(problem: &CertificateError) -> bool {
    match problem {
        CertificateError::Expired { .. }
        | CertificateError::NotYetValid { .. }
        | CertificateError::NoValidAuthority { .. } => true,
        // The library tells of it in words alone where the chain is what has run out.
        CertificateError::ChainInvalid(text) => {
            text.contains("CertExpired") || text.contains("CertNotValidYet")
        }
        _ => false,
    }
}

fn sentence(error: &Error, subject: &Subject) -> String {
    match error {
        Error::ArtifactMismatch(_) => subject.mismatch(),
        Error::Certificate(problem) if is_of_another_time(problem) => {
            "Its certificate was not valid when it was signed.".to_owned()
        }
        error if is_foreign(error) => "It is of a log that none of the trusted roots knows.".to_owned(),
        error => format!("It does not hold: {}.", cut(&error.to_string()).trim_end_matches('.')),
    }
}

impl Root {
    /// When it was signed by a key, where this root's logs and authorities for time say so, in ms since 1970.
    pub(crate) fn times(
        &self,
        case: &Case<'_>,
        policy: &sigstore_verify::PublicKeyVerificationPolicy,
    ) -> Option<i64> {
        let result = self.verifier.verify(case.artifact(), case.bundle, policy).ok()?;
        result.verified_timestamps().iter().min().map(|time| time.as_millisecond())
    }
}
