//! Answers that are kept, from outside: whatever a server keeps in memory of what it has answered, nobody sees by it what is no longer
//! so. Each course of things runs for every format, in hosted repositories, a proxy and a group of them, at one server and at two that
//! share a database; before each change all that it concerns has been read twice through every server, so that it is kept if it can be.

mod formats;
mod groups;
mod hosted;
mod lists;
mod place;
mod proxies;
mod races;
mod settings;

use formats::Format;
use packhouse_tests::Server;
use packhouse_tests::database::Postgres;
use place::Place;

/// Servers that share all that they store.
pub(crate) struct World {
    pub(crate) servers: Vec<Server>,
    _shared: Option<(Postgres, tempfile::TempDir)>,
}

impl World {
    /// One server over SQLite.
    pub(crate) fn alone() -> Self {
        Self { servers: vec![near(Server::with()).start()], _shared: None }
    }

    /// Two over one PostgreSQL.
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

/// May reach upstreams on this machine.
fn near(builder: packhouse_tests::ServerBuilder) -> packhouse_tests::ServerBuilder {
    builder.env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*")
}

/// Plays a course of things for these formats, at one server and at two.
pub(crate) fn play(formats: &[Format], course: impl Fn(&Place<'_>)) {
    for world in [World::alone(), World::pair()] {
        for format in formats {
            course(&Place::new(&world, *format));
        }
    }
}
