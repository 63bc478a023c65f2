//! Is this process recorded, from when on, and into which spool?
//!
//! `begin` decides at the first call. `origin` remembers the first process's spool, `follow` makes those of the processes that it starts, and `standalone`
//! that of a process which no `hatf record` has started. `gone_recorder` sees that no program is started with a recorder whose file is gone, and
//! `thread_end` that threads end.

pub(crate) mod begin;
pub(crate) mod follow;
#[cfg(feature = "preload")]
pub(crate) mod gone_recorder;
pub(crate) mod origin;
pub(crate) mod standalone;
pub(crate) mod thread_end;
