//! Imports tables in a child process, because third-party libraries decode them and the tables may be untrusted.
//!
//! The child decodes the tables and encodes the trace, but can write only to its pipe. The parent writes the received
//! bytes to the output.

use super::Args;
use crate::dtd;
use crate::failure::{COMMAND, Failure, Result};
use crate::target::Target;
use metatf::container::{FlushEvery, Sink, WriteOptions};
use metatf::dynamic::{Schema, Writer};
use metatf_cli::{
    Child, ChildCommand, ChildLimits, Death, MemoryLimit, Message, ToParent, file_bytes, limit_memory, memory_limit,
    serve_parent,
};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Base of the memory limit in bytes.
const MEMORY: u64 = 1 << 30;
/// Bytes added to the memory limit per byte of the tables.
const MEMORY_A_BYTE: u64 = 64;

/// Base CPU time limit of the child between two messages, in seconds. In this time, the child decodes part of a table or
/// a few thousand rows.
const SECONDS: u64 = 60;
/// Table bytes per additional second of CPU time.
const BYTES_A_SECOND: u64 = 1 << 20;

/// Maximum number of trace bytes in a message.
const PIECE: usize = 1 << 20;

/// Message types of the child: bytes to append, bytes that replace earlier bytes, a flush, the index of the file to be
/// read next, the end, and an error.
const BYTES: u8 = b'b';
const OVERWRITE: u8 = b'o';
const FLUSH: u8 = b'f';
const READING: u8 = b'r';
const END: u8 = b'.';
const ERROR: u8 = b'!';

/// Import tables in a child process, for `metatfc convert`
#[derive(clap::Args)]
pub(crate) struct ChildArgs {
    /// The arguments of the command.
    #[arg(last = true)]
    line: Vec<OsString>,
}

impl ChildArgs {
    /// Returns the command line of the parent.
    pub(crate) fn line(self) -> impl Iterator<Item = OsString> {
        std::iter::once(COMMAND.into()).chain(self.line)
    }
}

/// The request to the child. Other arguments are passed on its command line.
#[derive(Serialize, Deserialize)]
struct Request {
    /// The name and text of the DTD. They are included because the DTD may have been read from standard input.
    dtd: (String, Vec<u8>),
    /// The offset of the trace in the output, if the output can be overwritten.
    mark: Option<u64>,
    appears_whole: bool,
    /// The name of the output in messages.
    output: String,
    limits: Limits,
}

/// The child's limits: memory in bytes, and CPU time in seconds until the next message.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Limits {
    memory: u64,
    seconds: u64,
}

impl Limits {
    /// Returns the limits for reading this many bytes. The user may specify the memory limit.
    fn of(bytes: u64, memory: Option<u64>) -> Self {
        let by_size = MEMORY.saturating_add(bytes.saturating_mul(MEMORY_A_BYTE));
        let memory = memory.unwrap_or_else(|| by_size.min(memory_limit()));
        Self { memory, seconds: SECONDS + bytes / BYTES_A_SECOND }
    }

    fn apply(self) {
        // The child may wait for the reader of the output, so wall-clock time cannot be limited.
        ChildLimits { memory: self.memory, seconds: self.seconds, is_clocked: false }.apply();
    }
}

pub(super) fn run(args: &Args, memory: MemoryLimit) -> Result<()> {
    let dtd = dtd::text(args.dtd_of_records()?)?;
    // Print errors in the DTD before starting the child.
    dtd::parse(&dtd.0, &dtd.1)?;
    let (target, mut sink) = Target::create(args.output())?;
    let limits = Limits::of(file_bytes(args.inputs()), memory.given());
    let (output, appears_whole) = (target.name().to_owned(), target.flush() == FlushEvery::NEVER);
    let request = Request { dtd, mark: sink.mark(), appears_whole, output, limits };
    let mut import = Import { args, limits, file: args.inputs().first() };
    let mut child = import.start(&request).map_err(|death| import.died(&death))?;
    loop {
        let Message { kind, content } = child.receive().map_err(|death| import.died(&death))?;
        let written = match kind {
            BYTES => sink.write_all(&content),
            OVERWRITE => match content.split_first_chunk() {
                Some((at, bytes)) => sink.overwrite(u64::from_le_bytes(*at), bytes),
                None => Ok(()),
            },
            FLUSH => sink.flush(),
            READING => {
                import.reads(&content);
                Ok(())
            }
            END => break,
            _ => return Err(target.cause(Failure::Failed(String::from_utf8_lossy(&content).into_owned()))),
        };
        // The trace is abandoned, and dropping `target` removes its temporary file.
        written.map_err(|error| target.cause(Failure::io(target.name(), &error)))?;
    }
    target.keep(sink)
}

/// An import by a child process.
struct Import<'a> {
    args: &'a Args,
    limits: Limits,
    /// The file being read.
    file: Option<&'a PathBuf>,
}

