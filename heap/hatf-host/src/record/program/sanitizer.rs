//! Programs built with a sanitizer that has its own allocator. AddressSanitizer's allocator can be recorded if it is in
//! a shared library. In that case, the recorder is loaded before that library, which must be configured to allow this.
//! ThreadSanitizer does not start if another library is loaded before it.

use std::ffi::{OsStr, OsString};
use std::fs::File;

use object::read::ReadCache;

use super::symbols::{Symbol, Symbols};

/// A sanitizer that a program was built with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sanitizer {
    /// AddressSanitizer; `shared` specifies whether its allocator is in a shared library.
    Address { shared: bool },
    /// ThreadSanitizer.
    Thread,
}

impl Sanitizer {
    /// Returns the sanitizer of an executable, identified by its initialization function. Also returns `None` if the
    /// file cannot be read, or if it was built by `hatf cc`, which makes the compiler call functions with the same
    /// names.
    pub(crate) fn of(file: &File) -> Option<Self> {
        let cache = ReadCache::new(file);
        let parsed = object::File::parse(&cache).ok()?;
        Self::in_symbols(&Symbols::of(&parsed))
    }

    /// Returns the sanitizer of an executable with these symbols.
    pub(super) fn in_symbols(symbols: &Symbols<'_>) -> Option<Self> {
        let mut found = None;
        // If the runtime is statically linked, programs need not export it, so only the debug symbol table contains it.
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

/// The environment variable with options for AddressSanitizer.
pub(crate) const ADDRESS_OPTIONS: &str = "ASAN_OPTIONS";

/// Returns the options of AddressSanitizer with one added that allows another library to precede its own.
pub(crate) fn behind_another(options: Option<&OsStr>) -> OsString {
    let mut all = options.map_or_else(OsString::new, OsStr::to_owned);
    if !all.is_empty() {
        all.push(":");
    }
    all.push("verify_asan_link_order=0");
    all
}
