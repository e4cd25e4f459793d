//! Verification of signed statements about packages. The server verifies new statements at once,
//! and all statements again when the trust settings change. Publishing does not wait for
//! verification, and verification makes no network requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use packhouse_attest::{ExpectedIdentity, Judgement, StatementFacts, Trust, TrustFiles};
use packhouse_config::Config;
use packhouse_config::live::Live;
use packhouse_store::{
    Attestation, AttestationId, AttestedFacts, RepositoryId, SignedStatement, StoreError, ToJudge, Verdict,
    VerificationResult,
};

use crate::App;
use crate::jobs::{Job, JobFuture, JobResult, Next};

pub type Trusted = Live<Trust>;

/// Interval of the search for unverified statements that another process stored.
const LOOK: Duration = Duration::from_secs(30);

/// Reads the trust settings and their files. The error names the settings and the invalid file.
pub fn read(config: &Config) -> Result<Trust> {
    let settings = &config.attestations;
    let expected = |[issuer, identity]: &[String; 2]| ExpectedIdentity {
        issuer: issuer.clone(),
        identity: identity.clone(),
    };
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

/// Creates the job that verifies new statements. After a reload of the settings, the job verifies
/// all statements again, because the trust settings may have changed.
pub fn job(app: &Arc<App>) -> Job {
    let all = Arc::new(AtomicBool::new(true));
    let reloads = Arc::new(tokio::sync::Mutex::new(app.reloads()));
    let (verified, of_app) = (Arc::clone(&all), Arc::clone(app));
    let run = move || -> JobFuture<JobResult> {
        let (app, all) = (Arc::clone(&of_app), Arc::clone(&verified));
        Box::pin(async move {
            judge_waiting(&app, &all).await?;
            Ok(Next::AfterPeriod)
        })
    };
    let app = Arc::clone(app);
    Job::with_state("verify-attestations", LOOK, run).woken_by(move || {
        let (app, all, reloads) = (Arc::clone(&app), Arc::clone(&all), Arc::clone(&reloads));
        Box::pin(async move {
            let mut reloads = reloads.lock().await;
            tokio::select! {
                () = app.store.attested() => {}
                () = reloads.next() => all.store(true, Ordering::Relaxed),
            }
        })
    })
}

/// Verifies pending statements. If `all` is set, first verifies the statements whose verdict comes
/// from other trust settings. It visits these statements only once: otherwise two servers with
/// different trust settings would overwrite each other's verdicts forever.
async fn judge_waiting(app: &Arc<App>, all: &AtomicBool) -> Result<(), StoreError> {
    if all.load(Ordering::Relaxed) {
        let trust = app.trust.get();
        let mut after = AttestationId::default();
        while !app.stop.is_cancelled() {
            let found = app.store.attestations_judged_otherwise(after, trust.fingerprint()).await?;
            let Some(last) = found.last() else { break };
            after = last.id;
            judge_each(app, &trust, found).await?;
        }
        all.store(false, Ordering::Relaxed);
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

/// Verifies the statements one after another, so that verification uses at most one thread.
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

/// Returns the attestations of a version, for callers that need the verdicts now. Verifies pending
/// attestations first.
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

/// Verifies a statement before it is stored, for callers that need the verdict before that.
pub(crate) async fn judge_one(app: &App, stated: &SignedStatement) -> Result<VerificationResult, StoreError> {
    let SignedStatement { kind, subject, bundle, .. } = stated.clone();
    judge_by(&app.trust.get(), kind, subject.to_string(), bundle).await
}

async fn judge_by(
    trust: &Arc<Trust>,
    kind: String,
    subject: String,
    bundle: Bytes,
) -> Result<VerificationResult, StoreError> {
    let by = Arc::clone(trust);
    let judged = tokio::task::spawn_blocking(move || packhouse_attest::judge(&by, &kind, &subject, &bundle));
    match judged.await {
        Ok(judgement) => judged_as(judgement),
        Err(error) => {
            tracing::error!(%error, "verifying an attestation failed");
            let reason = "The server could not verify this statement; its log has the reason.".to_owned();
            Ok(VerificationResult { verdict: Verdict::Failed, reason, facts: AttestedFacts::default() })
        }
    }
}

fn judged_as(judgement: Judgement) -> Result<VerificationResult, StoreError> {
    let Judgement { verdict, reason, facts } = judgement;
    let StatementFacts {
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
    Ok(VerificationResult { verdict: verdict.name().parse()?, reason, facts })
}
