//! Opens inputs, which are files or standard input.

use crate::failure::{COMMAND, Failure, Result, failed, usage};
use metatf::ErrorKind;
use metatf::container::{Class, GrowingFile, MAGIC, Order, Reader, WholeFile};
pub(crate) use metatf_cli::Opened;
use metatf_cli::{open_any, open_raw_trace, open_trace, read_head, watch_trace};
use std::borrow::Cow;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Returns the name of an input in messages.
pub(crate) fn name(path: &Path) -> Cow<'_, str> {
    if is_standard(path) { Cow::Borrowed("standard input") } else { path.to_string_lossy() }
}

/// Returns whether a path denotes standard input or output.
pub(crate) fn is_standard(path: &Path) -> bool {
    path == "-"
}

/// Reads a DTD. Reads only slightly more bytes than the parser accepts, so that an endless input does not fill memory.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let most = metatf_parser::MOST_BYTES as u64 + 1;
    let read = match is_standard(path) {
        true => std::io::stdin().lock().take(most).read_to_end(&mut bytes),
        false => WholeFile::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes)),
    };
    read.map_err(|e| Failure::io(&name(path), &e))?;
    Ok(bytes)
}

/// Returns the first byte of standard input, which remains to be read, or `None` if there is none.
pub(crate) fn first_standard_byte() -> Result<Option<u8>> {
    let mut input = std::io::stdin().lock();
    let head = input.fill_buf().map_err(|e| Failure::io("standard input", &e))?;
    Ok(head.first().copied())
}

/// Opens a text file for reading line by line.
pub(crate) fn lines(path: &Path) -> Result<Box<dyn BufRead>> {
    if is_standard(path) {
        return Ok(Box::new(BufReader::with_capacity(1 << 18, std::io::stdin().lock())));
    }
    let file = WholeFile::open(path).map_err(|e| Failure::io(&name(path), &e))?;
    Ok(Box::new(BufReader::with_capacity(1 << 18, file)))
}

/// Opens a trace.
pub(crate) fn trace(path: &Path, salvage: bool) -> Result<Reader<'static>> {
    named_trace(path, &name(path), salvage)
}

/// Opens a trace like [`trace`], but uses `name` in messages. Warnings about the trace are printed as soon as they
/// occur, regardless of the command.
fn named_trace(path: &Path, name: &str, salvage: bool) -> Result<Reader<'static>> {
    check(path)?;
    watched(path, name, salvage).map_err(|e| Failure::Failed(format!("{name}: {e}")))
}

fn watched(path: &Path, name: &str, salvage: bool) -> metatf::Result<Reader<'static>> {
    let mut reader = open_trace(path, salvage)?;
    watch_trace(&mut reader, COMMAND, name);
    Ok(reader)
}

/// Opens a trace that is still being written. The flag is set when the reader reaches the current end of the file,
/// which means that output should be flushed.
pub(crate) fn follow(path: &Path) -> Result<(Reader<'static>, Arc<AtomicBool>)> {
    if trace(path, false)?.header().version == 0 {
        return usage(format!("{}: a trace of version 0 can be read only after it is finished", name(path)));
    }
    let growing = GrowingFile::open(path).map_err(|e| Failure::io(&name(path), &e))?;
    let at_end = growing.at_end();
    let mut reader = Reader::from_read(growing).map_err(|e| Failure::Failed(format!("{}: {e}", name(path))))?;
    watch_trace(&mut reader, COMMAND, &name(path));
    Ok((reader, at_end))
}

/// Opens a trace, or a file without a header whose first bytes `is_raw` recognizes.
pub(crate) fn any(
    (path, name): (&Path, &str),
    salvage: bool,
    is_raw: &dyn Fn(&[u8]) -> Option<bool>,
) -> Result<metatf::Result<Opened>> {
    check(path)?;
    let mut opened = open_any(path, salvage, is_raw);
    if let Ok(Opened::Trace(reader)) = &mut opened {
        watch_trace(reader, COMMAND, name);
    }
    Ok(opened)
}

