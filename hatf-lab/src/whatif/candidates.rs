//! The allocators and settings that are tried.

/// An allocator with settings.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// As `hatf simulate --allocator` takes it.
    pub allocator: &'static str,
    /// What to set in the environment to have it.
    pub environment: Option<&'static str>,
    /// As `hatf replay --with` takes it.
    pub replay: Option<&'static str>,
}

/// The allocators that may be in use.
pub const NOW: &[&str] = &["glibc", "jemalloc", "mimalloc", "tcmalloc"];

/// Returns which of [`NOW`] a shared object is, by the name of its file; `None`: it is none, or the C library.
#[must_use]
pub fn of_module(file: &str) -> Option<&'static str> {
    let named = |family: &&&str| file.strip_prefix("lib").is_some_and(|name| name.starts_with(**family));
    NOW.iter().filter(|family| **family != "glibc").find(named).copied()
}

/// Allocators of which there is no model, by how the names of their shared objects begin. musl's own is in its dynamic linker.
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

/// Returns which allocator without a model a shared object is, by the name of its file.
#[must_use]
pub fn without_model(file: &str) -> Option<&'static str> {
    OTHERS.iter().find(|(start, _)| file.starts_with(start)).map(|(_, name)| *name)
}

impl Candidate {
    /// Returns how many settings it has.
    pub(super) fn settings(&self) -> usize {
        self.allocator.split(':').count() - 1
    }

    /// Returns the allocator without its settings.
    #[must_use]
    pub fn family(&self) -> &'static str {
        family(self.allocator)
    }
}

/// Leaves the library out of what is set: the program has it.
pub(super) fn without_library(environment: &'static str) -> &'static str {
    environment.split(" LD_PRELOAD=").next().unwrap_or_default()
}

pub(super) fn family(allocator: &'static str) -> &'static str {
    allocator.split(':').next().unwrap_or_default()
}

/// A candidate with a library.
macro_rules! library {
    ($allocator:literal, $variables:literal, $preload:literal, $name:literal) => {
        Candidate {
            allocator: $allocator,
            environment: Some(concat!($variables, $preload)),
            replay: Some(concat!($variables, $name)),
        }
    };
}

/// The C library's, which needs no preloading.
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

/// A candidate without a library.
const fn model(allocator: &'static str) -> Candidate {
    Candidate { allocator, environment: None, replay: None }
}

/// All candidates. An allocator without settings stands before those with.
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
