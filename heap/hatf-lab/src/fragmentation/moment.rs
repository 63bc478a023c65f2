//! Snapshots of the heap, which consist of pages and the blocks that keep those pages from being free.

use std::collections::HashMap;
use std::fmt;

use serde::Serialize;

use super::share::{Part, Share, shares};
use super::{PAGES, extent};
use crate::classes::{class_of, range};
use crate::objects::Object;
use metatf_page::units::count;

/// Settings of the analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Bytes per page, a power of two. Waste is attributed to the blocks on pages of this size.
    pub page: u64,
    /// The maximum number of live bytes on a *pinned* page. `None` means a sixteenth of the page size.
    pub pin: Option<u64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { page: PAGES[0], pin: None }
    }
}

/// Functions that return names for site numbers.
#[derive(Clone, Copy)]
pub struct Names<'n> {
    /// Returns the name of a stack.
    pub site: &'n dyn Fn(u64) -> String,
    /// Returns the name of the application function that allocated.
    pub function: &'n dyn Fn(u64) -> String,
}

impl fmt::Debug for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Names")
    }
}

/// A snapshot of the heap.
///
/// The [module's example](crate::fragmentation#examples) analyzes a heap with pinned pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Moment {
    /// The number of events before the snapshot.
    pub tick: u64,
    /// Nanoseconds since the start; 0 if the trace has no timestamps.
    pub time: u64,
    /// The number of live blocks.
    pub blocks: u64,
    /// The bytes requested by the live blocks.
    pub live: u64,
    /// The pages of each size. The page size for which waste is attributed comes first.
    pub pages: Vec<Pages>,
    /// Waste by allocating stack; empty if the trace has no stacks.
    pub sites: Vec<Share>,
    /// Waste by allocating stack and requested size; empty if the trace has no stacks.
    pub sizes_of_sites: Vec<Share>,
    /// Waste by allocating function and size class; empty if the trace has no stacks.
    pub sizes_of_functions: Vec<Share>,
    /// Waste by allocating thread.
    pub threads: Vec<Share>,
    /// Waste by requested size.
    pub sizes: Vec<Share>,
    /// The runs of pages from which the map is drawn.
    #[serde(skip)]
    pub(super) runs: Vec<Run>,
    /// Blocks on shared pages and the waste attributed to each of them, in arbitrary order.
    #[serde(skip)]
    pub on_pages: Vec<OnPage>,
}

/// A block on a page on which it begins or ends. A block that spans two pages occurs twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OnPage {
    /// The stack that allocated the block.
    pub site: u64,
    /// The fill level of the page: 0 for a pinned page, otherwise the tenth from 1 to 10.
    pub full: u8,
    /// The age class of the page's oldest block, whose age is below `10^age` nanoseconds and at least a tenth of that.
    /// Ages are in events if the trace has no timestamps.
    pub age: u8,
    /// The block's share of the page's waste in bytes.
    pub wasted: u64,
}

/// Adjacent pages with equal contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// The number of the first page.
    pub(super) page: u64,
    pub(super) pages: u64,
    /// The number of live bytes on each page.
    pub(super) live: u64,
}

/// Held pages of one size.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pages {
    /// Bytes per page.
    pub page: u64,
    /// The number of held pages.
    pub held: u64,
    /// The bytes of held pages that do not belong to the requested size of any live block.
    pub wasted: u64,
    /// Held pages by live bytes. The first entry counts pages of which up to a tenth is live, the second up to two
    /// tenths, and so on.
    pub by_live_bytes: [u64; 10],
    /// Pinned pages by live bytes, in the same classes.
    pub pinned_by_live_bytes: [u64; 10],
    /// The maximum number of live bytes on a pinned page.
    pub pin: u64,
    /// The number of pinned pages.
    pub pinned: u64,
    /// The live bytes on pinned pages.
    pub live_on_pinned: u64,
    /// The wasted bytes on pinned pages.
    pub wasted_on_pinned: u64,
    /// The number of pages on which a block begins inside another block, because the trace is invalid or lacks frees.
    pub overlapping: u64,
}

impl Moment {
    /// Analyzes the blocks that are live just after the event with this number and time.
    #[must_use]
    pub fn new(live: Vec<Object>, (tick, time): (u64, u64), settings: Settings, names: Names<'_>) -> Self {
        let Names { site, function } = names;
        let mut live = live;
        live.sort_unstable_by_key(|object| object.address);
        let mut parts: Vec<Part> = live
            .iter()
            .map(|object| Part {
                bytes: object.size,
                age: tick.saturating_sub(object.tick),
                nanoseconds: time.saturating_sub(object.time),
                ..Part::default()
            })
            .collect();
        let (mut runs, mut on_pages) = (Vec::new(), Vec::new());
        let mut note = |blocks: &[(usize, u64)], full: u8, parts: &[Part]| {
            let ages = blocks.iter().filter_map(|(block, _)| parts.get(*block));
            let age = ages.map(|part| if time > 0 { part.nanoseconds } else { part.age }).max().unwrap_or(0);
            let age = age.checked_ilog10().map_or(0, |log| u8::try_from(log + 1).unwrap_or(u8::MAX));
            on_pages.extend(blocks.iter().filter_map(|(block, wasted)| {
                Some(OnPage { site: live.get(*block)?.site, full, age, wasted: *wasted })
            }));
        };
        let mut pages = vec![sweep(&live, settings.page, settings.pin, &mut parts, &mut runs, &mut note)];
        for page in PAGES.into_iter().filter(|page| *page != settings.page) {
            pages.push(sweep(&live, page, None, &mut [], &mut Vec::new(), &mut |_, _, _| ()));
        }
        let by = |key: fn(&Object) -> (u64, u64)| live.iter().map(key).zip(parts.iter().copied());
        let has_sites = live.iter().any(|object| object.site != 0);
        Self {
            tick,
            time,
            blocks: live.len() as u64,
            live: live.iter().fold(0, |sum, object| sum.saturating_add(object.size)),
            pages,
            sites: if has_sites { shares(by(|object| (object.site, 0)), |of, _| site(of)) } else { Vec::new() },
            sizes_of_sites: if has_sites {
                shares(by(|object| (object.site, object.size)), |of, size| {
                    format!("{} bytes, {}", count(size), site(of))
                })
            } else {
                Vec::new()
            },
            sizes_of_functions: if has_sites { of_functions(&live, &parts, function) } else { Vec::new() },
            threads: shares(by(|object| (object.thread, 0)), |thread, _| format!("thread {thread}")),
            sizes: shares(by(|object| (object.size, 0)), |size, _| format!("{} bytes", count(size))),
            runs,
            on_pages,
        }
    }
}

