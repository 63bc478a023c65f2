//! LLVM's raw memory profiles (`*.memprofraw`), versions 3 to 5. They are written by programs that were compiled by
//! clang with `-fmemory-profile`.
//!
//! Every number is validated against the available bytes before it is used, so memory use is bounded by the file size.

use std::collections::{BTreeMap, HashMap};
use std::io::Read as _;

use hatf_lab::profile::{Cpus, HeapInfo, Lifetimes, Spread};

use super::ProfileForm;
use super::heap_profile::{HeapProfile, ProfileContext};
use hatf_trace::stacks::{Location, Module};
use hatf_trace::{Error, Result};

pub(super) static FORM: ProfileForm = ProfileForm {
    name: "memprofraw",
    about: "Raw memory profiles of LLVM, versions 3 to 5",
    ending: "memprofraw",
    sniff: |head| head.bytes.starts_with(&MAGIC.to_le_bytes()),
    open: Some(|input, _| {
        let (name, mut bytes) = (input.name().to_owned(), Vec::new());
        input.into_read().read_to_end(&mut bytes).map_err(Error::system(name))?;
        import(&bytes)
    }),
    create: None,
};

/// The magic number at the start of a profile.
const MAGIC: u64 = u64::from_le_bytes([0x81, 0x72, 0x66, 0x6f, 0x72, 0x70, 0x6d, 0xff]);

/// Size of a header in bytes.
const HEADER: usize = 48;

/// Maximum size of a build ID in bytes.
const BUILD_ID: usize = 32;

/// Reads the consecutive profiles in a file. Their heap info blocks contain neither the `first_*` fields nor
/// utilization.
///
/// # Errors
/// The file is not a raw profile, is corrupt, or is truncated. The error contains the offset.
pub fn import(file: &[u8]) -> Result<Vec<HeapProfile>> {
    let mut profiles = Vec::new();
    let mut at = 0;
    loop {
        let header = Bytes { file, at, end: file.len() };
        let (profile, next) = profile(header)?;
        profiles.push(profile);
        at = next;
        if at == file.len() {
            return Ok(profiles);
        }
    }
}

/// A position in a part of the file.
#[derive(Clone, Copy)]
struct Bytes<'f> {
    file: &'f [u8],
    at: usize,
    end: usize,
}

impl<'f> Bytes<'f> {
    fn error<T>(&self, text: &str) -> Result<T> {
        Err(Error::Trace(format!("offset {}: {text}", self.at).into()))
    }

