//! PostgreSQL as it is run: several hosts in one address, certificates, a role that is no superuser, a pooler in front.

use packhouse_tests::authority::Authority;
use packhouse_tests::database::Postgres;
use packhouse_tests::pooler::Pooler;
use packhouse_tests::server::free_port;
use packhouse_tests::{MavenRepository, Server, ServerBuilder, checkout, cli, skip};

fn database(test: &str) -> Option<Postgres> {
    Postgres::start().map_err(|reason| skip(test, &reason)).ok()
}

/// A server on this database publishes, serves and is well.
fn works(url: &str) {
    let server = ServerBuilder::default().env("PACKHOUSE_DATABASE_URL", url).start();
    let repository = MavenRepository::create(&server, "maven");
    repository.put("org/example/a/1.0/a-1.0.txt", "kept").expect(201);
    assert_eq!(repository.get("org/example/a/1.0/a-1.0.txt").expect(200).body, b"kept");
    let environment = [("PACKHOUSE_DATABASE_URL", url.to_owned())];
    let ports = [server.packages().to_string(), server.api().to_string()];
    let words = ["doctor", "--packages-listen", &ports[0], "--api-listen", &ports[1]];
    let said = cli::packhouse_with(server.data(), &words, &environment);
    // The ports are this server's own, which a database of several servers does not tell.
    assert!(said.text.contains("well  database:"), "{}", said.text);
}

#[test]
fn the_good_one_of_several_hosts_is_found() {
    let Some(database) = database("several hosts") else { return };
    // Nobody listens at the first, and the second takes no writes.
    let Some(other) = self::database("several hosts") else { return };
    other.sql("ALTER SYSTEM SET default_transaction_read_only = on");
    other.sql("SELECT pg_reload_conf()");
    let hosts = format!("127.0.0.1:{},127.0.0.1:{},127.0.0.1:{}", free_port(), other.port(), database.port());
    works(&format!("postgres://packhouse@{hosts}/packhouse?target_session_attrs=read-write"));
    let (status, said) = Server::with()
        .env(
            "PACKHOUSE_DATABASE_URL",
            "postgres://packhouse@127.0.0.1/packhouse?target_session_attrs=standby",
        )
        .start_refused();
    assert!(!status.success() && said.contains("target_session_attrs=read-write"), "{said}");
}

#[test]
fn a_role_without_privileges_of_a_superuser_suffices() {
    let Some(database) = database("a plain role") else { return };
    works(&database.url_of_a_plain_role());
    // One that may make no tables is told of by the doctor, with what to do.
    database.sql("CREATE ROLE poor LOGIN");
    let poor = database.url().replace("packhouse@", "poor@");
    let home = tempfile::TempDir::new().unwrap();
    let said = cli::packhouse_with(home.path(), &["doctor"], &[("PACKHOUSE_DATABASE_URL", poor)]);
    said.refused("GRANT CREATE ON SCHEMA");
}

#[test]
fn role_and_database_of_the_page_are_all_that_a_server_needs() {
    let Some(database) = database("the page about PostgreSQL") else { return };
    let page = std::fs::read_to_string(checkout().join("docs/POSTGRESQL.md")).unwrap();
    let block = page.split("```sql\n").nth(1).unwrap().split("```").next().unwrap();
    // Role and database of this name are there already, as the superuser's.
    for statement in block.replace("packhouse", "keeper").split_terminator(";\n") {
        database.sql(statement);
    }
    works(&format!("postgres://keeper@127.0.0.1:{}/keeper", database.port()));
}

#[test]
fn what_the_database_says_is_told_in_its_words_alone() {
    let Some(database) = database("the words of PostgreSQL") else { return };
    let url = format!("postgres://packhouse@127.0.0.1:{}/absent", database.port());
    let (status, started) = Server::with().env("PACKHOUSE_DATABASE_URL", &url).start_refused();
    let home = tempfile::TempDir::new().unwrap();
    let examined = cli::packhouse_with(home.path(), &["doctor"], &[("PACKHOUSE_DATABASE_URL", url)]);
    assert!(!status.success() && !examined.success);
    for said in [started, examined.text] {
        assert!(said.contains("database \"absent\" does not exist") && !said.contains("at line"), "{said}");
    }
}

#[test]
fn the_servers_certificate_is_checked() {
    let authority = match Authority::new() {
        Ok(authority) => authority,
        Err(reason) => return skip("certificates of PostgreSQL", &reason),
    };
    let Some(mut database) = database("certificates of PostgreSQL") else { return };
    let [cert, key] = authority.issue("postgres", &["DNS:localhost"]);
    database.secure(&cert, &key);
    let ca = authority.ca();
    let url = |host: &str, ca: &str| {
        let port = database.port();
        format!("postgres://packhouse@{host}:{port}/packhouse?sslmode=verify-full&sslrootcert={ca}")
    };
    works(&url("localhost", &ca.to_string_lossy()));
    // Another name, and another authority.
    let another = Authority::new().unwrap();
    for wrong in [url("127.0.0.1", &ca.to_string_lossy()), url("localhost", &another.ca().to_string_lossy())]
    {
        let (status, said) = Server::with().env("PACKHOUSE_DATABASE_URL", &wrong).start_refused();
        assert!(!status.success() && said.to_lowercase().contains("certificate"), "{said}");
    }
}

#[test]
fn a_pooler_is_used_or_refused_in_words() {
    let Some(database) = database("a pooler in front of PostgreSQL") else { return };
    let pooler = |mode: &str| Pooler::start(&database, mode);
    let session = match pooler("session") {
        Ok(session) => session,
        Err(reason) => return skip("a pooler in front of PostgreSQL", &reason),
    };
    works(&database.url_through(session.port()));
    // Whether this one keeps prepared statements apart is a matter of its version: it is used then, and else the start says why not.
    let transaction = pooler("transaction").unwrap();
    let url = database.url_through(transaction.port());
    let said = packhouse_tests::clients::run(std::process::Command::new("pgbouncer").arg("--version"));
    let version = said.text.split_whitespace().nth(1).unwrap_or_default().to_owned();
    let minor: u32 = version.split('.').nth(1).and_then(|minor| minor.parse().ok()).unwrap_or_default();
    if minor >= 21 {
        return skip("a pooler without prepared statements", &format!("pgbouncer is {version}"));
    }
    let (status, said) = Server::with().env("PACKHOUSE_DATABASE_URL", &url).start_refused();
    assert!(!status.success() && said.contains("max_prepared_statements"), "{said}");
    let home = tempfile::TempDir::new().unwrap();
    let environment = [("PACKHOUSE_DATABASE_URL", url)];
    cli::packhouse_with(home.path(), &["doctor"], &environment).refused("pool_mode = session");
}
