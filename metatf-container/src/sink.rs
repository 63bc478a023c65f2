//! Where a trace is written to.

use std::fs::File;
use std::io::{self, BufWriter, Cursor, Seek, SeekFrom, Write};

/// Where a trace is written to. A sink that can change what it has written gets the number of records filled into the
/// header when the trace is closed (spec 5.2).
///
/// Files, buffered files and memory can; standard output, pipes, sockets and boxed writers cannot. [`Seekable`] and [`Forward`] make a
/// sink of any other writer. A file opened for appending takes all it is given at its end: it has to be a [`Forward`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no sink of a trace as it is",
    label = "not a `Sink`",
    note = "a writer that takes bytes in order, such as a socket behind a buffer: `metatf::container::Forward(writer)`",
    note = "a writer that can also seek: `metatf::container::Seekable(writer)`",
    note = "any writer in a box: `Box<dyn Write + Send>`"
)]
pub trait Sink: Write {
    /// Where the next byte goes, if bytes from there on can be overwritten later.
    fn mark(&mut self) -> Option<u64> {
        None
    }

    /// Overwrites bytes that were written, `at` counted as `mark` does.
    ///
    /// # Errors
    /// The sink's; it cannot.
    fn overwrite(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let _ = (at, bytes);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// The memory that the sink is, if it is nothing else: what is appended to it is written. Chunks that are stored as they
    /// are get made there.
    fn memory(&mut self) -> Option<&mut Vec<u8>> {
        None
    }

    /// Whether what was written is gone when the program is. A writer does not flush such a sink by itself.
    fn is_volatile(&self) -> bool {
        false
    }
}

/// Any writer that can seek, as a sink that can be overwritten.
#[derive(Clone, Copy, Debug)]
pub struct Seekable<W>(pub W);

/// Any writer, as a sink that takes bytes in order only.
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

/// Sinks that seek, and whether they are volatile. A pipe opened as a file has no position.
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

fn seek_and_write<W: Write + Seek + ?Sized>(sink: &mut W, at: u64, bytes: &[u8]) -> io::Result<()> {
    let end = sink.stream_position()?;
    sink.seek(SeekFrom::Start(at))?;
    sink.write_all(bytes)?;
    sink.seek(SeekFrom::Start(end)).map(|_| ())
}
