//! Why a command ends early, and its exit status.

use std::io;
use std::process::ExitCode;

/// The name of the command in its messages.
pub(crate) const COMMAND: &str = "metatfc";

/// Why a command ends early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A DTD, a trace or a file is wrong: prints the message, exit status 1.
    Failed(String),
    /// The command line is wrong: prints the message, exit status 2.
    Usage(String),
    /// As `Failed`; the messages were printed already.
    Printed,
    /// A trace is unfinished, and nothing else is wrong: exit status 3. The messages were printed already.
    Unfinished,
    /// A salvaged trace of this name was not written, for a reason that was printed: prints that, exit status 4.
    NotWritten(String),
    /// Nobody reads our output any more (`| head`): prints nothing, exit status 0.
    Closed,
}

pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// Fails with a message, exit status 1.
pub(crate) fn failed<T>(message: impl Into<String>) -> Result<T> {
    Err(Failure::Failed(message.into()))
}

/// Fails for a wrong command line, exit status 2.
pub(crate) fn usage<T>(message: impl Into<String>) -> Result<T> {
    Err(Failure::Usage(message.into()))
}

impl Failure {
    /// Describes a failure of a temporary file, with its directory, which may be full although the output's is not.
    pub(crate) fn temporary_file<E: std::fmt::Display>(error: E) -> Self {
        Self::Failed(format!("a temporary file in {}: {error}", std::env::temp_dir().display()))
    }

    /// Converts an error of the operating system about a file.
    pub(crate) fn io(name: &str, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Closed,
            io::ErrorKind::IsADirectory => Self::Failed(format!("{name} is a directory, not a file")),
            _ => Self::Failed(format!("{name}: {error}")),
        }
    }
}

/// Converts an error about no named file: it is one of standard output.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::io("standard output", &error)
    }
}

/// Prints the message of a failure, and returns the exit status.
pub(crate) fn exit_code(result: Result<()>) -> ExitCode {
    match result {
        // What was missing in a trace was said.
        Ok(()) if metatf_cli::lost_records() => ExitCode::from(1),
        Ok(()) | Err(Failure::Closed) => ExitCode::SUCCESS,
        Err(Failure::Printed) => ExitCode::from(1),
        Err(Failure::Unfinished) => ExitCode::from(3),
        Err(Failure::NotWritten(name)) => {
            print_message(&format!("{name}: not written"));
            ExitCode::from(4)
        }
        Err(Failure::Failed(message)) => {
            metatf_cli::print_failure(COMMAND, &message);
            ExitCode::from(1)
        }
        Err(Failure::Usage(message)) => {
            print_message(&message);
            ExitCode::from(2)
        }
    }
}

/// Prints a message to standard error. A message that cannot be printed is not a reason to fail.
pub(crate) fn print_message(message: &str) {
    metatf_cli::print_message(COMMAND, message);
}
