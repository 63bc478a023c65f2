//! The failures of a command and their exit codes.

use std::io;
use std::process::ExitCode;

/// The name of the command in its messages.
pub(crate) const COMMAND: &str = "metatfc";

/// The reason why a command ends early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A DTD, a trace or a file is invalid. Prints the message; exit status 1.
    Failed(String),
    /// A usage error. Prints the message; exit status 2.
    Usage(String),
    /// Like `Failed`, but the messages have already been printed.
    Printed,
    /// A trace is unfinished but otherwise valid. The messages have already been printed; exit status 3.
    Unfinished,
    /// A salvaged trace with this name was not written, for a reason already printed. Prints a message that the trace
    /// was not written; exit status 4.
    NotWritten(String),
    /// The reader of the output has closed the pipe (`| head`). Prints nothing; exit status 0.
    Closed,
}

pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// Returns a failure with a message and exit status 1.
pub(crate) fn failed<T>(message: impl Into<String>) -> Result<T> {
    Err(Failure::Failed(message.into()))
}

/// Returns a usage error with exit status 2.
pub(crate) fn usage<T>(message: impl Into<String>) -> Result<T> {
    Err(Failure::Usage(message.into()))
}

impl Failure {
    /// Describes an error of a temporary file. Names the file's directory, which may be full even if the output
    /// directory is not.
    pub(crate) fn temporary_file<E: std::fmt::Display>(error: E) -> Self {
        Self::Failed(format!("cannot use a temporary file in {}: {error}", std::env::temp_dir().display()))
    }

    /// Converts an operating system error about a file.
    pub(crate) fn io(name: &str, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Closed,
            io::ErrorKind::IsADirectory => Self::Failed(format!("{name} is a directory, not a file")),
            _ => Self::Failed(format!("{name}: {error}")),
        }
    }
}

/// Converts an error without a file name, which is attributed to standard output.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::io("standard output", &error)
    }
}

/// Prints the message of a failure and returns the exit code.
pub(crate) fn exit_code(result: Result<()>) -> ExitCode {
    match result {
        // The losses have already been reported.
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

/// Prints a message to standard error. Failing to print it is not an error.
pub(crate) fn print_message(message: &str) {
    metatf_cli::print_message(COMMAND, message);
}
