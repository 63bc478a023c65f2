//! Changes since a thread's last call, which a hook processes before it records a call.

use crate::conditions::Conditions;
use crate::event::{Kind, SpoolEvent};
use crate::preload::platform::thread_state::ThreadState;
use crate::preload::spool::push;
use crate::preload::spool::session::Session;

/// Makes the thread join the session and redirects the calls of new modules, if the process was already running when
/// recording began. In this case, threads may have belonged to an earlier recording, and the loader does not announce
/// new modules.
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
#[inline(never)]
pub(super) fn heed_injected(session: &Session, state: &ThreadState) {
    if state.join(session.number) {
        crate::preload::platform::thread_key::arm();
    }
    let calls = state.calls.get().wrapping_add(1);
    state.calls.set(calls);
    if calls.is_multiple_of(64) {
        crate::preload::elf::redirected::look();
    }
}

/// Records changes to the program break and to the thread's CPU, if requested.
#[inline]
pub(super) fn record(session: &Session, state: &ThreadState, conditions: Conditions) {
    #[cfg(all(feature = "preload", target_pointer_width = "64"))]
    if conditions.has(Conditions::PAGES) {
        super::pages::program_break(session);
    }
    if conditions.has(Conditions::PROCESSORS) {
        processor(session, state);
    }
}

/// Records the CPU on which the thread runs, if it differs from the CPU of the previous call.
#[inline(never)]
fn processor(session: &Session, state: &ThreadState) {
    // SAFETY: a number, which the kernel keeps in the thread's memory if possible; then this is not a system call.
    let Ok(cpu) = u32::try_from(unsafe { libc::sched_getcpu() }) else { return };
    let known = cpu.wrapping_add(1);
    if state.processor.replace(known) != known {
        let thread = push::thread_number(session);
        push::numbers(
            session,
            &SpoolEvent { size: cpu.into(), ..SpoolEvent::new(Kind::Processor, thread, session.clock.now()) },
        );
    }
}