impl Import<'_> {
    fn start(&self, request: &Request) -> Result<Child, Death> {
        let line = std::env::args_os().skip(1);
        let arguments = ["__import-child".into(), "--".into()].into_iter().chain(line).collect();
        let mut child = ChildCommand::of_this_program(arguments).map_err(Death::System)?.start()?;
        child.send(&serde_json::to_vec(request).map_err(|error| Death::System(error.into()))?)?;
        Ok(child)
    }

    fn reads(&mut self, number: &[u8]) {
        let number = number.first_chunk().map(|number| u64::from_le_bytes(*number));
        let file = number.and_then(|number| self.args.inputs().get(usize::try_from(number).ok()?));
        self.file = file.or(self.file);
    }

    /// Returns an error that states why the child died, which file it was reading, and what to do.
    fn died(&self, death: &Death) -> Failure {
        let file = self.file.map_or_else(String::new, |file| file.display().to_string());
        let (mebibytes, seconds) = (self.limits.memory >> 20, self.limits.seconds);
        Failure::Failed(if death.is_memory() {
            format!(
                "{file}: reading the file takes more than {mebibytes} MiB; if the file is not corrupt, raise the limit \
                 with --max-memory SIZE"
            )
        } else if death.is_time() {
            format!(
                "{file}: the file is corrupt: decoding part of it takes more than {seconds} seconds; export it again"
            )
        } else if matches!(death, Death::System(_)) {
            format!("{file}: reading it {death}")
        } else {
            format!(
                "{file}: reading it {death}; the file is probably corrupt: export it again, or try to read it with DuckDB"
            )
        })
    }
}

/// Imports tables in this process and sends the trace to the parent.
pub(crate) fn serve(args: &Args) -> Result<()> {
    // The operating system enforces the limit, and the parent reports when it is exceeded.
    limit_memory(COMMAND, u64::MAX);
    let served = serve_parent(|request, parent| {
        let request: Request = serde_json::from_slice(request)?;
        match import(args, request, parent) {
            Ok(()) => parent.send(END, &[]),
            Err(Failure::Failed(message)) => parent.send(ERROR, message.as_bytes()),
            Err(_) => parent.send(ERROR, b"the DTD cannot be read"),
        }
    });
    Ok(served?)
}

fn import(args: &Args, request: Request, parent: &mut ToParent<'_>) -> Result<()> {
    let Request { dtd: (name, text), mark, appears_whole, output, limits } = request;
    limits.apply();
    let schema = Schema::new(dtd::parse(&name, &text)?);
    let dtd_url = dtd::source_name(args.dtd_of_records()?).into_owned();
    let mut options = WriteOptions { dtd_url, embed_dtd: true, ..WriteOptions::default() };
    args.pack.apply(&mut options);
    let options = options.flush_every(if appears_whole { FlushEvery::NEVER } else { FlushEvery::LIVE });
    let problem = |error| Failure::Failed(format!("{output}: {}", metatf::explain(&schema.format, &error)));
    let parent = Mutex::new(parent);
    let mut writer = Writer::new(ParentSink { parent: &parent, at: mark }, &schema, &options).map_err(problem)?;
    let mut reading = |file: &Path| {
        limits.apply();
        let number = args.inputs().iter().position(|other| other == file).unwrap_or(0) as u64;
        // Ignore errors here. If the parent has ended, sending the next bytes of the trace fails and reports the error.
        let _ = lock(&parent).send(READING, &number.to_le_bytes());
        let _ = lock(&parent).flush();
    };
    let record = args.record.first().map(String::as_str);
    if let Err(error) = metatf_arrow::files::import(&schema, args.inputs(), record, &mut writer, &mut reading) {
        writer.abandon();
        return Err(Failure::Failed(error.to_string()));
    }
    writer.finish().map_err(problem)?;
    Ok(())
}

/// A sink that writes to the parent's output.
struct ParentSink<'p, 'm, 'o> {
    parent: &'p Mutex<&'m mut ToParent<'o>>,
    /// The offset of the next byte, if bytes can be overwritten.
    at: Option<u64>,
}

fn lock<'p, 'm, 'o>(parent: &'p Mutex<&'m mut ToParent<'o>>) -> MutexGuard<'p, &'m mut ToParent<'o>> {
    parent.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Write for ParentSink<'_, '_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let bytes = bytes.get(..PIECE).unwrap_or(bytes);
        lock(self.parent).send(BYTES, bytes)?;
        self.at = self.at.map(|at| at + bytes.len() as u64);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut parent = lock(self.parent);
        parent.send(FLUSH, &[])?;
        parent.flush()
    }
}

impl Sink for ParentSink<'_, '_, '_> {
    fn mark(&mut self) -> Option<u64> {
        self.at
    }

    fn overwrite(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        lock(self.parent).send(OVERWRITE, &[&at.to_le_bytes(), bytes].concat())
    }
}
