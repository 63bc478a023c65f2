//! The output of a command, which is standard output or a file that appears only when it is complete.

use crate::failure::{Failure, Result};
use metatf::container::{FlushEvery, Sink};
use metatf::format::Format;
use metatf_cli::OutputFile;
#[cfg(any(feature = "doc", feature = "export"))]
use metatf_cli::OutputFolder;
use std::path::Path;
#[cfg(feature = "export")]
use std::path::PathBuf;

/// The output of a trace until it is finished.
pub(crate) struct Target {
    name: String,
    file: OutputFile,
}

impl Target {
    /// Opens the target. `-` denotes standard output.
    pub(crate) fn create<P: AsRef<Path> + ?Sized>(path: &P) -> Result<(Self, Box<dyn Sink + Send>)> {
        let path = path.as_ref();
        let name = if path == "-" { "standard output".to_owned() } else { path.display().to_string() };
        let (file, sink) = OutputFile::create(path).map_err(|e| Failure::io(&name, &e))?;
        Ok((Self { name, file }, sink))
    }

    /// Opens a file in a directory as the target.
    #[cfg(any(feature = "doc", feature = "export"))]
    pub(crate) fn create_in(folder: &OutputFolder, file: &str) -> Result<(Self, Box<dyn Sink + Send>)> {
        let name = folder.path().join(file).display().to_string();
        let (file, sink) = folder.file(file.as_ref()).map_err(|e| Failure::io(&name, &e))?;
        Ok((Self { name, file }, sink))
    }

    /// Finishes the target, so that the file appears under its name. If the target is dropped instead, the file is
    /// removed.
    pub(crate) fn keep(self, sink: Box<dyn Sink + Send>) -> Result<()> {
        self.file.keep(sink).map_err(|e| Failure::io(&self.name, &e))
    }

    /// Returns when the writer flushes automatically. It never does if the file appears only when it is complete.
    pub(crate) fn flush(&self) -> FlushEvery {
        if self.file.appears_whole() { FlushEvery::NEVER } else { FlushEvery::LIVE }
    }

    /// Returns the directory for temporary files of the output.
    #[cfg(feature = "export")]
    pub(crate) fn folder(&self) -> PathBuf {
        self.file.folder()
    }

    /// Returns the name of the output for messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Converts an error from the writer of this target.
    pub(crate) fn failure(&self, format: &Format, error: &metatf::Error) -> Failure {
        self.cause(Failure::Failed(format!("{}: {}", self.name, metatf::explain(format, error))))
    }

    /// Returns the failure to report: if the output could not be written, the output error with the output's name, and
    /// otherwise `failure`.
    pub(crate) fn cause(&self, failure: Failure) -> Failure {
        self.file.error().map_or(failure, |error| Failure::io(&self.name, &error))
    }
}

/// Replaces the content of a file atomically.
pub(crate) fn replace<P: AsRef<Path> + ?Sized>(path: &P, content: &[u8]) -> Result<()> {
    let (target, mut sink) = Target::create(path)?;
    sink.write_all(content).map_err(|e| Failure::io(target.name(), &e))?;
    target.keep(sink)
}
