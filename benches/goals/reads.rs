//! Reads under load: kept answers beside nginx, the same made anew, and groups and proxies beside the hosted repository.

use crate::nginx::Nginx;
use crate::options::Options;
use crate::table::{Goal, Row, Table, Unit};
use crate::world::{KINDS, Kind, World};
use crate::wrk::{self, Load};
use packhouse_tests::server::OWNER;

/// Connections at a time.
const CONNECTIONS: u32 = 64;

/// Measures each kind.
pub(crate) fn measure(options: &Options, world: &World, table: &mut Table) {
    if !wrk::available(table) {
        return;
    }
    let nginx = Nginx::start(OWNER, &world.secret, table);
    KINDS.iter().for_each(|kind| of_kind(kind, options, world, nginx.as_ref(), table));
    made_anew(options, nginx.as_ref().map(|nginx| (nginx, world.authorization())), table);
}

/// Who asks for this path again and again.
fn load<'a>(options: &Options, world: &World, authorization: &'a str, kind: &Kind, path: &str) -> Load<'a> {
    Load {
        pid: world.server.pid(),
        url: format!("{}{path}", world.server.base_url()),
        authorization,
        accept: kind.accept,
        script: None,
        connections: CONNECTIONS,
        seconds: options.seconds,
    }
}

/// What an answer costs that is made for each request: of a server that keeps none. The peer comes with what it lets in.
fn made_anew(options: &Options, nginx: Option<(&Nginx, String)>, table: &mut Table) {
    let name = |kind: &Kind| format!("anew: {}", kind.name);
    let wanted: Vec<(&Kind, f64)> = KINDS
        .iter()
        .filter_map(|kind| Some((kind, kind.anew?)))
        .filter(|(kind, _)| table.wants(&name(kind)))
        .collect();
    if wanted.is_empty() {
        return;
    }
    let world = World::that_keeps_nothing();
    let authorization = world.authorization();
    for (kind, most) in wanted {
        let path = World::path(kind, "");
        let bytes = world.read(&path, kind.accept);
        let load = load(options, &world, &authorization, kind, &path);
        let beside = nginx.as_ref().map(|(nginx, authorization)| {
            let url = nginx.serve(&kind.name.replace(' ', "-"), &bytes);
            Load { pid: nginx.pid(), url, authorization, ..load.clone() }
        });
        let loads: Vec<Load<'_>> = [load].into_iter().chain(beside).collect();
        let mut micros = wrk::in_turn(&loads).into_iter();
        let (ours, peer) = (micros.next().unwrap_or_default(), micros.next());
        table.add(Row { name: name(kind), unit: Unit::Micros, ours, peer, goal: Goal::AtMost(most) });
    }
}

fn of_kind(kind: &Kind, options: &Options, world: &World, nginx: Option<&Nginx>, table: &mut Table) {
    let [kept, group, proxy] =
        ["kept", "group of five", "proxy"].map(|what| format!("{what}: {}", kind.name));
    let others = [(group, "-group"), (proxy, "-proxy")];
    let others: Vec<_> = others.into_iter().filter(|(name, _)| table.wants(name)).collect();
    if others.is_empty() && !table.wants(&kept) {
        return;
    }
    let authorization = world.authorization();
    let hosted = World::path(kind, "");
    let bytes = world.read(&hosted, kind.accept);
    let load = |path: &str| load(options, world, &authorization, kind, path);
    let mut loads = vec![load(&hosted)];
    for (_, ending) in &others {
        let path = World::path(kind, ending);
        // A proxy fetches what it does not have yet.
        assert!(!world.read(&path, kind.accept).is_empty(), "{path}");
        loads.push(load(&path));
    }
    loads.extend(nginx.map(|nginx| {
        let url = nginx.serve(&kind.name.replace(' ', "-"), &bytes);
        Load { pid: nginx.pid(), url, ..load("") }
    }));
    let mut micros = wrk::in_turn(&loads).into_iter();
    let ours = micros.next().unwrap_or_default();
    let row = |name, ours, peer, goal| Row { name, unit: Unit::Micros, ours, peer, goal: Goal::Ratio(goal) };
    let rows: Vec<Row> = others
        .into_iter()
        .zip(micros.by_ref())
        .map(|((name, _), cost)| row(name, cost, Some(ours), 0.9))
        .collect();
    if table.wants(&kept) {
        table.add(row(kept, ours, micros.next(), 0.85));
    }
    rows.into_iter().for_each(|row| table.add(row));
}
