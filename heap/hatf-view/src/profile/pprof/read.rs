//! Reader for pprof profiles. Every number is validated against the available data, so memory use is bounded by the
//! file size.

use std::collections::HashMap;

use hatf_lab::profile::{HeapInfo, Live};
use hatf_lab::sites::Amount;

use super::field::{function, line, location, mapping, profile, sample, value_type};
use super::wire::{Fields, Value};
use super::{LONGEST, NANOSECONDS, VALUES};
use crate::profile::{HeapProfile, ProfileContext};
use hatf_trace::stacks::{Function, Location, Module};
use hatf_trace::{Error, Result};

/// Reads a heap profile. Calls `step` for each sample.
///
/// # Errors
/// The profile is corrupt, is not a heap profile, or is a difference of two profiles. The error contains the position.
pub fn read_pprof(bytes: &[u8], step: &mut dyn FnMut()) -> Result<HeapProfile> {
    if bytes.len() as u64 > LONGEST {
        return Err(Error::Trace(format!("pprof: the profile exceeds {LONGEST} bytes").into()));
    }
    let message = Fields { bytes, at: 0 };
    let parts = Parts::read(message)?;
    let [start, duration] = numbers(message, [profile::TIME_NANOS, profile::DURATION_NANOS])?;
    let columns = Columns::of(&parts)?;
    let mut profile = HeapProfile::default();
    // Both fields are optional, and 0 means that a field is absent.
    profile.set_times((start > 0).then_some(start / NANOSECONDS), (duration > 0).then_some(duration));
    let mappings = parts.mappings(&mut profile)?;
    let functions = parts.functions()?;
    let mut locations = parts.locations(&mappings, &functions, &profile)?;
    // Locations are numbered in the order in which stacks refer to them. Unused locations are omitted.
    let mut places: HashMap<u64, u32> = HashMap::new();
    let mut contexts: HashMap<Vec<u32>, u64> = HashMap::new();
    for message in &parts.samples {
        let (mut stack, mut values, mut fields) = (Vec::new(), Vec::new(), *message);
        let mut unknown = None;
        while let Some((number, value)) = fields.next()? {
            match number {
                sample::LOCATION => Fields::each_number(value, |id| match (places.get(&id), locations.remove(&id)) {
                    (Some(place), _) => stack.push(*place),
                    (None, Some(location)) => {
                        let place = u32::try_from(profile.locations.len()).unwrap_or(u32::MAX);
                        profile.locations.push(location);
                        places.insert(id, place);
                        stack.push(place);
                    }
                    (None, None) => unknown = Some(id),
                })?,
                sample::VALUE => Fields::each_number(value, |value| values.push(value))?,
                _ => {}
            }
        }
        if let Some(id) = unknown {
            return message.error(&format!("there is no location {id}"));
        }
        let (allocated, live) = columns.amounts(&values).map_or_else(|why| message.error(why), Ok)?;
        let next = contexts.len() as u64 + 1;
        let context = *contexts.entry(stack).or_insert_with_key(|stack| {
            profile.contexts.insert(next, ProfileContext::Stack(stack.clone()));
            next
        });
        profile.infos.push(HeapInfo::of_sums(context, allocated, live));
        step();
    }
    // Samples of one stack that differ only in labels, such as the block size, are merged.
    let infos = std::mem::take(&mut profile.infos);
    let mut merged = hatf_lab::profile::Merged::new();
    infos.into_iter().for_each(|info| merged.add(info, false));
    Ok(HeapProfile { infos: merged.finish(), ..profile })
}

/// The messages of a profile, by type.
#[derive(Default)]
struct Parts<'b> {
    types: Vec<Fields<'b>>,
    samples: Vec<Fields<'b>>,
    mappings: Vec<Fields<'b>>,
    locations: Vec<Fields<'b>>,
    functions: Vec<Fields<'b>>,
    strings: Vec<Fields<'b>>,
}

impl<'b> Parts<'b> {
    fn read(mut fields: Fields<'b>) -> Result<Self> {
        let mut parts = Self::default();
        while let Some((number, value)) = fields.next()? {
            let Value::Bytes(message) = value else { continue };
            match number {
                profile::SAMPLE_TYPE => parts.types.push(message),
                profile::SAMPLE => parts.samples.push(message),
                profile::MAPPING => parts.mappings.push(message),
                profile::LOCATION => parts.locations.push(message),
                profile::FUNCTION => parts.functions.push(message),
                profile::STRING => parts.strings.push(message),
                _ => {}
            }
        }
        Ok(parts)
    }

    fn string(&self, of: &Fields<'_>, place: u64) -> Result<String> {
        let string = usize::try_from(place).ok().and_then(|place| self.strings.get(place));
        match string {
            Some(string) => Ok(String::from_utf8_lossy(string.bytes).into_owned()),
            // A profile without a string table lacks even the empty string.
            None if place == 0 => Ok(String::new()),
            None => {
                let strings = self.strings.len();
                of.error(&format!("string {place} does not exist: the profile has only {strings} strings"))
            }
        }
    }

    fn mappings(&self, profile: &mut HeapProfile) -> Result<HashMap<u64, usize>> {
        let mut places = HashMap::new();
        for message in &self.mappings {
            let [id, start, end, offset, path, build_id] = numbers(
                *message,
                [mapping::ID, mapping::START, mapping::LIMIT, mapping::OFFSET, mapping::FILE, mapping::BUILD_ID],
            )?;
            let (path, build_id) = (self.string(message, path)?, self.string(message, build_id)?);
            let number = profile.modules.len();
            if id == 0 || places.insert(id, number).is_some() {
                return message.error(&format!("mapping {id} is defined twice or has the number 0"));
            }
            let bias = start.wrapping_sub(offset);
            profile.modules.push(Module { number, bias, start, end, build_id, path, is_program: number == 0 });
        }
        Ok(places)
    }

