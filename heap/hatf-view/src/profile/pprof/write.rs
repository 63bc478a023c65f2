//! Writer for pprof profiles.

use std::collections::HashMap;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use metatf::container::Sink;

use super::field::{function, line, location, mapping, profile, sample, value_type};
use super::wire::Message;
use super::{NANOSECONDS, VALUES};
use crate::profile::HeapProfile;
use hatf_trace::Result;
use hatf_trace::stacks::{Function, Location};

/// The string table, with the index of each string.
struct Strings {
    places: HashMap<String, u64>,
    table: Message,
}

impl Strings {
    fn new() -> Self {
        let mut strings = Self { places: HashMap::new(), table: Message::default() };
        // The first string is empty.
        strings.place("");
        strings
    }

    fn place(&mut self, text: &str) -> u64 {
        if let Some(place) = self.places.get(text) {
            return *place;
        }
        let place = self.places.len() as u64;
        self.places.insert(text.to_owned(), place);
        self.table.bytes(profile::STRING, text.as_bytes());
        place
    }
}

struct Writer<'p> {
    profile: &'p HeapProfile,
    strings: Strings,
    /// Function numbers by name and file.
    functions: HashMap<(String, String), u64>,
    /// Mapping numbers by module path, build ID and start.
    mappings: HashMap<(String, String, u64), u64>,
    /// Whether frames of each mapping are symbolized.
    named: Vec<bool>,
    body: Message,
}

/// Writes a merged profile. Returns the number of contexts.
pub(super) fn write_pprof(of: &HeapProfile, output: &mut dyn Sink) -> Result<usize> {
    let mut writer = Writer {
        profile: of,
        strings: Strings::new(),
        functions: HashMap::new(),
        mappings: HashMap::new(),
        named: Vec::new(),
        body: Message::default(),
    };
    let bytes = writer.all();
    let mut gzip = GzEncoder::new(output, Compression::default());
    gzip.write_all(&bytes)?;
    gzip.finish()?;
    Ok(of.infos.len())
}

impl Writer<'_> {
    fn all(&mut self) -> Vec<u8> {
        let of = self.profile;
        let mut head = Message::default();
        for value in VALUES {
            head.bytes(profile::SAMPLE_TYPE, &self.value_type(value).0);
        }
        let locations = of.locations.len() as u64;
        // Each context without a stack gets its own location, whose function is the name of the context.
        let mut nameless = Vec::new();
        for info in &of.infos {
            let mut places: Vec<u64> = of.places(info.context).iter().map(|place| u64::from(*place) + 1).collect();
            if places.is_empty() {
                nameless.push(info.context);
                places.push(locations + nameless.len() as u64);
            }
            let live = info.live.unwrap_or_default().peak;
            let values = [info.alloc_count, info.size.total, live.blocks, live.bytes];
            let mut message = Message::default();
            message.numbers(sample::LOCATION, places);
            // Values in pprof are signed.
            message.numbers(sample::VALUE, values.map(|value| value.min(i64::MAX.cast_unsigned())));
            head.bytes(profile::SAMPLE, &message.0);
        }
        for (number, location) in (1..).zip(&of.locations) {
            self.location(number, location);
        }
        for (number, context) in (locations + 1..).zip(nameless) {
            let name = of.name(context, 1);
            self.location(
                number,
                &Location { functions: vec![Function { name, file: String::new(), line: 0 }], ..Location::default() },
            );
        }
        self.mapping_messages(&mut head);
        head.0.append(&mut self.body.0);
        let mut tail = Message::default();
        // Servers that store profiles index them by start time.
        if let Some(start) = of.start() {
            tail.number(profile::TIME_NANOS, start.saturating_mul(NANOSECONDS));
        }
        if let Some(duration) = of.duration() {
            tail.number(profile::DURATION_NANOS, duration);
        }
        tail.bytes(profile::PERIOD_TYPE, &self.value_type(("space", "bytes")).0);
        tail.number(profile::PERIOD, 1);
        tail.number(profile::DEFAULT_SAMPLE_TYPE, self.strings.place("inuse_space"));
        [head.0, std::mem::take(&mut self.strings.table.0), tail.0].concat()
    }

    fn value_type(&mut self, (kind, unit): (&str, &str)) -> Message {
        let mut message = Message::default();
        message.number(value_type::TYPE, self.strings.place(kind));
        message.number(value_type::UNIT, self.strings.place(unit));
        message
    }

    fn location(&mut self, number: u64, of: &Location) {
        let mut message = Message::default();
        message.number(location::ID, number);
        let mapping = self.mapping(of);
        message.number(location::MAPPING, mapping);
        message.number(location::ADDRESS, of.address.saturating_sub(1));
        for Function { name, file, line: at } in &of.functions {
            let key = (name.clone(), file.clone());
            let next = self.functions.len() as u64 + 1;
            let id = *self.functions.entry(key).or_insert(next);
            if id == next {
                let name = self.strings.place(name);
                let mut message = Message::default();
                message.number(function::ID, id);
                message.number(function::NAME, name);
                message.number(function::SYSTEM_NAME, name);
                message.number(function::FILE, self.strings.place(file));
                self.body.bytes(profile::FUNCTION, &message.0);
            }
            let mut call = Message::default();
            call.number(line::FUNCTION, id);
            call.number(line::LINE, *at);
            message.bytes(location::LINE, &call.0);
        }
        self.body.bytes(profile::LOCATION, &message.0);
    }

    /// Returns the number of the mapping that contains a location, or 0 if no mapping contains it.
    fn mapping(&mut self, of: &Location) -> u64 {
        if of.module.is_empty() && of.build_id.is_empty() {
            return 0;
        }
        // A module that was loaded at different addresses in several runs gets one mapping per address.
        let bias = of.address.wrapping_sub(of.offset);
        let key = (of.module.clone(), of.build_id.clone(), bias);
        let next = self.mappings.len() as u64 + 1;
        let id = *self.mappings.entry(key).or_insert(next);
        if id == next {
            self.named.push(false);
        }
        let index = usize::try_from(id - 1).unwrap_or(usize::MAX);
        if let Some(named) = self.named.get_mut(index) {
            *named |= !of.functions.is_empty();
        }
        id
    }

    fn mapping_messages(&mut self, head: &mut Message) {
        let mut mappings: Vec<_> = std::mem::take(&mut self.mappings).into_iter().map(|(key, id)| (id, key)).collect();
        mappings.sort_unstable();
        for ((id, (path, build_id, bias)), named) in mappings.into_iter().zip(&self.named) {
            let loaded = self.profile.modules.iter();
            let mut loaded = loaded.filter(|module| module.path == path && module.build_id == build_id);
            let module = loaded.find(|module| module.bias == bias);
            let mut message = Message::default();
            message.number(mapping::ID, id);
            if let Some(module) = module {
                message.number(mapping::START, module.start);
                message.number(mapping::LIMIT, module.end);
            }
            message.number(mapping::FILE, self.strings.place(&path));
            message.number(mapping::BUILD_ID, self.strings.place(&build_id));
            for field in [mapping::HAS_FUNCTIONS, mapping::HAS_FILES, mapping::HAS_LINES, mapping::HAS_INLINED] {
                message.number(field, u64::from(*named));
            }
            head.bytes(profile::MAPPING, &message.0);
        }
    }
}
