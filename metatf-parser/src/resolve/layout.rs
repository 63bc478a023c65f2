//! Flattens a record into leaves and items (spec 3.1, 3.3, 8).

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use super::lines;
use super::model::{Field, Model, RecordIndex};
use crate::ast::{self, Computed, Count, FieldItem, Name};
use crate::codes::Code;
use crate::diagnostic::{Draft, LINE, Reporter};
use crate::schema::{Item, LeafId, Repeated};
use crate::span::Span;
use crate::vocabulary::Property;

/// Maximum number of leaves in a record, including `tag` (spec 3.5).
const MOST_LEAVES: usize = 255;

/// An instance of a record in the layout: the top record, or a record nested in it.
pub(super) struct Frame<'a> {
    pub(super) record: RecordIndex,
    /// The enclosing instance, and the name of the field in it that contains this instance.
    pub(super) parent: Option<(usize, &'a str)>,
}

/// A leaf before property lookup.
pub(super) struct RawLeaf<'a> {
    pub(super) name: &'a str,
    /// Keys from the top record down to this leaf, inclusive.
    pub(super) path: Vec<String>,
    pub(super) frame: usize,
    /// The enclosing repetitions, outermost first.
    pub(super) repeats: Vec<usize>,
    /// The location of the field in a field list. For a leaf of a predefined record, this is the field that nests the
    /// record.
    pub(super) site: Span,
    pub(super) is_tag: bool,
    /// The expression of a computed count. Such a leaf has no name, so no property applies to it.
    pub(super) computed: Option<&'a Computed<'a>>,
}

/// A flattened record.
pub(super) struct Layout<'a> {
    pub(super) record: RecordIndex,
    pub(super) frames: Vec<Frame<'a>>,
    pub(super) leaves: Vec<RawLeaf<'a>>,
    pub(super) items: Vec<Item>,
}

impl<'a> Layout<'a> {
    /// Returns the nearest matching leaf that `leaf` may refer to. If there is no such leaf, returns the rule that
    /// forbids the reference, or `unknown` if no leaf matches.
    pub(super) fn nearest(
        &self,
        leaf: usize,
        unknown: Code,
        matches: impl Fn(&RawLeaf) -> bool,
    ) -> Result<usize, Code> {
        let repeats = self.leaves.get(leaf).map(|l| l.repeats.as_slice()).unwrap_or_default();
        self.nearest_before(leaf, repeats, unknown, matches)
    }

    /// Returns the nearest matching leaf to which an expression may refer that is evaluated before `leaf` and in these
    /// repetitions. In all other respects, works like [`nearest`](Self::nearest).
    pub(super) fn nearest_before(
        &self,
        leaf: usize,
        repeats: &[usize],
        unknown: Code,
        matches: impl Fn(&RawLeaf) -> bool,
    ) -> Result<usize, Code> {
        let mut problem = unknown;
        for (index, found) in self.leaves.iter().enumerate().rev().filter(|(_, leaf)| matches(leaf)) {
            if index >= leaf {
                problem = Code::ForwardReference;
            } else if repeats.starts_with(&found.repeats) {
                return Ok(index);
            } else {
                problem = Code::OutOfRepetition;
            }
        }
        Err(problem)
    }

    /// Checks whether the names from `frame` (exclusive) down to the leaf equal `path`.
    pub(super) fn has_path(&self, leaf: &RawLeaf, frame: usize, path: &[Name]) -> bool {
        let Some((last, nesting)) = path.split_last() else { return false };
        if leaf.name != last.text {
            return false;
        }
        let mut at = leaf.frame;
        for name in nesting.iter().rev() {
            match self.frames.get(at).and_then(|f| f.parent) {
                Some((parent, field)) if at != frame && field == name.text => at = parent,
                _ => return false,
            }
        }
        at == frame
    }

    /// Returns the leaves of the items that the count at this index counts, and the repetitions that contain them.
    pub(super) fn counted(&self, count: usize) -> (Range<usize>, &[usize]) {
        let depth = self.leaves.get(count).map_or(0, |leaf| leaf.repeats.len() + 1);
        let items = self.leaves.get(count + 1..).unwrap_or_default();
        let within = items.first().and_then(|leaf| leaf.repeats.get(..depth)).unwrap_or_default();
        let length = items.iter().take_while(|leaf| !within.is_empty() && leaf.repeats.starts_with(within)).count();
        (count + 1..count + 1 + length, within)
    }

