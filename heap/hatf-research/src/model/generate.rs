//! Generates the events of a synthetic trace.

use super::clock::Clock;
use super::file::Model;
use super::law::wide;
use super::outline_play::{Act, Player};
use super::queue::{Live, Queue};
use super::random::Random;
use super::source::{Birth, Source};
use hatf_lab::{Cause, Change, Error, Object, ObjectEvent, Observer, Result, Totals};

/// The number of allocations without progress of the clock after which the clock is considered stuck.
const STANDING: u64 = 1 << 20;

/// The maximum number of events in a trace if the model determines its length. Without this limit, a model could fill
/// any disk.
const MOST: u64 = 1_000_000_000;

/// The number of allocations after which the trace length is estimated. A model without an end is thus rejected within
/// a second.
const ENOUGH: u64 = 1 << 20;

/// The limits of a synthetic trace.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// The number of events, or `None` to stop when the clock passes T and omit later frees.
    pub events: Option<u64>,
    /// The number of live objects at which generation fails.
    pub live: Option<u64>,
}

/// A synthetic trace. Memory is bounded by the live objects and the size of the model. The [module
/// documentation](super) contains an example.
///
/// All addresses are 0. Times are 0 unless the clock is [`Clock::Time`].
#[derive(Debug)]
pub struct Generator {
    source: Source,
    /// The player of an outline model, whose events replace those of the source.
    player: Option<Player>,
    random: Random,
    end: f64,
    limits: Limits,
    /// The maximum number of events if no number of events is requested.
    pub(super) most: u64,
    timed: bool,
    queue: Queue,
    /// The number of slots ever used.
    slots: u32,
    /// The free slots among the used ones.
    spare: Vec<u32>,
    live_bytes: u64,
    totals: Totals,
}

impl Generator {
    /// Creates a trace from a seed. Different streams of the same seed are independent traces.
    #[must_use]
    pub fn new(model: &Model, seed: u64, stream: u64, limits: Limits) -> Self {
        let mut random = Random::new(seed, stream);
        Self {
            source: Source::new(model, &mut random),
            player: model.parts().outline.as_ref().map(|outline| Player::new(outline, &mut random)),
            random,
            end: if limits.events.is_some() { f64::INFINITY } else { wide(model.end()) },
            limits,
            most: if limits.events.is_some() { u64::MAX } else { MOST },
            timed: model.clock() == Clock::Time,
            queue: Queue::default(),
            slots: 0,
            spare: Vec::new(),
            live_bytes: 0,
            totals: Totals::default(),
        }
    }

    /// Passes all events to an observer and returns their totals.
    ///
    /// # Errors
    /// Fails if the observer fails, if too many objects are live, or if the model's clock is stuck.
    pub fn run(mut self, observer: &mut dyn Observer) -> Result<Totals> {
        if let Some(player) = self.player.take() {
            return self.play(player, observer);
        }
        let events = self.limits.events.unwrap_or(u64::MAX);
        let (mut now, mut standing) = (0.0, 0_u64);
        while self.totals.events < events {
            let birth = self.source.next(&mut self.random);
            standing = if birth.time > now { 0 } else { standing + 1 };
            now = birth.time;
            if standing >= STANDING {
                return Err(Error::Model(format!("its clock does not advance: {STANDING} allocations at {now}")));
            }
            // Frees precede an allocation at the same time.
            while self.totals.events < events
                && let Some(free) = self.queue.until(now)
            {
                self.free(&free.object, free.time(), observer)?;
            }
            if now > self.end {
                break;
            }
            if self.totals.events < events {
                self.check_length(now)?;
                let object = self.allocate(&birth, observer)?;
                if let Some(free) = birth.ht.map(|ht| birth.time + ht).filter(|free| *free <= self.end) {
                    self.queue.add(free, object);
                }
            }
        }
        self.totals.never_freed = self.live();
        Ok(self.totals)
    }

