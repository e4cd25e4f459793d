//! The page of all commands, from the definition of the command line.

use std::collections::BTreeSet;

use clap::{Arg, Args as _, Command};

use crate::cli::SettingFlags;
use crate::cli::remote::ServerFlags;

use super::markdown::{cell, code, prose, table};

const INTRO: &str = "\
# Command line

This page lists the commands of `packhouse` with its arguments and options. `packhouse COMMAND --help` prints the same.
A command exits with 0 if it succeeded.

";

const SETTINGS: &str = "\
## Settings as flags

Commands that open the store of a server take these flags. Each one is also a [setting](settings.md), and the flag has
priority over the environment and the configuration file.

";

const SERVER: &str = "\
## Flags for a running server

Commands that take these flags can call the [management API](api.md) of a running server, with an API token. Without
`--server`, they work directly on the database of the settings. [Configuration as code](../guides/configuration-as-code.md)
shows both.

";

/// Flags that many commands take, with their sentence in the description of a command.
struct SharedFlags {
    ids: BTreeSet<String>,
    sentence: &'static str,
}

impl SharedFlags {
    /// Returns the flags of a command that has no others, and their table.
    fn of(mut command: Command, sentence: &'static str) -> (SharedFlags, String) {
        // Only a built command can print its arguments.
        command.build();
        let own = || command.get_arguments().filter(|argument| argument.get_id() != "help");
        let ids = own().map(|argument| argument.get_id().to_string()).collect();
        (SharedFlags { ids, sentence }, rows(own()))
    }

    fn contains(&self, argument: &Arg) -> bool {
        self.ids.contains(argument.get_id().as_str())
    }
}

/// Makes the page of all commands.
pub(super) fn page(mut program: Command) -> String {
    program.build();
    let (settings, setting_rows) = SharedFlags::of(
        SettingFlags::augment_args(Command::new("settings")),
        "It also takes the [settings as flags](#settings-as-flags).\n\n",
    );
    let (server, server_rows) = SharedFlags::of(
        ServerFlags::augment_args(Command::new("server")),
        "It also takes the [flags for a running server](#flags-for-a-running-server).\n\n",
    );
    let shared = [settings, server];
    let mut text = format!("{INTRO}{SETTINGS}{setting_rows}{SERVER}{server_rows}");
    for command in program.get_subcommands_mut() {
        describe(command, "packhouse", 2, &shared, &mut text);
    }
    text
}

/// Adds a command, then its subcommands.
fn describe(command: &mut Command, parent: &str, level: usize, shared: &[SharedFlags], text: &mut String) {
    if command.is_hide_set() || command.get_name() == "help" {
        return;
    }
    let name = format!("{parent} {}", command.get_name());
    text.push_str(&format!("{} {name}\n\n", "#".repeat(level)));
    if let Some(about) = command.get_long_about().or(command.get_about()) {
        text.push_str(&format!("{}\n\n", sentence(&about.to_string())));
    }
    text.push_str(&format!("```text\n{}\n```\n\n", usage(command)));
    let ids: BTreeSet<&str> = command.get_arguments().map(|argument| argument.get_id().as_str()).collect();
    let takes = |flags: &&SharedFlags| flags.ids.iter().all(|id| ids.contains(id.as_str()));
    let taken: Vec<&SharedFlags> = shared.iter().filter(takes).collect();
    let is_own = |argument: &&Arg| !taken.iter().any(|flags| flags.contains(argument));
    text.push_str(&rows(command.get_arguments().filter(is_own)));
    taken.iter().for_each(|flags| text.push_str(flags.sentence));
    for command in command.get_subcommands_mut() {
        describe(command, &name, level + 1, shared, text);
    }
}

/// The usage, each form on a line.
fn usage(command: &mut Command) -> String {
    let usage = command.render_usage().to_string();
    let lines = usage.lines().map(|line| line.trim_start_matches("Usage:").trim());
    lines.collect::<Vec<_>>().join("\n")
}

/// Arguments and options, without `--help` and hidden ones.
fn rows<'a>(arguments: impl Iterator<Item = &'a Arg>) -> String {
    let is_listed = |argument: &&Arg| {
        !argument.is_hide_set() && !["help", "version"].contains(&argument.get_id().as_str())
    };
    let rows: Vec<_> = arguments.filter(is_listed).map(row).collect();
    table(["argument", "meaning"], &rows)
}

fn row(argument: &Arg) -> [String; 2] {
    let help = argument.get_long_help().or(argument.get_help()).map(ToString::to_string);
    let mut meaning = sentence(&help.unwrap_or_default());
    if argument.get_action().takes_values() {
        let values: Vec<_> =
            argument.get_possible_values().iter().map(|value| code(value.get_name())).collect();
        if !values.is_empty() {
            meaning.push_str(&format!(" One of {}.", values.join(", ")));
        }
        let defaults: Vec<_> =
            argument.get_default_values().iter().map(|value| code(&value.to_string_lossy())).collect();
        if !defaults.is_empty() {
            meaning.push_str(&format!(" Default: {}.", defaults.join(", ")));
        }
        if let Some(variable) = argument.get_env() {
            meaning.push_str(&format!(" Environment variable: {}.", code(&variable.to_string_lossy())));
        }
    }
    [cell(&code(&argument.to_string())), meaning.replace('|', "\\|")]
}

/// A help text with a full stop.
fn sentence(text: &str) -> String {
    let text = prose(text);
    if text.is_empty() || text.ends_with(['.', '?', ']']) { text } else { text + "." }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn every_visible_command_has_a_chapter() {
        let page = page(Cli::command());
        for command in Cli::command().get_subcommands() {
            let heading = format!("\n## packhouse {}\n", command.get_name());
            let is_listed = !command.is_hide_set() && command.get_name() != "help";
            assert_eq!(page.contains(&heading), is_listed, "{heading}");
        }
        assert!(
            page.contains("### packhouse repo set\n") && page.contains("```text\npackhouse gc"),
            "{page}"
        );
        assert!(!page.contains("compile-component") && !page.contains("packhouse help"), "{page}");
    }
}
