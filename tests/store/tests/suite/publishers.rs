//! Trusted publishers: an ID token can be used once, the first owner's id is permanent, and minted
//! tokens end with their publisher.

use packhouse_store::{
    MAX_PUBLISHERS, Mint, NewPublisher, NewToken, PUBLISHER_BACKING, PublisherRow, PublisherUse, Scope,
    SpentIdToken, TokenRow, TokenToMint,
};

use crate::support::{World, in_both};

in_both! {
    an_id_token_is_used_once, the_first_owner_stays, tokens_end_with_their_publisher,
    the_same_token_is_made_once, publishers_are_bounded_and_of_their_repository,
}

const BOTH: Scope = Scope { read: true, write: true };

async fn publisher(world: &World) -> PublisherRow {
    let new = NewPublisher {
        repository: world.repository,
        provider: "oidc".to_owned(),
        issuer: "https://issuer.example".to_owned(),
        claims: r#"{"sub":"a"}"#.to_owned(),
        packages: r#"["*"]"#.to_owned(),
        scope: BOTH,
        owner_id: None,
        created_by: "owner@localhost".to_owned(),
    };
    world.store.create_publisher(world.organization, new, None).await.unwrap().unwrap()
}

/// A token to mint with this hash, for the repository owner with this id.
fn token(world: &World, of: &PublisherRow, secret: u8, spent: Option<u8>, owner: &str) -> TokenToMint {
    let token = NewToken {
        secret_sha256: [secret; 32],
        name: "a workflow".to_owned(),
        scope: BOTH,
        format: "generic".to_owned(),
        owner: None,
        created_by: "a workflow".to_owned(),
        backing: Some(PUBLISHER_BACKING.to_owned()),
        backing_repository: None,
        repositories: vec![world.repository],
        expires_at: Some(packhouse_store::now_ms() + 60_000),
        packages: None,
    };
    let until = packhouse_store::now_ms() + 60_000;
    TokenToMint {
        token,
        grants: "[]".to_owned(),
        publishers: vec![PublisherUse { id: of.id, owner_id: Some(owner.to_owned()) }],
        // Without `spent`, the ID token gets an identifier that no other token in this file uses.
        id_token: SpentIdToken { sha256: [spent.unwrap_or(200 + secret); 32], until },
        spends: spent.is_some(),
    }
}

async fn mint(world: &World, token: TokenToMint) -> Mint {
    world.store.mint_token(world.organization, token, None).await.unwrap()
}

async fn made(world: &World, token: TokenToMint) -> TokenRow {
    match mint(world, token).await {
        Mint::Made(row) => *row,
        other => panic!("{other:?}"),
    }
}

async fn known(world: &World, secret: u8) -> Option<TokenRow> {
    world.store.look_up(world.organization, "main", Some(&[secret; 32])).await.unwrap().token.clone()
}

async fn an_id_token_is_used_once(world: &World) {
    let of = publisher(world).await;
    let row = made(world, token(world, &of, 1, Some(9), "1")).await;
    assert_eq!(row.grants.as_deref(), Some("[]"));
    assert_eq!(mint(world, token(world, &of, 2, Some(9), "1")).await, Mint::Spent);
    assert!(known(world, 2).await.is_none());
    made(world, token(world, &of, 3, Some(8), "1")).await;
    let found = known(world, 1).await.unwrap();
    assert_eq!((found.grants.as_deref(), found.backing.as_deref()), (Some("[]"), Some(PUBLISHER_BACKING)));
}

async fn the_first_owner_stays(world: &World) {
    let of = publisher(world).await;
    made(world, token(world, &of, 1, Some(1), "65")).await;
    let stored = world.store.find_publisher(world.organization, of.id).await.unwrap().unwrap();
    assert_eq!(stored.owner_id.as_deref(), Some("65"));
    assert!(stored.last_used_at.is_some() && of.last_used_at.is_none());
    // A refused request does not use up its ID token.
    assert_eq!(mint(world, token(world, &of, 2, Some(2), "66")).await, Mint::Changed);
    made(world, token(world, &of, 2, Some(2), "65")).await;
}

async fn tokens_end_with_their_publisher(world: &World) {
    let (of, other) = (publisher(world).await, publisher(world).await);
    made(world, token(world, &of, 1, Some(1), "1")).await;
    made(world, token(world, &other, 2, Some(2), "1")).await;
    let store = &world.store;
    assert!(store.delete_publisher(world.organization, of.id, 1_000, None).await.unwrap());
    assert!(!store.delete_publisher(world.organization, of.id, 1_000, None).await.unwrap());
    assert_eq!(known(world, 1).await.unwrap().revoked_at, Some(1_000));
    assert_eq!(known(world, 2).await.unwrap().revoked_at, None);
    assert_eq!(mint(world, token(world, &of, 3, Some(3), "1")).await, Mint::Changed);
}

async fn the_same_token_is_made_once(world: &World) {
    let of = publisher(world).await;
    let first = made(world, token(world, &of, 1, None, "1")).await;
    assert_eq!(made(world, token(world, &of, 1, None, "1")).await.id, first.id);
    // A token with other grants replaces the earlier token.
    let more = TokenToMint { grants: "[1]".to_owned(), ..token(world, &of, 1, None, "1") };
    let second = made(world, more).await;
    assert_ne!(second.id, first.id);
    assert_eq!(known(world, 1).await.unwrap().id, second.id);
}

async fn publishers_are_bounded_and_of_their_repository(world: &World) {
    let first = publisher(world).await;
    for _ in 1..MAX_PUBLISHERS {
        publisher(world).await;
    }
    let (store, organization) = (&world.store, world.organization);
    let new = NewPublisher {
        repository: world.repository,
        provider: "oidc".to_owned(),
        issuer: "https://issuer.example".to_owned(),
        claims: "{}".to_owned(),
        packages: "[]".to_owned(),
        scope: BOTH,
        owner_id: None,
        created_by: String::new(),
    };
    assert!(store.create_publisher(organization, new.clone(), None).await.unwrap().is_none());
    let elsewhere = NewPublisher { repository: world.another("other").await, ..new };
    store.create_publisher(organization, elsewhere, None).await.unwrap().unwrap();
    let listed = |repository| store.list_publishers(organization, repository, None, 1_000);
    assert_eq!(listed(Some(world.repository)).await.unwrap().len(), MAX_PUBLISHERS as usize);
    assert_eq!(listed(None).await.unwrap().len(), MAX_PUBLISHERS as usize + 1);
    let page = store.list_publishers(organization, None, Some(first.id), 1).await.unwrap();
    assert!(page[0].id > first.id);
    let named = store.publishers_of_issuer(organization, "https://issuer.example", 10).await.unwrap();
    assert_eq!(named.len(), 10);
    assert!(store.publishers_of_issuer(organization, "https://other.example", 10).await.unwrap().is_empty());
}
