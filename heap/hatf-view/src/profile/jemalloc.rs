//! jemalloc heap profiles in text format (`heap_v2`), which contain stacks of addresses with their live memory, and the
//! program's memory map.
//!
//! jemalloc samples blocks, and large blocks are more likely to be sampled than small ones. Totals are estimates,
//! extrapolated as in jemalloc's own `jeprof`.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, Read as _};

use hatf_lab::profile::{HeapInfo, Live};
use hatf_lab::sites::Amount;

use super::ProfileForm;
use super::heap_profile::{HeapProfile, ProfileContext};
use hatf_trace::Error;
use hatf_trace::stacks::{Location, Module};

pub(super) static FORM: ProfileForm = ProfileForm {
    name: "jemalloc",
    about: "jemalloc's heap profiles as text, heap_v2",
    ending: "heap",
    sniff: |head| head.bytes.starts_with(b"heap_v2/"),
    open: Some(|input, step| {
        let name = input.name().to_owned();
        read_jemalloc(input.into_read(), step)
            .map_err(|error| match error {
                Problem::System(error) => Error::System(name, error),
                Problem::Line(line, why) => Error::Trace(format!("jemalloc profile, line {line}: {why}").into()),
            })
            .map(|profile| vec![profile])
    }),
    create: None,
};

/// Maximum line length in bytes.
const LINE: usize = 1 << 16;
/// Maximum size of a profile in bytes.
const LONGEST: u64 = 1 << 30;
/// Maximum amount of a single stack, which is small enough that sums do not overflow.
const MOST: f64 = (1_u64 << 62) as f64;

enum Problem {
    System(std::io::Error),
    Line(u64, &'static str),
}

fn read_jemalloc(read: Box<dyn BufRead + Send>, step: &mut dyn FnMut()) -> std::result::Result<HeapProfile, Problem> {
    let mut read = read.take(LONGEST);
    let (mut line, mut number) = (Vec::new(), 0_u64);
    let mut file = JemallocProfile::default();
    loop {
        line.clear();
        number += 1;
        (&mut read).take(LINE as u64 + 1).read_until(b'\n', &mut line).map_err(Problem::System)?;
        if line.is_empty() {
            break;
        }
        if line.len() > LINE {
            return Err(Problem::Line(number, "the line exceeds 64 KiB"));
        }
        let text = String::from_utf8_lossy(&line);
        file.line(text.trim_ascii_end()).map_err(|why| Problem::Line(number, why))?;
        step();
    }
    if file.interval.is_none() || read.limit() == 0 {
        return Err(Problem::Line(number, "the file is empty or exceeds 1 GiB"));
    }
    Ok(file.finish())
}

/// A parsed profile.
#[derive(Default)]
struct JemallocProfile {
    /// The mean number of bytes between samples.
    interval: Option<u64>,
    /// The stack whose counts follow.
    stack: Option<Vec<u64>>,
    stacks: Vec<(Vec<u64>, [u64; 4])>,
    in_map: bool,
    /// By path, the start and end addresses, and the address of the start of the file.
    map: BTreeMap<String, (u64, u64, u64)>,
}

impl JemallocProfile {
    fn line(&mut self, line: &str) -> std::result::Result<(), &'static str> {
        if self.interval.is_none() {
            let interval = line.strip_prefix("heap_v2/").and_then(|interval| interval.parse().ok());
            self.interval =
                Some(interval.filter(|interval| *interval > 0).ok_or("expected heap_v2/INTERVAL at the start")?);
            return Ok(());
        }
        if line == "MAPPED_LIBRARIES:" {
            self.in_map = true;
        } else if self.in_map {
            self.mapping(line);
        } else if let Some(stack) = line.strip_prefix('@') {
            let address = |word: &str| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok();
            let stack: Option<Vec<u64>> = stack.split_ascii_whitespace().map(address).collect();
            self.stack = Some(stack.ok_or("expected hexadecimal addresses")?);
        } else if let Some(counts) = line.trim_ascii_start().strip_prefix("t*:") {
            let counts = counts.replace(['[', ']', ':'], " ");
            let counts: Option<Vec<u64>> = counts.split_ascii_whitespace().map(|word| word.parse().ok()).collect();
            let counts: Option<[u64; 4]> = counts.and_then(|counts| counts.try_into().ok());
            let counts = counts.ok_or("expected counts of the form `t*: BLOCKS: BYTES [BLOCKS: BYTES]`")?;
            // The counts before the first stack are totals.
            self.stacks.extend(self.stack.take().map(|stack| (stack, counts)));
        }
        // Skip the counts of single threads, because `t*` contains their sum.
        Ok(())
    }