    fn functions(&self) -> Result<HashMap<u64, (String, String)>> {
        let mut functions = HashMap::new();
        for message in &self.functions {
            let [id, name, system, file] =
                numbers(*message, [function::ID, function::NAME, function::SYSTEM_NAME, function::FILE])?;
            let name = self.string(message, if name == 0 { system } else { name })?;
            let file = self.string(message, file)?;
            if id == 0 || functions.insert(id, (name, file)).is_some() {
                return message.error(&format!("function {id} is defined twice or has the number 0"));
            }
        }
        Ok(functions)
    }

    /// Reads the locations into a map keyed by their IDs.
    fn locations(
        &self,
        mappings: &HashMap<u64, usize>,
        functions: &HashMap<u64, (String, String)>,
        profile: &HeapProfile,
    ) -> Result<HashMap<u64, Location>> {
        let mut locations = HashMap::new();
        for message in &self.locations {
            let [id, in_mapping, address] = numbers(*message, [location::ID, location::MAPPING, location::ADDRESS])?;
            let module = match mappings.get(&in_mapping) {
                Some(place) => profile.modules.get(*place),
                None if in_mapping == 0 => None,
                None => return message.error(&format!("there is no mapping {in_mapping}")),
            };
            // A location with address 0 has only lines.
            let address = if address == 0 { 0 } else { address.wrapping_add(1) };
            let (path, build_id, is_program, bias) = match module {
                Some(Module { path, build_id, is_program, bias, .. }) => {
                    (path.clone(), build_id.clone(), *is_program, *bias)
                }
                None => (String::new(), String::new(), false, 0),
            };
            let offset = if address == 0 { 0 } else { address.wrapping_sub(bias) };
            let lines = lines(*message, functions)?;
            let location =
                Location { address, module: path, build_id, is_program, offset, functions: lines, process: 0 };
            if id == 0 || locations.insert(id, location).is_some() {
                return message.error(&format!("location {id} is defined twice or has the number 0"));
            }
        }
        Ok(locations)
    }
}

/// Reads the lines of a location, inlined functions first.
fn lines(mut location: Fields<'_>, functions: &HashMap<u64, (String, String)>) -> Result<Vec<Function>> {
    let mut lines = Vec::new();
    while let Some((number, value)) = location.next()? {
        let (location::LINE, Value::Bytes(message)) = (number, value) else { continue };
        let [id, at] = numbers(message, [line::FUNCTION, line::LINE])?;
        match functions.get(&id) {
            Some((name, file)) => lines.push(Function { name: name.clone(), file: file.clone(), line: at }),
            None => return message.error(&format!("there is no function {id}")),
        }
    }
    Ok(lines)
}

/// Reads the given numeric fields of a message. A missing field is 0.
fn numbers<const N: usize>(mut message: Fields<'_>, wanted: [u64; N]) -> Result<[u64; N]> {
    let mut found = [0; N];
    while let Some((number, value)) = message.next()? {
        if let Value::Number(value) = value {
            let places = wanted.iter().zip(&mut found).filter(|(wanted, _)| **wanted == number);
            places.for_each(|(_, place)| *place = value);
        }
    }
    Ok(found)
}

/// The positions of the values in a sample.
struct Columns {
    types: usize,
    /// The positions in the order of [`VALUES`].
    places: [Option<usize>; 4],
}

impl Columns {
    fn of(parts: &Parts<'_>) -> Result<Self> {
        let mut names = Vec::new();
        for message in &parts.types {
            let [name] = numbers(*message, [value_type::TYPE])?;
            names.push(parts.string(message, name)?);
        }
        // Profiles that pprof converted from tcmalloc use these names for live memory.
        let other = |name| match name {
            "inuse_objects" => "objects",
            "inuse_space" => "space",
            other => other,
        };
        let place = |wanted| names.iter().position(|name| name == wanted || name == other(wanted));
        let places = VALUES.map(|(wanted, _)| place(wanted));
        if places.iter().all(Option::is_none) {
            let names = names.join(", ");
            let text = format!("pprof: not a heap profile: its values are {names}");
            return Err(Error::Trace(text.into()));
        }
        Ok(Self { types: names.len(), places })
    }

    /// Returns the allocated and the live amounts. If the profile contains only live amounts, they also serve as the
    /// allocated amounts.
    fn amounts(&self, values: &[u64]) -> std::result::Result<(Amount, Option<Live>), &'static str> {
        if values.len() != self.types {
            return Err("a sample has a different number of values from the profile's types");
        }
        if values.iter().any(|value| value.cast_signed() < 0) {
            return Err("a value is negative: the file is a difference of two profiles");
        }
        let value = |place: Option<usize>| place.and_then(|place| values.get(place)).copied();
        let [objects, space, in_use, in_use_space] = self.places.map(value);
        let amount = |blocks: Option<u64>, bytes: Option<u64>| {
            (blocks.is_some() || bytes.is_some())
                .then(|| Amount { blocks: blocks.unwrap_or_default(), bytes: bytes.unwrap_or_default() })
        };
        let live = amount(in_use, in_use_space);
        let allocated = amount(objects, space).or(live).unwrap_or_default();
        Ok((allocated, live.map(|live| Live { peak: live, end: live })))
    }
}
