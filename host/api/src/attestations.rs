//! Views of signed statements about versions.

use std::collections::BTreeMap;

use packhouse_runtime::Attestation as Presented;
use packhouse_store::{Attestation, AttestedFacts, Verdict};
use serde::Serialize;
use utoipa::ToSchema;

/// A signed statement about a version or one of its files. Unless its verdict is `verified`, its
/// details are claims that anybody could make.
#[derive(Default, Serialize, ToSchema)]
pub(crate) struct AttestationView {
    /// Path of the file that it describes; empty if it describes the version.
    file: String,
    /// Kind of the statement: the type that it states, otherwise its form.
    kind: String,
    /// Media type of its form; empty if the server does not store it as a statement.
    media_type: String,
    /// Author of the statement, as the format describes it.
    publisher: BTreeMap<String, String>,
    /// Path in the repository from which it can be downloaded; empty if it has none.
    path: String,
    /// `verified`, `other_identity`, `failed`, `unverifiable` or, for a moment, `pending`.
    verdict: String,
    /// Reason why it is not verified, as a sentence.
    reason: String,
    /// Identity of the signer.
    identity: String,
    /// Issuer that vouched for the identity.
    issuer: String,
    /// Repository of the source.
    source: String,
    /// Its branch or tag.
    source_ref: String,
    /// Its commit.
    commit: String,
    /// Workflow that ran.
    workflow: String,
    /// Run of the workflow.
    run: String,
    /// The key, if a key signed it.
    key: String,
    /// Time of the signature in ms since 1970, as a log attested it.
    signed_at: Option<i64>,
    /// Digest of the subject.
    subject: String,
    /// Digest of the statement.
    digest: String,
    /// Time of arrival, in ms since 1970.
    attested_at: Option<i64>,
    /// Time of the verification, in ms since 1970.
    judged_at: Option<i64>,
}

/// Merges the stored statements with those that a plugin presents. A presented statement may be
/// missing from the store if it was published before the server stored statements.
pub(crate) fn views(stored: Vec<Attestation>, presented: Vec<Presented>) -> Vec<AttestationView> {
    let is_stored =
        |one: &Presented| stored.iter().any(|stored| !stored.source.is_empty() && stored.source == one.path);
    let (described, others): (Vec<_>, Vec<_>) = presented.into_iter().partition(is_stored);
    let views_of_stored = stored.into_iter().map(|one| {
        let describes =
            |other: &&Presented| other.path == one.source && other.kind == one.facts.predicate_type;
        let publisher = described.iter().find(describes).map(|other| other.publisher.clone());
        view(one, publisher.unwrap_or_default())
    });
    views_of_stored.chain(others.into_iter().map(view_of_presented)).collect()
}

fn view(one: Attestation, publisher: BTreeMap<String, String>) -> AttestationView {
    let Attestation { path, source: at, kind: media_type, subject, sha256, verdict, reason, facts, .. } = one;
    let AttestedFacts {
        identity,
        issuer,
        source,
        source_ref,
        commit,
        workflow,
        run,
        predicate_type,
        key,
        signed_at,
    } = facts;
    AttestationView {
        file: path,
        kind: if predicate_type.is_empty() { media_type.clone() } else { predicate_type },
        media_type,
        publisher,
        path: at,
        verdict: verdict.to_string(),
        reason,
        identity,
        issuer,
        source,
        source_ref,
        commit,
        workflow,
        run,
        key,
        signed_at,
        subject: subject.to_string(),
        digest: sha256.digest().to_string(),
        attested_at: Some(one.attested_at),
        judged_at: one.judged_at,
    }
}

fn view_of_presented(one: Presented) -> AttestationView {
    AttestationView {
        file: one.file,
        kind: one.kind,
        publisher: one.publisher,
        path: one.path,
        verdict: Verdict::Unverifiable.to_string(),
        reason: "Only the plugin of its format keeps it; the plugin has not submitted it for verification."
            .to_owned(),
        ..AttestationView::default()
    }
}
