//! How a command ends other than well.

use std::io;
use std::process::ExitCode;

/// Why a command ends early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Something is wrong with a DTD, a trace or a file: this is said, exit status 1.
    Failed(String),
    /// The command line is wrong: this is said, exit status 2.
    Usage(String),
    /// As `Failed`, and everything was said already.
    Told,
    /// Nobody reads our output any more (`| head`): nothing is said, exit status 0.
    Closed,
}

pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// A failure with a message, exit status 1.
pub(crate) fn failed<T>(message: impl Into<String>) -> Result<T> {
    Err(Failure::Failed(message.into()))
}

/// A wrong command line, exit status 2.
pub(crate) fn usage<T>(message: impl Into<String>) -> Result<T> {
    Err(Failure::Usage(message.into()))
}

impl Failure {
    /// An error of the operating system about something with a name.
    pub(crate) fn io(name: &str, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Failed(format!("{name}: {error}")),
        }
    }
}

/// Errors without a name are those of standard output.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::io("standard output", &error)
    }
}

/// Says what there is to say, and gives the exit status.
pub(crate) fn exit_code(result: Result<()>) -> ExitCode {
    match result {
        Ok(()) | Err(Failure::Closed) => ExitCode::SUCCESS,
        Err(Failure::Told) => ExitCode::from(1),
        Err(Failure::Failed(message)) => {
            say(&message);
            ExitCode::from(1)
        }
        Err(Failure::Usage(message)) => {
            say(&message);
            ExitCode::from(2)
        }
    }
}

/// A message on standard error. That it cannot be delivered is no reason to fail.
pub(crate) fn say(message: &str) {
    use io::Write as _;
    let _ = writeln!(io::stderr().lock(), "metatfc: {message}");
}
