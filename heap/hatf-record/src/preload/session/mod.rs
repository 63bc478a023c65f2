//! The decision whether this process is recorded, from when on, and into which spool.
//!
//! `begin` decides at the first call. `origin` stores the first process's spool, `follow` creates the spools of its
//! child processes, and `standalone` creates the spool of a process not started by `hatf record`. `gone_recorder`
//! ensures that no program is started with a recorder whose file is gone, `thread_end` records the ends of threads, and
//! `patched` counts the patched functions of a statically linked allocator.

pub(crate) mod begin;
pub(crate) mod follow;
#[cfg(feature = "preload")]
pub(crate) mod gone_recorder;
pub(crate) mod origin;
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
pub(crate) mod patched;
pub(crate) mod standalone;
pub(crate) mod thread_end;
