//! The picture at the top of README, which `just picture` updates. The test creates a repository
//! with packages and daily activity and writes a picture of it to `target/pictures`.

use packhouse_tests::chromium::Chromium;
use packhouse_tests::portal::{at, sign_in};
use packhouse_tests::server::OWNER;
use packhouse_tests::{MavenRepository, Server, checkout, database, skip};
use std::path::PathBuf;

/// Maximum size of the picture in bytes, because it is committed with the sources.
const MOST: usize = 100_000;

/// Packages, the number of their versions, and their descriptions.
const PACKAGES: [(&str, usize, &str); 5] = [
    ("ledger-core", 7, "Double-entry books, and what is asked of them"),
    ("ledger-export", 4, "Books as files that others read"),
    ("mail-queue", 12, "Sends what is to be sent, once"),
    ("rates-client", 3, "Exchange rates of the central bank"),
    ("web-forms", 9, "Forms that say what is wrong"),
];

#[test]
fn a_repository_page_shows_recent_activity() {
    let browser = match Chromium::with_scripts() {
        Ok(browser) => browser,
        Err(reason) => return skip("chromium", &reason),
    };
    let server = Server::start();
    let repository = MavenRepository::create(&server, "releases");
    for (package, versions, description) in PACKAGES {
        for version in 1..=versions {
            let file = format!("com/example/{package}/1.{version}/{package}-1.{version}");
            let pom = format!(
                "<project><modelVersion>4.0.0</modelVersion><groupId>com.example</groupId><artifactId>{package}</artifactId>\
                 <version>1.{version}</version><description>{description}</description></project>"
            );
            repository.put(&format!("{file}.pom"), pom).expect(201);
            repository.put(&format!("{file}.jar"), "a jar").expect(201);
        }
    }
    // Activity of the previous weeks. It is lower at weekends and rises towards today.
    let days = format!(
        "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 29) \
         INSERT INTO activity (repository, name, day, publishes, downloads) \
         SELECT {}, '', unixepoch() / 86400 - i, (i * 7 + 3) % 5 * ((i + 2) % 7 > 1), (40 + (i * 37) % 23 - i) * (1 + 2 * ((i + 2) % 7 > 1)) \
         FROM n WHERE true ON CONFLICT DO UPDATE SET downloads = excluded.downloads, publishes = 3",
        repository.id
    );
    database::sqlite(&server, &days);
    sign_in(&browser, &server, OWNER);
    browser.screen(1280, 850, false);
    browser.open(&at(&server, "/repositories/releases"));
    assert!(browser.text("#activity").contains("30 days"));
    for name in ["Downloads", "Publishes"] {
        let role_and_name = browser.role_and_name(&format!("svg[aria-label^={name}]"));
        assert!(["img", "image"].contains(&role_and_name.0.as_str()), "{role_and_name:?}");
        assert!(role_and_name.1.starts_with(&format!("{name} by day: ")), "{role_and_name:?}");
    }
    let bars =
        browser.run("return document.querySelectorAll('svg.days rect').length", &serde_json::json!([]));
    assert!(bars.as_u64() > Some(40), "{bars}");
    let file = match std::env::var_os("PACKHOUSE_PICTURE") {
        Some(file) => PathBuf::from(file),
        None => checkout().join("target/pictures/portal.webp"),
    };
    let picture = browser.picture_webp();
    assert!((5_000..MOST).contains(&picture.len()), "{} bytes", picture.len());
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, picture).unwrap();
}
