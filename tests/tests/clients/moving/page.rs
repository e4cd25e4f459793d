//! The documentation about import and export: the program accepts its commands, and it has a
//! command for every kind of source.

use std::collections::BTreeSet;

use packhouse_tests::checkout;
use packhouse_tests::clients::run;
use packhouse_tests::server::{free_port, program};
use std::process::Command;

const PAGES: [&str; 2] = ["docs/guides/moving.md", "docs/tutorials/move-from-another-server.md"];

/// Every import and export command of the pages, as arguments.
fn commands() -> Vec<Vec<String>> {
    let page = PAGES.map(|page| std::fs::read_to_string(checkout().join(page)).unwrap()).join("\n");
    let is_command =
        |text: &&str| text.starts_with("packhouse import ") || text.starts_with("packhouse export ");
    let quoted = page.split('`').filter(is_command);
    let blocks = page.lines().filter(is_command);
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    quoted.chain(blocks).map(words).filter(|words| words.len() > 3).collect()
}

#[test]
fn every_documented_command_is_accepted() {
    let commands = commands();
    assert!(commands.len() > 12, "{commands:?}");
    let home = tempfile::TempDir::new().unwrap();
    std::fs::write(home.path().join("names.txt"), "left\n").unwrap();
    for words in &commands {
        let mut command = Command::new(program());
        // An export creates its folder before it signs in, so the test replaces the folder of the
        // examples.
        let words: Vec<String> = words.iter().map(|word| word.replace("/srv/moved", "moved")).collect();
        command.args(&words[1..]).current_dir(home.path()).env("PACKHOUSE_LOGIN", "me@example.com:x");
        command.env("PACKHOUSE_API_URL", format!("http://127.0.0.1:{}", free_port()));
        run(&mut command).refused("failed to sign in");
    }
    let help = run(Command::new(program()).args(["import", "--help"])).success().text;
    let kinds = help.split_once("[possible values: ").unwrap().1.split_once(']').unwrap().0;
    let kinds: BTreeSet<&str> = kinds.split([',', ' ', '\n']).filter(|kind| !kind.is_empty()).collect();
    let documented: BTreeSet<&str> = commands
        .iter()
        .filter_map(|words| words.iter().skip_while(|word| *word != "--from").nth(1))
        .map(String::as_str)
        .collect();
    assert_eq!(kinds, documented);
}
