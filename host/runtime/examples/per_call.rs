//! What one call in a fresh instance costs: `cargo run --release -p packhouse-runtime --example per_call -- FOLDER FORMAT PATH`.
//!
//! Read the ratio to another run on the same machine, not the absolute time.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a measurement, not a program")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use packhouse_runtime::{Action, Call, Plugin, RepositoryView, RequestHead, Runtime, RuntimeConfig};
use packhouse_store::{RepositoryId, Store, StoreConfig};

const CALLS: u32 = 20_000;
const ROUNDS: usize = 7;

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
        ..RequestHead::default()
    });
    let route = median(|| route(&plugin, &head)).await;
    let handle = median(|| handle(&plugin, &head)).await;
    println!("route {:.1} µs, handle {:.1} µs a call", micros(route), micros(handle));
}

async fn route(plugin: &Arc<Plugin>, head: &Arc<RequestHead>) {
    let _ = plugin.route("hosted", head).await.unwrap();
}

async fn handle(plugin: &Arc<Plugin>, head: &Arc<RequestHead>) {
    let mut call = Call::new(Arc::clone(head), Action::Read);
    call.target = Some(RepositoryView {
        id: RepositoryId(1),
        revision: 0,
        name: "r".into(),
        kind: "hosted".into(),
        settings: "{}".into(),
    });
    let _ = plugin.handle(call).await.unwrap();
}

async fn median(call: impl AsyncFn()) -> Duration {
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..CALLS {
            call().await;
        }
        rounds.push(start.elapsed() / CALLS);
    }
    rounds.sort();
    rounds.get(ROUNDS / 2).copied().unwrap_or_default()
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}
