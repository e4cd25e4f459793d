//! Hostile published content in a real browser. It runs no script, loads nothing and does not
//! change the text direction of any page.

use crate::release;

use packhouse_tests::npm::NpmRepository;
use packhouse_tests::portal::{at, both, no_complaints, sign_in};
use packhouse_tests::server::OWNER;
use packhouse_tests::{MavenRepository, Server};
use release::Release;
use serde_json::json;

/// Hostile content: markup, scripts, a direction override, addresses that contain scripts, and a
/// mebibyte of nested elements.
const HOSTILE: &str =
    "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">\u{202e}gnp.exe";

#[test]
fn hostile_published_content_is_inert() {
    both(|browser, _| {
        let server = Server::start();
        let repository = NpmRepository::create(&server, "js");
        let nested = "> <b onclick=\"document.title='taken'\">".repeat(1024 * 1024 / 40);
        for (version, readme) in [("1.0.0", HOSTILE.to_owned()), ("2.0.0", nested)] {
            let package = json!({
                "name": "lib", "version": version, "description": HOSTILE, "keywords": [HOSTILE], "license": HOSTILE,
                "homepage": "javascript:document.title='taken'", "author": HOSTILE, "dependencies": {"dep": HOSTILE},
            });
            let release =
                Release::new("lib", version).package_json(&package.to_string()).file("README.md", &readme);
            let release = release.file("<img src=x>.js", "").manifest_members(&json!({"readme": readme}));
            repository.put("lib", &release.document()).expect(201);
        }
        let jars = MavenRepository::create(&server, "jars");
        let pom = format!(
            "<project><modelVersion>4.0.0</modelVersion><groupId>org.example</groupId><artifactId>a</artifactId><version>1.0</version>\
             <name><![CDATA[{HOSTILE}]]></name><description><![CDATA[{HOSTILE}]]></description><url>javascript:alert(1)</url>\
             <licenses><license><name><![CDATA[{HOSTILE}]]></name></license></licenses></project>"
        );
        jars.put("org/example/a/1.0/a-1.0.pom", pom).expect(201);
        let name = "%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E";
        // The server either refuses a file with this name, or the page shows the name as text.
        let status = jars.put(&format!("org/example/a/1.0/a-1.0-{name}.jar"), "a jar").status;
        assert!([201, 400].contains(&status), "{status}");
        sign_in(browser, &server, OWNER);
        for (path, title) in [
            ("/repositories/js", "js"),
            ("/repositories/js/packages/lib", "lib"),
            ("/repositories/js/packages/lib/versions/1.0.0", "lib 1.0.0"),
            ("/repositories/js/packages/lib/versions/2.0.0", "lib 2.0.0"),
            ("/search?q=lib", "Search"),
            ("/repositories/jars", "jars"),
            ("/repositories/jars/packages/org.example%3Aa", "org.example:a"),
            ("/repositories/jars/packages/org.example%3Aa/versions/1.0", "org.example:a 1.0"),
        ] {
            browser.open(&at(&server, path));
            assert_eq!(browser.title(), format!("{title} - Packhouse"), "{path}");
            let bad = "return [...document.querySelectorAll('main script, main img, main iframe, main form[action^=http], main [style]')] \
                .map(one => one.outerHTML).concat([...document.querySelectorAll('main *')].filter(one => one.getAttributeNames() \
                .some(name => name.startsWith('on')) || /^(javascript|data):/i.test(one.getAttribute('href') ?? '')).map(one => one.outerHTML))";
            assert_eq!(browser.run(bad, &json!([])), json!([]), "{path}");
            // Each text with a direction override must have an element of its own.
            let turned = "return [...document.querySelectorAll('main *')].filter(one => [...one.childNodes].some(node => \
                node.nodeType === 3 && node.data.includes('\\u202e')) && !one.closest('bdi, [dir=auto], pre')).map(one => one.outerHTML)";
            assert_eq!(browser.run(turned, &json!([])), json!([]), "{path}");
        }
        no_complaints(browser);
    });
}
