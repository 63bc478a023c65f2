//! Opens traces for the commands, and prints warnings about them.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use metatf::Result;
use metatf::container::{Class, MAGIC, Order, Reader, Warning};

use crate::print_message;

/// Whether any trace read so far is missing records.
static LOST: AtomicBool = AtomicBool::new(false);

/// The warnings printed so far, so that a trace that is read twice does not repeat them.
static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Opens a trace; `-` is standard input. A file with chunks is read with positioned reads, so an error is reported if
/// the file is truncated while it is being read. A file without chunks (version 0) is needed in full and is therefore
/// [mapped](is_mapped).
///
/// # Errors
/// Fails like [`Reader::open`].
pub fn open_trace(path: &Path, salvage: bool) -> Result<Reader<'static>> {
    if path == Path::new("-") {
        let input = io::stdin();
        return if salvage { Reader::salvage_read(input) } else { Reader::from_read(input) };
    }
    match salvage {
        true => Reader::salvage(path),
        false if is_mapped(path) => Reader::open(path),
        false => Reader::read(path),
    }
}

/// Maps a file without a header (spec 5.4); `-` is standard input.
///
/// # Errors
/// Fails if the file cannot be read.
pub fn open_raw_trace(path: &Path, class: Class, order: Order, section: u8) -> Result<Reader<'static>> {
    if path == Path::new("-") {
        return Reader::raw_from_read(io::stdin(), class, order, section);
    }
    Reader::open_raw(path, class, order, section)
}

/// A file, classified by its first bytes.
pub enum Opened {
    /// A trace.
    Trace(Reader<'static>),
    /// A file without a header; the caller assigns its parts to sections.
    Raw(Reader<'static>),
}

/// Maximum number of bytes used to classify a file.
const HEAD: usize = 64 << 10;

/// Reads as many bytes as needed to decide whether a file has a known format without a header. Returns the bytes and
/// the decision. `is_raw` decides based on the first bytes, and returns `None` if it needs more.
///
/// # Errors
/// Fails if the file cannot be read.
pub fn read_head(input: &mut dyn io::Read, is_raw: &dyn Fn(&[u8]) -> Option<bool>) -> io::Result<(Vec<u8>, bool)> {
    // A trace that is being written to a pipe is read as it arrives.
    let (mut head, mut wanted) = (Vec::new(), MAGIC.len());
    loop {
        let before = head.len();
        (&mut *input).take((wanted - before) as u64).read_to_end(&mut head)?;
        if head == MAGIC {
            return Ok((head, false));
        }
        match is_raw(&head) {
            Some(is_raw) => return Ok((head, is_raw)),
            None if head.len() < wanted || wanted >= HEAD => return Ok((head, false)),
            None => wanted *= 2,
        }
    }
}

/// Opens a trace like [`open_trace`], or another file whose first bytes `is_raw` recognizes.
///
/// # Errors
/// Fails like [`Reader::open`], including for a file that is neither a trace nor recognized, or if the file cannot be
/// read.
pub fn open_any(path: &Path, salvage: bool, is_raw: &dyn Fn(&[u8]) -> Option<bool>) -> Result<Opened> {
    let file = if path == Path::new("-") { None } else { Some(File::open(path)?) };
    let is_regular = file.as_ref().is_some_and(|file| file.metadata().is_ok_and(|metadata| metadata.is_file()));
    let mut input: Box<dyn io::Read + Send> = match file {
        Some(file) => Box::new(file),
        None => Box::new(io::stdin()),
    };
    let (head, is_raw) = read_head(&mut input, is_raw)?;
    if is_regular {
        return if is_raw {
            open_raw_trace(path, Class::Bits64, Order::Little, 0).map(Opened::Raw)
        } else {
            open_trace(path, salvage).map(Opened::Trace)
        };
    }
    let input = io::Cursor::new(head).chain(input);
    match (is_raw, salvage) {
        (true, _) => Reader::raw_from_read(input, Class::Bits64, Order::Little, 0).map(Opened::Raw),
        (false, false) => Reader::from_read(input).map(Opened::Trace),
        (false, true) => Reader::salvage_read(input).map(Opened::Trace),
    }
}

/// Prints warnings about a trace as they occur, with its name. If records are missing, the command [exits with status
/// 1](lost_records).
pub fn watch_trace(reader: &mut Reader<'_>, command: &'static str, name: &str) {
    let name = name.to_owned();
    reader.on_warning(move |warning| warn(command, &name, warning));
}

fn warn(command: &str, name: &str, warning: Warning) {
    let is_loss = warning.is_loss();
    if is_loss {
        LOST.store(true, Ordering::Relaxed);
    }
    let message = format!("{name}: {}{warning}", if is_loss { "" } else { "warning: " });
    let is_new = SAID.lock().is_ok_and(|mut said| said.insert(message.clone()));
    if is_new {
        print_message(command, &message);
    }
}

/// Returns whether any trace read so far is missing records, in which case even a successful command exits with status
/// 1.
#[must_use]
pub fn lost_records() -> bool {
    LOST.load(Ordering::Relaxed)
}

/// Returns whether the commands map a file. They map regular files without chunks, that is, files without a header and
/// traces of version 0. If another process truncates such a file, [`report_file_signals`](crate::report_file_signals)
/// reports its name.
#[must_use]
pub fn is_mapped(path: &Path) -> bool {
    let has_chunks = |file: File| {
        let mut head = [0; MAGIC.len() + 4];
        (&file).read_exact(&mut head).is_ok() && head.starts_with(&MAGIC) && head.last() != Some(&0)
    };
    path.is_file() && !File::open(path).is_ok_and(has_chunks)
}