    /// Parses a line of the memory map. Ignores lines that do not describe a module.
    fn mapping(&mut self, line: &str) {
        let mut words = line.split_ascii_whitespace();
        let Some((start, end)) = words.next().and_then(|range| range.split_once('-')) else { return };
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        let (start, end, offset) = (hex(start), hex(end), words.nth(1).and_then(hex));
        let path = words.skip(2).collect::<Vec<_>>().join(" ");
        if let (Some(start), Some(end), Some(offset)) = (start, end, offset)
            && path.starts_with('/')
            && start < end
        {
            let module = self.map.entry(path).or_insert((start, end, start.wrapping_sub(offset)));
            *module = (module.0.min(start), module.1.max(end), module.2);
        }
    }

    fn finish(self) -> HeapProfile {
        let interval = self.interval.unwrap_or(1);
        let modules = self.map.into_iter().enumerate().map(|(number, (path, (start, end, bias)))| {
            let build_id = String::new();
            Module { number, bias, start, end, build_id, path, is_program: false }
        });
        let modules: Vec<Module> = modules.collect();
        let by_start: BTreeMap<u64, usize> = modules.iter().map(|module| (module.start, module.number)).collect();
        let mut profile = HeapProfile { modules, ..HeapProfile::default() };
        let (mut places, mut numbers) = (HashMap::new(), HashMap::<Vec<u32>, u64>::new());
        let accumulates = self.stacks.iter().any(|(_, [_, _, blocks, _])| *blocks > 0);
        for (stack, [blocks, bytes, all, all_bytes]) in self.stacks {
            let frames = stack.into_iter().map(|address| {
                let next = u32::try_from(profile.locations.len()).unwrap_or(u32::MAX);
                *places.entry(address).or_insert_with(|| {
                    let call = address.saturating_sub(1);
                    let module = by_start.range(..=call).next_back().and_then(|(_, place)| profile.modules.get(*place));
                    let module = module.filter(|module| call < module.end);
                    let (bias, path) = module.map_or((0, ""), |module| (module.bias, &module.path));
                    let (offset, module) = (address.wrapping_sub(bias), path.to_owned());
                    profile.locations.push(Location { address, offset, module, ..Location::default() });
                    next
                })
            });
            let frames: Vec<u32> = frames.collect();
            let next = numbers.len() as u64 + 1;
            let context = *numbers.entry(frames).or_insert_with_key(|frames| {
                profile.contexts.insert(next, ProfileContext::Stack(frames.clone()));
                next
            });
            let live = estimate(blocks, bytes, interval);
            let allocated = if accumulates { estimate(all, all_bytes, interval) } else { live };
            let live = Some(Live { peak: live, end: live });
            profile.infos.push(HeapInfo::of_sums(context, allocated, live));
        }
        let mut merged = hatf_lab::profile::Merged::new();
        std::mem::take(&mut profile.infos).into_iter().for_each(|info| merged.add(info, false));
        HeapProfile { infos: merged.finish(), ..profile }
    }
}

/// Returns the estimated memory that sampled blocks represent.
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn estimate(blocks: u64, bytes: u64, interval: u64) -> Amount {
    if blocks == 0 || bytes == 0 {
        return Amount { blocks, bytes };
    }
    let average = bytes as f64 / blocks as f64;
    let scale = -1.0 / (-average / interval as f64).exp_m1();
    let scaled = |value: u64| (value as f64 * scale).min(MOST).round() as u64;
    Amount { blocks: scaled(blocks), bytes: scaled(bytes) }
}
