//! Generates a random valid DTD, as text.
//!
//! Names encode their purpose, so that a DTD is valid by construction: `n0` to `n5` are numbers, `k0` to `k3` numbers
//! used as counts or lengths (each once in a record), `b0` to `b2` byte arrays, `u0`.. untagged records, `t0`.. tagged
//! records, `e0`.. elements of stream sections `x0`.., `s0`.. other sections. Properties are drawn for the wider scopes
//! first; the record block then adds those that a leaf still lacks.

use super::{Choices, predicted};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Optional features of a random DTD.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Predicted fields.
    pub predicted: bool,
    /// Names for values, bits and repetitions.
    pub names: bool,
}

/// Returns a random DTD that a correct parser accepts.
#[must_use]
pub fn dtd(c: &mut Choices<'_>) -> String {
    dtd_with(c, Features::default())
}

/// Returns a random DTD with optional features. Without any feature, the same bytes yield the same DTD as [`dtd`].
#[must_use]
pub fn dtd_with(c: &mut Choices<'_>, features: Features) -> String {
    let mut maker = Maker { features, ..Maker::default() };
    maker.structure(c);
    maker.properties(c);
    maker.render(c)
}

/// Part of a field list. A count may be an expression in parentheses.
#[derive(Clone, Debug)]
enum Field {
    Leaf(String),
    Nested(String),
    /// Repetition with an optional name and a count.
    Repeat(Option<String>, String, Box<Field>),
    Group(Vec<Field>),
}

