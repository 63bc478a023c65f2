//! Code in which a thread may hold a lock, so that a function called in that thread would wait for the lock:
//! allocators, the dynamic linker, and C library functions that share locks with `dlopen` and with the recorder.
//!
//! Symbol tables contain the locations of this code. The C library's helper functions have no symbols, but they are
//! compiled into the same object as the functions they serve, so the code between such a function and the nearest
//! exported functions counts as well. A module that exports an allocator counts as a whole, because nothing delimits
//! the allocator in it.

use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;

use object::read::ReadCache;

use super::maps::Mapping;
use crate::record::program::Symbols;

/// C library functions that use the same locks.
struct Group {
    /// The part of the C library, for messages.
    name: &'static str,
    functions: &'static [&'static str],
    /// Whether helper functions call the program's code, such as a thread's start function, while they hold no lock. A
    /// return address in such a helper function is safe.
    calls_program: bool,
}

const GROUPS: [Group; 5] = [
    Group {
        name: "its allocator",
        functions: &[
            "__default_morecore",
            "malloc",
            "free",
            "realloc",
            "calloc",
            "memalign",
            "aligned_alloc",
            "posix_memalign",
            "valloc",
            "pvalloc",
            "malloc_trim",
            "malloc_usable_size",
            "mallinfo",
            "mallinfo2",
            "malloc_stats",
            "malloc_info",
            "mallopt",
        ],
        calls_program: false,
    },
    Group {
        name: "the dynamic linker",
        functions: &[
            "dlopen",
            "dlmopen",
            "dlclose",
            "dlsym",
            "dlvsym",
            "dladdr",
            "dladdr1",
            "dlinfo",
            "dlerror",
            "dl_iterate_phdr",
        ],
        calls_program: false,
    },
    // `dlopen` gives each thread a copy of the library's thread-local memory and locks the list of threads to do so.
    Group {
        name: "the start or the end of a thread",
        functions: &[
            "pthread_create",
            "pthread_join",
            "pthread_tryjoin_np",
            "pthread_timedjoin_np",
            "pthread_clockjoin_np",
            "pthread_detach",
            "pthread_exit",
            "setuid",
            "setgid",
            "seteuid",
            "setegid",
            "setreuid",
            "setregid",
            "setresuid",
            "setresgid",
            "setgroups",
        ],
        calls_program: true,
    },
    Group { name: "a fork", functions: &["fork", "_Fork", "__register_atfork"], calls_program: false },
    Group {
        name: "the list of functions to call at exit",
        functions: &[
            "__cxa_atexit",
            "__cxa_at_quick_exit",
            "__cxa_finalize",
            "__cxa_thread_atexit_impl",
            "__call_tls_dtors",
            "on_exit",
            "exit",
        ],
        calls_program: true,
    },
];

/// Maximum size in bytes of helper functions before the first and after the last function of an object.
const HELPERS: u64 = 16 << 10;

/// Exported functions that identify a module as an allocator.
const ALLOCATES: [&[u8]; 4] = [b"malloc", b"calloc", b"realloc", b"free"];

/// Code of a process that must not be interrupted.
#[derive(Debug, Default)]
pub(super) struct UnsafeCode(Vec<Part>);

#[derive(Debug)]
struct Part {
    range: Range<u64>,
    /// Whether a return address in this range is also unsafe.
    on_stack: bool,
    name: String,
}

impl UnsafeCode {
    /// Finds the unsafe code of a process whose C library is `library`. Returns `None` if the functions of the C
    /// library cannot be read.
    pub(super) fn of(maps: &[Mapping], library: &Mapping) -> Option<Self> {
        let mut unsafe_code = Self::default();
        let base = maps.iter().find(|mapping| mapping.file == library.file)?.start;
        unsafe_code.add_functions(&functions(&library.path)?, base);
        let mut known = BTreeMap::new();
        for mapping in maps.iter().filter(|mapping| mapping.is_code && mapping.file != library.file) {
            if let Some(name) = known.entry(&mapping.path).or_insert_with(|| name_of_module(&mapping.path)) {
                unsafe_code.0.push(Part { range: mapping.start..mapping.end, on_stack: true, name: name.clone() });
            }
        }
        Some(unsafe_code)
    }

    /// Returns the name of the unsafe code that contains this instruction pointer, if any.
    pub(super) fn at(&self, address: u64) -> Option<&str> {
        self.find(|part| part.range.contains(&address))
    }

    /// Returns the name of the unsafe code that contains this return address, if any.
    pub(super) fn calls(&self, address: u64) -> Option<&str> {
        self.find(|part| part.on_stack && part.range.contains(&address))
    }

    fn find(&self, is_it: impl Fn(&Part) -> bool) -> Option<&str> {
        self.0.iter().find(|part| is_it(part)).map(|part| &*part.name)
    }

    fn add_functions(&mut self, functions: &BTreeMap<u64, Function>, base: u64) {
        let mut before = 0;
        for (start, Function { end, group }) in functions {
            if let Some(group) = group {
                let next = functions.range(start + 1..).next().map_or(*end, |(next, _)| *next);
                let from = before.max(start.saturating_sub(HELPERS)).min(*start);
                let to = next.min(end.saturating_add(HELPERS)).max(*end);
                let mut add = |range: Range<u64>, on_stack| {
                    let range = base.wrapping_add(range.start)..base.wrapping_add(range.end);
                    self.0.push(Part { range, on_stack, name: group.name.to_owned() });
                };
                add(from..to, !group.calls_program);
                add(*start..*end, true);
            }
            before = before.max(*end);
        }
    }
}

