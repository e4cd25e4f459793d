//! PostgreSQL in typical installations: several hosts in one address, certificates, a role without
//! superuser rights, and a pooler in front.

use packhouse_tests::authority::Authority;
use packhouse_tests::database::Postgres;
use packhouse_tests::pooler::Pooler;
use packhouse_tests::server::free_port;
use packhouse_tests::{MavenRepository, Server, ServerBuilder, checkout, cli, skip};

fn database(test: &str) -> Option<Postgres> {
    Postgres::start().map_err(|reason| skip(test, &reason)).ok()
}

/// Checks that a server on this database works. The server publishes and serves a file, and
/// `doctor` finds no problem with the database.
fn works(url: &str) {
    let server = ServerBuilder::default().env("PACKHOUSE_DATABASE_URL", url).start();
    let repository = MavenRepository::create(&server, "maven");
    repository.put("org/example/a/1.0/a-1.0.txt", "kept").expect(201);
    assert_eq!(repository.get("org/example/a/1.0/a-1.0.txt").expect(200).body, b"kept");
    let environment = [("PACKHOUSE_DATABASE_URL", url.to_owned())];
    let ports = [server.packages().to_string(), server.api().to_string()];
    let words = ["doctor", "--packages-listen", &ports[0], "--api-listen", &ports[1]];
    let output = cli::packhouse_with(server.data(), &words, &environment);
    assert!(output.text.contains("note  a server is running at"), "{}", output.text);
    assert!(!output.text.contains("Address already in use"), "{}", output.text);
    assert!(output.text.contains("ok    database:"), "{}", output.text);
}

#[test]
fn the_writable_host_of_several_is_found() {
    let Some(database) = database("several hosts") else { return };
    // The first host in the address does not listen, and the second one accepts no writes.
    let Some(other) = self::database("several hosts") else { return };
    other.sql("ALTER SYSTEM SET default_transaction_read_only = on");
    other.sql("SELECT pg_reload_conf()");
    let hosts = format!("127.0.0.1:{},127.0.0.1:{},127.0.0.1:{}", free_port(), other.port(), database.port());
    works(&format!("postgres://packhouse@{hosts}/packhouse?target_session_attrs=read-write"));
    let (status, output) = Server::with()
        .env(
            "PACKHOUSE_DATABASE_URL",
            "postgres://packhouse@127.0.0.1/packhouse?target_session_attrs=standby",
        )
        .start_refused();
    assert!(!status.success() && output.contains("target_session_attrs=read-write"), "{output}");
}

#[test]
fn a_role_without_superuser_privileges_suffices() {
    let Some(database) = database("a plain role") else { return };
    works(&database.url_of_a_plain_role());
    // For a role that may not create tables, `doctor` names the problem and the remedy.
    database.sql("CREATE ROLE poor LOGIN");
    let poor = database.url().replace("packhouse@", "poor@");
    let home = tempfile::TempDir::new().unwrap();
    let output = cli::packhouse_with(home.path(), &["doctor"], &[("PACKHOUSE_DATABASE_URL", poor)]);
    output.refused("GRANT CREATE ON SCHEMA");
}

#[test]
fn the_role_and_database_of_the_guide_suffice_for_a_server() {
    let Some(database) = database("the page about PostgreSQL") else { return };
    let page = std::fs::read_to_string(checkout().join("docs/guides/postgresql-and-s3.md")).unwrap();
    let block = page.split("```sql\n").nth(1).unwrap().split("```").next().unwrap();
    // The superuser's role and database already have the block's names here, so the test replaces
    // the names.
    for statement in block.replace("packhouse", "keeper").split_terminator(";\n") {
        database.sql(statement);
    }
    works(&format!("postgres://keeper@127.0.0.1:{}/keeper", database.port()));
}

#[test]
fn errors_of_the_database_are_quoted_once() {
    let Some(database) = database("the words of PostgreSQL") else { return };
    let url = format!("postgres://packhouse@127.0.0.1:{}/absent", database.port());
    let (status, started) = Server::with().env("PACKHOUSE_DATABASE_URL", &url).start_refused();
    let home = tempfile::TempDir::new().unwrap();
    let examined = cli::packhouse_with(home.path(), &["doctor"], &[("PACKHOUSE_DATABASE_URL", url)]);
    assert!(!status.success() && !examined.success);
    for output in [started, examined.text] {
        assert!(
            output.contains("database \"absent\" does not exist") && !output.contains("at line"),
            "{output}"
        );
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
    // The first address has a host name that the certificate lacks. The second address trusts
    // another certificate authority.
    let another = Authority::new().unwrap();
    for wrong in [url("127.0.0.1", &ca.to_string_lossy()), url("localhost", &another.ca().to_string_lossy())]
    {
        let (status, output) = Server::with().env("PACKHOUSE_DATABASE_URL", &wrong).start_refused();
        assert!(!status.success() && output.to_lowercase().contains("certificate"), "{output}");
    }
}

#[test]
fn a_pooler_is_used_or_refused_with_a_reason() {
    let Some(database) = database("a pooler in front of PostgreSQL") else { return };
    let pooler = |mode: &str| Pooler::start(&database, mode);
    let session = match pooler("session") {
        Ok(session) => session,
        Err(reason) => return skip("a pooler in front of PostgreSQL", &reason),
    };
    works(&database.url_through(session.port()));
    // Only newer versions of the pooler keep the prepared statements of its clients apart. The
    // server works with newer versions. With older versions the start fails and names the reason.
    let transaction = pooler("transaction").unwrap();
    let url = database.url_through(transaction.port());
    let output = packhouse_tests::clients::run(std::process::Command::new("pgbouncer").arg("--version"));
    let version = output.text.split_whitespace().nth(1).unwrap_or_default().to_owned();
    let minor: u32 = version.split('.').nth(1).and_then(|minor| minor.parse().ok()).unwrap_or_default();
    if minor >= 21 {
        return skip("a pooler without prepared statements", &format!("pgbouncer is {version}"));
    }
    let (status, output) = Server::with().env("PACKHOUSE_DATABASE_URL", &url).start_refused();
    assert!(!status.success() && output.contains("max_prepared_statements"), "{output}");
    let home = tempfile::TempDir::new().unwrap();
    let environment = [("PACKHOUSE_DATABASE_URL", url)];
    cli::packhouse_with(home.path(), &["doctor"], &environment).refused("pool_mode = session");
}
