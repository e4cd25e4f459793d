//! Signed statements about packages are judged here: what comes, at once, and all of them again when what is trusted has changed. No publish
//! waits for it, and no network is asked.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use packhouse_attest::{Expected, Facts, Judgement, Trust, TrustFiles};
use packhouse_config::Config;
use packhouse_config::live::Live;
use packhouse_store::{
    Attestation, AttestationId, AttestedFacts, Judged, RepositoryId, SignedStatement, StoreError, ToJudge,
    Verdict,
};

use crate::App;
use crate::boxed;

/// What is trusted at present.
pub type Trusted = Live<Trust>;

/// How often it is looked for what another process has written and not judged.
const LOOK: Duration = Duration::from_secs(30);

/// Reads what the settings say is trusted. The error names the settings and the file that is wrong.
pub fn read(config: &Config) -> Result<Trust> {
    let settings = &config.attestations;
    let expected =
        |[issuer, identity]: &[String; 2]| Expected { issuer: issuer.clone(), identity: identity.clone() };
    let files = TrustFiles {
        roots: settings.trusted_roots.clone(),
        keys: settings.trusted_keys.clone(),
        identities: settings.identities.iter().map(expected).collect(),
    };
    Trust::read(&files).with_context(|| {
        let of = |name: &str| config.sources.label(name);
        format!("{}, {}", of("attestations.trusted_roots"), of("attestations.trusted_keys"))
    })
}

/// Judges until the stop.
#[boxed]
pub async fn judge(app: Arc<App>) {
    let mut reloads = app.reloads();
    let mut all = true;
    loop {
        let done = judge_waiting(&app, &mut all).await;
        if let Err(error) = done {
            tracing::debug!(%error, "what is stated of packages could not be judged; the next look will do");
        }
        tokio::select! {
            () = app.stop.cancelled() => return,
            () = app.store.attested() => {}
            () = reloads.next() => all = true,
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

/// What was never judged; before that, where it is wanted, what was judged by something else. That is one walk, so that two servers that
/// trust different things come to an end.
async fn judge_waiting(app: &Arc<App>, all: &mut bool) -> Result<(), StoreError> {
    if *all {
        let trust = app.trust.get();
        let mut after = AttestationId::default();
        while !app.stop.is_cancelled() {
            let found = app.store.attestations_judged_otherwise(after, trust.fingerprint()).await?;
            let Some(last) = found.last() else { break };
            after = last.id;
            judge_each(app, &trust, found).await?;
        }
        *all = false;
    }
    while !app.stop.is_cancelled() {
        let found = app.store.attestations_pending().await?;
        if found.is_empty() {
            break;
        }
        judge_each(app, &app.trust.get(), found).await?;
    }
    Ok(())
}

/// One after the other: what is stated of packages takes one thread at most.
async fn judge_each(app: &App, trust: &Arc<Trust>, statements: Vec<ToJudge>) -> Result<(), StoreError> {
    for ToJudge { id, kind, subject, bundle } in statements {
        if app.stop.is_cancelled() {
            return Ok(());
        }
        let judged = judge_by(trust, kind, subject, bundle).await?;
        app.store.judge_attestation(id, trust.fingerprint(), &judged).await?;
    }
    Ok(())
}

/// What is signed of a version, judged: what has just come is judged at once, for who has to know it now.
pub(crate) async fn judged_of(
    app: &App,
    repository: RepositoryId,
    name: &str,
    version: &str,
) -> Result<Vec<Attestation>, StoreError> {
    let stated = app.store.attestations_of(repository, name, version).await?;
    let waiting = stated.iter().filter(|one| one.verdict == Verdict::Pending).map(|one| one.id);
    let waiting: Vec<AttestationId> = waiting.collect();
    if waiting.is_empty() {
        return Ok(stated);
    }
    let trust = app.trust.get();
    for id in waiting {
        let found = app.store.attestation_to_judge(id).await?;
        judge_each(app, &trust, found.into_iter().collect()).await?;
    }
    app.store.attestations_of(repository, name, version).await
}

/// Judges a statement that is not kept yet, for who has to know it before it is.
pub(crate) async fn judge_one(app: &App, stated: &SignedStatement) -> Result<Judged, StoreError> {
    let SignedStatement { kind, subject, bundle, .. } = stated.clone();
    judge_by(&app.trust.get(), kind, subject.to_string(), bundle).await
}

async fn judge_by(
    trust: &Arc<Trust>,
    kind: String,
    subject: String,
    bundle: Bytes,
) -> Result<Judged, StoreError> {
    let by = Arc::clone(trust);
    let judged = tokio::task::spawn_blocking(move || packhouse_attest::judge(&by, &kind, &subject, &bundle));
    match judged.await {
        Ok(judgement) => judged_as(judgement),
        Err(error) => {
            tracing::error!(%error, "a statement about a package could not be judged");
            let reason = "It could not be judged: the log of the server says why.".to_owned();
            Ok(Judged { verdict: Verdict::Failed, reason, facts: AttestedFacts::default() })
        }
    }
}

fn judged_as(judgement: Judgement) -> Result<Judged, StoreError> {
    let Judgement { verdict, reason, facts } = judgement;
    let Facts { identity, issuer, source, source_ref, commit, workflow, run, predicate_type, key, signed_at } =
        facts;
    let facts = AttestedFacts {
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
    };
    Ok(Judged { verdict: verdict.name().parse()?, reason, facts })
}