    /// Returns the frames from a leaf's frame up to the frame of the top record.
    pub(super) fn frames_up(&self, leaf: &RawLeaf) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(leaf.frame), |at| self.frames.get(*at)?.parent.map(|(parent, _)| parent))
    }
}

/// Flattens a top record. If the record cannot be flattened, reports the mistake and returns `None`.
pub(super) fn expand<'a>(model: &mut Model<'a>, record: RecordIndex, report: &mut Reporter) -> Option<Layout<'a>> {
    let ast = model.records.get(record).filter(|r| r.sound)?.ast;
    let mut expander = Expander {
        model,
        report,
        layout: Layout { record, frames: vec![Frame { record, parent: None }], leaves: Vec::new(), items: Vec::new() },
        objects: Vec::new(),
        repeats: 0,
        in_place: HashMap::new(),
        full: false,
    };
    let items = expander.top(ast);
    expander.key_clashes();
    let full = expander.full;
    let mut layout = expander.layout;
    layout.items = items;
    // Release unused capacity, because a DTD may define a large number of small records.
    layout.items.shrink_to_fit();
    layout.leaves.shrink_to_fit();
    (!full).then_some(layout)
}

/// The names in one JSON object (spec 8), with their use counts and the keys assigned so far.
#[derive(Default)]
struct Object<'a> {
    uses: Vec<(&'a str, usize)>,
    /// The number of repeated groups for each name of a count.
    groups: Vec<(&'a str, usize)>,
    keys: Vec<(Cow<'a, str>, Span)>,
    /// Whether the object contains generated keys or names of repetitions, which may clash with other names.
    made: bool,
}

/// Counts a use of a name and returns the number of uses so far. A linear search suffices, because there are at most
/// 255 names.
fn count<'a>(uses: &mut Vec<(&'a str, usize)>, name: &'a str) -> usize {
    match uses.iter_mut().find(|(known, _)| *known == name) {
        Some((_, uses)) => {
            *uses += 1;
            *uses
        }
        None => {
            uses.push((name, 1));
            1
        }
    }
}

/// The position of the expander in the layout.
#[derive(Clone)]
struct Place {
    frame: usize,
    object: usize,
    repeats: Vec<usize>,
    path: Vec<String>,
    /// The location to report for fields of a predefined record, which is the place where the record is nested.
    site: Span,
}

struct Expander<'m, 'a, 'r, 's> {
    model: &'m mut Model<'a>,
    report: &'r mut Reporter<'s>,
    layout: Layout<'a>,
    objects: Vec<Object<'a>>,
    repeats: usize,
    /// Locations of counts that are stored in place, right before their items, by frame and name.
    in_place: HashMap<(usize, &'a str), Span>,
    /// Whether a limit was exceeded and reported.
    full: bool,
}

impl<'a> Expander<'_, 'a, '_, '_> {
    fn top(&mut self, record: &'a ast::Record<'a>) -> Vec<Item> {
        self.objects.push(Object::default());
        let place = Place { frame: 0, object: 0, repeats: Vec::new(), path: Vec::new(), site: record.name.span };
        let mut items = Vec::new();
        let implicit = self.model.records.get(self.layout.record).is_some_and(|r| r.tagged && !r.lists_tag);
        if implicit {
            items.extend(self.leaf("tag", record.name.span, &place).map(Item::Leaf));
        }
        self.list(&record.fields, &place, &mut items);
        items
    }

    /// Adds the items of a field list entry. A group that is not repeated is flattened (spec 3.1, 8). The depth has
    /// already been limited to 32.
    fn list(&mut self, item: &'a FieldItem<'a>, place: &Place, out: &mut Vec<Item>) {
        if self.full {
            return;
        }
        match item {
            FieldItem::Group(items) => items.iter().for_each(|i| self.list(i, place, out)),
            FieldItem::Name(name) => self.name(name, place, out),
            FieldItem::Repeat { own, count, body } => self.repetition(own.as_deref(), count, body, place, out),
        }
    }

