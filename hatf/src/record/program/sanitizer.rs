//! Programs built with a sanitizer that has an allocator of its own. That of AddressSanitizer can be recorded where it is in a shared library:
//! the recorder comes before it, which the library has to be asked to allow. ThreadSanitizer does not start behind another library.

use std::ffi::{OsStr, OsString};
use std::fs::File;

use object::read::ReadCache;

use super::symbols::{Symbol, Symbols};

/// A sanitizer that a program is built with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sanitizer {
    /// AddressSanitizer; whether its allocator is in a shared library.
    Address { shared: bool },
    /// ThreadSanitizer.
    Thread,
}

impl Sanitizer {
    /// Returns that of an executable, by the function that starts it. `None` also if the file cannot be read, or is of `hatf cc`, which
    /// has the compiler call functions of these names.
    pub(crate) fn of(file: &File) -> Option<Self> {
        let cache = ReadCache::new(file);
        let parsed = object::File::parse(&cache).ok()?;
        Self::in_symbols(&Symbols::of(&parsed))
    }

    /// The same of an executable's symbols.
    pub(super) fn in_symbols(symbols: &Symbols<'_>) -> Option<Self> {
        let mut found = None;
        // Where the runtime is linked in, programs need not export it: it is in the debugger's table alone.
        for Symbol { name, is_undefined, .. } in symbols.iter() {
            match name {
                b"__asan_init" => found = Some(Self::Address { shared: is_undefined }),
                b"__tsan_init" => found = Some(Self::Thread),
                b"hatf_recorder_accesses" | b"hatf_recorder_accesses_2" => return None,
                _ => {}
            }
        }
        found
    }
}

/// The environment variable of AddressSanitizer.
pub(crate) const ADDRESS_OPTIONS: &str = "ASAN_OPTIONS";

/// Returns the options of AddressSanitizer with one more: that another library may come before its own.
pub(crate) fn behind_another(options: Option<&OsStr>) -> OsString {
    let mut all = options.map_or_else(OsString::new, OsStr::to_owned);
    if !all.is_empty() {
        all.push(":");
    }
    all.push("verify_asan_link_order=0");
    all
}
