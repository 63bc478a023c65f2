//! Simulates memory managers with different settings.

use std::collections::HashMap;

use super::Operation;
use super::calls::{Calls, Recorder};
use super::outcome::{Outcome, Percents};
use super::parts::{Parts, Wanted};
use super::region::{Frame, Region, Regions, Who};
use super::settings::{Oversize, Settings};
use hatf_lab::history::Curve;
use hatf_lab::{Error, Result};

/// A simulation of the operations of all threads, under several settings at the same time. Memory is bounded by the
/// simultaneously active regions and their blocks. The [module documentation](super) contains an example.
#[derive(Debug)]
pub struct Simulation {
    /// The regions entered by each thread, outermost first.
    frames: HashMap<u64, Vec<Frame>>,
    managers: Vec<Manager>,
    stacks: Stacks,
    calls: Option<Recorder>,
}

/// The result of a simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulated {
    /// Statistics of the operations.
    pub stacks: Stacks,
    /// The outcome for each setting.
    pub outcomes: Vec<Outcome>,
    /// The calls between methods, if requested.
    pub calls: Option<Calls>,
}

/// Statistics of the operations, which are independent of the settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Stacks {
    /// The number of regions entered.
    pub regions: u64,
    /// The maximum depth of the region stacks.
    pub deepest: u64,
    /// The number of site registrations.
    pub registrations: u64,
    /// The number of objects allocated in regions.
    pub objects: u64,
    /// The bytes of these objects.
    pub bytes: u64,
    /// The number of objects whose site a region had registered.
    pub captured: u64,
    /// The number of objects allocated outside of all regions, in the heap, which is not simulated.
    pub in_the_heap: u64,
    /// The number of exits and registrations outside of all regions, which have no effect.
    pub outside: u64,
    /// The number of regions that were never exited.
    pub not_exited: u64,
}

/// A memory manager with one setting.
#[derive(Debug)]
struct Manager {
    settings: Settings,
    threads: HashMap<u64, Regions>,
    outcome: Outcome,
    used: Percents,
    all: Percents,
    over_time: Percents,
    carried: Percents,
    curve: Curve<1>,
    /// The bytes in blocks of all active regions.
    active: u64,
    /// The sum of the latest `f_i` of all active regions.
    last: u64,
    parts: Parts,
}

impl Simulation {
    /// Creates a simulation without regions.
    ///
    /// # Errors
    /// Fails if a block size is 0.
    pub fn new(settings: impl IntoIterator<Item = Settings>) -> Result<Self> {
        let manager = |settings: Settings| match settings.block {
            0 => Err(Error::Usage("a block must have at least 1 byte".to_owned())),
            _ => Ok(Manager::new(settings)),
        };
        let managers = settings.into_iter().map(manager).collect::<Result<_>>()?;
        Ok(Self { frames: HashMap::new(), managers, stacks: Stacks::default(), calls: None })
    }

    /// Also collects results by method, by region, or both.
    #[must_use]
    pub fn with_parts(mut self, methods: bool, regions: bool) -> Self {
        self.managers.iter_mut().for_each(|manager| manager.parts.wanted = Wanted { methods, regions });
        self
    }

    /// Also collects the calls between methods.
    #[must_use]
    pub fn with_calls(mut self) -> Self {
        self.calls = Some(Recorder::default());
        self
    }

    /// Performs an operation on behalf of a thread.
    ///
    /// # Errors
    /// Fails if an object is larger than a block and the settings reject such objects.
    pub fn operate(&mut self, thread: u64, operation: Operation<'_>) -> Result<()> {
        let Self { frames, managers, stacks, calls } = self;
        let frames = frames.entry(thread).or_default();
        match operation {
            Operation::Enter { method } => {
                let who = Who { number: stacks.regions, method, thread, depth: frames.len() as u64 };
                frames.push(Frame::default());
                stacks.regions += 1;
                stacks.deepest = stacks.deepest.max(frames.len() as u64);
                managers.iter_mut().for_each(|manager| manager.enter(who));
                calls.iter_mut().for_each(|calls| calls.enter(thread, method));
            }
            Operation::Exit => match frames.pop() {
                Some(_) => {
                    managers.iter_mut().for_each(|manager| manager.exit(thread));
                    calls.iter_mut().for_each(|calls| calls.exit(thread));
                }
                None => stacks.outside += 1,
            },
            Operation::Register { call_site, sites } => match frames.last_mut() {
                Some(frame) => {
                    frame.captured.clear();
                    frame.captured.extend(sites);
                    stacks.registrations += 1;
                    calls.iter_mut().for_each(|calls| calls.registered(thread, call_site));
                }
                None => stacks.outside += 1,
            },
            Operation::New { .. } if frames.is_empty() => stacks.in_the_heap += 1,
            Operation::New { site, size } => {
                let captor = frames.iter().rposition(|frame| frame.captured.contains(&site));
                let prefix = captor.map_or(frames.len(), |captor| captor + 1);
                stacks.objects += 1;
                stacks.bytes = stacks.bytes.saturating_add(size);
                stacks.captured += u64::from(captor.is_some());
                managers.iter_mut().try_for_each(|manager| manager.allocate(thread, prefix, size))?;
                calls.iter_mut().for_each(|calls| calls.allocated(thread, size));
            }
        }
        Ok(())
    }