    fn name(&mut self, name: &'a Name<'a>, place: &Place, out: &mut Vec<Item>) {
        let nested = match self.field(name, place) {
            Some(Field::Record(nested)) => nested,
            Some(Field::Wrong) => return,
            _ => return self.plain(name, place, out),
        };
        let Some(ast) = self.model.records.get(nested).map(|r| r.ast) else { return };
        let key = self.key(name.text, name.span.or(place.site), place.object);
        let items = self.nested_items(ast, nested, name, key.clone(), place);
        let record = ast.name.text.to_owned();
        out.push(Item::Nested { key, record, doc: self.nested_doc(place, ast, name), items });
    }

    fn plain(&mut self, name: &'a Name<'a>, place: &Place, out: &mut Vec<Item>) {
        if name.text == "tag" && (place.frame != 0 || !self.layout.leaves.is_empty()) {
            // Ignore a `tag` that is not the first field, which has already been reported.
            return;
        }
        if let Some(first) = self.in_place.get(&(place.frame, name.text)) {
            let record = self.layout.frames.get(place.frame).and_then(|frame| self.model.records.get(frame.record));
            let line = record.and_then(|record| lines::moved(self.report.source, record.ast, name.span, *first));
            self.report.add(
                Draft::new(Code::CountLater, *first, format!("the count `{}` is listed again later", name.text))
                    .label("encoded here, before the repetition")
                    .also(name.span, "listed again here")
                    .help(match line {
                        Some(line) => format!("write `{line}`: a count precedes its repetition"),
                        None => format!(
                            "list `{0}` before the repetition, as in `{0}: u16, {LINE}`, or only as the count",
                            name.text
                        ),
                    })
                    .quote(*first),
            );
        }
        out.extend(self.leaf(name.text, name.span, place).map(Item::Leaf));
    }

    /// Returns the doc of a nested record at this place, which is the doc of the field or else of the record.
    fn nested_doc(&self, place: &Place, ast: &ast::Record, name: &Name) -> Option<String> {
        let frame = self.layout.frames.get(place.frame)?;
        let record = self.model.records.get(frame.record)?;
        let slot = record.slots.get(&[name.text]);
        let of_type = record.types.get(name.text).and_then(|(typed, _)| typed.doc.as_deref());
        let property = slot.and_then(|s| s.get(Property::Doc)).map(|p| &p.value);
        match (property, slot.and_then(|s| s.doc())) {
            (Some(ast::Value::Text(text)), _) => Some(text.clone()),
            (_, Some(doc)) => Some(doc.to_owned()),
            _ => of_type.or(ast.doc.as_deref()).map(str::to_owned),
        }
    }

    fn field(&self, name: &Name, place: &Place) -> Option<Field> {
        let frame = self.layout.frames.get(place.frame)?;
        self.model.records.get(frame.record)?.field(name.text)
    }

    fn nested_items(
        &mut self,
        ast: &'a ast::Record<'a>,
        record: RecordIndex,
        name: &'a Name<'a>,
        key: String,
        place: &Place,
    ) -> Vec<Item> {
        self.layout.frames.push(Frame { record, parent: Some((place.frame, name.text)) });
        self.objects.push(Object::default());
        let mut path = place.path.clone();
        path.push(key);
        let inner = Place {
            frame: self.layout.frames.len() - 1,
            object: self.objects.len() - 1,
            path,
            site: name.span.or(place.site),
            ..place.clone()
        };
        let mut items = Vec::new();
        self.list(&ast.fields, &inner, &mut items);
        items
    }

