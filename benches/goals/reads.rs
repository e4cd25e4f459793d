//! Reads under load: kept answers beside nginx, the same made anew, and groups and proxies beside the hosted repository.

use crate::nginx::Nginx;
use crate::options::Options;
use crate::table::{Goal, Row, Table, Unit};
use crate::world::{KINDS, Kind, World};
use crate::wrk::{self, Load};
use packhouse_tests::server::OWNER;
use std::fs;

/// Connections at a time.
const CONNECTIONS: u32 = 64;
/// Each request has another query, so that no answer is another's.
const UNIQUE: &str = "local n, id = 0, os.time()\n\
    function request() n = n + 1 return wrk.format(nil, wrk.path .. '?u=' .. id .. '-' .. n) end\n";

/// Measures each kind.
pub(crate) fn measure(options: &Options, world: &World, table: &mut Table) {
    if !wrk::available(table) {
        return;
    }
    let nginx = Nginx::start(OWNER, &world.secret, table);
    KINDS.iter().for_each(|kind| of_kind(kind, options, world, nginx.as_ref(), table));
}

fn of_kind(kind: &Kind, options: &Options, world: &World, nginx: Option<&Nginx>, table: &mut Table) {
    let names = ["kept", "anew", "group of five", "proxy"].map(|what| format!("{what}: {}", kind.name));
    if !names.iter().any(|name| table.wants(name)) {
        return;
    }
    let scripts = tempfile::tempdir().expect("a folder");
    let unique = scripts.path().join("unique.lua");
    fs::write(&unique, UNIQUE).expect("a file");
    let authorization = world.authorization();
    let hosted = World::path(kind, "");
    let bytes = world.read(&hosted, kind.accept);
    let load = |path: &str| Load {
        pid: world.server.pid(),
        url: format!("{}{path}", world.server.base_url()),
        authorization: &authorization,
        accept: kind.accept,
        script: None,
        connections: CONNECTIONS,
        seconds: options.seconds,
    };
    let peer = nginx.map(|nginx| {
        let url = nginx.serve(&kind.name.replace(' ', "-"), &bytes);
        Load { pid: nginx.pid(), url, ..load("") }.run().micros
    });
    let [kept, anew, group, proxy] = names;
    let row = |name: String, ours: f64, peer: Option<f64>, goal: Goal| Row {
        name,
        unit: Unit::Micros,
        ours,
        peer,
        goal,
    };
    let ours = load(&hosted).run().micros;
    if table.wants(&kept) {
        table.add(row(kept, ours, peer, Goal::Ratio(0.85)));
    }
    if let Some(most) = kind.anew.filter(|_| table.wants(&anew)) {
        let seen = Load { script: Some(&unique), ..load(&hosted) }.run();
        table.add(row(anew, seen.micros, peer, Goal::AtMost(most)));
    }
    for (name, ending) in [(group, "-group"), (proxy, "-proxy")] {
        if table.wants(&name) {
            let path = World::path(kind, ending);
            // A proxy fetches what it does not have yet.
            assert!(!world.read(&path, kind.accept).is_empty(), "{path}");
            table.add(row(name, load(&path).run().micros, Some(ours), Goal::Ratio(0.9)));
        }
    }
}
