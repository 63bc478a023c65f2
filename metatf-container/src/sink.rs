//! Destinations for traces.

use super::existing::ExistingTrace;
use std::fs::File;
use std::io::{self, BufWriter, Cursor, Seek, SeekFrom, Write};

/// A destination for a trace. If a sink can overwrite earlier output, the number of records is filled into the header
/// when the trace is closed (spec 5.2).
///
/// Files, buffered files and memory can be overwritten; standard output, pipes, sockets and boxed writers cannot.
/// [`Seekable`] and [`Forward`] turn any other writer into a sink. A file opened in append mode writes all data at its
/// end, so it must be wrapped in [`Forward`].
///
/// # Examples
///
/// Only a sink that can be overwritten receives the number of records:
///
/// ```
/// use metatf_container::{ChunkWriter, Forward, Reader, Result, Seekable, Sink, WriteOptions};
/// use std::io::Cursor;
///
/// fn write<S: Sink>(sink: S) -> Result<S> {
///     ChunkWriter::new(sink, &WriteOptions::default(), b"section log 1 { }")?.finish(5)
/// }
///
/// let file: Vec<u8> = write(Seekable(Cursor::new(Vec::new())))?.0.into_inner();
/// assert_eq!(Reader::from_slice(&file)?.header().nrecords, 5);
/// let file: Vec<u8> = write(Forward(Vec::new()))?.0;
/// assert_eq!(Reader::from_slice(&file)?.header().nrecords, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be used as a trace sink directly",
    label = "not a `Sink`",
    note = "for a writer that accepts bytes only in order, such as a buffered socket: `metatf::container::Forward(writer)`",
    note = "for a writer that can also seek: `metatf::container::Seekable(writer)`",
    note = "for any boxed writer: `Box<dyn Write + Send>`"
)]
pub trait Sink: Write {
    /// Returns the position of the next byte if bytes from there on can be overwritten later.
    fn mark(&mut self) -> Option<u64> {
        None
    }

    /// Overwrites bytes written earlier. `at` is a position as returned by [`mark`](Self::mark).
    ///
    /// # Errors
    /// Returns an error if the sink fails or does not support overwriting.
    fn overwrite(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let _ = (at, bytes);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Returns the sink's memory if the sink consists only of memory, so that appending to the memory writes to the
    /// sink. Uncompressed chunks are built directly in this memory.
    fn memory(&mut self) -> Option<&mut Vec<u8>> {
        None
    }

    /// Returns whether the written data disappears when the program ends. A writer does not flush such a sink
    /// automatically.
    fn is_volatile(&self) -> bool {
        false
    }

    /// Returns the trace in the sink if the writer must continue it instead of starting one. Later calls return `None`.
    #[doc(hidden)]
    fn existing(&mut self) -> Option<ExistingTrace> {
        None
    }
}

/// A sink that wraps any seekable writer and can be overwritten.
///
/// See the example of [`Sink`](Sink#examples).
#[derive(Clone, Copy, Debug)]
pub struct Seekable<W>(pub W);

/// A sink that wraps any writer and accepts bytes only in order.
///
/// See the example of [`Sink`](Sink#examples).
#[derive(Clone, Copy, Debug)]
pub struct Forward<W>(pub W);

impl<W: Write> Write for Seekable<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl<W: Write> Write for Forward<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl<W: Write + Seek> Sink for Seekable<W> {
    fn mark(&mut self) -> Option<u64> {
        self.0.stream_position().ok()
    }

    fn overwrite(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        seek_and_write(&mut self.0, at, bytes)
    }
}

impl<W: Write> Sink for Forward<W> {}

/// Implements [`Sink`] for seekable types, given whether each type is volatile. A pipe opened as a file cannot be
/// overwritten, because it has no position.
macro_rules! seeking {
    ($($sink:ty, $volatile:literal $(where $param:ident)?);+) => {$(
        impl $(<$param: Write + Seek>)? Sink for $sink {
            fn mark(&mut self) -> Option<u64> {
                self.stream_position().ok()
            }

            fn overwrite(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
                seek_and_write(self, at, bytes)
            }

            fn is_volatile(&self) -> bool {
                $volatile
            }
        }
    )+};
}

seeking!(File, false; BufWriter<W>, false where W; Cursor<Vec<u8>>, true);
#[cfg(feature = "files")]
seeking!(tempfile::SpooledTempFile, true);

impl Sink for Vec<u8> {
    fn mark(&mut self) -> Option<u64> {
        Some(self.len() as u64)
    }

    fn overwrite(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        let place = self.get_mut(at..at.saturating_add(bytes.len())).ok_or(io::ErrorKind::InvalidInput)?;
        place.copy_from_slice(bytes);
        Ok(())
    }

    fn memory(&mut self) -> Option<&mut Vec<u8>> {
        Some(self)
    }

    fn is_volatile(&self) -> bool {
        true
    }
}

impl<S: Sink + ?Sized> Sink for &mut S {
    fn mark(&mut self) -> Option<u64> {
        (**self).mark()
    }

    fn overwrite(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        (**self).overwrite(at, bytes)
    }

    fn memory(&mut self) -> Option<&mut Vec<u8>> {
        (**self).memory()
    }

    fn is_volatile(&self) -> bool {
        (**self).is_volatile()
    }

    fn existing(&mut self) -> Option<ExistingTrace> {
        (**self).existing()
    }
}

macro_rules! boxed {
    ($($sink:ty),+) => {$(
        impl Sink for Box<$sink> {
            fn mark(&mut self) -> Option<u64> {
                (**self).mark()
            }

            fn overwrite(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
                (**self).overwrite(at, bytes)
            }

            fn memory(&mut self) -> Option<&mut Vec<u8>> {
                (**self).memory()
            }

            fn is_volatile(&self) -> bool {
                (**self).is_volatile()
            }

            fn existing(&mut self) -> Option<ExistingTrace> {
                (**self).existing()
            }
        }
    )+};
}

boxed!(dyn Sink + '_, dyn Sink + Send + '_);

macro_rules! forward {
    ($($sink:ty),+) => {$(
        impl Sink for $sink {}
    )+};
}

forward!(io::Stdout, io::StdoutLock<'_>, io::Sink, io::PipeWriter, std::process::ChildStdin, std::net::TcpStream);
#[cfg(unix)]
forward!(std::os::unix::net::UnixStream);
forward!(Box<dyn Write + '_>, Box<dyn Write + Send + '_>);

pub(super) fn seek_and_write<W: Write + Seek + ?Sized>(sink: &mut W, at: u64, bytes: &[u8]) -> io::Result<()> {
    let end = sink.stream_position()?;
    sink.seek(SeekFrom::Start(at))?;
    sink.write_all(bytes)?;
    sink.seek(SeekFrom::Start(end)).map(|_| ())
}