    /// Ends all active regions and returns the results. `names` contains the names of methods and call sites, indexed
    /// by their numbers.
    #[must_use]
    pub fn finish(mut self, names: &[String]) -> Simulated {
        self.stacks.not_exited = self.frames.values().map(|frames| frames.len() as u64).sum();
        let outcomes = self.managers.into_iter().map(|manager| manager.finish(names)).collect();
        Simulated { stacks: self.stacks, outcomes, calls: self.calls.map(|calls| calls.finish(names)) }
    }
}

impl Manager {
    fn new(settings: Settings) -> Self {
        Self {
            settings,
            threads: HashMap::new(),
            outcome: Outcome::new(settings),
            used: Percents::default(),
            all: Percents::default(),
            over_time: Percents::default(),
            carried: Percents::default(),
            curve: Curve::of_each(),
            active: 0,
            last: 0,
            parts: Parts::default(),
        }
    }

    fn enter(&mut self, who: Who) {
        let block = self.settings.block;
        self.threads.entry(who.thread).or_default().0.push(Region::new(block, who));
        self.outcome.blocks_added += 1;
        self.add(block);
    }

    /// Counts bytes of blocks added to a region.
    fn add(&mut self, bytes: u64) {
        self.active = self.active.saturating_add(bytes);
        self.outcome.most_bytes = self.outcome.most_bytes.max(self.active);
    }

    fn exit(&mut self, thread: u64) {
        let region = self.threads.get_mut(&thread).and_then(|regions| regions.0.pop());
        if let Some(region) = region {
            self.outcome.blocks_freed += region.blocks();
            self.outcome.objects_collected += region.objects;
            self.end(&region);
        }
    }

    /// Records the results of a region that has ended.
    fn end(&mut self, region: &Region) {
        self.parts.note(region);
        self.active -= region.bytes;
        self.last -= region.last;
        let mean = if region.objects == 0 { 0.0 } else { region.percents / float(region.objects) };
        self.all.add(mean);
        if region.objects > 0 {
            self.used.add(mean);
        }
    }

    fn allocate(&mut self, thread: u64, prefix: usize, size: u64) -> Result<()> {
        let Self { settings, threads, outcome, .. } = self;
        let Some(regions) = threads.get_mut(&thread) else { return Ok(()) };
        let active = self.active;
        let found = regions.choose(prefix, size, *settings, &mut outcome.blocks_looked_at);
        let number = found.map_or(prefix - 1, |(number, _)| number);
        let elsewhere = found.is_none() && regions.fits_elsewhere(prefix, number, size);
        let free_in_prefix = || regions.0.iter().take(prefix).map(|region| region.total_free).sum();
        // F_i, defined analogously to f_i.
        let inter: u64 = if elsewhere { free_in_prefix() } else { 0 };
        let Some(region) = regions.0.get_mut(number) else { return Ok(()) };
        let mut grown = 0;
        let mut intra = 0;
        let bytes = region.bytes;
        match found {
            Some((_, fit)) => region.put(fit, size),
            None => {
                if region.total_free >= size {
                    intra = region.total_free;
                }
                grown = block_for(size, *settings)?;
                outcome.oversize += u64::from(size > settings.block);
                outcome.blocks_added += 1;
                region.grow(grown, size);
            }
        }
        self.last = self.last - region.last + intra;
        region.last = intra;
        region.intra_sum = region.intra_sum.saturating_add(intra);
        region.percents += percent(intra, bytes);
        outcome.intra(intra);
        outcome.inter(inter);
        self.over_time.add(percent(intra, active));
        self.carried.add(percent(self.last, active));
        // In thousandths of a percent.
        self.curve.note([u64::try_from(u128::from(intra) * 100_000 / u128::from(active.max(1))).unwrap_or(u64::MAX)]);
        self.add(grown);
        Ok(())
    }

    fn finish(mut self, names: &[String]) -> Outcome {
        let mut left: Vec<(u64, Regions)> = self.threads.drain().collect();
        left.sort_unstable_by_key(|(thread, _)| *thread);
        left.iter().flat_map(|(_, regions)| &regions.0).for_each(|region| self.end(region));
        let name = self.outcome.name.clone();
        let (methods, regions) = self.parts.finish(names);
        Outcome {
            methods,
            regions,
            used_regions: self.used.finish(),
            all_regions: self.all.finish(),
            over_time: self.over_time.finish(),
            carried_over_time: self.carried.finish(),
            curve: Some(self.curve.curves([&name])),
            ..self.outcome
        }
    }
}

/// Returns the size of a new block for an object.
fn block_for(size: u64, settings: Settings) -> Result<u64> {
    let Settings { block, oversize, .. } = settings;
    if size <= block {
        return Ok(block);
    }
    match oversize {
        Oversize::Refuse => {
            Err(Error::Usage(format!("an object of {size} bytes does not fit in a block of {block} bytes")))
        }
        Oversize::Grow => size.checked_next_multiple_of(block).ok_or(Error::Limit("2^64 bytes in a block")),
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * float(part) / float(whole) }
}

#[expect(clippy::cast_precision_loss, reason = "bytes, for a percentage")]
fn float(value: u64) -> f64 {
    value as f64
}