/// Divides the waste by function and size class.
fn of_functions(live: &[Object], parts: &[Part], function: &dyn Fn(u64) -> String) -> Vec<Share> {
    let (mut numbers, mut names) = (HashMap::<String, u64>::new(), Vec::new());
    let mut of_site = HashMap::<u64, u64>::new();
    let number = |object: &Object| {
        *of_site.entry(object.site).or_insert_with(|| {
            let name = function(object.site);
            *numbers.entry(name.clone()).or_insert_with(|| {
                names.push(name);
                names.len() as u64 - 1
            })
        })
    };
    let functions: Vec<u64> = live.iter().map(number).collect();
    let keys = functions.into_iter().zip(live).map(|(function, object)| (function, class_of(object.size) as u64));
    let at = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    shares(keys.zip(parts.iter().copied()), |function, class| {
        format!("{} bytes, {}", range(at(class)), names.get(at(function)).map_or("", String::as_str))
    })
}

/// A block on a page on which it begins or ends. No other block is on the pages in between.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Touch {
    page: u64,
    /// The index of the block in address order.
    block: usize,
    bytes: u64,
}

/// A callback for each page. The arguments are the block numbers with their shares of the waste, the fill level, and
/// the data of all blocks.
type PageNote<'n> = dyn FnMut(&[(usize, u64)], u8, &[Part]) + 'n;

/// Visits the pages in order and attributes their waste to the blocks.
fn sweep(
    live: &[Object],
    page: u64,
    pin: Option<u64>,
    parts: &mut [Part],
    runs: &mut Vec<Run>,
    note: &mut PageNote<'_>,
) -> Pages {
    let shift = page.trailing_zeros();
    let mut touches = Vec::new();
    let mut pages = Pages { page, pin: pin.unwrap_or(page / 16), ..Pages::default() };
    let (mut end, mut overlapping) = (None, None);
    for (block, object) in live.iter().enumerate() {
        let (start, last) = extent(object);
        let (first_page, last_page) = (start >> shift, last >> shift);
        if end >= Some(start) && overlapping != Some(first_page) {
            overlapping = Some(first_page);
            pages.overlapping += 1;
        }
        end = end.max(Some(last));
        // For an empty block, `last` is its address. The block holds the page without occupying a byte.
        let size = if object.size == 0 { 0 } else { last - start + 1 };
        let on_first = size.min(page - (start & (page - 1)));
        touches.push(Touch { page: first_page, block, bytes: on_first });
        if last_page > first_page {
            touches.push(Touch { page: last_page, block, bytes: (last & (page - 1)) + 1 });
            let inner = last_page - first_page - 1;
            pages.held += inner;
            if let Some(full) = pages.by_live_bytes.last_mut() {
                *full += inner;
            }
            if inner > 0 {
                runs.push(Run { page: first_page + 1, pages: inner, live: page });
            }
        }
    }
    touches.sort_unstable();
    let mut shares = Vec::new();
    for group in touches.chunk_by(|one, other| one.page == other.page) {
        let live: u64 = group.iter().map(|touch| touch.bytes).sum();
        let live = live.min(page);
        let tenth = pages.count(live);
        let (wasted, blocks) = (page - live, group.len() as u64);
        shares.clear();
        for (rank, touch) in (0..).zip(group) {
            let share = wasted / blocks + u64::from(rank < wasted % blocks);
            shares.push((touch.block, share));
            if let Some(part) = parts.get_mut(touch.block) {
                part.wasted += share;
                part.wasted_on_pinned += if live <= pages.pin { share } else { 0 };
            }
        }
        note(&shares, tenth, parts);
        runs.extend(group.first().map(|touch| Run { page: touch.page, pages: 1, live }));
    }
    runs.sort_unstable_by_key(|run| run.page);
    pages
}

impl Pages {
    /// Counts one page. Returns its tenth from 1 to 10, or 0 if the page is pinned.
    fn count(&mut self, live: u64) -> u8 {
        let wasted = self.page - live;
        self.held += 1;
        self.wasted += wasted;
        let tenth = usize::try_from((live * 10).div_ceil(self.page).max(1) - 1).unwrap_or(0);
        if let Some(count) = self.by_live_bytes.get_mut(tenth) {
            *count += 1;
        }
        if live <= self.pin {
            if let Some(count) = self.pinned_by_live_bytes.get_mut(tenth) {
                *count += 1;
            }
            self.pinned += 1;
            self.live_on_pinned += live;
            self.wasted_on_pinned += wasted;
            return 0;
        }
        u8::try_from(tenth + 1).unwrap_or(u8::MAX)
    }
}