    fn take(&mut self, length: usize, what: &str) -> Result<&'f [u8]> {
        let end = self.at.checked_add(length).filter(|end| *end <= self.end);
        match end.and_then(|end| Some((end, self.file.get(self.at..end)?))) {
            Some((end, bytes)) => {
                self.at = end;
                Ok(bytes)
            }
            None => self.error(&format!("{what} does not fit: the profile or its section ends at {}", self.end)),
        }
    }

    fn u64(&mut self, what: &str) -> Result<u64> {
        let bytes = self.take(8, what)?;
        Ok(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    fn u32(&mut self, what: &str) -> Result<u64> {
        let bytes = self.take(4, what)?;
        Ok(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    fn u16(&mut self, what: &str) -> Result<u64> {
        let bytes = self.take(2, what)?;
        Ok(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    /// Reads the number of items that follow, each of at least `least` bytes.
    fn count(&mut self, least: usize, what: &str) -> Result<usize> {
        let start = *self;
        let count = self.u64(what)?;
        let fits = usize::try_from(count).ok().filter(|count| {
            let bytes = count.checked_mul(least);
            bytes.is_some_and(|bytes| bytes <= self.end - self.at)
        });
        let why = || format!("{what} is {count}, which exceeds the space left in its section");
        fits.ok_or(()).or_else(|()| start.error(&why()))
    }
}

/// Reads a profile. Also returns its end offset.
fn profile(start: Bytes<'_>) -> Result<(HeapProfile, usize)> {
    let mut header = start;
    if header.u64("the magic number").ok() != Some(MAGIC) {
        return start.error("not a raw LLVM memory profile: the magic number is missing");
    }
    let version = header.u64("the version")?;
    if !(3..=5).contains(&version) {
        return start.error(&format!("unsupported version {version}: expected 3 to 5"));
    }
    let total = header.u64("the size")?;
    let left = start.end - start.at;
    let total = usize::try_from(total).ok().filter(|total| (HEADER..=left).contains(total) && total.is_multiple_of(8));
    let Some(total) = total else {
        return start
            .error(&format!("the size of the profile is invalid, or the profile is truncated to {left} bytes"));
    };
    let end = start.at + total;
    let mut section = |what| {
        let offset = header.u64(what)?;
        let offset = usize::try_from(offset).ok().filter(|offset| (HEADER..=total).contains(offset));
        offset
            .map(|offset| start.at + offset)
            .ok_or(what)
            .or_else(|what| start.error(&format!("{what} is outside of the profile")))
    };
    let offsets = [
        section("the offset of the segments")?,
        section("the offset of the memory info blocks")?,
        section("the offset of the stacks")?,
    ];
    if !offsets.is_sorted() {
        return start.error("the sections are in the wrong order");
    }
    let [segments, infos, stacks] = offsets;
    let part = |at, end| Bytes { end, at, file: start.file };
    let modules = read_segments(part(segments, infos))?;
    let stacks = read_stacks(part(stacks, end))?;
    let mut profile = HeapProfile { modules, ..HeapProfile::default() };
    read_infos(part(infos, offsets[2]), version, &stacks, &mut profile)?;
    Ok((profile, end))
}

fn read_segments(mut bytes: Bytes<'_>) -> Result<Vec<Module>> {
    let count = bytes.count(64, "the number of segments")?;
    let mut modules = Vec::with_capacity(count);
    for number in 0..count {
        let place = bytes;
        let (start, end, offset) = (bytes.u64("a segment")?, bytes.u64("a segment")?, bytes.u64("a segment")?);
        let length = usize::try_from(bytes.u64("a segment")?).unwrap_or(usize::MAX);
        let build_id = bytes.take(BUILD_ID, "a segment")?;
        let Some(build_id) = build_id.get(..length) else {
            return place.error(&format!("the build id of segment {number} has more than {BUILD_ID} bytes"));
        };
        let build_id = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
        // LLVM calls this field an offset, but it is the base address at which the module was loaded.
        let bias = offset;
        modules.push(Module { number, bias, start, end, build_id, path: String::new(), is_program: false });
    }
    Ok(modules)
}

/// Stacks by ID. A stack consists of call addresses, innermost first.
type Stacks = HashMap<u64, Vec<u64>>;

fn read_stacks(mut bytes: Bytes<'_>) -> Result<Stacks> {
    let count = bytes.count(16, "the number of stacks")?;
    let mut stacks = Stacks::with_capacity(count);
    for _ in 0..count {
        let place = bytes;
        let id = bytes.u64("the id of a stack")?;
        let depth = bytes.count(8, "the depth of a stack")?;
        let frames = (0..depth).map(|_| bytes.u64("a frame")).collect::<Result<_>>()?;
        if stacks.insert(id, frames).is_some() {
            return place.error(&format!("stack {id:#x} is defined twice"));
        }
    }
    Ok(stacks)
}

fn read_infos(mut bytes: Bytes<'_>, version: u64, stacks: &Stacks, profile: &mut HeapProfile) -> Result<()> {
    let least = if version == 3 { 140 } else { 152 };
    let count = bytes.count(least, "the number of memory info blocks")?;
    let segments: BTreeMap<u64, Module> = profile.modules.iter().map(|module| (module.start, module.clone())).collect();
    let mut locations = HashMap::new();
    let mut numbers = HashMap::new();
    profile.infos.reserve(count);
    for _ in 0..count {
        let place = bytes;
        let id = bytes.u64("the stack of a memory info block")?;
        let Some(stack) = stacks.get(&id) else { return place.error(&format!("there is no stack {id:#x}")) };
        let context = match numbers.get(&id) {
            Some(number) => *number,
            None => {
                let mut frames = Vec::with_capacity(stack.len());
                for address in stack {
                    let next = u32::try_from(profile.locations.len());
                    let next = next.map_err(|_| Error::Trace("too many locations".into()))?;
                    frames.push(*locations.entry(*address).or_insert_with(|| {
                        profile.locations.push(location(*address, &segments));
                        next
                    }));
                }
                let number = numbers.len() as u64 + 1;
                numbers.insert(id, number);
                profile.contexts.insert(number, ProfileContext::Stack(frames));
                number
            }
        };
        profile.infos.push(read_info(&mut bytes, version, context)?);
    }
    Ok(())
}

fn location(call: u64, segments: &BTreeMap<u64, Module>) -> Location {
    // The runtime stores the addresses of calls, one byte before their return addresses. Frames of other profiles are
    // return addresses.
    let address = call.wrapping_add(1);
    let segment = segments.range(..=call).next_back().map(|(_, module)| module);
    let segment = segment.filter(|module| call < module.end);
    let (offset, build_id) =
        segment.map_or((address, String::new()), |module| (address.wrapping_sub(module.bias), module.build_id.clone()));
    Location { address, offset, build_id, ..Location::default() }
}

fn read_info(bytes: &mut Bytes<'_>, version: u64, context: u64) -> Result<HeapInfo> {
    const WHAT: &str = "a memory info block";
    /// Reads 4-byte and 8-byte numbers.
    macro_rules! read {
        ($($name:ident: $kind:ident),+ $(,)?) => { $(let $name = bytes.$kind(WHAT)?;)+ };
    }
    read!(alloc_count: u32);
    read!(total_accesses: u64, min_accesses: u64, max_accesses: u64, total_size: u64);
    read!(min_size: u32, max_size: u32, alloc_timestamp: u32, dealloc_timestamp: u32, total_lifetime: u64);
    read!(min_lifetime: u32, max_lifetime: u32, alloc_cpu_id: u32, dealloc_cpu_id: u32, num_migrated_cpu: u32);
    read!(num_lifetime_overlaps: u32, num_same_alloc_cpu: u32, num_same_dealloc_cpu: u32, data_type_id: u64);
    read!(total_density: u64, min_density: u32, max_density: u32);
    read!(total_over_time: u64, min_over_time: u32, max_over_time: u32);
    let access_histogram = if version == 3 { None } else { read_histogram(bytes, version)? };
    let spread = |total, min, max| Spread { total, min, max };
    Ok(HeapInfo {
        context,
        alloc_count,
        size: spread(total_size, min_size, max_size),
        lifetimes: Some(Lifetimes {
            lifetime: spread(total_lifetime, min_lifetime, max_lifetime),
            alloc_timestamp,
            dealloc_timestamp,
            num_lifetime_overlaps,
            first_alloc_timestamp: None,
        }),
        access_count: Some(spread(total_accesses, min_accesses, max_accesses)),
        percent_utilized: None,
        cpus: Some(Cpus {
            alloc_cpu_id,
            dealloc_cpu_id,
            num_migrated_cpu,
            num_same_alloc_cpu,
            num_same_dealloc_cpu,
            first: None,
        }),
        data_type_id: Some(data_type_id).filter(|id| *id != 0),
        access_density: Some(spread(total_density, min_density, max_density)),
        lifetime_access_density: Some(spread(total_over_time, min_over_time, max_over_time)),
        access_histogram,
        loads: None,
        live: None,
    })
}

/// Reads the number of histogram entries, a stale pointer, and the entries, which are small floating-point numbers in
/// version 5. Returns `None` if there are no entries.
fn read_histogram(bytes: &mut Bytes<'_>, version: u64) -> Result<Option<Vec<u64>>> {
    let place = *bytes;
    let entries = bytes.u32("the number of entries of a histogram")?;
    bytes.u64("the pointer to a histogram")?;
    let width = if version == 4 { 8 } else { 2 };
    let length = usize::try_from(entries).ok().and_then(|entries| entries.checked_mul(width));
    if length.is_none_or(|length| length > bytes.end - bytes.at) {
        return place.error(&format!("{entries} entries of a histogram do not fit in its section"));
    }
    let entry = |bytes: &mut Bytes<'_>| match version {
        4 => bytes.u64("a histogram"),
        _ => bytes.u16("a histogram").map(|value| (value & 0xfff) << (value >> 12)),
    };
    let histogram = (0..entries).map(|_| entry(bytes)).collect::<Result<Vec<_>>>()?;
    Ok(Some(histogram).filter(|histogram| !histogram.is_empty()))
}
