//! A question on its way to an address: the one that was judged is the one that is connected to.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{HeaderMap, Method};
use packhouse_runtime::RepositoryView;
use packhouse_store::RepositoryId;

use super::address::{Addresses, Names};
use super::credentials::Access;
use super::exchange::{self, Question};
use super::policy::Policy;
use super::site::Site;
use super::trouble::Trouble;
use packhouse_config::UpstreamBounds;

/// Answers each look-up with the next of these addresses, and the last one for ever.
struct Turning(Mutex<Vec<&'static str>>, AtomicUsize);

impl Names for Turning {
    fn look_up(&self, _host: String) -> BoxFuture<'static, std::io::Result<Vec<IpAddr>>> {
        self.1.fetch_add(1, Ordering::SeqCst);
        let mut left = self.0.lock().unwrap();
        let answer = if left.len() > 1 { left.remove(0) } else { left[0] };
        Box::pin(async move { Ok(vec![answer.parse().unwrap()]) })
    }
}

/// A server at this address that counts its connections and ends each with its answer.
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

/// The upstream `turning.test`, of which only 127.0.0.1 is allowed.
fn site(port: u16, names: &Arc<Turning>) -> (Site, Question) {
    let mut settings = packhouse_config::repository_settings::effective("{}", false, None);
    settings.insert("upstream".to_owned(), format!("http://turning.test:{port}/").into());
    let view = RepositoryView {
        id: RepositoryId(1),
        name: "p".to_owned(),
        kind: "proxy".to_owned(),
        settings: serde_json::Value::Object(settings).to_string().into(),
    };
    let policy = Policy::of(&view).unwrap();
    let allowed = packhouse_config::upstream_networks("127.0.0.1/32").unwrap();
    let names: Arc<dyn Names> = Arc::clone(names) as Arc<dyn Names>;
    let patience = Duration::from_secs(30);
    let bounds = UpstreamBounds { connect: patience, idle: patience, concurrency: 1 };
    let site = Site::new(&policy, &Addresses::new(&allowed, names), (bounds, 1)).unwrap();
    let (url, own) = Question::address(&policy.upstream, "/a").unwrap();
    (site, Question { method: Method::GET, url, headers: HeaderMap::new(), body: None, own })
}

fn turning(addresses: &[&'static str]) -> Arc<Turning> {
    Arc::new(Turning(Mutex::new(addresses.to_vec()), AtomicUsize::new(0)))
}

#[tokio::test]
async fn a_name_that_turns_to_a_private_address_is_connected_to_where_it_was_judged() {
    let (good, public) = listen(([127, 0, 0, 1], 0).into(), None).unwrap();
    let (_, private) = listen(([127, 0, 0, 2], good.port()).into(), None).unwrap();
    let names = turning(&["127.0.0.1", "127.0.0.2"]);
    let (site, question) = site(good.port(), &names);
    let (response, _) = exchange::ask(&site, &question, &Access::None).await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(
        (names.1.load(Ordering::SeqCst), public.load(Ordering::SeqCst)),
        (1, 1),
        "one look-up a connection"
    );
    drop(response);

    let refused = exchange::ask(&site, &question, &Access::None).await;
    assert!(matches!(&refused, Err(Trouble::Refused(why)) if why.contains("127.0.0.2")), "{refused:?}");
    assert_eq!((names.1.load(Ordering::SeqCst), private.load(Ordering::SeqCst)), (2, 0));
}

#[tokio::test]
async fn a_redirect_to_its_own_name_is_looked_up_and_judged_again() {
    let (good, _) = listen(([127, 0, 0, 1], 0).into(), Some("/b")).unwrap();
    let (_, private) = listen(([127, 0, 0, 2], good.port()).into(), None).unwrap();
    let (site, question) = site(good.port(), &turning(&["127.0.0.1", "127.0.0.2"]));
    let refused = exchange::ask(&site, &question, &Access::None).await;
    assert!(matches!(refused, Err(Trouble::Refused(_))), "{refused:?}");
    assert_eq!(private.load(Ordering::SeqCst), 0);
}