    /// Expands a repetition (spec 3.3). `own` is the name that the DTD gives it.
    fn repetition(
        &mut self,
        own: Option<&'a Name<'a>>,
        count: &'a Count<'a>,
        body: &'a FieldItem<'a>,
        place: &Place,
        out: &mut Vec<Item>,
    ) {
        let wrong = |name: &Name| name.text == "tag" || self.field(name, place) != Some(Field::Leaf);
        let wrong_body = |name: &Name| name.text == "tag" || self.field(name, place) == Some(Field::Wrong);
        if matches!(count, Count::Name(name) if wrong(name))
            || matches!(body, FieldItem::Name(name) if wrong_body(name))
        {
            // The missing name has already been reported.
            return;
        }
        let counter = match count {
            Count::Name(count) => self.counter(count, place, out),
            Count::Computed(computed) => self.computed(computed, place, out),
        };
        let Some(counter) = counter else { return };
        let (tag, own) = if own.is_some_and(|own| own.text == "tag") { (own, None) } else { (None, own) };
        if let Some(tag) = tag {
            self.report.add(
                Draft::new(Code::TagNotFirst, tag.span, "a repetition cannot be called `tag`")
                    .help(format!("give the repetition a different name, as in `{LINE}`"))
                    .line(tag.span, "items"),
            );
        }
        self.repeats += 1;
        let mut inner = place.clone();
        inner.repeats.push(self.repeats);
        let (key, body) = match body {
            FieldItem::Name(name) => match self.field(name, place) {
                Some(Field::Record(record)) => {
                    let Some(ast) = self.model.records.get(record).map(|r| r.ast) else { return };
                    let key = match own {
                        Some(own) => self.own_key(own, place),
                        None => self.key(name.text, name.span.or(place.site), place.object),
                    };
                    let doc = self.nested_doc(place, ast, name);
                    let items = self.nested_items(ast, record, name, key.clone(), &inner);
                    (key, Repeated::Record { record: ast.name.text.to_owned(), doc, items })
                }
                _ => {
                    let Some(leaf) = self.leaf_called(own, name.text, name.span, &inner) else { return };
                    let key = self.layout.leaves.last().and_then(|l| l.path.last()).cloned().unwrap_or_default();
                    (key, Repeated::Leaf(leaf))
                }
            },
            group => {
                let key = match own {
                    Some(own) => self.own_key(own, place),
                    None => self.group_key(count, place),
                };
                self.objects.push(Object::default());
                inner.object = self.objects.len() - 1;
                inner.path.push(key.clone());
                let mut items = Vec::new();
                self.list(group, &inner, &mut items);
                (key, Repeated::Group(items))
            }
        };
        out.push(Item::Repeat { count: counter, key, body });
    }

    /// Returns the leaf that stores the count. This is the nearest earlier leaf of the same record, or else a new leaf
    /// in place.
    fn counter(&mut self, count: &'a Name<'a>, place: &Place, out: &mut Vec<Item>) -> Option<LeafId> {
        let mut over = false;
        for (index, leaf) in self.layout.leaves.iter().enumerate().rev() {
            if leaf.frame == place.frame && leaf.name == count.text {
                if place.repeats.starts_with(&leaf.repeats) {
                    return u8::try_from(index).ok().map(LeafId);
                }
                over = true;
            }
        }
        if over {
            self.report.add(
                Draft::new(
                    Code::OutOfRepetition,
                    count.span,
                    format!("`{}` is in a repetition that ends before this one", count.text),
                )
                .help(format!("count the items with a field that is not repeated, as in `n: u16, {LINE}`"))
                .line(count.span, "n"),
            );
            return None;
        }
        let leaf = self.leaf(count.text, count.span, place)?;
        self.in_place.insert((place.frame, count.text), count.span.or(place.site));
        out.push(Item::Leaf(leaf));
        Some(leaf)
    }

    /// Adds the leaf of a computed count, right before the items that it counts.
    fn computed(&mut self, computed: &'a Computed<'a>, place: &Place, out: &mut Vec<Item>) -> Option<LeafId> {
        let leaf = self.add_leaf("", 0, computed.span.or(place.site), place)?;
        self.layout.leaves.last_mut()?.computed = Some(computed);
        out.push(Item::Leaf(leaf));
        Some(leaf)
    }

    /// Returns the name that the DTD gives a repetition, which no other field of the object may have.
    fn own_key(&mut self, own: &'a Name<'a>, place: &Place) -> String {
        self.objects.get_mut(place.object).into_iter().for_each(|object| object.made = true);
        self.give(Cow::Borrowed(own.text), own.span.or(place.site), place.object)
    }

