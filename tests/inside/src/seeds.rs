//! Replays the fuzzer's seeds and the inputs that it found: `fuzz/seeds/TARGET/*`.

#[path = "../../../fuzz/src/lib.rs"]
mod fuzz;

use packhouse_tests::checkout;

/// A target's name, and the function that takes its bytes.
type FuzzTarget = (&'static str, fn(&[u8]));

#[test]
fn every_seed_is_answered() {
    let targets: &[FuzzTarget] = &[
        ("attestation", fuzz::attestation),
        ("cargo_publish", fuzz::cargo_publish),
        ("cargo_upstream", fuzz::cargo_upstream),
        ("composer_publish", fuzz::composer_publish),
        ("composer_upstream", fuzz::composer_upstream),
        ("generic_listing", fuzz::generic_listing),
        ("go_module", fuzz::go_module),
        ("go_upstream", fuzz::go_upstream),
        ("helm_chart", fuzz::helm_chart),
        ("helm_upstream", fuzz::helm_upstream),
        ("maven_metadata", fuzz::maven_metadata),
        ("multipart", fuzz::multipart),
        ("npm_publish", fuzz::npm_publish),
        ("npm_upstream", fuzz::npm_upstream),
        ("oci_manifest", fuzz::oci_manifest),
        ("python_metadata", fuzz::python_metadata),
        ("python_upstream", fuzz::python_upstream),
        ("python_wheel", fuzz::python_wheel),
        ("recording", fuzz::recording),
        ("rubygems_gem", fuzz::rubygems_gem),
        ("rubygems_upstream", fuzz::rubygems_upstream),
        ("readme_markdown", fuzz::readme_markdown),
        ("readme_rst", fuzz::readme_rst),
    ];
    let folders = std::fs::read_dir(checkout().join("fuzz/seeds")).unwrap();
    assert_eq!(folders.count(), targets.len(), "each target has a folder, and each folder a target");
    for (target, run) in targets.iter().copied() {
        let seeds = std::fs::read_dir(checkout().join("fuzz/seeds").join(target)).unwrap();
        let mut replayed = 0;
        for seed in seeds {
            let path = seed.unwrap().path();
            println!("{}", path.display()); // Printed if the test fails.
            run(&std::fs::read(&path).unwrap());
            replayed += 1;
        }
        assert!(replayed > 0, "{target} has no seeds");
    }
}