    /// Plays an outline, whose clock counts events.
    fn play(mut self, mut player: Player, observer: &mut dyn Observer) -> Result<Totals> {
        let events = self.limits.events.map_or(self.end, wide);
        // Live objects by slot.
        let mut objects: Vec<Live> = Vec::new();
        while wide(self.totals.events) < events
            && let Some(act) = player.next(&mut self.random)
        {
            match act {
                Act::Allocate(size) => {
                    let birth = Birth { time: 0.0, size, ht: None };
                    let object = self.allocate(&birth, observer)?;
                    match objects.get_mut(object.slot as usize) {
                        Some(place) => *place = object,
                        None => objects.push(object),
                    }
                    player.placed(object.slot);
                }
                Act::Free(slot) => {
                    if let Some(object) = objects.get(slot as usize) {
                        self.free(object, 0.0, observer)?;
                    }
                }
            }
        }
        self.totals.never_freed = self.live();
        Ok(self.totals)
    }

    /// Rejects a model whose trace would exceed the maximum number of events by a factor of ten at the current rate.
    fn check_length(&self, now: f64) -> Result<()> {
        if self.limits.events.is_some() || self.totals.objects != ENOUGH {
            return Ok(());
        }
        let expected = wide(self.totals.events) * (self.end / now);
        if expected < 10.0 * wide(self.most) {
            return Ok(());
        }
        Err(Error::Model(format!(
            "its trace would have about {expected:.0e} events, more than the maximum of {}: limit the trace with \
             --events N",
            self.most
        )))
    }

    fn live(&self) -> u64 {
        u64::from(self.slots) - self.spare.len() as u64
    }

    /// Begins an object.
    fn allocate(&mut self, birth: &Birth, observer: &mut dyn Observer) -> Result<Live> {
        let live = self.live();
        if self.limits.live.is_some_and(|most| live >= most) {
            return Err(Error::Memory(live));
        }
        if self.totals.events >= self.most {
            let most = self.most;
            return Err(Error::Model(format!(
                "its trace does not end within {most} events: limit the trace with --events N"
            )));
        }
        let slot = match self.spare.pop() {
            Some(slot) => slot,
            None => {
                let slot = self.slots;
                self.slots = slot.checked_add(1).ok_or(Error::Limit("2^32 live objects"))?;
                slot
            }
        };
        self.totals.events += 1;
        let (number, tick, time, size) = (self.totals.objects, self.totals.events, self.time(birth.time), birth.size);
        self.live_bytes = self.live_bytes.saturating_add(size);
        self.totals.objects += 1;
        self.totals.bytes = self.totals.bytes.saturating_add(size);
        self.totals.max_bytes = self.totals.max_bytes.max(self.live_bytes);
        self.totals.max_objects = self.totals.max_objects.max(live + 1);
        let live = Live { number, size, tick, time, slot };
        observer.event(&event(Change::Allocated, tick, time, &live))?;
        Ok(live)
    }

    fn free(&mut self, object: &Live, time: f64, observer: &mut dyn Observer) -> Result<()> {
        self.spare.push(object.slot);
        self.totals.events += 1;
        self.live_bytes = self.live_bytes.saturating_sub(object.size);
        let (tick, time) = (self.totals.events, self.time(time));
        observer.event(&event(Change::Freed, tick, time, object))
    }

    /// Returns the time in nanoseconds, or 0 if the clock does not measure time.
    #[inline]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "such casts saturate")]
    fn time(&self, time: f64) -> u64 {
        if self.timed { time as u64 } else { 0 }
    }
}

/// Creates an event of the only thread, for an object without an address.
fn event(change: Change, tick: u64, time: u64, object: &Live) -> ObjectEvent {
    let Live { number, size, tick: born, time: born_at, slot } = *object;
    let object =
        Object { slot, number, address: 0, size, tick: born, time: born_at, thread: 1, site: 0, heap: 0, allocated: 0 };
    ObjectEvent { tick, time, thread: 1, change, cause: Cause::Call, object }
}
