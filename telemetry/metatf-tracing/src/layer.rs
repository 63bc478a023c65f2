//! The layer, which converts callbacks of `tracing` to records.

use std::cell::Cell;

use tracing_core::span::{Attributes, Id, Record};
use tracing_core::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use crate::records;
use crate::visit;

/// Number of uses after which a thread writes a callsite again. In a flight recorder, the first copy may be
/// overwritten.
const AGAIN: u32 = 1024;
/// Number of callsites that a thread remembers. If two callsites map to the same slot, each callsite is written again
/// after the other callsite has been used.
const REMEMBERED: usize = 256;
/// Number of callsites after which a thread writes its name again.
const NAMED_AGAIN: u32 = 64;
/// The parent number of a span or an event without a parent.
const NO_PARENT: u64 = u64::MAX;

thread_local! {
    /// The callsites that this thread has written, and the number of uses since then.
    static WRITTEN: [Cell<(u64, u32)>; REMEMBERED] = const { [const { Cell::new((0, 0)) }; REMEMBERED] };
    /// The number of callsites before this thread writes its name again.
    static NAMED: Cell<u32> = const { Cell::new(0) };
}

/// A layer that writes spans and events. [`layer`](crate::layer) creates it.
#[derive(Debug)]
pub struct TraceLayer(());

impl TraceLayer {
    pub(crate) fn new() -> Self {
        Self(())
    }
}

impl<S: Subscriber> Layer<S> for TraceLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, _: Context<'_, S>) {
        let parent = parent(attributes.parent(), attributes.is_root());
        let span = || records::span(callsite(attributes.metadata()), id.into_u64(), parent);
        visit::write(|visitor| attributes.record(visitor), span);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, _: Context<'_, S>) {
        visit::write(|visitor| values.record(visitor), || records::more(id.into_u64()));
    }

    fn on_follows_from(&self, id: &Id, follows: &Id, _: Context<'_, S>) {
        records::follows(id.into_u64(), follows.into_u64());
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let parent = parent(event.parent(), event.is_root());
        visit::write(|visitor| event.record(visitor), || records::event(callsite(event.metadata()), parent));
    }

    fn on_enter(&self, id: &Id, _: Context<'_, S>) {
        records::enter(id.into_u64());
    }

    fn on_exit(&self, id: &Id, _: Context<'_, S>) {
        records::exit(id.into_u64());
    }

    fn on_close(&self, id: Id, _: Context<'_, S>) {
        records::close(id.into_u64());
    }
}

/// Returns the number of a parent, or 0 for the thread's current span.
fn parent(explicit: Option<&Id>, is_root: bool) -> u64 {
    match explicit {
        Some(id) => id.into_u64(),
        None if is_root => NO_PARENT,
        None => 0,
    }
}

/// Returns the number of a callsite, which is the address of its description. Writes the callsite if this thread has
/// not written it yet.
#[inline]
fn callsite(metadata: &'static Metadata<'static>) -> u64 {
    let number = std::ptr::from_ref(metadata) as u64;
    // While a thread exits, its thread-local storage is no longer available, so every use counts as the first.
    let is_new = WRITTEN.try_with(|written| {
        // Descriptions are larger than 64 bytes.
        let place = usize::try_from(number >> 6).unwrap_or_default() % REMEMBERED;
        let Some(place) = written.get(place) else { return true };
        let (known, uses) = place.get();
        let is_new = known != number || uses >= AGAIN;
        place.set((number, if is_new { 0 } else { uses + 1 }));
        is_new
    });
    if is_new.unwrap_or(true) {
        write_callsite(number, metadata);
    }
    number
}

#[cold]
fn write_callsite(number: u64, metadata: &Metadata<'_>) {
    let left = NAMED.try_with(|left| left.replace(left.get().checked_sub(1).unwrap_or(NAMED_AGAIN)));
    if let (Ok(0), Some(name)) = (left, std::thread::current().name()) {
        records::thread_is(name);
    }
    let mut fields = String::new();
    for field in metadata.fields() {
        if !fields.is_empty() {
            fields.push(',');
        }
        fields += field.name();
    }
    let level = match *metadata.level() {
        Level::ERROR => 1,
        Level::WARN => 2,
        Level::INFO => 3,
        Level::DEBUG => 4,
        Level::TRACE => 5,
    };
    records::callsite_is(
        number,
        metadata.is_span(),
        level,
        metadata.line().unwrap_or(0),
        metadata.target(),
        metadata.name(),
        metadata.file().unwrap_or_default(),
        &fields,
    );
}
