//! Cached responses. No client may see outdated content because of a cache. Each scenario runs for
//! every format, in hosted repositories, a proxy and a group of them. It runs on one server, and on
//! two servers with a shared database. Before each change, the scenario reads everything affected
//! twice through every server, so that the servers cache what they can.

mod formats;
mod groups;
mod hosted;
mod lists;
mod place;
mod proxies;
mod races;
mod settings;

use formats::PackageFormat;
use packhouse_tests::Server;
use packhouse_tests::database::Postgres;
use place::Repositories;

/// Servers that share all their storage.
pub(crate) struct SharedServers {
    pub(crate) servers: Vec<Server>,
    _shared: Option<(Postgres, tempfile::TempDir)>,
}

impl SharedServers {
    /// One server on SQLite.
    pub(crate) fn alone() -> Self {
        Self { servers: vec![near(Server::with()).start()], _shared: None }
    }

    /// Two servers on one PostgreSQL.
    pub(crate) fn pair() -> Self {
        let postgres = Postgres::start().expect("PostgreSQL, which ./bootstrap test installs");
        let data = tempfile::tempdir().unwrap();
        let start = || {
            let builder = Server::with().data(data.path()).arg("--database-url").arg(&postgres.url());
            near(builder).start()
        };
        Self { servers: vec![start(), start()], _shared: Some((postgres, data)) }
    }
}

/// Allows connections to upstreams on this machine.
fn near(builder: packhouse_tests::ServerBuilder) -> packhouse_tests::ServerBuilder {
    builder.env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*")
}

/// Runs a scenario for these formats, on one server and on two.
pub(crate) fn play(formats: &[PackageFormat], course: impl Fn(&Repositories<'_>)) {
    for world in [SharedServers::alone(), SharedServers::pair()] {
        for format in formats {
            course(&Repositories::new(&world, *format));
        }
    }
}