/// An exported function, without its start address.
struct Function {
    end: u64,
    group: Option<&'static Group>,
}

/// Returns the exported functions of a file by their offsets from its beginning.
fn functions(path: &str) -> Option<BTreeMap<u64, Function>> {
    let mut functions = BTreeMap::new();
    with_exported(path, |name, address, size| {
        let group = GROUPS.iter().find(|group| group.functions.iter().any(|function| function.as_bytes() == name));
        let function = functions.entry(address).or_insert(Function { end: address, group });
        function.end = function.end.max(address.saturating_add(size));
        function.group = function.group.or(group);
    })?;
    Some(functions)
}

/// Returns a description of the module at this path if its code is unsafe, or `None` otherwise.
fn name_of_module(path: &str) -> Option<String> {
    let name = path.rsplit('/').next().unwrap_or_default();
    // Code that belongs to no file is the kernel's or was generated by the program.
    let is_of_file = path.starts_with('/') && !path.starts_with("/memfd:") && !path.starts_with("/dev/");
    // The recorder exports hooks of these functions but holds no lock in them.
    if !is_of_file || name.starts_with("libhatf_record.so") {
        return None;
    }
    if name.starts_with("ld-linux") {
        return Some("the dynamic linker".to_owned());
    }
    let mut allocates = false;
    match with_exported(path, |name, _, _| allocates |= ALLOCATES.contains(&name)) {
        None => Some(format!("{path}, whose symbols cannot be read")),
        Some(()) => allocates.then(|| format!("its allocator, which is in {path}")),
    }
}

/// Passes the name, address and size of each function that a file exports to `give`. Returns `None` if the functions
/// cannot be read.
fn with_exported(path: &str, mut give: impl FnMut(&[u8], u64, u64)) -> Option<()> {
    let file = File::open(path).ok()?;
    let cache = ReadCache::new(&file);
    let parsed = object::File::parse(&cache).ok()?;
    let symbols = Symbols::of(&parsed);
    let mut is_there = false;
    for symbol in symbols.exported() {
        is_there = true;
        if symbol.is_definition && symbol.is_code() {
            give(symbol.name, symbol.address, symbol.size);
        }
    }
    is_there.then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the unsafe code of a sample library: two allocator functions with a helper between them, an unrelated
    /// function, and a function that starts threads.
    fn unsafe_code() -> UnsafeCode {
        let group = |name: &str| GROUPS.iter().find(|group| group.functions.contains(&name));
        let functions = [
            (0x1000, 0x1100, None),
            (0x1800, 0x1900, group("malloc")),
            (0x2000, 0x2100, group("free")),
            (0x2200, 0x2300, None),
            (0x3000, 0x3100, group("pthread_create")),
            (0x3100, 0x3200, None),
            (0x9000, 0x9100, None),
        ];
        let functions = functions.map(|(start, end, group)| (start, Function { end, group }));
        let mut found = UnsafeCode::default();
        found.add_functions(&BTreeMap::from(functions), 0x10_0000);
        found
    }

    #[test]
    fn functions_with_their_helpers() {
        let unsafe_code = unsafe_code();
        let allocator = Some("its allocator");
        for (address, at, calls) in [
            (0x1050, None, None),
            (0x1100, allocator, allocator),
            (0x1850, allocator, allocator),
            (0x1950, allocator, allocator),
            (0x21ff, allocator, allocator),
            (0x2200, None, None),
            // This helper only calls a thread's start function.
            (0x2fff, Some("the start or the end of a thread"), None),
            (0x3000, Some("the start or the end of a thread"), Some("the start or the end of a thread")),
            (0x3100, None, None),
        ] {
            let address = 0x10_0000 + address;
            assert_eq!((unsafe_code.at(address), unsafe_code.calls(address)), (at, calls), "{address:x}");
        }
        assert_eq!(unsafe_code.at(0x1850), None);
    }

    /// Finds functions of every group in this process's C library. Attaching works only if the library exports these
    /// functions.
    #[test]
    fn of_the_c_library() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let Some(path) =
            maps.lines().filter_map(|line| line.split_whitespace().nth(5)).find(|path| path.contains("/libc.so"))
        else {
            return;
        };
        let functions = functions(path).unwrap();
        for group in &GROUPS {
            let found =
                functions.values().filter(|function| function.group.is_some_and(|of| of.name == group.name)).count();
            assert!(found > 1, "{}: {found}", group.name);
        }
        assert_eq!(name_of_module(path), Some(format!("its allocator, which is in {path}")));
        assert_eq!(name_of_module("[vdso]"), None);
        assert_eq!(name_of_module("/memfd:libhatf_record.so (deleted)"), None);
        assert_eq!(
            name_of_module("/nowhere/lib.so (deleted)").unwrap(),
            "/nowhere/lib.so (deleted), whose symbols cannot be read"
        );
        assert_eq!(name_of_module(std::env::current_exe().unwrap().to_str().unwrap()), None);
    }
}