/// Opens a file without a header (spec 5.4) as the content of a section.
pub(crate) fn raw(path: &Path, class: Class, order: Order, section: u8) -> Result<Reader<'static>> {
    check(path)?;
    let reader = open_raw_trace(path, class, order, section);
    reader.map_err(|e| Failure::Failed(format!("{}: {e}", name(path))))
}

/// Fails with the operating system's error if the file does not exist or is a directory.
fn check(path: &Path) -> Result<()> {
    if !is_standard(path) {
        let found = std::fs::metadata(path).map_err(|e| Failure::io(&name(path), &e))?;
        if found.is_dir() {
            return Err(Failure::io(&name(path), &std::io::ErrorKind::IsADirectory.into()));
        }
    }
    Ok(())
}

/// Fails unless the named input begins like a trace.
pub(crate) fn check_head(head: &[u8], name: &str) -> Result<()> {
    match Reader::from_slice(head) {
        Err(error) if matches!(error.kind, ErrorKind::NotATrace(..)) => failed(format!("{name}: {error}")),
        _ => Ok(()),
    }
}

/// A trace that can be opened repeatedly; standard input is first copied to a temporary file.
pub(crate) struct Reopenable {
    path: PathBuf,
    name: String,
    _spooled: Option<tempfile::TempPath>,
}

impl Reopenable {
    /// Checks the first bytes of an input before copying it. `is_raw` returns whether they belong to a file without a
    /// header, or `None` if there are too few bytes. If they do not, `other` checks them.
    pub(crate) fn new(
        path: &Path,
        is_raw: &dyn Fn(&[u8]) -> Option<bool>,
        other: impl Fn(&[u8]) -> Result<()>,
    ) -> Result<Self> {
        check(path)?;
        // Like standard input, a named pipe can be read only once.
        if !is_standard(path) && std::fs::metadata(path).is_ok_and(|m| m.is_file()) {
            return Ok(Self { path: path.to_owned(), name: name(path).into_owned(), _spooled: None });
        }
        let problem = |e: std::io::Error| Failure::io(&name(path), &e);
        let mut pipe: Box<dyn Read> = match is_standard(path) {
            true => Box::new(std::io::stdin().lock()),
            false => Box::new(File::open(path).map_err(problem)?),
        };
        let (head, is_raw) = read_head(&mut pipe, is_raw).map_err(problem)?;
        if !is_raw {
            other(&head)?;
        }
        let mut file = tempfile::NamedTempFile::new().map_err(problem)?;
        std::io::copy(&mut head.as_slice().chain(pipe), &mut file).map_err(problem)?;
        let spooled = file.into_temp_path();
        Ok(Self { path: spooled.to_path_buf(), name: name(path).into_owned(), _spooled: Some(spooled) })
    }

    /// Opens the trace like [`trace`].
    pub(crate) fn open(&self, salvage: bool) -> Result<Reader<'static>> {
        named_trace(&self.path, &self.name, salvage).map_err(|failure| self.named(failure))
    }

    /// Opens the trace like [`open`](Self::open), but returns the original error.
    pub(crate) fn reader(&self) -> metatf::Result<Reader<'static>> {
        watched(&self.path, &self.name, false)
    }

    /// Replaces the name of the temporary file in a message with the user's name.
    pub(crate) fn named(&self, failure: Failure) -> Failure {
        match failure {
            Failure::Failed(message) => Failure::Failed(message.replace(&*self.path.to_string_lossy(), &self.name)),
            other => other,
        }
    }

    /// Returns the name of the input for messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns a path that can be opened repeatedly.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the file begins like a trace.
    pub(crate) fn is_trace(&self) -> bool {
        let mut magic = [0; MAGIC.len()];
        File::open(&self.path).is_ok_and(|mut file| file.read_exact(&mut magic).is_ok()) && magic == MAGIC
    }

    /// Returns the size in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        std::fs::metadata(&self.path).map_or(0, |m| m.len())
    }
}