    /// Returns the key of a repeated group: `n_items`, or `n_items_2` and so on if one object contains several groups
    /// with the same count, or `items` if the count is computed.
    fn group_key(&mut self, count: &'a Count<'a>, place: &Place) -> String {
        let count = match count {
            Count::Name(count) => count,
            Count::Computed(computed) => return self.key("items", computed.span.or(place.site), place.object),
        };
        let uses = self.objects.get_mut(place.object).map_or(1, |object| {
            object.made = true;
            self::count(&mut object.groups, count.text)
        });
        let base = format!("{}_items", count.text);
        let key = if uses == 1 { base } else { format!("{base}_{uses}") };
        self.give(Cow::Owned(key), count.span.or(place.site), place.object)
    }

    /// Returns the key of a field. The second field with the same name gets the key `name_2` (spec 3.1).
    fn key(&mut self, name: &'a str, span: Span, object: usize) -> String {
        let uses = self.objects.get_mut(object).map_or(1, |object| {
            let uses = count(&mut object.uses, name);
            object.made |= uses > 1;
            uses
        });
        let key = if uses == 1 { Cow::Borrowed(name) } else { Cow::Owned(format!("{name}_{uses}")) };
        self.give(key, span, object)
    }

    fn give(&mut self, key: Cow<'a, str>, span: Span, object: usize) -> String {
        let given = key.to_string();
        if let Some(object) = self.objects.get_mut(object) {
            object.keys.push((key, span));
        }
        given
    }

    fn leaf(&mut self, name: &'a str, span: Span, place: &Place) -> Option<LeafId> {
        self.leaf_called(None, name, span, place)
    }

    /// Adds a leaf whose key is the name of its repetition, if the repetition has its own name.
    fn leaf_called(&mut self, own: Option<&'a Name<'a>>, name: &'a str, span: Span, place: &Place) -> Option<LeafId> {
        let site = span.or(place.site);
        let leaf = self.add_leaf(name, own.map_or(name.len(), |own| own.text.len()), site, place)?;
        let key = match own {
            Some(own) => self.own_key(own, place),
            None => self.key(name, site, place.object),
        };
        let added = self.layout.leaves.last_mut()?;
        added.path.push(key);
        Some(leaf)
    }

    /// Adds a leaf whose key has `key` bytes.
    fn add_leaf(&mut self, name: &'a str, key: usize, site: Span, place: &Place) -> Option<LeafId> {
        let bytes = 512 + name.len() + key * 2 + place.path.iter().map(|p| p.len() + 24).sum::<usize>();
        let id = u8::try_from(self.layout.leaves.len()).ok().filter(|id| usize::from(*id) < MOST_LEAVES);
        let (Some(id), true) = (id, self.model.budget.charge(bytes)) else {
            self.too_many(id.is_some());
            return None;
        };
        let mut path = Vec::with_capacity(place.path.len() + 1);
        path.extend_from_slice(&place.path);
        let is_tag = name == "tag" && place.frame == 0 && self.layout.leaves.is_empty();
        let (frame, repeats) = (place.frame, place.repeats.clone());
        self.layout.leaves.push(RawLeaf { name, path, frame, repeats, site, is_tag, computed: None });
        Some(LeafId(id))
    }

    /// Reports that a limit is exceeded and stops the expansion, because each nesting level can double the number of
    /// leaves.
    fn too_many(&mut self, in_all: bool) {
        self.full = true;
        let Some(record) = self.model.records.get(self.layout.record) else { return };
        let place = record.ast.name.span;
        self.report.add(if in_all {
            super::too_large(place)
        } else {
            let message =
                format!("`{}` has more than {MOST_LEAVES} fields, including nested fields and the tag", record.name());
            Draft::new(Code::ManyLeaves, place, message).help("repeat a field (`n*field`), or split the record")
        });
    }

    /// Reports a generated key, or the name of a repetition, that is also the key of another field (spec 3.1).
    fn key_clashes(&mut self) {
        for object in self.objects.iter().filter(|object| object.made) {
            let mut seen: HashMap<&str, Span> = HashMap::new();
            for (key, span) in &object.keys {
                let Some(first) = seen.insert(key, *span) else { continue };
                self.report.add(
                    Draft::new(Code::KeyClash, *span, format!("two fields are called `{key}` outside the DTD"))
                        .also(first, format!("also called `{key}`"))
                        .help(
                            "rename one of the fields, or name the repetition as in `items: n*item`: a second field \
                             `a` is called `a_2`, and a group repeated by `n` is called `n_items`",
                        ),
                );
            }
        }
    }
}
