//! The help: the commands in groups, and the examples and the page of each.

use std::fmt::Write as _;

use clap::builder::StyledStr;
use clap::{Command, CommandFactory as _};

use crate::args::Args;

/// Groups of commands, each with its commands and their pages, each with its examples.
const COMMANDS: &str = include_str!("help.txt");
/// The address below which the pages are.
const PAGES: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/");

/// The parser of this program's arguments, with its help.
pub(crate) fn command() -> Command {
    let mut command = Args::command();
    let (title, literal) = (
        *command.get_styles().get_header(),
        *command.get_styles().get_literal(),
    );
    let rows = COMMANDS.lines().filter(|line| !line.is_empty());
    let (mut list, mut rest) = (String::new(), rows.peekable());
    while let Some(line) = rest.next() {
        let Some((name, page)) = line
            .trim_start()
            .split_once(' ')
            .filter(|_| line.starts_with(' '))
        else {
            _ = writeln!(list, "\n{title}{line}:{title:#}");
            continue;
        };
        let mut end = format!("{title}Examples:{title:#}\n");
        while let Some(example) = rest.next_if(|line| line.starts_with("    ")) {
            _ = writeln!(end, "{}", example.split_at(2).1);
        }
        _ = write!(end, "\nMore: {PAGES}{page}");
        // A program may be built without some of the commands.
        if let Some(about) = command.find_subcommand(name).and_then(Command::get_about) {
            _ = writeln!(list, "  {literal}{name:<11}{literal:#}  {about}");
            command = command.mut_subcommand(name, |command| ending(command, &end.into()));
        }
    }
    command.help_template(StyledStr::from(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{list}\n{title}Global options:{title:#}\n{{options}}{{after-help}}"
    )))
}

/// Ends the help of a command, and of those in it.
fn ending(command: Command, end: &StyledStr) -> Command {
    let command = command.after_help(end.clone());
    command.mut_subcommands(|inner| ending(inner, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_visible_command_is_in_one_group() {
        let mut listed: Vec<&str> = COMMANDS
            .lines()
            .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
            .filter_map(|line| line.trim_start().split(' ').next())
            .collect();
        let command = Args::command();
        let visible = command
            .get_subcommands()
            .filter(|command| !command.is_hide_set());
        let mut visible: Vec<&str> = visible.map(Command::get_name).collect();
        listed.sort_unstable();
        visible.sort_unstable();
        assert_eq!(listed, visible);
    }

    /// The words of a line, as a shell splits them, up to where it redirects.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
        for c in line.chars() {
            match c {
                '\'' => quoted = !quoted,
                ' ' if !quoted => words.push(std::mem::take(&mut word)),
                '<' | '>' if !quoted => return words,
                c => word.push(c),
            }
        }
        words.push(word);
        words
    }

    #[test]
    fn every_example_is_accepted_and_every_page_is_there() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
        for line in COMMANDS.lines() {
            match line.strip_prefix("    ") {
                Some(example) => {
                    let parsed = command().try_get_matches_from(words(example));
                    assert!(parsed.is_ok(), "{example}: {}", parsed.unwrap_err());
                }
                None if line.starts_with(' ') => {
                    let (_, page) = line.trim_start().split_once(' ').unwrap();
                    assert!(std::path::Path::new(root).join(page).is_file(), "{page}");
                }
                None => {}
            }
        }
    }
}
