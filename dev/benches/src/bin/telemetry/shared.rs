//! Benchmark rows of a shared library that is loaded while the program runs (`examples/telemetry_library.rs`).

use crate::measure::cold;
use crate::row::Row;
use crate::{EVENTS, Result};
use std::ffi::{CStr, CString, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::Command;

/// The type of the library's functions.
type Function = extern "C" fn(u64) -> u64;

/// Configures the library's telemetry to keep the last events, with all kinds but one enabled.
pub(crate) fn environment<'c>(command: &'c mut Command, folder: &Path) -> &'c mut Command {
    command.env("METATF_TELEMETRY_CONTROL", "Plain Stamped").env("METATF_TELEMETRY_POLICY", "overwrite");
    command.env("METATF_TELEMETRY_FILENAME", folder.join("shared.mtf"))
}

/// Measures the loops of a shared library that contains its own telemetry. The process must have been started in
/// [`environment`], which configures this telemetry.
pub(crate) fn measure(library: &Path) -> Result<()> {
    let library = Library::open(library)?;
    if library.function(c"start")?(0) != 0 {
        return Err("the library's telemetry did not start".into());
    }
    for (symbol, name) in [
        (c"off", "in a shared library, off"),
        (c"plain", "in a shared library, three fields"),
        (c"stamped", "in a shared library, three fields and a time"),
    ] {
        let emit = library.function(symbol)?;
        emit(EVENTS / 10);
        let all = cold(1, |_| {
            emit(EVENTS);
        });
        println!("{}", Row::new(name, all / EVENTS as f64));
    }
    Ok(())
}

/// A library that stays loaded.
struct Library(*mut c_void);

impl Library {
    fn open(path: &Path) -> Result<Self> {
        let name = CString::new(path.as_os_str().as_bytes())?;
        // SAFETY: this is a library of this crate. Loading it runs only the initializers of Rust's standard library.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
        if library.is_null() { Err(format!("{} cannot be loaded", path.display()).into()) } else { Ok(Self(library)) }
    }

    fn function(&self, name: &CStr) -> Result<Function> {
        // SAFETY: the library is loaded.
        let symbol = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        if symbol.is_null() {
            return Err(format!("the library has no function {name:?}").into());
        }
        // SAFETY: all functions that the library exports have this type.
        Ok(unsafe { std::mem::transmute::<*mut c_void, Function>(symbol) })
    }
}
