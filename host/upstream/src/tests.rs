//! Tests that a request connects to the address that was checked.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{HeaderMap, Method};
use packhouse_runtime::RepositoryView;
use packhouse_store::RepositoryId;

use super::client::UpstreamClient;
use super::credentials::UpstreamAuth;
use super::egress_policy::{EgressPolicy, NameLookup};
use super::error::UpstreamError;
use super::redirects::{self, Redirected};
use super::request::{FetchTarget, UpstreamRequest};
use super::settings::ProxySettings;
use packhouse_config::UpstreamBounds;

/// A lookup that returns these addresses one after the other, and then always the last.
struct ChangingLookup {
    addresses: Mutex<Vec<&'static str>>,
    lookups: AtomicUsize,
}

impl NameLookup for ChangingLookup {
    fn lookup(&self, _host: String) -> BoxFuture<'static, std::io::Result<Vec<IpAddr>>> {
        self.lookups.fetch_add(1, Ordering::SeqCst);
        let mut left = self.addresses.lock().unwrap();
        let answer = if left.len() > 1 { left.remove(0) } else { left[0] };
        Box::pin(async move { Ok(vec![answer.parse().unwrap()]) })
    }
}

/// Starts a server that counts its connections and closes each after its response.
fn listen(address: SocketAddr, location: Option<&'static str>) -> Option<(SocketAddr, Arc<AtomicUsize>)> {
    let listener = TcpListener::bind(address).ok()?;
    let (address, count) = (listener.local_addr().ok()?, Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&count);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            counted.fetch_add(1, Ordering::SeqCst);
            let _ = stream.read(&mut [0; 4096]);
            let head = match location {
                Some(to) => format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\n"),
                None => "HTTP/1.1 200 OK\r\n".to_owned(),
            };
            let _ =
                stream.write_all(format!("{head}Connection: close\r\nContent-Length: 0\r\n\r\n").as_bytes());
        }
    });
    Some((address, count))
}

/// Creates a client for the upstream `changing.test`, for which only 127.0.0.1 is allowed.
fn client(port: u16, names: &Arc<ChangingLookup>) -> (UpstreamClient, UpstreamRequest) {
    let mut settings = packhouse_config::repository_settings::effective("{}", false, None);
    settings.insert("upstream".to_owned(), format!("http://changing.test:{port}/").into());
    let view = RepositoryView {
        id: RepositoryId(1),
        revision: 0,
        name: "p".into(),
        kind: "proxy".into(),
        settings: serde_json::Value::Object(settings).to_string().into(),
    };
    let settings = ProxySettings::of(&view).unwrap();
    let allowed = packhouse_config::upstream_networks("127.0.0.1/32").unwrap();
    let names: Arc<dyn NameLookup> = Arc::clone(names) as Arc<dyn NameLookup>;
    let patience = Duration::from_secs(30);
    let bounds = UpstreamBounds { connect: patience, idle: patience, concurrency: 1 };
    let client = UpstreamClient::new(&settings, &EgressPolicy::new(&allowed, names), bounds, 1).unwrap();
    let FetchTarget { url, below_upstream } = FetchTarget::resolve(&settings.upstream, "/a").unwrap();
    (
        client,
        UpstreamRequest { method: Method::GET, url, headers: HeaderMap::new(), body: None, below_upstream },
    )
}

fn changing(addresses: &[&'static str]) -> Arc<ChangingLookup> {
    Arc::new(ChangingLookup { addresses: Mutex::new(addresses.to_vec()), lookups: AtomicUsize::new(0) })
}

#[tokio::test]
async fn a_name_that_turns_to_a_private_address_is_connected_to_where_it_was_judged() {
    let (good, public) = listen(([127, 0, 0, 1], 0).into(), None).unwrap();
    let (_, private) = listen(([127, 0, 0, 2], good.port()).into(), None).unwrap();
    let names = changing(&["127.0.0.1", "127.0.0.2"]);
    let (client, request) = client(good.port(), &names);
    let Redirected { response, .. } = redirects::send(&client, &request, &UpstreamAuth::None).await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(
        (names.lookups.load(Ordering::SeqCst), public.load(Ordering::SeqCst)),
        (1, 1),
        "each connection needs one lookup"
    );
    drop(response);

    let refused = redirects::send(&client, &request, &UpstreamAuth::None).await.map(|it| it.url);
    let Err(UpstreamError::Refused(why)) = &refused else { panic!("{refused:?}") };
    assert!(why.contains("changing.test") && !why.contains("127.0.0.2"), "{why}");
    assert_eq!((names.lookups.load(Ordering::SeqCst), private.load(Ordering::SeqCst)), (2, 0));
}

#[tokio::test]
async fn a_redirect_to_its_own_name_is_looked_up_and_judged_again() {
    let (good, _) = listen(([127, 0, 0, 1], 0).into(), Some("/b")).unwrap();
    let (_, private) = listen(([127, 0, 0, 2], good.port()).into(), None).unwrap();
    let (client, request) = client(good.port(), &changing(&["127.0.0.1", "127.0.0.2"]));
    let refused = redirects::send(&client, &request, &UpstreamAuth::None).await.map(|it| it.url);
    assert!(matches!(refused, Err(UpstreamError::Refused(_))), "{refused:?}");
    assert_eq!(private.load(Ordering::SeqCst), 0);
}
