//! JSON lines, after section 8 of the specification.

use super::{Rule, Rules, nested};
use crate::{Seen, Value, What};
use metatf::container::Order;
use metatf_parser::schema::{Dtd, Format, Item, Leaf, LeafId, Record, Repeated};
use std::fmt::Write;

/// Prints items.
pub(super) struct Printer<'d> {
    pub(super) dtd: &'d Dtd,
    pub(super) order: Order,
    pub(super) all: bool,
    pub(super) rules: Rules,
}

/// Values of a record that are still to be printed, and the last number of each leaf.
struct Fields<'v> {
    record: &'v Record,
    values: std::slice::Iter<'v, Value>,
    last: [u64; 256],
}

/// JSON object: keys and values as JSON.
type Object = Vec<(String, String)>;

impl Printer<'_> {
    /// Returns the line of an item, if it has one.
    pub(super) fn line(&self, seen: &Seen) -> Option<String> {
        let section = self.dtd.section(seen.section)?;
        let name = section.name.as_deref().map_or("null".to_owned(), string);
        let mut object: Object = vec![("@section".into(), name), ("@record".into(), string(&seen.record))];
        if self.all && self.rules.holds(Rule::SectionOfOffset) {
            object.push(("@offset".into(), seen.offset.to_string()));
        }
        let number = |i: usize| match seen.values.get(i) {
            Some(Value::Number(n)) => Some(n.to_string()),
            _ => None,
        };
        match seen.what {
            What::Group(n) if self.all && self.rules.holds(Rule::GroupsMarked) => {
                return Some(braces(vec![("@group".into(), n.to_string())]));
            }
            What::Group(_) | What::Reset => return None,
            What::Section(n) if self.all => object.push(("number".into(), n.to_string())),
            What::Metadata if self.all => {
                let keys = ["record", "field", "property", "value", "value_2"];
                object.extend((0..).zip(keys).filter_map(|(i, key)| Some((key.to_owned(), number(i)?))));
            }
            What::Record if seen.record == "comment" => {
                if !self.all {
                    return None;
                }
                let Some(Value::Bytes(text)) = seen.values.last() else { return None };
                object.push(("text".into(), self.text(text)));
            }
            What::Record | What::Element | What::Shared => {
                if seen.what != What::Record && !self.all {
                    return None;
                }
                if seen.what == What::Shared && self.rules.holds(Rule::SharedMarked) {
                    object.push(("@shared".into(), "true".into()));
                }
                let record = self.dtd.find_record(section, &seen.record)?;
                object.extend(self.record(record, &seen.values));
            }
            What::Section(_) | What::Metadata => return None,
        }
        Some(braces(object))
    }

    fn record(&self, record: &Record, values: &[Value]) -> Object {
        let mut fields = Fields { record, values: values.iter(), last: [0; 256] };
        let mut object = Vec::new();
        self.items(&record.items, &mut fields, &mut object);
        object
    }

    fn items(&self, items: &[Item], fields: &mut Fields<'_>, object: &mut Object) {
        for item in items {
            match item {
                Item::Leaf(id) => self.leaf(*id, false, fields, object),
                Item::Nested { key, record, items, .. } => {
                    let mut inner = Vec::new();
                    self.items(items, fields, &mut inner);
                    if record == "vfield" && self.rules.holds(Rule::VfieldIsData) {
                        object.extend(inner.pop().map(|(_, data)| (key.clone(), data)));
                    } else if self.rules.holds(Rule::NestedIsObject) {
                        object.push((key.clone(), braces(inner)));
                    } else {
                        object.extend(inner);
                    }
                }
                Item::Repeat { count, key, body } => self.repeated(*count, key, body, fields, object),
            }
        }
    }

    fn repeated(&self, count: LeafId, key: &str, body: &Repeated, fields: &mut Fields<'_>, object: &mut Object) {
        let counted = &fields.record.leaves[usize::from(count.0)];
        let optional = counted.computed.as_ref().is_some_and(|expr| expr.most() <= 1);
        let mut all = Vec::new();
        for _ in 0..fields.last[usize::from(count.0)] {
            let mut inner = Vec::new();
            match body {
                Repeated::Leaf(id) => self.leaf(*id, true, fields, &mut inner),
                Repeated::Group(items) | Repeated::Record { items, .. } => self.items(items, fields, &mut inner),
            }
            let alone = match body {
                Repeated::Leaf(_) => true,
                Repeated::Record { record, .. } => record == "vfield" && self.rules.holds(Rule::VfieldIsData),
                Repeated::Group(_) => false,
            };
            all.extend(if alone { inner.pop().map(|(_, value)| value) } else { Some(braces(inner)) });
        }
        let is_leaf = matches!(body, Repeated::Leaf(_));
        let key =
            if is_leaf || counted.computed.is_some() || self.rules.holds(Rule::ItemsNamed) { key } else { "items" };
        if optional && all.is_empty() && self.rules.holds(Rule::OptionalAbsent) {
            return;
        }
        let value = match all.pop() {
            Some(only) if optional && self.rules.holds(Rule::OptionalSingle) => only,
            last => {
                all.extend(last);
                format!("[{}]", all.join(","))
            }
        };
        object.push((key.to_owned(), value));
    }

    /// Prints a leaf. A constant that is an item by `itself` prints its repetition count.
    fn leaf(&self, id: LeafId, itself: bool, fields: &mut Fields<'_>, object: &mut Object) {
        let leaf = &fields.record.leaves[usize::from(id.0)];
        let key = if self.rules.holds(Rule::SecondNames) { &leaf.key } else { &leaf.name };
        if leaf.is_tag() {
            if self.all || !self.rules.holds(Rule::ConstantsHidden) {
                object.push((key.clone(), fields.record.tag.unwrap_or_default().to_string()));
            }
            return;
        }
        let Some(value) = fields.values.next() else { return };
        if let Value::Number(n) = value {
            fields.last[usize::from(id.0)] = *n;
        }
        let hidden = leaf.constant.is_some() && !itself && !self.all && self.rules.holds(Rule::ConstantsHidden)
            || leaf.computed.is_some() && self.rules.holds(Rule::CountsHidden)
            || id.0 == 0 && fields.record.catch_all && !self.rules.holds(Rule::CatchAllTagShown);
        if !hidden {
            object.push((key.clone(), self.value(leaf, value)));
        }
    }

    fn value(&self, leaf: &Leaf, value: &Value) -> String {
        match value {
            Value::Number(n) => self.number(leaf, *n),
            Value::Bytes(bytes) => match (leaf.section, leaf.format) {
                (Some(section), _) if self.rules.holds(Rule::ArraysShown) => {
                    let records = nested(self.dtd, self.order, section, bytes, self.rules);
                    records.map_or(string(&hex(bytes)), |records| {
                        let object = |(id, values): (_, Vec<Value>)| {
                            let record: &Record = self.dtd.record(id).expect("a record of the section");
                            let mut object = vec![("@record".into(), string(&record.name))];
                            object.extend(self.record(record, &values));
                            braces(object)
                        };
                        let objects: Vec<String> = records.into_iter().map(object).collect();
                        format!("[{}]", objects.join(","))
                    })
                }
                (_, Format::Utf8) => self.text(bytes),
                (_, Format::CString) if self.rules.holds(Rule::CStringsCut) => self.cstring(bytes),
                (_, Format::CString) => self.text(bytes),
                _ => string(&hex(bytes)),
            },
        }
    }

    fn number(&self, leaf: &Leaf, n: u64) -> String {
        match leaf.format {
            Format::Signed if self.rules.holds(Rule::SignedShown) => n.cast_signed().to_string(),
            Format::F32 if self.rules.holds(Rule::SinglesShown) => match u32::try_from(n).map(f32::from_bits) {
                Ok(float) if float.is_finite() => format!("{float:?}"),
                Ok(_) if self.rules.holds(Rule::FloatsWithoutForm) => format!("{{\"hex\":\"{n:08x}\"}}"),
                Err(_) if self.rules.holds(Rule::FloatsWithoutForm) => format!("{{\"hex\":\"{n:016x}\"}}"),
                _ => "null".to_owned(),
            },
            Format::F64 if self.rules.holds(Rule::FloatsShown) => {
                let float = f64::from_bits(n);
                if float.is_finite() {
                    format!("{float:?}")
                } else if self.rules.holds(Rule::FloatsWithoutForm) {
                    format!("{{\"hex\":\"{n:016x}\"}}")
                } else {
                    "null".to_owned()
                }
            }
            _ => n.to_string(),
        }
    }

    fn text(&self, bytes: &[u8]) -> String {
        match std::str::from_utf8(bytes) {
            Ok(text) if self.rules.holds(Rule::TextShown) => string(text),
            Ok(_) => string(&hex(bytes)),
            Err(_) if !self.rules.holds(Rule::TextValid) => string(&String::from_utf8_lossy(bytes)),
            Err(_) => format!("{{\"hex\":\"{}\"}}", hex(bytes)),
        }
    }

    fn cstring(&self, bytes: &[u8]) -> String {
        let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
        let (text, tail) = bytes.split_at(end);
        match std::str::from_utf8(text) {
            Ok(text) if tail == [0] || !self.rules.holds(Rule::CStringTail) => string(text),
            Ok(text) => format!("{{\"text\":{},\"tail\":\"{}\"}}", string(text), hex(tail)),
            Err(_) => format!("{{\"hex\":\"{}\"}}", hex(bytes)),
        }
    }
}

fn braces(object: Object) -> String {
    let pairs: Vec<String> = object.iter().map(|(key, value)| format!("{}:{value}", string(key))).collect();
    format!("{{{}}}", pairs.join(","))
}

fn string(text: &str) -> String {
    serde_json::to_string(text).expect("a string")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}
