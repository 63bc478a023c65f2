//! Child processes that read foreign formats for a command.
//!
//! These formats are decoded by third-party libraries, and a corrupt file may make a library panic, loop, or request
//! too much memory.
//! So a command starts itself with a hidden subcommand, sends requests to this child, and receives messages.
//! The [limits](ChildLimits) apply only to the child, and its death is reported as an error with a reason ([`Death`]).
//!
//! A message consists of its kind (one byte), the length of its content (four bytes), and the content.

mod limits;

use std::ffi::OsString;
use std::fmt;
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Write};
use std::path::PathBuf;
use std::process::{self, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

pub use limits::{ChildLimits, file_bytes};

/// The kind of a request.
const REQUEST: u8 = b'?';

/// A child program, with the arguments that make it serve requests.
#[derive(Clone, Debug)]
pub struct ChildCommand {
    program: PathBuf,
    arguments: Vec<OsString>,
}

/// A running child process, killed on drop.
#[derive(Debug)]
pub struct Child {
    process: process::Child,
    requests: ChildStdin,
    messages: BufReader<ChildStdout>,
}

/// A message from a child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The kind, whose meaning the command defines.
    pub kind: u8,
    /// The content.
    pub content: Vec<u8>,
}

/// The reason why a child sent no complete response.
#[derive(Debug)]
pub enum Death {
    /// The child could not be started, or its pipes failed.
    System(io::Error),
    /// The child ended before its response was complete.
    Ended(ExitStatus),
}

impl ChildCommand {
    /// Creates a command for a program that calls [`serve_parent`] when given these arguments.
    #[must_use]
    pub fn new(program: PathBuf, arguments: Vec<OsString>) -> Self {
        Self { program, arguments }
    }

    /// Creates a command for this program.
    ///
    /// # Errors
    /// Fails if the system does not report the path of this program.
    pub fn of_this_program(arguments: Vec<OsString>) -> io::Result<Self> {
        Ok(Self::new(std::env::current_exe()?, arguments))
    }

    /// Starts a child.
    ///
    /// # Errors
    /// Returns the system error.
    pub fn start(&self) -> Result<Child, Death> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().map_err(Death::System)?;
        match (process.stdin.take(), process.stdout.take()) {
            (Some(requests), Some(messages)) => {
                Ok(Child { process, requests, messages: BufReader::with_capacity(1 << 16, messages) })
            }
            _ => Err(Death::System(ErrorKind::BrokenPipe.into())),
        }
    }
}

impl Child {
    /// Sends a request.
    ///
    /// # Errors
    /// Returns a pipe error. If the child has ended, [`receive`](Self::receive) reports the reason.
    pub fn send(&mut self, request: &[u8]) -> Result<(), Death> {
        match write_message(&mut self.requests, REQUEST, request) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Death::System(error)),
            _ => Ok(()),
        }
    }

    /// Receives the next message.
    ///
    /// # Errors
    /// Fails if the child has ended or the pipe failed.
    pub fn receive(&mut self) -> Result<Message, Death> {
        match read_message(&mut self.messages) {
            Ok(Some(message)) => Ok(message),
            Ok(None) => Err(self.process.wait().map_or_else(Death::System, Death::Ended)),
            Err(error) => Err(Death::System(error)),
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Death {
    /// Returns whether the child reached its memory limit.
    #[must_use]
    pub fn is_memory(&self) -> bool {
        // Rust aborts a process when an allocation fails.
        matches!(self, Self::Ended(status) if signal(*status) == Some(limits::ABORT))
    }

    /// Returns whether the child reached its time limit.
    #[must_use]
    pub fn is_time(&self) -> bool {
        matches!(self, Self::Ended(status) if signal(*status).is_some_and(|signal| limits::OUT_OF_TIME.contains(&signal)))
    }
}

/// Formats the reason as the rest of a sentence whose subject is the child's work, such as `reading it`.
impl fmt::Display for Death {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            _ if self.is_memory() => f.write_str("takes too much memory for a file of its size"),
            _ if self.is_time() => f.write_str("takes too long for a file of its size"),
            Self::System(error) => write!(f, "failed because its child process could not be started: {error}"),
            Self::Ended(status) => write!(f, "failed in its child process: {status}"),
        }
    }
}

