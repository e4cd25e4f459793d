//! Order of versions in advisories, compared with the ecosystems' own tools: npm's semver, Python's
//! packaging, Maven's ComparableVersion, Gem::Version, Composer's comparator and Go's semver. The
//! test imports the OSV records in the folder `PACKHOUSE_TEST_OSV` as an operator does. It then
//! queries the listed versions and the versions around each border of a range.

mod around;
mod judged;
mod tools;

use around::around;
use judged::{Affected, judge, pairs};
use packhouse_tests::cli::packhouse;
use packhouse_tests::server::eventually;
use packhouse_tests::{Api, Server, skip};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use tools::compared;

const ECOSYSTEMS: [&str; 7] = ["npm", "PyPI", "Maven", "crates.io", "Go", "RubyGems", "Packagist"];
/// Number of queries in a batch.
const BATCH: usize = 200;
/// Maximum number of listed versions that the test queries for each record.
const LISTED: usize = 40;

/// The part of a record about one package.
struct Case {
    id: String,
    withdrawn: bool,
    affected: Vec<Affected>,
    queried_versions: BTreeSet<String>,
}

/// Cases by ecosystem and package.
type Cases = BTreeMap<(&'static str, String), Vec<Case>>;

/// Returns the JSON files of this folder and its subfolders.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the folder of PACKHOUSE_TEST_OSV") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|extension| extension == "json") {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn read(folder: &Path) -> Cases {
    let mut cases = Cases::new();
    for file in files(folder) {
        let record: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).expect("a record in JSON");
        let id = record["id"].as_str().expect("its id").to_owned();
        let mut of_record: BTreeMap<(&'static str, String), Vec<Affected>> = BTreeMap::new();
        for affected in record["affected"].as_array().into_iter().flatten() {
            let affected: Affected = serde_json::from_value(affected.clone()).expect("as OSV defines it");
            let stated = affected.package.ecosystem.split(':').next().unwrap_or_default();
            let Some(ecosystem) = ECOSYSTEMS.into_iter().find(|known| *known == stated) else { continue };
            if affected.package.name.is_empty() {
                continue;
            }
            of_record.entry((ecosystem, affected.package.name.clone())).or_default().push(affected);
        }
        for (package, affected) in of_record {
            let ecosystem = package.0;
            let mut queried_versions = BTreeSet::new();
            for one in &affected {
                queried_versions.extend(one.borders().flat_map(|border| around(ecosystem, border)));
                queried_versions.extend(one.versions.iter().take(LISTED).cloned());
            }
            queried_versions.insert("0.0.1".to_owned());
            let case = Case {
                id: id.clone(),
                withdrawn: !record["withdrawn"].is_null(),
                affected,
                queried_versions,
            };
            cases.entry(package).or_default().push(case);
        }
    }
    cases
}

/// Returns the records that the server finds for each of these versions.
fn found(api: &Api, package: (&str, &str), versions: &[&str]) -> Vec<BTreeSet<String>> {
    let (ecosystem, name) = package;
    let mut found = Vec::new();
    for batch in versions.chunks(BATCH) {
        let question =
            |version: &&str| json!({"package": {"ecosystem": ecosystem, "name": name}, "version": version});
        let queries: Vec<Value> = batch.iter().map(question).collect();
        let answer = api.post("/v1/querybatch", &json!({"queries": queries})).expect(200).json();
        for result in answer["results"].as_array().unwrap() {
            assert!(
                result["next_page_token"].is_null(),
                "{ecosystem} {name}: more records than one response contains"
            );
            let ids = result["vulns"].as_array().into_iter().flatten();
            found.push(ids.map(|one| one["id"].as_str().unwrap().to_owned()).collect());
        }
    }
    found
}

#[test]
fn records_are_evaluated_as_the_tools_of_their_ecosystems_do() {
    let Some(folder) = std::env::var_os("PACKHOUSE_TEST_OSV") else {
        return skip("records of OSV", "PACKHOUSE_TEST_OSV names no folder of them");
    };
    let cases = read(Path::new(&folder));
    let server = Server::start();
    let api = Api::sign_in(&server);
    packhouse(server.data(), &["advisories", "import", folder.to_str().unwrap()], "").success();
    let any = cases.values().flatten().next_back().expect("a record").id.clone();
    eventually("the server follows", || {
        (api.call("GET", &format!("/v1/vulns/{any}")).status == 200).then_some(())
    });
    let mut different = Vec::new();
    for ecosystem in ECOSYSTEMS {
        let own: Vec<(&String, &Vec<Case>)> = cases
            .iter()
            .filter(|((of, _), _)| *of == ecosystem)
            .map(|((_, name), cases)| (name, cases))
            .collect();
        if own.is_empty() {
            skip(ecosystem, "the folder has no record of it");
            continue;
        }
        let mut required = BTreeSet::new();
        for (_, cases) in own.iter().copied() {
            for (case, version) in
                cases.iter().flat_map(|case| queried_versions(cases).map(move |version| (case, version)))
            {
                case.affected.iter().for_each(|affected| pairs(affected, version, &mut required));
            }
        }
        let known = match compared(ecosystem, required) {
            Ok(known) => known,
            Err(reason) => {
                skip(ecosystem, &reason);
                continue;
            }
        };
        let compare = |one: &str, other: &str| known.get(&(one, other)).copied().flatten();
        let (mut verdicts, mut records) = (0, BTreeSet::new());
        for (name, cases) in own {
            let versions: Vec<&str> = queried_versions(cases).collect();
            let answers = found(&api, (ecosystem, name.as_str()), &versions);
            for case in cases {
                records.insert(&case.id);
                for (version, answer) in versions.iter().zip(&answers) {
                    let here = answer.contains(&case.id);
                    let there =
                        !case.withdrawn && case.affected.iter().any(|one| judge(one, version, &compare));
                    verdicts += 1;
                    if here != there {
                        let ranges: Vec<_> = case.affected.iter().map(|one| &one.ranges).collect();
                        let id = &case.id;
                        different.push(format!(
                            "{ecosystem} {id} {name} {version}: {here} here, {there} by its tool: {ranges:?}"
                        ));
                    }
                }
            }
        }
        println!("{ecosystem}: {verdicts} verdicts by {} records", records.len());
    }
    let some = different.iter().take(40).cloned().collect::<Vec<_>>().join("\n");
    assert!(different.is_empty(), "{} verdicts differ:\n{some}", different.len());
}

/// Returns the versions to query for the records of a package, each once.
fn queried_versions(cases: &[Case]) -> impl Iterator<Item = &str> {
    let versions: BTreeSet<&str> =
        cases.iter().flat_map(|case| &case.queried_versions).map(String::as_str).collect();
    versions.into_iter().filter(|version| !version.is_empty())
}
