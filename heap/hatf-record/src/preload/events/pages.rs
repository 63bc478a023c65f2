//! Events of page requests, for `--pages`.

use super::finish;
use crate::clock::in_order;
use crate::conditions::Conditions;
use crate::event::Kind;
use crate::preload::choose::call::{Block, Call};
use crate::preload::choose::choice;
use crate::preload::platform::program_break::moved;
use crate::preload::platform::thread_state::current;
use crate::preload::session::begin::session;
use crate::preload::spool::session::Session;

/// Returns the session if page requests are recorded and recording is on.
pub(crate) fn records_pages() -> Option<&'static Session> {
    let session = session()?;
    let conditions = session.conditions();
    let on = conditions.has(Conditions::PAGES) && choice::is_on(session, conditions);
    on.then_some(session)
}

/// Records the program break if it has moved.
#[inline]
pub(crate) fn program_break(session: &Session) {
    if let Some(end) = moved() {
        pages(session, Kind::Break, Call { address: end, ..Call::default() });
    }
}

/// Records a page request by the program or an allocator, with its stack if it is the program's.
#[inline(never)]
pub(crate) fn pages(session: &Session, kind: Kind, call: Call) {
    let (state, conditions) = (current(), session.conditions());
    if conditions.has(Conditions::THREADS) {
        in_order();
    }
    if conditions.has(Conditions::STACKS) && !state.is_nested() && kind != Kind::Break {
        finish::allocation(session, state, kind, call, Block::Other);
    } else {
        finish::numbers(session, state, kind, call);
    }
}
