//! Commands for analyses that are fully described by a row in [`ANALYSES`].

use clap::error::ErrorKind;
use clap::{ArgMatches, Args as _, Command, FromArgMatches, Subcommand};
use hatf_lab::Heap;
use hatf_trace::Result;
use hatf_view::analyses::{ANALYSES, Analysis, Question};
use metatf_cli::OutputArgs;

use super::lab::{Source, Tables};
use super::output::show;
use super::symbols::Symbols;

/// An analysis with the options of its command.
pub(crate) struct Analyze {
    analysis: &'static Analysis,
    source: Source,
    /// The options for stacks, if the analysis prints stacks.
    stacks: Option<Stacks>,
    output: OutputArgs,
    options: ArgMatches,
}

#[derive(clap::Args)]
struct Stacks {
    #[command(flatten)]
    tables: Tables,

    #[command(flatten)]
    symbols: Symbols,
}

/// Returns the analyses whose commands are defined here.
fn analyses() -> impl Iterator<Item = &'static Analysis> {
    ANALYSES.iter().filter(|analysis| !analysis.traits.own_command)
}

/// Returns the command for an analysis, with its help, its own options, and the options shared by all analyses.
fn command(analysis: &'static Analysis) -> Command {
    let own = analysis.arguments(Command::new(analysis.name));
    let command = analysis.arguments(Source::augment_args(Command::new(analysis.name)));
    let command = if analysis.traits.stacks { Stacks::augment_args(command) } else { command };
    let command = OutputArgs::augment_args(command);
    let texts = [own.get_about(), own.get_long_about(), own.get_after_help()].map(|text| text.cloned());
    let [about, long_about, after_help] = texts.map(clap::builder::Resettable::from);
    command.about(about).long_about(long_about).after_help(after_help)
}

impl Subcommand for Analyze {
    fn augment_subcommands(commands: Command) -> Command {
        analyses().fold(commands, |commands, analysis| commands.subcommand(command(analysis)))
    }

    fn augment_subcommands_for_update(commands: Command) -> Command {
        Self::augment_subcommands(commands)
    }

    fn has_subcommand(name: &str) -> bool {
        analyses().any(|analysis| analysis.name == name)
    }
}

impl FromArgMatches for Analyze {
    fn from_arg_matches(matches: &ArgMatches) -> std::result::Result<Self, clap::Error> {
        let (name, options) = matches.subcommand().ok_or_else(|| clap::Error::new(ErrorKind::MissingSubcommand))?;
        let analysis = analyses().find(|analysis| analysis.name == name);
        let analysis = analysis.ok_or_else(|| clap::Error::new(ErrorKind::InvalidSubcommand))?;
        Ok(Self {
            analysis,
            source: Source::from_arg_matches(options)?,
            stacks: analysis.traits.stacks.then(|| Stacks::from_arg_matches(options)).transpose()?,
            output: OutputArgs::from_arg_matches(options)?,
            options: options.clone(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> std::result::Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

pub(crate) fn run(options: &Analyze) -> Result<u8> {
    let Analyze { analysis, source, stacks, output, options } = options;
    let name = source.trace.display().to_string();
    let tables = stacks.as_ref().map(|stacks| stacks.tables.by(false)).unwrap_or_default();
    let question = Question { analysis, options, threads: source.threads(), name: &name, tables };
    let look_up = |heap: &mut Heap, shown: Option<Vec<u64>>| {
        source.warn_of_sample(heap);
        let Some(Stacks { symbols, .. }) = stacks else { return Ok(()) };
        symbols.name(&source.trace, &mut heap.stacks, shown.map(|sites| (sites, tables.depth)), |_| 1)
    };
    question.ask(&mut |sink| source.read(sink), look_up, |answer| show(answer, output))?;
    Ok(0)
}
