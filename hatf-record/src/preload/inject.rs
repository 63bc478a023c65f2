//! Recording of a process that runs already: `hatf record --pid` has it load this object, and calls these functions in one of its threads.

use core::ffi::{CStr, c_char, c_int};
use core::sync::atomic::{AtomicBool, Ordering};

use super::path::Path;
use super::thread_state::nested;
use super::{attach, control, exit, follow, fork, mapping, modules, real, session, stack, thread_end};
use crate::reasons::Answer;

/// The process was recorded in this way before.
static PREPARED: AtomicBool = AtomicBool::new(false);

/// Begins to record this process into a spool, whose path it is given.
///
/// # Safety
/// `events` is a C string, or null.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hatf_recorder_attach(events: *const c_char) -> c_int {
    if events.is_null() {
        return Answer::Failed as c_int;
    }
    if session::current().is_some_and(|session| !session.is_abandoned()) {
        return Answer::Recorded as c_int;
    }
    // SAFETY: the caller's promise.
    let path = Path::new().with(unsafe { CStr::from_ptr(events) }.to_bytes());
    let Some(path) = path else { return Answer::Failed as c_int };
    nested(|| {
        end();
        if !PREPARED.swap(true, Ordering::Relaxed) {
            // A process that has preloaded it has called a hook by now.
            if !real::is_known() {
                modules::are_to_be_redirected();
                real::look_before();
            }
            real::known();
            super::cxx::look_up();
            fork::register();
            thread_end::create_key();
            exit::register();
        }
        follow::remember(path);
        attach::again();
        let Some(session) = attach::session() else { return Answer::NoSpool as c_int };
        session.set_multithreaded();
        // A reader is to know that there are blocks from before.
        let is_wanted = session.spool.header().off.load(Ordering::Relaxed) == 0;
        control::hatf_recorder_stop();
        if is_wanted {
            control::hatf_recorder_start();
        }
        if !modules::redirect() {
            end();
            return Answer::NoCalls as c_int;
        }
        Answer::Done as c_int
    })
}

/// Ends the recording: the process calls what it called before.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn hatf_recorder_detach() -> c_int {
    nested(end);
    Answer::Done as c_int
}

fn end() {
    modules::restore();
    let Some(spool) = session::inherited() else { return };
    session::end();
    // Other threads may be in the middle of a hook: what they still write reaches nobody.
    mapping::replace(&spool);
    stack::retire();
}
