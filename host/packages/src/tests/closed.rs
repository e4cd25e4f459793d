//! Tests with a closed store, as at the end of a shutdown. Callers must get 503, never a refusal of
//! their credential.

use std::net::{IpAddr, Ipv4Addr};

use packhouse_runtime::{ErrorFormat, Runtime};
use packhouse_store::{NewMember, NewOrganization, NewToken, OrganizationId, Scope, Store};

use crate::credential::PresentedCredential;
use crate::error_response::{self, Addresses, ErrorContext};
use crate::error_sentence::ErrorReader;
use crate::identify::{self, IdentityQuery};
use packhouse_app::App;
use packhouse_app::mail::Mail;
use packhouse_config::{Config, Inputs};
use packhouse_identity::permissions::Permissions;
use packhouse_identity::{self as identity, Bearer, BearerHolder, Secret};

const OWNER: &str = "owner@example.com";
const PASSWORD: &str = "correct horse battery";
const FORMAT: &str = "fifth";

async fn app(folder: &std::path::Path) -> App {
    let plugins = folder.join("plugins");
    std::fs::create_dir(&plugins).unwrap();
    let set = [("PACKHOUSE_DATA", folder), ("PACKHOUSE_PLUGINS", plugins.as_path())];
    let environment = set.map(|(name, path)| (name.to_owned(), path.to_str().unwrap().to_owned()));
    let inputs = Inputs { environment: environment.into_iter().collect(), ..Inputs::default() };
    let (config, _) = Config::load(&inputs, folder).unwrap();
    let mail = Mail::new(&config).unwrap();
    let store = Store::open(config.store.clone()).await.unwrap();
    let runtime = Runtime::load(config.runtime.clone(), store.clone()).await.unwrap();
    App::new(config, store, runtime, mail)
}

/// Returns valid credentials of each kind, and some invalid ones.
async fn credentials(app: &App) -> (OrganizationId, Vec<PresentedCredential>) {
    let organization = NewOrganization { name: "default".to_owned(), base_url: None, host: None };
    let member = NewMember {
        email: OWNER.to_owned(),
        name: String::new(),
        password_hash: app.passwords.hash(Secret::new(PASSWORD)).await.unwrap(),
        permissions: serde_json::to_string(&Permissions::everything()).unwrap(),
    };
    let (organization, member) = app.store.bootstrap(organization, member).await.unwrap().unwrap();
    let minted = identity::mint();
    let token = NewToken {
        secret_sha256: minted.sha256,
        name: "ci".to_owned(),
        scope: Scope { read: true, write: true },
        format: "generic".to_owned(),
        owner: Some(member.id),
        created_by: OWNER.to_owned(),
        backing: None,
        backing_repository: None,
        repositories: Vec::new(),
        expires_at: None,
        packages: None,
    };
    app.store.create_token(organization.id, token, None).await.unwrap();
    let basic = |username: &str, password: &Secret| PresentedCredential::Basic {
        username: username.to_owned(),
        password: password.clone(),
    };
    let mut all = vec![
        PresentedCredential::Nothing,
        PresentedCredential::Unreadable,
        PresentedCredential::Bearer(minted.secret.clone()),
        basic(OWNER, &minted.secret),
        basic(OWNER, &Secret::new(PASSWORD)),
        basic(OWNER, &Secret::new("wrong")),
        basic(OWNER, &identity::mint().secret),
    ];
    for holder in [BearerHolder::token(&minted.sha256), BearerHolder::member(&member), BearerHolder::Nobody] {
        let bearer = Bearer {
            organization: organization.id.0,
            format: FORMAT.to_owned(),
            holder,
            grants: Vec::new(),
            expires_at: i64::MAX,
        };
        all.push(PresentedCredential::Bearer(
            app.bearers.sign(&app.store, &app.sealer, &bearer).await.unwrap(),
        ));
    }
    (organization.id, all)
}

fn query(organization: OrganizationId, credential: &PresentedCredential) -> IdentityQuery<'static> {
    IdentityQuery {
        organization,
        repository: "r",
        credential: credential.clone(),
        peer: IpAddr::V4(Ipv4Addr::LOCALHOST),
        bearer_format: Some(FORMAT),
        own_address: "http://localhost",
        request_id: "r",
    }
}

#[tokio::test]
async fn callers_get_503_while_the_store_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let mut app = app(folder.path()).await;
    let (organization, credentials) = credentials(&app).await;
    // Identify all credentials before the store closes, so that the test also covers answers from
    // memory.
    for credential in &credentials {
        identify::identify(&app, query(organization, credential)).await.unwrap();
    }
    app.store.close().await;
    for key_is_known in [true, false] {
        for credential in &credentials {
            let answer = identify::identify(&app, query(organization, credential)).await;
            let Err(refused) = answer else { panic!("{credential:?} was looked up in a closed store") };
            let format = ErrorFormat::default();
            let addresses = Addresses {
                host: "packages.example",
                base_url: "https://packages.example",
                api_url: "https://api.example",
                token_service: None,
            };
            let error_context = ErrorContext {
                template: &format.template,
                challenge: &format.challenge,
                addresses,
                request_id: "r1",
                head: false,
                reader: ErrorReader::of(&http::HeaderMap::new(), [].iter(), false),
            };
            let status = error_response::answer(refused, error_context).status();
            assert_eq!(status, 503, "{credential:?}, bearer key in memory: {key_is_known}");
        }
        app.bearers = identity::Bearers::default();
    }
}
