//! Signed statements about published files. The store verifies them when necessary, and deletes and
//! restores them together with their subject.

use bytes::Bytes;
use packhouse_store::{
    AttestationId, AttestedFacts, AuditEvent, CatalogChange, Commit, MAX_STATEMENT_BYTES, MAX_STATEMENTS,
    Restored, Sha256, SignedStatement, StoreError, Verdict, VerificationResult, Version, VersionFile,
};

use crate::support::{World, applied, in_both};

in_both! {
    a_statement_is_stored_and_judged_and_judged_again, a_statement_is_deleted_with_its_subject,
    a_statement_needs_a_published_version, a_restored_version_has_its_statements,
    statements_are_bounded,
}

const PACKAGE: &str = "lib";

fn show(number: &str) -> CatalogChange {
    let file = |path: &str| VersionFile {
        path: path.to_owned(),
        digest: Sha256::of(path.as_bytes()).digest(),
        size: 1,
    };
    CatalogChange::Show(Version {
        name: PACKAGE.to_owned(),
        version: number.to_owned(),
        files: vec![file(&format!("{number}.jar")), file(&format!("{number}.pom"))],
        ..Version::default()
    })
}

fn statement(number: &str, file: &str, text: &str) -> SignedStatement {
    SignedStatement {
        name: PACKAGE.to_owned(),
        version: number.to_owned(),
        path: file.to_owned(),
        source: format!("{file}.{text}"),
        kind: "application/x".to_owned(),
        subject: Sha256::of(file.as_bytes()).digest(),
        bundle: Bytes::from(text.to_owned()),
    }
}

async fn commit(world: &World, catalog: Vec<CatalogChange>) {
    let commit = Commit { catalog, ..Commit::default() };
    applied(world.store.commit(world.repository, commit).await.unwrap());
}

async fn attest(world: &World, statements: Vec<SignedStatement>) {
    commit(world, statements.into_iter().map(CatalogChange::Attest).collect()).await;
}

/// The sources of the statements about a version, each with its verdict.
async fn stated(world: &World, number: &str) -> Vec<(String, Verdict)> {
    let all = world.store.attestations_of(world.repository, PACKAGE, number).await.unwrap();
    all.into_iter().map(|one| (one.source, one.verdict)).collect()
}

async fn sources(world: &World, number: &str) -> Vec<String> {
    stated(world, number).await.into_iter().map(|(source, _)| source).collect()
}

fn judged(verdict: Verdict) -> VerificationResult {
    let facts = AttestedFacts { identity: "me".to_owned(), signed_at: Some(7), ..AttestedFacts::default() };
    VerificationResult { verdict, reason: "so".to_owned(), facts }
}

async fn a_statement_is_stored_and_judged_and_judged_again(world: &World) {
    let store = &world.store;
    commit(world, vec![show("1"), CatalogChange::Attest(statement("1", "1.jar", "a"))]).await;
    tokio::time::timeout(std::time::Duration::from_secs(5), store.attested()).await.unwrap();
    attest(world, vec![statement("1", "1.jar", "b"), statement("1", "", "c")]).await;
    let pending = store.attestations_pending().await.unwrap();
    assert_eq!(pending.len(), 3);
    assert_eq!((pending[0].kind.as_str(), &pending[0].bundle[..]), ("application/x", &b"a"[..]));
    assert_eq!(pending[0].subject, Sha256::of(b"1.jar").digest().to_string());
    for one in &pending {
        store.judge_attestation(one.id, "first", &judged(Verdict::Verified)).await.unwrap();
    }
    assert!(store.attestations_pending().await.unwrap().is_empty());
    let all = store.attestations_of(world.repository, PACKAGE, "1").await.unwrap();
    assert!(all.iter().all(|one| one.verdict == Verdict::Verified && one.judged_by == "first"));
    assert_eq!(
        (all[1].facts.identity.as_str(), all[1].facts.signed_at, all[1].reason.as_str()),
        ("me", Some(7), "so")
    );
    assert_eq!(store.attestations_of_package(world.repository, PACKAGE).await.unwrap()["1"], all);
    // Storing the same statement again only changes its location.
    let moved = SignedStatement { source: "elsewhere".to_owned(), ..statement("1", "1.jar", "a") };
    attest(world, vec![moved.clone(), moved]).await;
    assert!(store.attestations_pending().await.unwrap().is_empty());
    assert_eq!(sources(world, "1").await, [".c", "elsewhere", "1.jar.b"]);

    let walk = async |fingerprint: &str, after| {
        store.attestations_judged_otherwise(after, fingerprint).await.unwrap()
    };
    assert!(walk("first", AttestationId::default()).await.is_empty());
    let again = walk("second", AttestationId::default()).await;
    assert_eq!(again.len(), 3);
    store.judge_attestation(again[0].id, "second", &judged(Verdict::Failed)).await.unwrap();
    assert_eq!(walk("second", AttestationId::default()).await.len(), 2);
    assert!(walk("second", again[2].id).await.is_empty());
    store.judge_attestation(AttestationId(1), "second", &judged(Verdict::Failed)).await.unwrap();
}

