//! Reads under load: cached responses compared with nginx, the same responses without a cache, and
//! reads through groups and proxies compared with the hosted repository.

use crate::bench_server::{BenchServer, KINDS, ReadKind};
use crate::nginx::Nginx;
use crate::options::Options;
use crate::table::{Goal, ResultRow, ResultTable, Unit};
use crate::wrk::{self, WrkLoad};
use packhouse_tests::server::OWNER;

/// Number of connections.
const CONNECTIONS: u32 = 64;

/// Measures each kind of read.
pub(crate) fn measure(options: &Options, bench: &BenchServer, table: &mut ResultTable) {
    if !wrk::available(table) {
        return;
    }
    let nginx = Nginx::start(OWNER, &bench.secret, table);
    KINDS.iter().for_each(|kind| measure_kind(kind, options, bench, nginx.as_ref(), table));
    measure_uncached(options, nginx.as_ref().map(|nginx| (nginx, bench.authorization())), table);
}

/// Load that requests this path repeatedly.
fn load<'a>(
    options: &Options,
    bench: &BenchServer,
    authorization: &'a str,
    kind: &ReadKind,
    path: &str,
) -> WrkLoad<'a> {
    WrkLoad {
        pid: bench.server.pid(),
        url: format!("{}{path}", bench.server.base_url()),
        authorization,
        accept: kind.accept,
        script: None,
        connections: CONNECTIONS,
        seconds: options.seconds,
    }
}

/// Measures a server without a cache, which renders each response. `nginx` is the peer, with the
/// `Authorization` header that it accepts.
fn measure_uncached(options: &Options, nginx: Option<(&Nginx, String)>, table: &mut ResultTable) {
    let name = |kind: &ReadKind| format!("no cache: {}", kind.name);
    let selected: Vec<(&ReadKind, f64)> = KINDS
        .iter()
        .filter_map(|kind| Some((kind, kind.uncached?)))
        .filter(|(kind, _)| table.selects(&name(kind)))
        .collect();
    if selected.is_empty() {
        return;
    }
    let bench = BenchServer::without_cache();
    let authorization = bench.authorization();
    for (kind, most) in selected {
        let path = BenchServer::path(kind, "");
        let bytes = bench.read(&path, kind.accept);
        let load = load(options, &bench, &authorization, kind, &path);
        let peer_load = nginx.as_ref().map(|(nginx, authorization)| {
            let url = nginx.serve(&kind.name.replace(' ', "-"), &bytes);
            WrkLoad { pid: nginx.pid(), url, authorization, ..load.clone() }
        });
        let loads: Vec<WrkLoad<'_>> = [load].into_iter().chain(peer_load).collect();
        let mut micros = wrk::in_turn(&loads).into_iter();
        let (ours, peer) = (micros.next().unwrap_or_default(), micros.next());
        table.add(ResultRow { name: name(kind), unit: Unit::Micros, ours, peer, goal: Goal::AtMost(most) });
    }
}

fn measure_kind(
    kind: &ReadKind,
    options: &Options,
    bench: &BenchServer,
    nginx: Option<&Nginx>,
    table: &mut ResultTable,
) {
    let [cached, group, proxy] =
        ["cached", "group of five", "proxy"].map(|what| format!("{what}: {}", kind.name));
    let others = [(group, "-group"), (proxy, "-proxy")];
    let others: Vec<_> = others.into_iter().filter(|(name, _)| table.selects(name)).collect();
    if others.is_empty() && !table.selects(&cached) {
        return;
    }
    let authorization = bench.authorization();
    let hosted = BenchServer::path(kind, "");
    let bytes = bench.read(&hosted, kind.accept);
    let load = |path: &str| load(options, bench, &authorization, kind, path);
    let mut loads = vec![load(&hosted)];
    for (_, ending) in &others {
        let path = BenchServer::path(kind, ending);
        // The first read makes a proxy fetch the file.
        assert!(!bench.read(&path, kind.accept).is_empty(), "{path}");
        loads.push(load(&path));
    }
    loads.extend(nginx.map(|nginx| {
        let url = nginx.serve(&kind.name.replace(' ', "-"), &bytes);
        WrkLoad { pid: nginx.pid(), url, ..load("") }
    }));
    let mut micros = wrk::in_turn(&loads).into_iter();
    let ours = micros.next().unwrap_or_default();
    let row =
        |name, ours, peer, goal| ResultRow { name, unit: Unit::Micros, ours, peer, goal: Goal::Ratio(goal) };
    let rows: Vec<ResultRow> = others
        .into_iter()
        .zip(micros.by_ref())
        .map(|((name, _), cost)| row(name, cost, Some(ours), 0.9))
        .collect();
    if table.selects(&cached) {
        table.add(row(cached, ours, micros.next(), 0.85));
    }
    rows.into_iter().for_each(|row| table.add(row));
}