/// Properties by path and name, in one scope.
type Block = BTreeMap<(String, &'static str), String>;

#[derive(Clone, Debug, Default)]
struct Rec {
    name: String,
    tag: Option<u32>,
    /// Whether the record takes all otherwise unused tags instead of its own.
    catch_all: bool,
    fields: Vec<Field>,
    block: Block,
}

#[derive(Clone, Debug, Default)]
struct Section {
    /// Empty for the global scope.
    name: String,
    number: u8,
    stream: Stream,
    properties: Block,
    records: Vec<Rec>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Stream {
    #[default]
    No,
    /// Elements are single numbers.
    Single,
    /// Anything else.
    Other,
}

/// DTD under construction. The global scope is section 0.
#[derive(Debug, Default)]
struct Maker {
    sections: Vec<Section>,
    tag_width: u8,
    /// Tags of `comment`, `section` and `metadata`, if the DTD sets them.
    predefined: Option<[u32; 3]>,
    features: Features,
}

/// Sources of a leaf's properties, widest scope last.
struct Place {
    /// Path from the top-level record.
    path: Vec<String>,
    /// Record blocks that may set a property, as (section, record), with the path relative to that record; outermost
    /// first.
    blocks: Vec<((usize, usize), String)>,
}

impl Place {
    fn name(&self) -> &str {
        self.path.last().map_or("", |n| n)
    }
}

const NUMBERS: [&str; 6] = ["n0", "n1", "n2", "n3", "n4", "n5"];
const COUNTS: [&str; 4] = ["k0", "k1", "k2", "k3"];
const ARRAYS: [&str; 3] = ["b0", "b1", "b2"];

impl Maker {
    fn structure(&mut self, c: &mut Choices<'_>) {
        self.tag_width = *c.pick(&[1, 1, 1, 2, 4]);
        self.sections.push(Section::default());
        for i in 0..c.below(3) {
            let record = self.untagged(c, &format!("u{i}"), 0);
            self.sections[0].records.push(record);
        }
        self.predefined = *c.pick(&[None, None, None, None, Some([250, 251, 252]), Some([3, 1, 2])]);
        let mut tag = if self.predefined == Some([250, 251, 252]) { c.below(4) as u32 } else { 4 };
        for i in 0..c.below(3) {
            let record = self.tagged(c, &format!("t{i}"), 0, &mut tag);
            self.sections[0].records.push(record);
        }
        let is_global = self.catch_all(c, 0, 10);
        let mut number = 0;
        let mut next_number = |c: &mut Choices<'_>| {
            number += 1 + c.below(30) as u8;
            number
        };
        for i in 0..c.below(4) {
            let stream = *c.pick(&[Stream::Single, Stream::Single, Stream::Other]);
            self.sections.push(Section { name: format!("x{i}"), number: next_number(c), stream, ..Section::default() });
            let at = self.sections.len() - 1;
            let fields = match stream {
                Stream::Single => vec![Field::Leaf((*c.pick(&NUMBERS)).into())],
                _ if c.chance(40) => vec![Field::Nested("vfield".into())],
                _ => {
                    // The first leaf ensures that an element stores at least one byte.
                    let mut fields = vec![Field::Leaf("first".into()), Field::Leaf("n0".into())];
                    fields.extend(self.fields(c, at, 0, &mut Vec::new()));
                    fields
                }
            };
            self.sections[at].records.push(Rec { name: format!("e{i}"), fields, ..Rec::default() });
        }
        for i in 0..1 + c.below(3) {
            self.sections.push(Section { name: format!("s{i}"), number: next_number(c), ..Section::default() });
            let at = self.sections.len() - 1;
            for j in 0..c.below(2) {
                let record = self.untagged(c, &format!("u{}{j}", i + 3), at);
                self.sections[at].records.push(record);
            }
            // Tags must be unique within their scope, so the next section reuses them.
            let mut tag = tag;
            for j in 0..1 + c.below(3) {
                let record = self.tagged(c, &format!("t{}{j}", i + 3), at, &mut tag);
                self.sections[at].records.push(record);
            }
            if !is_global {
                self.catch_all(c, at, 25);
            }
        }
    }

    /// Sometimes turns the last record of a section into a catch-all record.
    fn catch_all(&mut self, c: &mut Choices<'_>, section: usize, percent: usize) -> bool {
        let last = self.sections[section].records.last_mut().filter(|record| record.tag.is_some());
        last.is_some_and(|record| {
            record.catch_all = c.chance(percent);
            record.catch_all
        })
    }

    fn untagged(&self, c: &mut Choices<'_>, name: &str, section: usize) -> Rec {
        let mut fields = self.fields(c, section, 0, &mut Vec::new());
        if fields.is_empty() {
            fields.push(Field::Leaf("n0".into()));
        }
        Rec { name: name.into(), fields, ..Rec::default() }
    }

    fn tagged(&self, c: &mut Choices<'_>, name: &str, section: usize, tag: &mut u32) -> Rec {
        let mut fields = self.fields(c, section, 0, &mut Vec::new());
        if fields.is_empty() || c.chance(70) {
            fields.insert(0, Field::Leaf("tag".into()));
        }
        let value = *tag;
        *tag += 1 + match (c.below(12), self.tag_width) {
            (10, 2..) => 300,
            (11, 4) => 70_000,
            (n, _) => (n as u32).saturating_sub(6),
        };
        Rec { name: name.into(), tag: Some(value), fields, ..Rec::default() }
    }

    /// Returns a list of fields; `known` contains the earlier counts that fields may refer to.
    fn fields(&self, c: &mut Choices<'_>, section: usize, depth: usize, known: &mut Vec<String>) -> Vec<Field> {
        let mut used = known.clone();
        let fields = self.list(c, section, depth, known, &mut used);
        fields.into_iter().filter(|f| !matches!(f, Field::Group(g) if g.is_empty())).collect()
    }

    /// Returns a list of fields; `used` contains all counts of the record, including those out of scope.
    fn list(
        &self,
        c: &mut Choices<'_>,
        section: usize,
        depth: usize,
        known: &mut Vec<String>,
        used: &mut Vec<String>,
    ) -> Vec<Field> {
        let mut fields = Vec::new();
        for _ in 0..c.below(if depth == 0 { 6 } else { 4 }) {
            match c.below(12) {
                0..5 => fields.push(Field::Leaf((*c.pick(&NUMBERS)).into())),
                5 => {
                    if let Some(count) = fresh(c, used) {
                        known.push(count.clone());
                        fields.push(Field::Leaf(count));
                    }
                }
                6 => fields.push(Field::Leaf((*c.pick(&ARRAYS)).into())),
                7 => fields.push(self.nested(c, section)),
                8 if depth < 2 => {
                    let group = self.list(c, section, depth + 1, known, used);
                    if !group.is_empty() {
                        fields.push(Field::Group(group));
                    }
                }
                9..12 => {
                    let earlier = c.chance(50) && !known.is_empty();
                    let count = if earlier { Some(c.pick(known).clone()) } else { fresh(c, used) };
                    let Some(count) = count else { continue };
                    let count = if earlier && c.chance(50) { computed(c, &count) } else { count };
                    let mut inner = known.clone();
                    if !is_computed(&count) {
                        inner.push(count.clone());
                    }
                    let body = match c.below(4) {
                        1 if depth < 2 => {
                            let group = self.list(c, section, depth + 1, &mut inner, used);
                            if group.is_empty() { Field::Leaf("n0".into()) } else { Field::Group(group) }
                        }
                        2 => self.nested(c, section),
                        3 => Field::Leaf((*c.pick(&ARRAYS)).into()),
                        _ => Field::Leaf((*c.pick(&NUMBERS)).into()),
                    };
                    if !known.contains(&count) && !is_computed(&count) {
                        known.push(count.clone());
                    }
                    let own = (self.features.names && c.chance(30)).then(|| format!("r{}", used.len()));
                    used.extend(own.clone());
                    fields.push(Field::Repeat(own, count, Box::new(body)));
                }
                _ => {}
            }
        }
        fields
    }

    /// Returns a record created earlier, so that no record nests itself.
    fn nested(&self, c: &mut Choices<'_>, section: usize) -> Field {
        let visible = [Some(0), Some(section).filter(|&s| s != 0)].into_iter().flatten();
        let visible = visible.filter_map(|s| self.sections.get(s)).flat_map(|s| &s.records);
        let mut names: Vec<&str> = vec!["vfield"];
        names.extend(visible.filter(|r| r.tag.is_none()).map(|r| &*r.name));
        Field::Nested((*c.pick(&names)).into())
    }
}

/// Returns a count that is an expression over an earlier one.
fn computed(c: &mut Choices<'_>, count: &str) -> String {
    match c.below(9) {
        0..3 => format!("({count}.bit {})", c.below(3)),
        3 => format!("(1 - {count}.bit 1)"),
        7 => format!("({count}.value {} {})", c.pick(&COMPARISONS), c.below(4)),
        4 => format!("({count}.bit 0 * {count}.bit 1)"),
        5 => format!("(({count}.value + 1) / 2 % 3)"),
        6 => format!("(5 - {count}.value)"),
        _ => format!("({})", c.below(3)),
    }
}

fn is_computed(count: &str) -> bool {
    count.starts_with('(')
}

/// Returns a count that the record does not contain yet.
fn fresh(c: &mut Choices<'_>, used: &mut Vec<String>) -> Option<String> {
    let free: Vec<&str> = COUNTS.into_iter().filter(|n| !used.iter().any(|u| u == n)).collect();
    let name = (!free.is_empty()).then(|| (*c.pick(&free)).to_owned())?;
    used.push(name.clone());
    Some(name)
}

impl Maker {
    fn properties(&mut self, c: &mut Choices<'_>) {
        self.wide_scopes(c);
        for section in 0..self.sections.len() {
            for record in 0..self.sections[section].records.len() {
                self.record(c, section, record);
            }
        }
        if self.features.names {
            self.names(c);
        }
    }

    /// Names values or bits of numbers, in the complete DTD and in sections, and sets formats that print values as
    /// words. Floating-point numbers get no names.
    fn names(&mut self, c: &mut Choices<'_>) {
        const VALUES: [&str; 3] = ["0 zero, 1 one, 0xff all of it", "-1 less, 3 \\\"three\\\", 4 four,", "0 none"];
        const FLAGS: [&str; 3] = ["0 read, 1 write", "7 top, 0-6 a b, 63 last", "3 ☃, 4-0x3f rest"];
        const WORDS: [&str; 11] = [
            "bool",
            "char",
            "ipv4",
            "ipv6",
            "uuid",
            "time_us",
            "time_s",
            "duration_ns",
            "date_s",
            "date_ns",
            "chars_le",
        ];
        for section in 0..self.sections.len() {
            for name in [*c.pick(&NUMBERS), *c.pick(&ARRAYS)] {
                let format = quoted(WORDS[c.below(WORDS.len())]);
                self.sections[section].properties.insert((name.to_owned(), "format"), format);
            }
            let name = (*c.pick(&NUMBERS)).to_owned();
            let (property, lists) = if c.chance(50) { ("values", VALUES) } else { ("flags", FLAGS) };
            let is_float = |path: &str, property: &str, value: &str| {
                path.rsplit('.').next() == Some(&*name) && property == "format" && value == quoted("f64")
            };
            for section in &mut self.sections {
                let blocks = section.records.iter_mut().map(|record| &mut record.block);
                for block in blocks.chain([&mut section.properties]) {
                    block.retain(|(path, property), value| !is_float(path, property, value));
                }
            }
            let list: &str = lists[c.below(lists.len())];
            self.sections[section].properties.insert((name, property), quoted(list));
        }
    }

    /// Sets properties by name for sections and for the complete DTD.
    fn wide_scopes(&mut self, c: &mut Choices<'_>) {
        for section in 0..self.sections.len() {
            let stream = self.sections[section].stream != Stream::No;
            let names: Vec<&str> = NUMBERS.into_iter().chain(COUNTS).collect();
            for _ in 0..c.below(if section == 0 { 20 } else { 6 }) {
                let name = names[c.below(names.len())];
                let (property, value) = match c.below(12) {
                    0..4 => ("width", (1 + c.below(8)).to_string()),
                    4..8 => ("interpretation", plain(c, name)),
                    8 | 9 if !stream => ("previous", ["shared", "own"][c.below(2)].to_owned()),
                    10 => ("unit", quoted("KiB")),
                    _ => ("format", some_format(c)),
                };
                self.sections[section].properties.insert((name.into(), property), value);
            }
        }
        for section in 1..self.sections.len() {
            if self.features.predicted && c.chance(40) {
                self.predict_a_name(c, section);
            }
        }
        // Set properties of names that only the predefined record uses; they must not affect it.
        if c.chance(10) {
            self.sections[0].properties.insert(("length".into(), "width"), "3".into());
        }
        if c.chance(5) {
            let format = *c.pick(&["utf8", "cstring"]);
            self.sections[0].properties.insert(("data".into(), "format"), quoted(format));
        }
    }

    /// Sets a model for the leaves of one name in a section. It may depend only on leaves that every record contains,
    /// such as the tag.
    fn predict_a_name(&mut self, c: &mut Choices<'_>, section: usize) {
        let name = *c.pick(&NUMBERS);
        if self.sections[section].stream == Stream::No
            && let Some(value) = self.predicted(c, name, &[])
        {
            self.sections[section].properties.insert((name.into(), "interpretation"), value);
        }
    }

    /// Returns a model for leaves of this name that depends on one of the `known` paths. Returns `None` if no section
    /// can store its misses, or if the leaf may share a previous value that starts at a number other than 0.
    fn predicted(&self, c: &mut Choices<'_>, name: &str, known: &[String]) -> Option<String> {
        let shares = |s: &Section| s.properties.get(&(name.to_owned(), "previous")).is_some_and(|v| v == "shared");
        let streams: Vec<u8> = self.sections.iter().filter(|s| s.stream == Stream::Single).map(|s| s.number).collect();
        if streams.is_empty() || name == "length" || (initial(name) != 0 && self.sections.iter().any(shares)) {
            return None;
        }
        let section = *c.pick(&streams);
        Some(predicted::interpretation(c, section, known))
    }

    /// Returns paths of the numbers that a leaf's predictors may depend on: those before it in its record, and those of
    /// a record that its section may contain.
    fn known_to(&self, c: &mut Choices<'_>, section: usize, record: usize, place: &Place) -> Vec<String> {
        let mut known = Vec::new();
        if place.path.len() == 1 {
            known = self.listed_before(section, record, place.name(), &["n", "k"]);
        }
        let own = &self.sections[section].records[record].name;
        known.extend(
            self.number_of_a_record(c, section).filter(|(name, _)| name != own).map(|(r, path)| format!("{r}.{path}")),
        );
        known
    }

    fn record(&mut self, c: &mut Choices<'_>, section: usize, record: usize) {
        let places = self.places(section, record);
        for place in &places {
            self.leaf(c, section, record, place, places.len());
        }
    }

    /// Returns whether this is a tagged record or an element. All leaves of such a record need their properties; other
    /// records may leave them open.
    fn is_top(&self, section: usize, record: usize) -> bool {
        let s = &self.sections[section];
        let r = &s.records[record];
        r.tag.is_some() || (s.stream != Stream::No && r.name.starts_with('e'))
    }

    fn leaf(&mut self, c: &mut Choices<'_>, section: usize, record: usize, place: &Place, places: usize) {
        let top = self.is_top(section, record);
        let name = place.name().to_owned();
        let path = place.path.join(".");
        if name == "tag" {
            return;
        }
        let predefined = place.path.iter().rev().nth(1).is_some_and(|n| n == "vfield");
        if name.starts_with('b') {
            return self.array(c, section, record, place);
        }
        if predefined && name == "data" {
            if c.chance(15) {
                self.set(section, record, &path, "format", some_format(c));
            }
            return;
        }
        if !top && !c.chance(30) {
            return;
        }
        // An element must store at least one byte.
        let stream = self.sections[section].stream;
        let alone = places == 2 && predefined;
        let must_store = (stream == Stream::Single && top) || name == "first" || (stream != Stream::No && top && alone);
        let found = self.find(section, place, "interpretation", predefined.then_some("none"));
        if must_store || found.is_none() || c.chance(25) {
            let mut value = plain(c, &name);
            if must_store && !stores(&value) {
                value = "none".into();
            }
            if top && !must_store && self.sections[section].stream == Stream::No {
                value = self.special(c, section, &name).unwrap_or(value);
                if self.features.predicted && c.chance(30) {
                    let known = self.known_to(c, section, record, place);
                    value = self.predicted(c, &name, &known).unwrap_or(value);
                }
            }
            self.set(section, record, &path, "interpretation", value);
        }
        let interpretation = self.find(section, place, "interpretation", predefined.then_some("none"));
        let width = self.find(section, place, "width", predefined.then_some("1"));
        let needed = interpretation.as_deref().is_none_or(stores);
        // A code has its own width if no other width applies.
        let coded = interpretation.as_deref().is_some_and(|i| i.starts_with("predicted")) && c.chance(70);
        if must_store || (needed && !coded && width.is_none()) || c.chance(15) {
            let least = usize::from(must_store || !c.chance(5));
            let width = least + c.below(8);
            self.set(section, record, &path, "width", number_text(c, width as u64));
        }
        if top && c.chance(12) && !must_store {
            self.constant(c, section, record, place, &path);
        }
        match c.below(40) {
            37 => self.set(section, record, &path, "format", some_format(c)),
            38 => self.set(section, record, &path, "doc", quoted("What \\\"it\\\" is")),
            39 => self.set(section, record, &path, "colour", (*c.pick(&["red", "7 * 6", "\"a b\""])).into()),
            _ => {}
        }
    }

    /// Returns an interpretation that is valid only for some leaves.
    fn special(&self, c: &mut Choices<'_>, section: usize, name: &str) -> Option<String> {
        match c.below(20) {
            12..14 => {
                let streams: Vec<&Section> = self.sections.iter().filter(|s| s.stream != Stream::No).collect();
                (!streams.is_empty()).then(|| format!("sectionOffset {}", c.pick(&streams).number))
            }
            14..17 => {
                let streams: Vec<&Section> = self.sections.iter().filter(|s| s.stream == Stream::Single).collect();
                (!streams.is_empty() && !name.starts_with('k'))
                    .then(|| format!("sectionStride {} {}", c.pick(&streams).number, 1 + c.below(3)))
            }
            17..20 => {
                let (record, path) = self.number_of_a_record(c, section)?;
                Some(format!("baseOffset {record}.{path}.value"))
            }
            _ => None,
        }
    }

    /// Returns a number of a record in this section or of a global record, as the record's name and the path.
    fn number_of_a_record(&self, c: &mut Choices<'_>, section: usize) -> Option<(String, String)> {
        let section = if c.chance(30) { 0 } else { section };
        let tagged: Vec<usize> = (0..self.sections[section].records.len())
            .filter(|&r| self.sections[section].records[r].tag.is_some())
            .collect();
        let record = *(!tagged.is_empty()).then(|| c.pick(&tagged))?;
        let places = self.places(section, record);
        let numbers: Vec<&Place> =
            places.iter().filter(|p| !p.name().starts_with('b') && p.name() != "data" && p.name() != "tag").collect();
        let place = *(!numbers.is_empty()).then(|| c.pick(&numbers))?;
        Some((self.sections[section].records[record].name.clone(), place.path.join(".")))
    }

    fn constant(&mut self, c: &mut Choices<'_>, section: usize, record: usize, place: &Place, path: &str) {
        let get = |p| self.find(section, place, p, None);
        let (Some(interpretation), width) = (get("interpretation"), get("width")) else { return };
        let width = width.and_then(|w| w.parse::<u32>().ok()).unwrap_or(0);
        let counts = place.name().starts_with('k');
        let value = match interpretation.split_once(' ') {
            None if width > 0 => (c.below(if counts { 4 } else { 128 })).to_string(),
            Some(("default", value)) => value.to_owned(),
            _ => return,
        };
        self.set(section, record, path, "value", value);
    }

    fn array(&mut self, c: &mut Choices<'_>, section: usize, record: usize, place: &Place) {
        let path = place.path.join(".");
        // Only the record that contains the field can resolve the names in a width; outer records may override it with
        // a number.
        if place.path.len() > 1 {
            if c.chance(10) {
                let width = if c.chance(30) { end(c) } else { (9 + c.below(20)).to_string() };
                self.set(section, record, &path, "width", width);
            }
            return;
        }
        self.set(section, record, &path, "interpretation", "none".into());
        let known = self.listed_before(section, record, place.name(), &["k"]);
        let width = if known.is_empty() { None } else { Some(self.expression(c, &known)) };
        let width = width.filter(|_| c.chance(70)).unwrap_or_else(|| match c.below(4) {
            0 => format!("bytes {}", 1 + c.below(20)),
            1 => end(c),
            _ => (9 + c.below(300)).to_string(),
        });
        self.set(section, record, &path, "width", width);
        // The section of nested records must not depend on other sections or contain such arrays itself.
        let streams: Vec<u8> = self.sections.iter().filter(|s| s.stream != Stream::No).map(|s| s.number).collect();
        let tagged = self.sections[section].records[record].tag.is_some();
        if tagged && !streams.is_empty() && c.chance(30) {
            let number = *c.pick(&streams);
            self.set(section, record, &path, "section", number.to_string());
        }
        if c.chance(15) {
            self.set(section, record, &path, "format", some_format(c));
        }
    }

    fn expression(&self, c: &mut Choices<'_>, known: &[String]) -> String {
        let leaf = format!("{}.value", c.pick(known));
        match c.below(13) {
            0..4 => leaf,
            9 => format!("(4 - {leaf} % 4) % 4"),
            11 => format!("({leaf} {} {}) * 4 + 1", c.pick(&COMPARISONS), c.below(4)),
            12 => format!("({leaf} == {}.value) + (2 < {leaf})", c.pick(known)),
            10 => format!("{leaf} / 2 + {}.bit {}", c.pick(known), c.below(3)),
            4 => format!("{leaf} * {}", 1 + c.below(3)),
            5 => format!("({leaf} + {}) * 2 + 1", c.below(5)),
            6 => format!("20 - {leaf}"),
            7 => format!("{leaf} * {}.value - {leaf} + 4", c.pick(known)),
            _ => format!("{leaf} - 1"),
        }
    }

    /// Returns fields that every occurrence of the field `name` can refer to: those before the first occurrence, in a
    /// list that contains all of them, with names that start with one of `initials`.
    fn listed_before(&self, section: usize, record: usize, name: &str, initials: &[&str]) -> Vec<String> {
        fn walk(fields: &[Field], name: &str, initials: &[&str], known: &mut Vec<String>) -> bool {
            for field in fields {
                match field {
                    Field::Leaf(n) if n == name => return true,
                    Field::Leaf(n) if initials.iter().any(|i| n.starts_with(i)) => known.push(n.clone()),
                    Field::Leaf(_) | Field::Nested(_) => {}
                    Field::Group(fields) => {
                        if walk(fields, name, initials, known) {
                            return true;
                        }
                    }
                    Field::Repeat(_, count, _) if count == name => return true,
                    Field::Repeat(_, count, body) => {
                        if !known.contains(count) && !is_computed(count) {
                            known.push(count.clone());
                        }
                        let before = known.len();
                        if walk(std::slice::from_ref(body), name, initials, known) {
                            // Other occurrences may follow this repetition.
                            known.truncate(before);
                            return true;
                        }
                        known.truncate(before);
                    }
                }
            }
            false
        }
        let mut known = Vec::new();
        walk(&self.sections[section].records[record].fields, name, initials, &mut known);
        known
    }

    fn set(&mut self, section: usize, record: usize, path: &str, property: &'static str, value: String) {
        self.sections[section].records[record].block.insert((path.to_owned(), property), value);
    }

    /// Looks up a property as described in spec 3.1.
    fn find(&self, section: usize, place: &Place, property: &'static str, predefined: Option<&str>) -> Option<String> {
        for ((s, r), path) in &place.blocks {
            if let Some(value) = self.sections[*s].records[*r].block.get(&(path.clone(), property)) {
                return Some(value.clone());
            }
        }
        if let Some(value) = predefined {
            return Some(value.to_owned());
        }
        let key = (place.name().to_owned(), property);
        let own = (section != 0).then(|| self.sections[section].properties.get(&key)).flatten();
        own.or_else(|| self.sections[0].properties.get(&key)).cloned()
    }

    /// Returns the leaves of a record, each path once.
    fn places(&self, section: usize, record: usize) -> Vec<Place> {
        let mut places: Vec<Place> = Vec::new();
        self.walk(section, &[(section, record)], &[], &self.sections[section].records[record].fields, &mut places);
        places
    }

    fn walk(
        &self,
        section: usize,
        within: &[(usize, usize)],
        path: &[String],
        fields: &[Field],
        places: &mut Vec<Place>,
    ) {
        for field in fields {
            match field {
                Field::Leaf(name) => self.place(within, path, name, places),
                Field::Group(fields) => self.walk(section, within, path, fields, places),
                Field::Repeat(_, count, body) => {
                    if !is_computed(count) {
                        self.place(within, path, count, places);
                    }
                    self.walk(section, within, path, std::slice::from_ref(body), places);
                }
                Field::Nested(name) if name == "vfield" => {
                    let path = [path, std::slice::from_ref(name)].concat();
                    self.place(within, &path, "length", places);
                    self.place(within, &path, "data", places);
                }
                Field::Nested(name) => {
                    let path = [path, std::slice::from_ref(name)].concat();
                    let found = [section, 0].into_iter().find_map(|s| {
                        let record = self.sections[s].records.iter().position(|r| r.name == *name)?;
                        Some((s, record))
                    });
                    let Some(found) = found else { continue };
                    let within = [within, &[found]].concat();
                    self.walk(section, &within, &path, &self.sections[found.0].records[found.1].fields, places);
                }
            }
        }
    }

    fn place(&self, within: &[(usize, usize)], path: &[String], name: &str, places: &mut Vec<Place>) {
        let path = [path, &[name.to_owned()]].concat();
        if places.iter().any(|p| p.path == path) {
            return;
        }
        let blocks = within.iter().enumerate().map(|(depth, &at)| (at, path[depth..].join("."))).collect();
        places.push(Place { path, blocks });
    }
}

const COMPARISONS: [&str; 6] = ["==", "!=", "<", "<=", ">", ">="];
const FORMATS: [&str; 11] =
    ["dec", "hex", "signed", "f64", "utf8", "cstring", "bytes", "time_ns", "date_ms", "chars", "chars_le"];

/// Returns the width of bytes that end at a terminator.
fn end(c: &mut Choices<'_>) -> String {
    format!("until {}", c.pick(&["0", "10", "0x7f", "255"]))
}

fn some_format(c: &mut Choices<'_>) -> String {
    quoted(FORMATS[c.below(FORMATS.len())])
}

fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

fn stores(interpretation: &str) -> bool {
    !["default", "stride ", "sectionStride"].iter().any(|i| interpretation.starts_with(i))
}

/// Returns the initial value for a name. Leaves of the same name may share their previous value, and must then start
/// with the same one.
fn initial(name: &str) -> u64 {
    match name.as_bytes() {
        [b'k', ..] => 3,
        [_, digit, ..] if digit % 3 == 0 => u64::from(*digit) << 8,
        [_, digit, ..] if digit % 3 == 1 => 0,
        _ => u64::MAX - 5,
    }
}

fn plain(c: &mut Choices<'_>, name: &str) -> String {
    let small = name.starts_with('k') || name == "length";
    match c.below(8) {
        0..3 => "none".into(),
        3 => format!("default {}", if small { c.below(4).to_string() } else { value_text(c) }),
        4 => format!("baseOffset {}", if small { c.below(4).to_string() } else { value_text(c) }),
        5 | 6 => format!("delta {}", initial(name)),
        _ => format!("stride {} {}", initial(name), *c.pick(&["0", "1", "-1", "0x10", "5", "-9223372036854775808"])),
    }
}

fn value_text(c: &mut Choices<'_>) -> String {
    match c.below(6) {
        0 => "0".into(),
        1 => (c.below(250) + 1).to_string(),
        2 => "-5".into(),
        3 => "18446744073709551615".into(),
        4 => "1_000_000".into(),
        _ => "0x8000_0000_0000_0000".into(),
    }
}

fn number_text(c: &mut Choices<'_>, n: u64) -> String {
    if c.chance(10) { format!("{n:#x}") } else { n.to_string() }
}

impl Maker {
    fn render(&self, c: &mut Choices<'_>) -> String {
        let mut out = String::new();
        if c.chance(20) {
            out.push_str("// A random format.\n");
        }
        if self.tag_width != 1 || c.chance(30) {
            let _ = writeln!(out, "tag.width = {};", self.tag_width);
        }
        for (name, tag) in ["comment", "section", "metadata"].iter().zip(self.predefined.into_iter().flatten()) {
            let _ = writeln!(out, "{name}.tag.value = {tag};");
        }
        for (i, section) in self.sections.iter().enumerate() {
            let indent = if i == 0 { "" } else { "    " };
            if i > 0 {
                let _ = writeln!(out, "section {} {} {{", section.name, section.number);
            }
            let before = c.chance(50);
            if before {
                render_block(&mut out, indent, &section.properties);
            }
            for record in &section.records {
                render_record(c, &mut out, indent, record);
            }
            if !before {
                render_block(&mut out, indent, &section.properties);
            }
            if i > 0 {
                out.push_str("}\n");
            }
        }
        out
    }
}

fn render_block(out: &mut String, indent: &str, block: &Block) {
    for ((path, property), value) in block {
        let _ = writeln!(out, "{indent}{path}.{property} = {value};");
    }
}

fn render_record(c: &mut Choices<'_>, out: &mut String, indent: &str, record: &Rec) {
    if c.chance(10) {
        let _ = writeln!(out, "{indent}/* doc of\n{indent}   {} */", record.name);
    }
    let _ = write!(out, "{indent}{} : ", record.name);
    match &*record.fields {
        [Field::Nested(name)] | [Field::Leaf(name)] if c.chance(50) => out.push_str(name),
        fields => render_list(c, out, fields),
    }
    let mut block = record.block.clone();
    if let Some(tag) = record.tag {
        let tag = if record.catch_all { "other".into() } else { tag.to_string() };
        block.insert(("tag".into(), "value"), tag);
    }
    if !block.is_empty() {
        out.push_str(" {\n");
        render_block(out, &format!("{indent}    "), &block);
        let _ = write!(out, "{indent}}}");
        if c.chance(20) {
            out.push(';');
        }
    } else {
        out.push(';');
    }
    out.push_str(if c.chance(10) { " // end\n" } else { "\n" });
}

fn render_list(c: &mut Choices<'_>, out: &mut String, fields: &[Field]) {
    out.push('(');
    for (i, field) in fields.iter().enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        render_field(c, out, field);
    }
    if c.chance(10) {
        out.push(',');
    }
    out.push(')');
}

fn render_field(c: &mut Choices<'_>, out: &mut String, field: &Field) {
    match field {
        Field::Leaf(name) | Field::Nested(name) => out.push_str(name),
        Field::Group(fields) => render_list(c, out, fields),
        Field::Repeat(own, count, body) => {
            if let Some(own) = own {
                out.push_str(own);
                out.push_str(if c.chance(80) { ": " } else { " /* r: */ :" });
            }
            let _ = write!(out, "{count}{}", if c.chance(20) { " * " } else { "*" });
            render_field(c, out, body);
        }
    }
}
