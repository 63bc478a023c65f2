//! The `hatf` command.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod command;
mod stack_limit;

use std::process::ExitCode;

#[global_allocator]
static MEMORY: metatf_cli::CountedMemory = metatf_cli::CountedMemory;

fn main() -> ExitCode {
    stack_limit::with_room(run)
}

fn run() -> ExitCode {
    metatf_cli::report_file_signals("hatf");
    let command::Cli { memory, command } = metatf_cli::parse(command::for_file);
    memory.set("hatf");
    let result = match command {
        command::Command::Run(options) => command::run::run(&options),
        command::Command::Record(options) => command::record::run(&options),
        #[cfg(feature = "watch")]
        command::Command::Watch(options) => command::watch::run(&options),
        command::Command::Inspect(options) => command::inspect::run(&options),
        command::Command::Agent(options) => command::agent::run(&options),
        command::Command::Cc(options) => command::cc::run(&options),
        command::Command::Recover(options) => command::recover::run(&options),
        command::Command::Report(options) => command::report::run(&options),
        command::Command::Convert(options) => command::convert::run(&options),
        command::Command::Cut(options) => command::cut::run(&options),
        command::Command::Anonymize(options) => command::anonymize::run(&options),
        command::Command::Replay(options) => command::replay::run(&options),
        command::Command::Regions(options) => command::regions::run(&options),
        command::Command::Profile(options) => command::profile::run(&options),
        command::Command::ReplayWorker(options) => command::replay::work(&options),
        command::Command::Simulate(options) => command::simulate::run(&options),
        command::Command::Symbolize(options) => command::symbolize::run(&options),
        command::Command::SymbolizeHelper(_) => command::symbolize::help(),
        command::Command::Sites(options) => command::sites::run(&options),
        command::Command::Sql(options) => command::sql::run(&options),
        command::Command::Processes(options) => command::processes::run(&options),
        command::Command::Leaks(options) => command::leaks::run(&options),
        command::Command::Analyze(options) => command::analyses::run(&options),
        command::Command::Diff(options) => command::diff::run(&options),
        command::Command::Dump(options) => command::dump::run(&options),
        command::Command::Fragmentation(options) => command::fragmentation::run(&options),
        command::Command::Model(options) => command::model::run(&options),
        command::Command::Tour(options) => command::tour::run(&options),
    };
    command::print_messages();
    match result {
        // Records were lost, and a message about them has already been printed.
        Ok(0) if metatf_cli::lost_records() => ExitCode::from(1),
        Ok(code) => ExitCode::from(code),
        Err(error) if error.is_closed_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            metatf_cli::print_failure("hatf", &error.to_string());
            ExitCode::from(command::exit_code(&error))
        }
    }
}
