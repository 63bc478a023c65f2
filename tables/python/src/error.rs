//! Converts errors to Python exceptions. System errors become `OSError`s with the file name, and all other errors
//! become [`Error`]s.

use std::fmt::Display;
use std::fs::File;
use std::io;
use std::path::Path;

use metatf::dynamic::{OpenError, Schema};
use metatf::{ErrorKind, explain};
use pyo3::create_exception;
use pyo3::exceptions::{PyIsADirectoryError, PyOSError, PyValueError};
use pyo3::prelude::*;

create_exception!(
    hatf,
    Error,
    PyValueError,
    "An error in a trace, a DTD, or a value to be written to a trace.\n\nThe message begins with the name of the file, if there is \
     one, and contains the position in it. `file` is the file name or None, and `offset` the byte offset in the file or None."
);

/// Creates an error about a file.
pub(crate) fn of_file(path: &Path, message: impl Display) -> PyErr {
    with(format!("{}: {message}", path.display()), Some(path), None)
}

/// Creates an error that is not about a file.
pub(crate) fn plain(message: impl Display) -> PyErr {
    with(message.to_string(), None, None)
}

fn with(message: String, file: Option<&Path>, offset: Option<u64>) -> PyErr {
    let error = Error::new_err(message);
    let set = Python::attach(|py| {
        let value = error.value(py);
        value.setattr("file", file.map(|file| file.display().to_string()))?;
        value.setattr("offset", offset)
    });
    set.map_or_else(|failed| failed, |()| error)
}

/// Converts a system error to the matching Python exception: a missing file is a `FileNotFoundError`.
pub(crate) fn of_system(path: &Path, error: &io::Error) -> PyErr {
    let text = error.to_string();
    match error.raw_os_error() {
        Some(number) => {
            let text = text.split(" (os error").next().unwrap_or(&text).to_owned();
            PyOSError::new_err((number, text, path.display().to_string()))
        }
        None => PyOSError::new_err(format!("{}: {text}", path.display())),
    }
}

/// Converts an error of a trace, using the names of its schema.
pub(crate) fn of_trace(path: &Path, schema: &Schema, error: &metatf::Error) -> PyErr {
    let message = format!("{}: {}", path.display(), explain(&schema.format, error));
    with(message, Some(path), error.has_offset().then_some(error.place.offset))
}

/// Converts an error of a trace whose schema is not known.
pub(crate) fn of_container(path: &Path, error: &metatf::Error) -> PyErr {
    if let ErrorKind::Io(system) = error.kind {
        return of_system(path, &io::Error::from(system));
    }
    with(format!("{}: {error}", path.display()), Some(path), error.has_offset().then_some(error.place.offset))
}

/// Converts an error of a DTD, with all its diagnostics in the format of the commands.
pub(crate) fn of_dtd(error: &OpenError) -> PyErr {
    match error {
        OpenError::Dtd(name, diagnostics) => {
            let lines = diagnostics.iter().map(|diagnostic| {
                let label = &diagnostic.primary;
                let help = diagnostic.help.as_ref().map(|help| format!("\n  help: {help}")).unwrap_or_default();
                format!("{name}:{}:{}: {}{help}", label.line, label.column, diagnostic.message)
            });
            plain(lines.collect::<Vec<_>>().join("\n"))
        }
        OpenError::Trace(error) => plain(error),
        OpenError::File(path, error) => of_container(path, error),
        other => plain(other),
    }
}

/// Converts an error of a table, whose message already names the file.
pub(crate) fn of_table(path: &Path, error: &metatf_arrow::Error) -> PyErr {
    with(error.to_string(), Some(path), None)
}

/// Raises the exception that Python raises for a file that cannot be read.
pub(crate) fn check_file(path: &Path) -> PyResult<()> {
    let opened = File::open(path).and_then(|file| file.metadata());
    match opened {
        Ok(metadata) if metadata.is_dir() => {
            let name = path.display().to_string();
            Err(PyIsADirectoryError::new_err((21, "Is a directory", name)))
        }
        Ok(_) => Ok(()),
        Err(problem) => Err(of_system(path, &problem)),
    }
}

/// Converts an error of a heap trace.
pub(crate) fn of_heap(path: &Path, error: &hatf_trace::Error) -> PyErr {
    match error {
        hatf_trace::Error::System(_, system) => of_system(path, system),
        error => {
            let message = error.to_string();
            let name = path.display().to_string();
            match message.strip_prefix(&name) {
                Some(_) => with(message, Some(path), None),
                None => of_file(path, message),
            }
        }
    }
}
