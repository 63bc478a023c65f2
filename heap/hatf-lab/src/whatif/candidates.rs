//! The allocators and settings to simulate.

/// An allocator with settings.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Candidate {
    /// The name and settings accepted by `hatf simulate --allocator`.
    pub allocator: &'static str,
    /// The environment settings that select the allocator.
    pub environment: Option<&'static str>,
    /// The name accepted by `hatf replay --with`.
    pub replay: Option<&'static str>,
}

/// The allocators that a program may be using.
pub const NOW: &[&str] = &["glibc", "jemalloc", "mimalloc", "tcmalloc"];

/// Returns the allocator in [`NOW`] to which a shared object with this file name belongs. Returns `None` for the C
/// library and for files that are not allocators.
#[must_use]
pub fn of_module(file: &str) -> Option<&'static str> {
    let named = |family: &&&str| file.strip_prefix("lib").is_some_and(|name| name.starts_with(**family));
    NOW.iter().filter(|family| **family != "glibc").find(named).copied()
}

/// File name prefixes of allocator libraries without a model. musl's allocator is in its dynamic linker.
const OTHERS: [(&str, &str); 8] = [
    ("ld-musl-", "musl"),
    ("libc.musl-", "musl"),
    ("libhoard", "hoard"),
    ("libsnmalloc", "snmalloc"),
    ("librpmalloc", "rpmalloc"),
    ("libscudo", "scudo"),
    ("libmesh.", "mesh"),
    ("libhardened_malloc", "hardened_malloc"),
];

/// Returns the name of the allocator in a shared object with this file name, if there is no model of the allocator.
#[must_use]
pub fn without_model(file: &str) -> Option<&'static str> {
    OTHERS.iter().find(|(start, _)| file.starts_with(start)).map(|(_, name)| *name)
}

impl Candidate {
    /// Returns the number of settings.
    pub(super) fn settings(&self) -> usize {
        self.allocator.split(':').count() - 1
    }

    /// Returns the allocator name without settings.
    #[must_use]
    pub fn family(&self) -> &'static str {
        family(self.allocator)
    }
}

/// Returns the bytes of a library's own data in a program that allocates one block, in excess of the C library's.
/// `dev/scripts/measure simulators` prints them; docs/whatif.md lists the versions.
pub(super) fn own_data(family: &str) -> u64 {
    match family {
        "jemalloc" => 296 << 10,
        "mimalloc" => 52 << 10,
        "tcmalloc" => 3868 << 10,
        _ => 0,
    }
}

/// Removes the library from environment settings, for a program that already uses it.
pub(super) fn without_library(environment: &'static str) -> &'static str {
    environment.split(" LD_PRELOAD=").next().unwrap_or_default()
}

/// Returns an allocator's name without settings.
pub(super) fn family(allocator: &str) -> &str {
    allocator.split(':').next().unwrap_or_default()
}

/// Defines a candidate with a library.
macro_rules! library {
    ($allocator:literal, $variables:literal, $preload:literal, $name:literal) => {
        Candidate {
            allocator: $allocator,
            environment: Some(concat!($variables, $preload)),
            replay: Some(concat!($variables, $name)),
        }
    };
}

/// Defines a candidate for the C library's allocator, which is used without preloading.
macro_rules! glibc {
    ($allocator:literal, $variable:literal) => {
        library!($allocator, $variable, "", " system")
    };
}

macro_rules! jemalloc {
    ($allocator:literal, $variable:literal) => {
        library!($allocator, $variable, "LD_PRELOAD=libjemalloc.so.2", "jemalloc")
    };
}

macro_rules! mimalloc {
    ($allocator:literal, $variable:literal) => {
        library!($allocator, $variable, "LD_PRELOAD=libmimalloc.so.2", "mimalloc")
    };
}

macro_rules! tcmalloc {
    ($allocator:literal, $variable:literal) => {
        library!($allocator, $variable, "LD_PRELOAD=libtcmalloc_minimal.so.4", "tcmalloc")
    };
}

/// Returns a candidate for a model that corresponds to no library.
const fn model(allocator: &'static str) -> Candidate {
    Candidate { allocator, environment: None, replay: None }
}

/// All candidates. For each allocator, the candidate without settings comes first.
pub const CANDIDATES: &[Candidate] = &[
    Candidate { allocator: "glibc", environment: Some("(none: the C library's)"), replay: Some("system") },
    glibc!("glibc:tcache=0", "GLIBC_TUNABLES=glibc.malloc.tcache_count=0"),
    glibc!("glibc:tcache=64", "GLIBC_TUNABLES=glibc.malloc.tcache_count=64"),
    glibc!("glibc:arenas=1", "GLIBC_TUNABLES=glibc.malloc.arena_max=1"),
    glibc!("glibc:mmap=65536:rise=0", "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=65536"),
    jemalloc!("jemalloc", ""),
    jemalloc!("jemalloc:arenas=1", "MALLOC_CONF=narenas:1 "),
    jemalloc!("jemalloc:tcache=0", "MALLOC_CONF=tcache:false "),
    jemalloc!("jemalloc:decay=0", "MALLOC_CONF=dirty_decay_ms:0 "),
    mimalloc!("mimalloc", ""),
    mimalloc!("mimalloc:purge=0", "MIMALLOC_DECOMMIT_DELAY=0 "),
    tcmalloc!("tcmalloc", ""),
    tcmalloc!("tcmalloc:batch=2", "TCMALLOC_TRANSFER_NUM_OBJ=2 "),
    tcmalloc!("tcmalloc:release=10", "TCMALLOC_RELEASE_RATE=10 "),
    tcmalloc!("tcmalloc:aggressive=1", "TCMALLOC_AGGRESSIVE_DECOMMIT=1 "),
    tcmalloc!("tcmalloc:caches=1048576", "TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES=1048576 "),
    model("best"),
    model("tlsf"),
    model("buddy"),
    model("bump"),
];