async fn a_statement_is_deleted_with_its_subject(world: &World) {
    let all = || vec![statement("1", "1.jar", "a"), statement("1", "1.pom", "b"), statement("1", "", "c")];
    let file = |path: &str| CatalogChange::HideFile {
        name: PACKAGE.to_owned(),
        version: "1".to_owned(),
        path: path.to_owned(),
    };
    let hide = || CatalogChange::Hide { name: PACKAGE.to_owned(), version: "1".to_owned() };
    commit(world, vec![show("1"), show("2")]).await;
    attest(world, all()).await;
    attest(world, vec![statement("2", "1.jar", "other")]).await;
    commit(world, vec![file("1.jar")]).await;
    assert_eq!(sources(world, "1").await, [".c", "1.pom.b"]);
    // Deleting the file at a statement's own location deletes the statement, even if that file was
    // never published.
    commit(world, vec![file(".c")]).await;
    assert_eq!(sources(world, "1").await, ["1.pom.b"]);
    // One commit hides and publishes a version; a statement that it adds in between stays.
    let between = CatalogChange::Attest(statement("1", "1.jar", "new"));
    commit(world, vec![hide(), show("1"), between]).await;
    assert_eq!(sources(world, "1").await, ["1.jar.new"]);
    commit(world, vec![hide()]).await;
    assert!(sources(world, "1").await.is_empty());
    assert_eq!(sources(world, "2").await, ["1.jar.other"]);
}

async fn a_statement_needs_a_published_version(world: &World) {
    attest(world, vec![statement("1", "1.jar", "early")]).await;
    commit(world, vec![show("1")]).await;
    assert!(sources(world, "1").await.is_empty());
    assert!(world.store.attestations_pending().await.unwrap().is_empty());
}

async fn a_restored_version_has_its_statements(world: &World) {
    let store = &world.store;
    commit(world, vec![show("1"), CatalogChange::Attest(statement("1", "1.jar", "a"))]).await;
    for one in store.attestations_pending().await.unwrap() {
        store.judge_attestation(one.id, "first", &judged(Verdict::Verified)).await.unwrap();
    }
    let before = store.attestations_of(world.repository, PACKAGE, "1").await.unwrap();
    let entry = store.begin_trash(world.repository, PACKAGE, "1", "me@example.com", 7).await.unwrap();
    let hide = CatalogChange::Hide { name: PACKAGE.to_owned(), version: "1".to_owned() };
    let deletion = Commit { catalog: vec![hide], trash: Some(entry), ..Commit::default() };
    applied(store.commit(world.repository, deletion).await.unwrap());
    store.end_trash(entry).await.unwrap();
    assert!(sources(world, "1").await.is_empty());
    let event = AuditEvent {
        organization: world.organization,
        action: "restore_version".to_owned(),
        ..AuditEvent::default()
    };
    assert_eq!(store.restore_trash(world.repository, entry, &event).await.unwrap(), Restored::Done);
    assert_eq!(store.attestations_of(world.repository, PACKAGE, "1").await.unwrap(), before);
}

async fn statements_are_bounded(world: &World) {
    commit(world, vec![show("1")]).await;
    for number in 0..MAX_STATEMENTS + 3 {
        attest(world, vec![statement("1", "1.jar", &number.to_string())]).await;
    }
    assert_eq!(sources(world, "1").await.len(), MAX_STATEMENTS as usize);
    let good = || statement("1", "1.jar", "a");
    let wrong = [
        SignedStatement { bundle: Bytes::from(vec![0; MAX_STATEMENT_BYTES + 1]), ..good() },
        SignedStatement { kind: String::new(), ..good() },
        SignedStatement { kind: "k".repeat(201), ..good() },
        SignedStatement { source: "a\0".to_owned(), ..good() },
    ];
    for statement in wrong {
        let commit = Commit { catalog: vec![CatalogChange::Attest(statement)], ..Commit::default() };
        let refused = world.store.commit(world.repository, commit).await;
        assert!(matches!(refused, Err(StoreError::Invalid(_))), "{refused:?}");
    }
}
