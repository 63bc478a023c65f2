//! Command-line parsing, with errors that suggest the intended command.

use std::path::Path;

use clap::Command;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, Error};

use crate::installed_docs;

/// Parses the process's command line, or prints the error and exits, like [`clap::Parser::parse`]. Handles the option
/// `--install-docs`, which replaces the command.
///
/// If the word in place of a subcommand is the path of a file, the error suggests the command returned by `with_file`.
/// If the description of exactly one subcommand contains the word, this subcommand is suggested, and otherwise the
/// most similar one.
pub fn parse<C: clap::Parser>(with_file: impl Fn(&Path) -> String) -> C {
    let arguments: Vec<_> = std::env::args_os().collect();
    let mut command = installed_docs::with_option(C::command(), &arguments);
    let parsed = command.try_get_matches_from_mut(arguments).and_then(|mut matches| {
        installed_docs::write_if_asked(C::command, &matches);
        C::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
    });
    parsed.unwrap_or_else(|error| explained(error, &command, with_file).exit())
}

fn explained(mut error: Error, command: &Command, with_file: impl Fn(&Path) -> String) -> Error {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand).cloned() else {
        return error;
    };
    let path = Path::new(&word);
    let mut described = command.get_subcommands().filter(|command| {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        about.split(|c: char| !c.is_alphanumeric()).any(|part| part.eq_ignore_ascii_case(&word))
    });
    if path.is_file() {
        let tip = format!("`{word}` is a file; to open it, run `{}`", with_file(path));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
        error.remove(ContextKind::SuggestedSubcommand);
    } else if let (Some(found), None) = (described.next(), described.next()) {
        let name = found.get_name().to_owned();
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![name]));
    } else if let Some(ContextValue::Strings(similar)) = error.get(ContextKind::SuggestedSubcommand) {
        // clap lists the most similar subcommand last.
        let best = similar.last().cloned().into_iter().collect();
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(best));
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::error::ErrorKind;

    fn message(word: &str) -> String {
        let commands = ["recover", "record", "convert", "report"].map(Command::new);
        let commands = commands.map(|command| match command.get_name() {
            "convert" => command.about("Export tables"),
            _ => command,
        });
        let mut command = Command::new("x").subcommands(commands);
        let error = command.try_get_matches_from_mut(["x", word]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidSubcommand);
        explained(error, &command, |path| format!("x report {}", path.display())).to_string()
    }

    #[test]
    fn the_most_similar_subcommand_is_suggested_alone() {
        let text = message("repotr");
        assert!(text.contains("`report`") || text.contains("'report'"), "{text}");
        assert!(!text.contains("record"), "{text}");
        assert!(!message("quite-different").contains("similar"));
        // The description counts more than the name.
        let text = message("export");
        assert!(text.contains("'convert'") && !text.contains("report"), "{text}");
    }

    #[test]
    fn a_file_is_answered_with_the_command_that_takes_it() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let name = file.path().to_str().unwrap();
        let text = message(name);
        assert!(text.contains(&format!("`{name}` is a file; to open it, run `x report {name}`")), "{text}");
    }
}
