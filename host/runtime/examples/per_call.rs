//! Measures one call in a fresh instance, and a read whose two calls share an instance, with and
//! without recording: `cargo run --release -p packhouse-runtime --example per_call -- FOLDER FORMAT
//! PATH`.
//!
//! Each number is the fastest of several rounds. Compare the ratio to another run on the same
//! machine, not the absolute time.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a measurement, not a program")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use packhouse_runtime::{Action, Armed, Call, Plugin, RepositoryView, RequestHead, Runtime, RuntimeConfig};
use packhouse_store::{RepositoryId, Store, StoreConfig};

const CALLS: u32 = 2_000;
const ROUNDS: usize = 20;

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, format, path] = arguments.as_slice() else { panic!("per_call FOLDER FORMAT PATH") };
    let data = tempfile::tempdir().unwrap();
    let store = Store::open(StoreConfig::new(data.path())).await.unwrap();
    let config = RuntimeConfig { plugins: folder.into(), ..RuntimeConfig::default() };
    let runtime = Runtime::load(config, store).await.unwrap();
    let plugin = runtime.plugin(format).unwrap();
    let head = Arc::new(RequestHead {
        method: "GET".to_owned(),
        path: path.split('/').map(str::to_owned).collect(),
        repository: Some(RepositoryId(1)),
        ..RequestHead::default()
    });
    let route = fastest(|| route(&plugin, &head)).await;
    let handle = fastest(|| handle(&plugin, &head)).await;
    let read = fastest(|| read(&plugin, &head)).await;
    // The set records only failing calls. No call fails here, so the recorder produces no
    // recording.
    runtime.recorder().arm(vec![Armed {
        set: 1,
        repository: RepositoryId(1),
        count: 1,
        only_failures: true,
    }]);
    let recorded = fastest(|| self::read(&plugin, &head)).await;
    println!(
        "route {:.1} µs, handle {:.1} µs, both {:.1} µs, both recorded {:.1} µs",
        micros(route),
        micros(handle),
        micros(read),
        micros(recorded)
    );
}

async fn route(plugin: &Arc<Plugin>, head: &Arc<RequestHead>) {
    let _ = plugin.route("hosted", head).await.unwrap();
}

async fn handle(plugin: &Arc<Plugin>, head: &Arc<RequestHead>) {
    let _ = plugin.handle(call(head)).await.unwrap();
}

async fn read(plugin: &Arc<Plugin>, head: &Arc<RequestHead>) {
    let Ok(routed) = plugin.route_to_handle("hosted", head).await.unwrap() else { panic!("it is refused") };
    let _ = routed.instance.unwrap().handle(call(head)).await.unwrap();
}

fn call(head: &Arc<RequestHead>) -> Call {
    let mut call = Call::new(Arc::clone(head), Action::Read);
    call.target = Some(RepositoryView {
        id: RepositoryId(1),
        revision: 0,
        name: "r".into(),
        kind: "hosted".into(),
        settings: "{}".into(),
    });
    call
}

async fn fastest(call: impl AsyncFn()) -> Duration {
    let mut fastest = Duration::MAX;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..CALLS {
            call().await;
        }
        fastest = fastest.min(start.elapsed() / CALLS);
    }
    fastest
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}
