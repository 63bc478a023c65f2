//! Records a program with the `hatf` command, which contains the recorder.

use std::path::PathBuf;

use pyo3::exceptions::PyFileNotFoundError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error;
use crate::heap::Heap;

/// Record the heap of a program and return its trace: `hatf.record(["perl", "-e", "print 1"], stacks=True)`.
///
/// This runs the `hatf` command from `PATH`, or the one that the environment variable `HATF` specifies, and passes
/// `options` on unchanged, such as `["--python"]`. The trace is written to `output`, or to `PROGRAM.mtf` in the working
/// directory.
///
/// Raises hatf.Error if the program could not be recorded. The attribute `status` of the result is the program's exit
/// status.
#[pyfunction]
#[pyo3(signature = (command, *, output=None, stacks=false, options=None))]
pub(crate) fn record(
    py: Python<'_>,
    command: Vec<std::ffi::OsString>,
    output: Option<PathBuf>,
    stacks: bool,
    options: Option<Vec<String>>,
) -> PyResult<Heap> {
    let Some(program) = command.first() else {
        return Err(pyo3::exceptions::PyValueError::new_err("the command is empty"));
    };
    let hatf = match std::env::var_os("HATF") {
        Some(path) => path,
        None => {
            let found: Option<std::ffi::OsString> = py.import("shutil")?.call_method1("which", ("hatf",))?.extract()?;
            found.ok_or_else(|| {
                PyFileNotFoundError::new_err(
                    "the command hatf was not found on PATH; install it with `cargo install --path hatf`, or set the environment \
                     variable HATF to its path",
                )
            })?
        }
    };
    let output = output.unwrap_or_else(|| {
        let name = std::path::Path::new(program).file_name().unwrap_or(program).to_owned();
        PathBuf::from(name).with_extension("mtf")
    });
    let mut arguments = vec![hatf, "record".into(), "-o".into(), output.clone().into_os_string()];
    arguments.extend(stacks.then(|| "--stacks".into()));
    arguments.extend(options.into_iter().flatten().map(Into::into));
    arguments.push("--".into());
    arguments.extend(command);
    let before = modified(&output);
    // Python's own subprocess module waits for the program on Ctrl-C, so that the trace is complete. The standard error
    // of both programs goes into the exception.
    let (subprocess, named) = (py.import("subprocess")?, PyDict::new(py));
    named.set_item("stderr", subprocess.getattr("PIPE")?)?;
    named.set_item("errors", "replace")?;
    let done = subprocess.getattr("run")?.call((arguments,), Some(&named))?;
    let status: i32 = done.getattr("returncode")?.extract()?;
    let said: String = done.getattr("stderr")?.extract()?;
    if matches!(status, 125..=127 | 2) && modified(&output) == before || !output.exists() {
        return Err(error::plain(format!("hatf record exited with status {status}: {}", said.trim_end())));
    }
    py.import("sys")?.getattr("stderr")?.call_method1("write", (said,))?;
    Ok(Heap::recorded(output, status))
}

/// Returns the modification time of a file, or `None` if it does not exist.
fn modified(path: &std::path::Path) -> Option<std::time::SystemTime> {
    path.metadata().and_then(|metadata| metadata.modified()).ok()
}
