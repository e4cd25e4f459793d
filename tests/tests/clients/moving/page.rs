//! docs/MOVING.md: its commands are taken by the program, and it has one for every kind of source.

use std::collections::BTreeSet;

use packhouse_tests::checkout;
use packhouse_tests::clients::run;
use packhouse_tests::server::{free_port, program};
use std::process::Command;

/// Every command of the page, as words.
fn commands() -> Vec<Vec<String>> {
    let page = std::fs::read_to_string(checkout().join("docs/MOVING.md")).unwrap();
    let quoted = page
        .split('`')
        .filter(|text| text.starts_with("packhouse import ") || text.starts_with("packhouse export "));
    let blocks = page.lines().filter(|line| line.starts_with("packhouse "));
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    quoted.chain(blocks).map(words).filter(|words| words.len() > 3).collect()
}

#[test]
fn every_command_of_the_page_is_taken() {
    let commands = commands();
    assert!(commands.len() > 12, "{commands:?}");
    let home = tempfile::TempDir::new().unwrap();
    std::fs::write(home.path().join("names.txt"), "left\n").unwrap();
    for words in &commands {
        let mut command = Command::new(program());
        // An export makes its folder before it signs in.
        let words: Vec<String> = words.iter().map(|word| word.replace("/srv/moved", "moved")).collect();
        command.args(&words[1..]).current_dir(home.path()).env("PACKHOUSE_LOGIN", "me@example.com:x");
        command.env("PACKHOUSE_API_URL", format!("http://127.0.0.1:{}", free_port()));
        run(&mut command).refused("failed to sign in");
    }
    let help = run(Command::new(program()).args(["import", "--help"])).well().text;
    let kinds = help.split_once("[possible values: ").unwrap().1.split_once(']').unwrap().0;
    let kinds: BTreeSet<&str> = kinds.split([',', ' ', '\n']).filter(|kind| !kind.is_empty()).collect();
    let shown: BTreeSet<&str> = commands
        .iter()
        .filter_map(|words| words.iter().skip_while(|word| *word != "--from").nth(1))
        .map(String::as_str)
        .collect();
    assert_eq!(kinds, shown);
}
