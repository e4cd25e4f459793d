//! Documents of versions. A document is found, deleted and restored together with the version or
//! file that it describes.

use packhouse_store::{
    AuditEvent, CatalogChange, Commit, MAX_DOCUMENTS, Restored, Sha256, StoreError, Version, VersionDocument,
    VersionFile,
};

use crate::support::{World, applied, in_both};

in_both! {
    a_document_needs_a_published_version, the_last_document_in_one_place_counts,
    a_document_is_deleted_with_its_subject, a_restored_version_has_its_documents, documents_are_bounded,
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
        files: vec![file("a.jar"), file("b.jar")],
        ..Version::default()
    })
}

fn document(number: &str, file: &str, source: &str, title: &str) -> VersionDocument {
    VersionDocument {
        name: PACKAGE.to_owned(),
        version: number.to_owned(),
        path: file.to_owned(),
        source: source.to_owned(),
        title: title.to_owned(),
        form: "cyclonedx".to_owned(),
        media_type: "application/vnd.cyclonedx+json".to_owned(),
        sha256: Sha256::of(title.as_bytes()),
        size: 7,
    }
}

fn hide() -> CatalogChange {
    CatalogChange::Hide { name: PACKAGE.to_owned(), version: "1".to_owned() }
}

async fn commit(world: &World, catalog: Vec<CatalogChange>) {
    let commit = Commit { catalog, ..Commit::default() };
    applied(world.store.commit(world.repository, commit).await.unwrap());
}

async fn add(world: &World, documents: Vec<VersionDocument>) {
    commit(world, documents.into_iter().map(CatalogChange::Document).collect()).await;
}

async fn of(world: &World, number: &str) -> Vec<VersionDocument> {
    world.store.documents_of(world.repository, PACKAGE, number).await.unwrap()
}

async fn titles(world: &World, number: &str) -> Vec<String> {
    of(world, number).await.into_iter().map(|one| one.title).collect()
}

async fn a_document_needs_a_published_version(world: &World) {
    add(world, vec![document("1", "", "", "early")]).await;
    let with_it = document("1", "a.jar", "", "with it");
    commit(world, vec![show("1"), CatalogChange::Document(with_it.clone())]).await;
    assert_eq!(of(world, "1").await, [with_it]);
    add(world, vec![document("1", "", "", "behind"), document("2", "", "", "of another")]).await;
    assert_eq!(titles(world, "1").await, ["behind", "with it"]);
    assert!(of(world, "2").await.is_empty());
}

async fn the_last_document_in_one_place_counts(world: &World) {
    let larger = |size| VersionDocument { size, ..document("1", "a.jar", "at", "bom") };
    commit(world, vec![show("1")]).await;
    add(world, vec![larger(8), larger(9), document("1", "b.jar", "at", "bom")]).await;
    add(world, vec![larger(10)]).await;
    let sizes: Vec<u64> = of(world, "1").await.into_iter().map(|one| one.size).collect();
    assert_eq!(sizes, [10, 7]);
}

async fn a_document_is_deleted_with_its_subject(world: &World) {
    let file = |path: &str| CatalogChange::HideFile {
        name: PACKAGE.to_owned(),
        version: "1".to_owned(),
        path: path.to_owned(),
    };
    commit(world, vec![show("1"), show("2")]).await;
    add(
        world,
        vec![
            document("1", "a.jar", "", "a"),
            document("1", "b.jar", "carrier", "b"),
            document("1", "", "", "c"),
            document("2", "a.jar", "", "other"),
        ],
    )
    .await;
    commit(world, vec![file("a.jar")]).await;
    assert_eq!(titles(world, "1").await, ["c", "b"]);
    commit(world, vec![file("carrier")]).await;
    assert_eq!(titles(world, "1").await, ["c"]);
    // One commit hides and publishes a version; a document that it adds in between stays.
    commit(world, vec![hide(), show("1"), CatalogChange::Document(document("1", "", "", "new"))]).await;
    assert_eq!(titles(world, "1").await, ["new"]);
    commit(world, vec![hide()]).await;
    assert!(titles(world, "1").await.is_empty());
    assert_eq!(titles(world, "2").await, ["other"]);
}

async fn a_restored_version_has_its_documents(world: &World) {
    let store = &world.store;
    commit(world, vec![show("1")]).await;
    add(world, vec![document("1", "a.jar", "", "a"), document("1", "", "at", "b")]).await;
    let before = of(world, "1").await;
    let entry = store.begin_trash(world.repository, PACKAGE, "1", "me@example.com", 7).await.unwrap();
    let deletion = Commit { catalog: vec![hide()], trash: Some(entry), ..Commit::default() };
    applied(store.commit(world.repository, deletion).await.unwrap());
    store.end_trash(entry).await.unwrap();
    assert!(of(world, "1").await.is_empty());
    let event = AuditEvent {
        organization: world.organization,
        action: "restore_version".to_owned(),
        ..AuditEvent::default()
    };
    assert_eq!(store.restore_trash(world.repository, entry, &event).await.unwrap(), Restored::Done);
    assert_eq!(of(world, "1").await, before);
}

async fn documents_are_bounded(world: &World) {
    commit(world, vec![show("1")]).await;
    for number in 0..MAX_DOCUMENTS + 3 {
        add(world, vec![document("1", "a.jar", "", &number.to_string())]).await;
    }
    assert_eq!(of(world, "1").await.len(), MAX_DOCUMENTS as usize);
    // A document can replace an earlier one even if there is no room for more.
    add(world, vec![VersionDocument { size: 99, ..document("1", "a.jar", "", "0") }]).await;
    let sizes: Vec<u64> =
        of(world, "1").await.into_iter().map(|one| one.size).filter(|size| *size == 99).collect();
    assert_eq!((sizes.len(), of(world, "1").await.len()), (1, MAX_DOCUMENTS as usize));
    let good = || document("1", "a.jar", "", "a");
    let wrong = [
        VersionDocument { form: String::new(), ..good() },
        VersionDocument { media_type: "m".repeat(201), ..good() },
        VersionDocument { source: "a\0".to_owned(), ..good() },
        VersionDocument { title: "t".repeat(2500), ..good() },
    ];
    for document in wrong {
        let commit = Commit { catalog: vec![CatalogChange::Document(document)], ..Commit::default() };
        let refused = world.store.commit(world.repository, commit).await;
        assert!(matches!(refused, Err(StoreError::Invalid(_))), "{refused:?}");
    }
}
