//! The picture that README begins with: `just picture` makes it anew. The test makes it into `target/pictures`, of a repository with packages
//! and with days on which something happened.

use packhouse_tests::chromium::Chromium;
use packhouse_tests::portal::{at, sign_in};
use packhouse_tests::server::OWNER;
use packhouse_tests::{MavenRepository, Server, checkout, database, skip};
use std::path::PathBuf;

/// The most bytes that the picture may have: it is kept with the sources.
const MOST: usize = 100_000;

/// Packages, how many versions each has, and its description.
const PACKAGES: [(&str, usize, &str); 5] = [
    ("ledger-core", 7, "Double-entry books, and what is asked of them"),
    ("ledger-export", 4, "Books as files that others read"),
    ("mail-queue", 12, "Sends what is to be sent, once"),
    ("rates-client", 3, "Exchange rates of the central bank"),
    ("web-forms", 9, "Forms that say what is wrong"),
];

#[test]
fn a_repository_is_shown_with_what_happened_in_it() {
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
    // The weeks before today: fewer at weekends, and more of late.
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
        let told = browser.told(&format!("svg[aria-label^={name}]"));
        assert!(["img", "image"].contains(&told.0.as_str()), "{told:?}");
        assert!(told.1.starts_with(&format!("{name} by day: ")), "{told:?}");
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
