//! Verification of statements that have a certificate, against the trusted roots.

use sigstore_verify::types::{Artifact, Bundle};
use sigstore_verify::{
    CertificateError, Error, TransparencyLogError, VerificationPolicy, VerificationResult, Verifier,
};

use crate::facts::{StatementFacts, cut};
use crate::subject::Subject;
use crate::{Judgement, Verdict};

/// A statement to judge, and the subject that it must be about.
pub(crate) struct StatementCase<'a> {
    pub(crate) bundle: &'a Bundle,
    /// The signed document, if the signature covers a document that names the subject.
    pub(crate) message: Option<&'a [u8]>,
    pub(crate) subject: &'a Subject,
}

impl StatementCase<'_> {
    /// Returns the artifact that the signature covers: the signed document, or else the subject's
    /// digest.
    pub(crate) fn artifact(&self) -> Artifact<'_> {
        match self.message {
            Some(message) => Artifact::Blob(message),
            None => Artifact::Digest(self.subject.digest()),
        }
    }
}

/// The trusted root of one Sigstore instance.
pub(crate) struct Root {
    verifier: Verifier,
    policy: VerificationPolicy,
}

impl Root {
    /// Parses `trusted_root.json`. If the instance has no log of a kind, statements need no entry
    /// in such a log. An example is GitHub's instance for private repositories, which has only a
    /// timestamp authority.
    pub(crate) fn read(text: &str) -> Result<Root, String> {
        let root =
            sigstore_verify::trust_root::TrustedRoot::from_json(text).map_err(|error| error.to_string())?;
        if root.certificate_authorities.is_empty() {
            return Err("it does not contain a certificate authority".to_owned());
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

    fn verify(&self, case: &StatementCase<'_>) -> Result<VerificationResult, Error> {
        self.verifier.verify(case.artifact(), case.bundle, &self.policy)
    }
}

/// Judges a statement that has a certificate. The verdict is `Verified` if one of the roots accepts
/// the statement and the operator expects the certificate's identity and issuer.
pub(crate) fn judge(
    roots: &[Root],
    expects: impl Fn(&str, &str) -> bool,
    case: &StatementCase<'_>,
    facts: StatementFacts,
) -> Judgement {
    if roots.is_empty() {
        let reason = "This server has no trusted root to verify it.";
        return Judgement::of(Verdict::Unverifiable, reason, facts);
    }
    let mut wrong: Option<Error> = None;
    for root in roots {
        match root.verify(case) {
            Ok(result) => return accepted(expects, &result, facts),
            // Keep the error of a root that knows the signer's log. The error of any other root is
            // less useful.
            Err(error) if wrong.as_ref().is_none_or(is_foreign) => wrong = Some(error),
            Err(_) => {}
        }
    }
    let reason = wrong.map_or_else(String::new, |error| sentence(&error, case.subject));
    Judgement::of(Verdict::Failed, reason, facts)
}

fn accepted(
    expects: impl Fn(&str, &str) -> bool,
    result: &VerificationResult,
    facts: StatementFacts,
) -> Judgement {
    let signed_at = result.verified_timestamps().iter().min().map(|time| time.as_millisecond());
    let facts = StatementFacts { signed_at, ..facts };
    if expects(&facts.identity, &facts.issuer) {
        return Judgement::of(Verdict::Verified, "", facts);
    }
    let reason = format!(
        "Its signature is valid, but its identity {} (issuer {}) is not one of the expected identities.",
        facts.identity, facts.issuer
    );
    Judgement::of(Verdict::OtherIdentity, reason, facts)
}

/// Reports whether the error means that the statement comes from another Sigstore instance.
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
        // For an expired chain, only the library's message contains the reason.
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
        error if is_foreign(error) => "Its transparency log is not known to any trusted root.".to_owned(),
        error => format!("It is not valid: {}.", cut(&error.to_string()).trim_end_matches('.')),
    }
}

impl Root {
    /// Returns the time of a signature that was made with a key, in ms since 1970. Returns `None`
    /// unless this root's logs or timestamp authorities attest it.
    pub(crate) fn times(
        &self,
        case: &StatementCase<'_>,
        policy: &sigstore_verify::PublicKeyVerificationPolicy,
    ) -> Option<i64> {
        let result = self.verifier.verify(case.artifact(), case.bundle, policy).ok()?;
        result.verified_timestamps().iter().min().map(|time| time.as_millisecond())
    }
}