#[cfg(unix)]
fn signal(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

#[cfg(not(unix))]
fn signal(_: ExitStatus) -> Option<i32> {
    None
}

/// A sender of messages to the parent.
pub struct ToParent<'o>(BufWriter<&'o mut (dyn Write + Send)>);

impl ToParent<'_> {
    /// Sends a message, which may be buffered until the [next flush](Self::flush) or until the response is complete.
    ///
    /// # Errors
    /// Returns a pipe error.
    pub fn send(&mut self, kind: u8, content: &[u8]) -> io::Result<()> {
        write_message(&mut self.0, kind, content)
    }

    /// Sends the buffered messages.
    ///
    /// # Errors
    /// Returns a pipe error.
    pub fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Runs in the child, and handles requests until the parent sends no more requests.
///
/// # Errors
/// Returns an error of `answer` or of the pipes.
pub fn serve_parent(answer: impl FnMut(&[u8], &mut ToParent<'_>) -> io::Result<()>) -> io::Result<()> {
    serve(&mut io::stdin().lock(), &mut io::stdout(), answer)
}

fn serve(
    input: &mut dyn Read,
    output: &mut (dyn Write + Send),
    mut answer: impl FnMut(&[u8], &mut ToParent<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let mut messages = ToParent(BufWriter::with_capacity(1 << 16, output));
    while let Some(Message { content, .. }) = read_message(input)? {
        answer(&content, &mut messages)?;
        messages.flush()?;
    }
    Ok(())
}

fn write_message(output: &mut dyn Write, kind: u8, content: &[u8]) -> io::Result<()> {
    let too_long = |_| io::Error::new(ErrorKind::InvalidInput, "the message is longer than 4 GiB");
    let length = u32::try_from(content.len()).map_err(too_long)?;
    output.write_all(&[kind])?;
    output.write_all(&length.to_le_bytes())?;
    output.write_all(content)?;
    Ok(())
}

/// Reads a message. Returns `None` if the other side ended before the message was complete.
fn read_message(input: &mut dyn Read) -> io::Result<Option<Message>> {
    let mut head = [0; 5];
    match input.read_exact(&mut head) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let [kind, length @ ..] = head;
    let length = u32::from_le_bytes(length);
    let mut content = Vec::new();
    // Allocate memory only for bytes that arrive, not for the announced length.
    let read = input.take(length.into()).read_to_end(&mut content)?;
    Ok((read as u64 == u64::from(length)).then_some(Message { kind, content }))
}

/// Runs a program without input until it exits. Returns its standard output and, if [piped](Stdio::piped), its standard
/// error. Returns errors of these pipes, whereas [`Command::output`] panics.
///
/// # Errors
/// Returns the system error.
pub fn output_of(command: &mut Command) -> io::Result<process::Output> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let read = both(child.stdout.take(), child.stderr.take());
    if read.is_err() {
        let _ = child.kill();
    }
    let status = child.wait()?;
    let (stdout, stderr) = read?;
    Ok(process::Output { status, stdout, stderr })
}

/// Reads two pipes to their ends concurrently.
fn both(out: Option<impl Read>, err: Option<impl Read + Send>) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let Some(err) = err else { return Ok((read_all(out)?, Vec::new())) };
    std::thread::scope(|scope| {
        let err = std::thread::Builder::new().spawn_scoped(scope, || read_all(Some(err)))?;
        let out = read_all(out);
        let err = err.join().unwrap_or_else(|_| Err(io::Error::other("the thread reading a pipe panicked")));
        Ok((out?, err?))
    })
}

fn read_all(pipe: Option<impl Read>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    pipe.map_or(Ok(0), |mut pipe| pipe.read_to_end(&mut bytes))?;
    Ok(bytes)
}

#[cfg(all(test, unix))]
mod tests;
