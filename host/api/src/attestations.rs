//! Signed statements about versions, as the API shows them.

use std::collections::BTreeMap;

use packhouse_runtime::Attestation as Presented;
use packhouse_store::{Attestation, AttestedFacts, Verdict};
use serde::Serialize;
use utoipa::ToSchema;

/// A signed statement about a version or a file of it. What it says of who made it and from what is a claim that anybody could make,
/// unless its verdict is `verified`.
#[derive(Default, Serialize, ToSchema)]
pub(crate) struct AttestationView {
    /// The file that it is about, by its path; empty: the version.
    file: String,
    /// What kind of statement: the type that it gives itself, else its form.
    kind: String,
    /// Its form: a media type; empty where it is not kept as a statement.
    media_type: String,
    /// Who states it, as the format describes it.
    publisher: BTreeMap<String, String>,
    /// Where the whole of it is fetched: a path in the repository; empty where there is none.
    path: String,
    /// `verified`, `other_identity`, `failed`, `unverifiable` or, for a moment, `pending`.
    verdict: String,
    /// Why it is not verified, as a sentence.
    reason: String,
    /// Who made it.
    identity: String,
    /// Who vouched for that.
    issuer: String,
    /// The repository of the source.
    source: String,
    /// Its branch or tag.
    source_ref: String,
    /// Its commit.
    commit: String,
    /// What was run.
    workflow: String,
    /// The run.
    run: String,
    /// The key, where it was signed by one.
    key: String,
    /// When it was signed, in ms since 1970, as a log has attested.
    signed_at: Option<i64>,
    /// The digest that it is to be about.
    subject: String,
    /// Of the statement.
    digest: String,
    /// When it came, in ms since 1970.
    attested_at: Option<i64>,
    /// When it was judged, in ms since 1970.
    judged_at: Option<i64>,
}

/// Those that are kept, and those that a format presents of itself and that are none of these: as of what was published before
/// statements were kept.
pub(crate) fn views(kept: Vec<Attestation>, presented: Vec<Presented>) -> Vec<AttestationView> {
    let is_kept =
        |one: &Presented| kept.iter().any(|kept| !kept.source.is_empty() && kept.source == one.path);
    let (described, others): (Vec<_>, Vec<_>) = presented.into_iter().partition(is_kept);
    let shown = kept.into_iter().map(|one| {
        let describes =
            |other: &&Presented| other.path == one.source && other.kind == one.facts.predicate_type;
        let publisher = described.iter().find(describes).map(|other| other.publisher.clone());
        view(one, publisher.unwrap_or_default())
    });
    shown.chain(others.into_iter().map(unkept)).collect()
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

fn unkept(one: Presented) -> AttestationView {
    AttestationView {
        file: one.file,
        kind: one.kind,
        publisher: one.publisher,
        path: one.path,
        verdict: Verdict::Unverifiable.to_string(),
        reason: "It is kept by its format alone, which has not handed it over to be judged.".to_owned(),
        ..AttestationView::default()
    }
}
