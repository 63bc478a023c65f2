//! The predefined records (spec 3.6).

use std::collections::BTreeMap;

use crate::ast::{self, Aspect, Expression, FieldItem, Int, Interpretation, Name, Reference, Setting, Step, Value};
use crate::schema::{self, Expr, ExprOp, Format, InterpretationWord, Item, Leaf, LeafId, Names, Origin, Width};
use crate::span::Span;
use crate::vocabulary::Property;

fn name(text: &'static str) -> Name<'static> {
    Name { text, span: Span::PREDEFINED }
}

fn setting(path: &'static str, property: Property, value: Value<'static>) -> Setting<'static> {
    Setting {
        quoted: false,
        path: vec![name(path)],
        name: name(property.name()),
        property: Some(property),
        value,
        value_span: Span::PREDEFINED,
        annotation: None,
        doc: None,
    }
}

/// Returns the definition `vfield: (length, data) { length.width = 1; length.interpretation = none; data.width =
/// length.value; data.interpretation = none; }`.
pub(super) fn vfield() -> ast::Record<'static> {
    let one = Step::Int(Int { negative: false, magnitude: 1, span: Span::PREDEFINED });
    let length = Reference { path: vec![name("length")], of: Aspect::Value, span: Span::PREDEFINED };
    let none = || Value::Interpretation(Interpretation { word: InterpretationWord::None, arguments: Vec::new() });
    let width = |step| Value::Expression(Expression { steps: vec![step] });
    ast::Record {
        name: name("vfield"),
        fields: FieldItem::Group(vec![FieldItem::Name(name("length")), FieldItem::Name(name("data"))]),
        block: vec![
            setting("length", Property::Width, width(one)),
            setting("length", Property::Interpretation, none()),
            setting("data", Property::Width, width(Step::Reference(length))),
            setting("data", Property::Interpretation, none()),
        ],
        types: Vec::new(),
        brace: None,
        extent: Span::PREDEFINED,
        doc: None,
    }
}

/// Returns `comment`, `section` and `metadata`, in the order of their IDs, with these tags.
pub(super) fn tagged(tag_width: u8, tags: [u32; 3]) -> [schema::Record; 3] {
    let [comment_tag, section_tag, metadata_tag] = tags;
    [comment(tag_width, comment_tag), section(tag_width, section_tag), metadata(tag_width, metadata_tag)]
}

fn record(name: &str, tag: u32, items: Vec<Item>, leaves: Vec<Leaf>) -> schema::Record {
    schema::Record {
        name: name.to_owned(),
        section: None,
        tag: Some(tag),
        catch_all: false,
        was: Vec::new(),
        doc: None,
        items,
        leaves,
    }
}

fn leaf(record: &str, path: &[&str], width: Width) -> Leaf {
    let name = path.last().copied().unwrap_or_default();
    let origin = Origin::Block(record.into());
    Leaf {
        name: name.to_owned(),
        key: name.to_owned(),
        path: path.iter().map(|p| (*p).to_owned()).collect(),
        width,
        interpretation: schema::Interpretation::None,
        header: None,
        constant: None,
        computed: None,
        format: Format::Unset,
        names: Names::None,
        was: Vec::new(),
        section: None,
        unit: None,
        doc: None,
        annotations: BTreeMap::new(),
        repeated: false,
        width_origin: Some(origin.clone()),
        interpretation_origin: origin,
    }
}

fn tag(tag_width: u8, value: u32) -> Leaf {
    Leaf {
        constant: Some(value.into()),
        width_origin: Some(Origin::Global),
        interpretation_origin: Origin::Tag,
        ..leaf("", &["tag"], Width::Number(tag_width))
    }
}

fn comment(tag_width: u8, value: u32) -> schema::Record {
    let length = leaf("vfield", &["vfield", "length"], Width::Number(1));
    let data_width = Width::Variable(Expr(vec![ExprOp::Leaf(LeafId(1))]));
    let data = Leaf { format: Format::Utf8, ..leaf("vfield", &["vfield", "data"], data_width) };
    let vfield = Item::Nested {
        key: "vfield".to_owned(),
        record: "vfield".to_owned(),
        doc: None,
        items: vec![Item::Leaf(LeafId(1)), Item::Leaf(LeafId(2))],
    };
    record("comment", value, vec![Item::Leaf(LeafId(0)), vfield], vec![tag(tag_width, value), length, data])
}

fn section(tag_width: u8, value: u32) -> schema::Record {
    let number = leaf("section", &["number"], Width::Number(1));
    record("section", value, flat(2), vec![tag(tag_width, value), number])
}

/// Returns `metadata`. The width of `value` depends on the trace (spec 4.1); the schema contains the larger width.
fn metadata(tag_width: u8, value: u32) -> schema::Record {
    let fields = [("record", tag_width), ("field", 1), ("property", 1), ("value", 8)];
    let leaves = fields.map(|(name, width)| leaf("metadata", &[name], Width::Number(width)));
    let all: Vec<Leaf> = std::iter::once(tag(tag_width, value)).chain(leaves).collect();
    record("metadata", value, flat(5), all)
}

fn flat(leaves: u8) -> Vec<Item> {
    (0..leaves).map(|i| Item::Leaf(LeafId(i))).collect()
}
