//! Meaning of a DTD, after sections 3.1 to 3.4 and 3.6 of the specification: scopes, leaves and sharing. The meaning of
//! an invalid DTD is unspecified, because errors are left to the parser.

use super::syntax::{Definition, Field, Scope, Setting, Step, Type, Value, parse};
use super::{Rule, Rules, Wrong};
use metatf_parser::schema::{
    Comparison, Dtd, Expr, ExprOp, Format, Interpretation as I, Item, Leaf, LeafId, Names, Origin, Record, RecordId,
    Repeated, Section, SectionId, Width,
};
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};

const PREDEFINED: &str = "\
vfield: (length, data) { length.width = 1; length.interpretation = none; data.width = length.value; data.interpretation = none; }
comment: vfield { tag.value = 1; }
section: (tag, number) { tag.value = 2; number.width = 1; number.interpretation = none; }
metadata: (tag, record, field, property, value) { tag.value = 3; record.width = 1; record.interpretation = none; field.width = 1;
    field.interpretation = none; property.width = 1; property.interpretation = none; value.width = 4; value.interpretation = none; }
";

/// Returns the meaning of a DTD without `predicted` and without roles.
pub(super) fn read(text: &str, rules: Rules) -> Result<Dtd, Wrong> {
    let mut scopes = parse(text, rules)?;
    let predefined = parse(PREDEFINED, Rules::default())?.remove(0);
    scopes[0].records.splice(0..0, predefined.records);
    let text_format = Setting { path: Vec::new(), name: "format".into(), value: Value::Text("utf8".into()) };
    Language {
        scopes: &scopes,
        rules,
        text_format: &text_format,
        records: Vec::new(),
        shared: Vec::new(),
        bases: Vec::new(),
    }
    .dtd(text)
}

/// Ways in which a leaf shares its previous value: by its name, or by a property of a section or of the top level.
#[derive(Clone, Copy, Default)]
struct Sharing<'t> {
    by_name: bool,
    by_setting: Option<&'t Setting>,
}

struct Language<'t> {
    scopes: &'t [Scope],
    rules: Rules,
    records: Vec<Record>,
    /// The property of the bytes of a `text` without a length.
    text_format: &'t Setting,
    /// Sharing by record and leaf.
    shared: Vec<Vec<Sharing<'t>>>,
    /// Leaves whose base is a field, with the path of that field.
    bases: Vec<(usize, usize, &'t [String])>,
}

/// A record being laid out, and the record that nests it.
#[derive(Clone, Copy)]
struct Frame<'f, 't> {
    record: &'t Definition,
    /// Name of the field that contains this record, and the frame of that field.
    up: Option<(&'t str, &'f Frame<'f, 't>)>,
}

/// Top-level record under construction.
struct Top<'t> {
    scope: usize,
    tag: Option<u32>,
    catch_all: bool,
    tag_width: u8,
    leaves: Vec<Leaf>,
    shared: Vec<Sharing<'t>>,
    bases: Vec<(usize, &'t [String])>,
}

fn set<'t>(settings: &'t [Setting], path: &[&str], name: &str) -> Option<&'t Setting> {
    settings.iter().find(|s| s.name == name && s.path == path)
}

fn number(setting: Option<&Setting>) -> Option<u64> {
    match &setting?.value {
        Value::Expression(steps) => fold(steps),
        _ => None,
    }
}

fn apply(op: ExprOp, a: u64, b: u64) -> Option<u64> {
    match op {
        ExprOp::Compare(comparison) => Some(compare(comparison, a.cmp(&b)).into()),
        ExprOp::Add => a.checked_add(b),
        ExprOp::Sub => a.checked_sub(b),
        ExprOp::Mul => a.checked_mul(b),
        ExprOp::Div => a.checked_div(b),
        ExprOp::Rem => a.checked_rem(b),
        _ => None,
    }
}

/// Returns whether an ordering satisfies a comparison.
pub(super) fn compare(comparison: Comparison, order: Ordering) -> bool {
    match comparison {
        Comparison::Equal => order.is_eq(),
        Comparison::NotEqual => order.is_ne(),
        Comparison::Less => order.is_lt(),
        Comparison::LessOrEqual => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterOrEqual => order.is_ge(),
    }
}

/// Evaluates an expression without references.
fn fold(steps: &[Step]) -> Option<u64> {
    let mut stack = Vec::new();
    for step in steps {
        let value = match step {
            Step::Number(n) => *n,
            Step::Value(_) | Step::Width(_) => return None,
            Step::Operator(op) => {
                let (b, a): (u64, u64) = (stack.pop()?, stack.pop()?);
                apply(*op, a, b)?
            }
        };
        stack.push(value);
    }
    stack.pop()
}

fn lists(field: &Field, name: &str) -> bool {
    match field {
        Field::Name(n) => n == name,
        Field::Counted(_, body) | Field::Computed(_, body) | Field::Scanned(_, body) => lists(body, name),
        Field::Named(_, body) => lists(body, name),
        Field::Group(fields) => fields.iter().any(|f| lists(f, name)),
    }
}

/// Returns a key that an object does not contain yet: `address`, `address_2`.
fn key(names: &mut HashMap<String, usize>, name: &str) -> String {
    let n = names.entry(name.to_owned()).or_default();
    *n += 1;
    if *n == 1 { name.to_owned() } else { format!("{name}_{n}") }
}

impl<'t> Language<'t> {
    fn dtd(mut self, text: &str) -> Result<Dtd, Wrong> {
        let scopes = self.scopes;
        let global = &scopes[0].settings;
        let tag_width =
            number(set(global, &["tag"], "width")).filter(|_| self.rules.holds(Rule::TagWidth)).unwrap_or(1);
        let moved = |name: &str, tag| {
            let given =
                number(set(global, &[name, "tag"], "value")).filter(|_| self.rules.holds(Rule::PredefinedTagsMove));
            Some(given.map_or(tag, |n| n as u32))
        };
        let (comment, section, metadata) = (moved("comment", 1), moved("section", 2), moved("metadata", 3));
        let bare = |name: &str, tag| Record {
            name: name.to_owned(),
            section: None,
            tag,
            catch_all: false,
            was: Vec::new(),
            doc: None,
            items: Vec::new(),
            leaves: Vec::new(),
        };
        self.records = vec![bare("comment", comment), bare("section", section), bare("metadata", metadata)];
        self.shared = vec![Vec::new(); 3];
        let mut sections = Vec::new();
        for (number, scope) in scopes.iter().enumerate() {
            let is_tagged = |r: &&Definition| set(&r.block, &["tag"], "value").is_some();
            let untagged = || scope.records.iter().filter(|r| !is_tagged(r) && number > 0);
            let types = |o: &Definition, name: &str| o.types.iter().any(|of| of.word == name);
            let plain =
                |o: &Definition, name: &str| lists(&o.fields, name) && !o.types.iter().any(|of| of.field == name);
            let lists_it = |o: &Definition, name: &str| o.name != name && (plain(o, name) || types(o, name));
            let nested = |r: &&Definition| scope.records.iter().any(|o| lists_it(o, &r.name));
            let tagged: Vec<&Definition> = scope.records.iter().filter(is_tagged).collect();
            let element = |r: &&Definition| !nested(r) || !self.rules.holds(Rule::ElementIsNotNested);
            let stream = untagged().find(element).filter(|_| tagged.is_empty());
            let mut own = Vec::new();
            for definition in tagged.into_iter().chain(stream) {
                let predefined = self.records.iter().take(3).position(|r| r.name == definition.name);
                let id = predefined.filter(|_| number == 0).unwrap_or(self.records.len());
                self.record(id, number, definition, tag_width as u8)?;
                if id > 2 {
                    own.push(RecordId(id as u32));
                }
            }
            sections.push((stream.is_some(), own));
        }
        self.set_bases();
        let globals = sections[0].1.clone();
        let mut out = Vec::new();
        for (scope, (stream, own)) in scopes.iter().zip(sections) {
            let predefined = [0, 1, 2].map(RecordId);
            let visible =
                if self.rules.holds(Rule::GlobalRecordsVisible) || scope.number == 0 { &*globals } else { &[] };
            let own_too = if scope.number == 0 { &[] } else { &*own };
            let records = if stream { own.clone() } else { [&predefined[..], visible, own_too].concat() };
            let (cells, cell_initials) = self.cells(&records);
            let stream = stream.then(|| own[0]);
            out.push(Section {
                number: scope.number,
                name: scope.name.clone(),
                doc: None,
                stream,
                records,
                cells,
                cell_initials,
            });
        }
        Ok(Dtd {
            text: text.to_owned(),
            doc: None,
            tag_width: tag_width as u8,
            sections: out,
            records: self.records,
            models: Vec::new(),
        })
    }

    fn record(&mut self, id: usize, scope: usize, definition: &'t Definition, tag_width: u8) -> Result<(), Wrong> {
        let setting = set(&definition.block, &["tag"], "value");
        let catch_all = setting.is_some_and(|s| matches!(&s.value, Value::Word(word) if word == "other"));
        let tag = if id < 3 { self.records[id].tag } else { number(setting).map(|n| n as u32) };
        // Metadata may refer to a catch-all record by any unused tag; the lowest one represents them.
        let used = |tag: u32| self.records.iter().any(|r| r.tag == Some(tag)) || self.given(tag);
        let tag = if catch_all { (0..).find(|tag| !used(*tag)) } else { tag };
        let shared = Vec::new();
        let mut top = Top { scope, tag, catch_all, tag_width, leaves: Vec::new(), shared, bases: Vec::new() };
        let mut names = HashMap::new();
        let frame = Frame { record: definition, up: None };
        let mut items = Vec::new();
        let unlisted = setting.is_some() && !lists(&definition.fields, "tag");
        if unlisted && self.rules.holds(Rule::TagUnlisted) {
            let leaf = self.leaf(&mut top, &frame, "tag", None, &mut names, false)?;
            items.push(Item::Leaf(leaf));
        }
        self.layout(&mut top, &frame, &definition.fields, &mut names, false, &mut items)?;
        let record = Record {
            name: definition.name.clone(),
            section: (scope > 0).then_some(SectionId(scope as u16)),
            tag,
            catch_all,
            was: Vec::new(),
            doc: None,
            items,
            leaves: top.leaves,
        };
        self.bases.extend(top.bases.into_iter().map(|(leaf, path)| (id, leaf, path)));
        if id < 3 {
            (self.records[id], self.shared[id]) = (record, top.shared);
        } else {
            self.records.push(record);
            self.shared.push(top.shared);
        }
        Ok(())
    }

    /// Returns whether any record has this tag.
    fn given(&self, tag: u32) -> bool {
        let all = self.scopes.iter().flat_map(|scope| &scope.records);
        all.filter_map(|r| number(set(&r.block, &["tag"], "value"))).any(|n| n == u64::from(tag))
    }

    /// Returns the visible untagged record of a name.
    fn untagged(&self, scope: usize, name: &str) -> Option<&'t Definition> {
        let of = |scope: usize| {
            let is_it = |r: &&Definition| r.name == name && set(&r.block, &["tag"], "value").is_none();
            self.scopes[scope].records.iter().find(is_it)
        };
        of(scope).or_else(|| of(0))
    }

    /// Returns the record that a field is, by its type or else by its name.
    fn nested(&self, top: &Top<'t>, record: &'t Definition, name: &str) -> Option<&'t Definition> {
        let Some(of) = record.types.iter().find(|of| of.field == name) else { return self.untagged(top.scope, name) };
        let vfield = of.word == "text" && !of.has_length;
        let scope = self.scope_of(record);
        match self.defined(scope, &of.word) {
            _ if vfield => self.untagged(0, "vfield"),
            None if of.settings.is_empty() && !of.word.is_empty() => self.untagged(scope, &of.word),
            _ => None,
        }
    }

    fn scope_of(&self, record: &Definition) -> usize {
        let lists = |scope: &Scope| scope.records.iter().any(|r| std::ptr::eq(r, record));
        self.scopes.iter().position(lists).unwrap_or(0)
    }

    /// Returns the definition of a type that a scope sees, with the scope that defines it.
    fn defined(&self, scope: usize, word: &str) -> Option<(usize, &'t Type)> {
        let of = |scope: usize| Some((scope, self.scopes[scope].types.iter().find(|of| of.field == word)?));
        if self.rules.holds(Rule::TypesOfSectionFirst) {
            of(scope).or_else(|| of(0))
        } else {
            of(0).or_else(|| of(scope))
        }
    }

    /// Returns a property of a type, or of the types by which it is defined.
    fn of_type(&self, scope: usize, of: &'t Type, name: &str) -> Option<&'t Setting> {
        let own = of.settings.iter().find(|s| s.name == name);
        own.or_else(|| {
            let (scope, other) = self.defined(scope, &of.word).filter(|_| of.word != of.field)?;
            let set = set(&self.scopes[scope].settings, &[&of.word], name);
            set.or_else(|| self.of_type(scope, other, name))
        })
    }

    fn layout(
        &self,
        top: &mut Top<'t>,
        frame: &Frame<'_, 't>,
        field: &'t Field,
        names: &mut HashMap<String, usize>,
        repeated: bool,
        items: &mut Vec<Item>,
    ) -> Result<(), Wrong> {
        let (own, field) = match field {
            Field::Named(own, field) => (Some(own.as_str()), &**field),
            field => (None, field),
        };
        let own = own.filter(|_| self.rules.holds(Rule::RepetitionNamed));
        match field {
            Field::Named(..) => return Err("two names".into()),
            Field::Group(fields) => {
                for field in fields {
                    self.layout(top, frame, field, names, repeated, items)?;
                }
            }
            Field::Name(name) => match self.nested(top, frame.record, name) {
                Some(record) => {
                    let key = key(names, name);
                    let mut inner = Vec::new();
                    let frame = Frame { record, up: Some((name, frame)) };
                    self.layout(top, &frame, &record.fields, &mut HashMap::new(), repeated, &mut inner)?;
                    items.push(Item::Nested { key, record: record.name.clone(), doc: None, items: inner });
                }
                None => items.push(Item::Leaf(self.leaf(top, frame, name, None, names, repeated)?)),
            },
            Field::Counted(name, body) => {
                let listed = earlier(top, &path_of(frame, std::slice::from_ref(name)), self.rules);
                let listed = listed.filter(|_| self.rules.holds(Rule::CountListedBefore));
                let count = match listed {
                    Some(leaf) => leaf,
                    None => {
                        let leaf = self.leaf(top, frame, name, None, names, repeated)?;
                        items.push(Item::Leaf(leaf));
                        leaf
                    }
                };
                self.repeat(top, frame, count, (own, Some(name), body), names, items)?;
            }
            Field::Computed(steps, body) => {
                let count = self.leaf(top, frame, "", Some(steps), &mut HashMap::new(), repeated)?;
                items.push(Item::Leaf(count));
                self.repeat(top, frame, count, (own, None, body), names, items)?;
            }
            Field::Scanned(condition, body) => {
                let count = self.leaf(top, frame, "", Some(&[]), &mut HashMap::new(), repeated)?;
                items.push(Item::Leaf(count));
                self.repeat(top, frame, count, (own, None, body), names, items)?;
                // The condition refers to the items, so it is resolved after them.
                let steps = match condition.is_empty() {
                    true => vec![ExprOp::Rest],
                    false => [self.resolve(top, Some(frame), condition, true)?.0, vec![ExprOp::Until]].concat(),
                };
                top.leaves[usize::from(count.0)].computed = Some(Expr(steps));
            }
        }
        Ok(())
    }

    fn repeat(
        &self,
        top: &mut Top<'t>,
        frame: &Frame<'_, 't>,
        count: LeafId,
        (own, counted_by, body): (Option<&str>, Option<&str>, &'t Field),
        names: &mut HashMap<String, usize>,
        items: &mut Vec<Item>,
    ) -> Result<(), Wrong> {
        let mut inner = Vec::new();
        let named = |names: &mut HashMap<String, usize>, other: &str| match own {
            Some(own) => own.to_owned(),
            None => key(names, other),
        };
        let (key, body) = match body {
            Field::Name(name) if self.nested(top, frame.record, name).is_none() => {
                let key = named(names, name);
                let leaf = self.leaf(top, frame, name, None, &mut HashMap::new(), true)?;
                top.leaves[usize::from(leaf.0)].key.clone_from(&key);
                (key, Repeated::Leaf(leaf))
            }
            Field::Name(name) => {
                let key = named(names, name);
                self.layout(top, frame, body, &mut HashMap::new(), true, &mut inner)?;
                let Some(Item::Nested { record, items, .. }) = inner.pop() else { return Err("no record".into()) };
                (key, Repeated::Record { record, doc: None, items })
            }
            _ => {
                let key = named(names, &counted_by.map_or("items".to_owned(), |count| format!("{count}_items")));
                self.layout(top, frame, body, &mut HashMap::new(), true, &mut inner)?;
                (key, Repeated::Group(inner))
            }
        };
        items.push(Item::Repeat { count, key, body });
        Ok(())
    }

    /// Returns the first property found for a leaf, and the frame whose record block contains it.
    fn find<'f>(
        &self,
        scope: usize,
        frame: &'f Frame<'f, 't>,
        leaf: &str,
        name: &str,
    ) -> Option<(&'t Setting, Option<&'f Frame<'f, 't>>)> {
        let rules = self.rules;
        let mut blocks = Vec::new();
        let (mut at, mut path) = (Some(frame), vec![leaf.to_owned()]);
        while let Some(frame) = at {
            // The type of the field follows the block of the record that lists it.
            let of = frame.record.types.iter().find(|of| of.field == path[0]);
            let of = of.and_then(|of| match &path[1..] {
                [] => self.of_type(self.scope_of(frame.record), of, name),
                [data] if data == "data" && of.word == "text" && !of.has_length && name == "format" => {
                    Some(self.text_format)
                }
                _ => None,
            });
            if rules.holds(Rule::BlockBeforeType) {
                blocks.extend(of.map(|setting| (setting, Some(frame))));
            }
            let found = frame.record.block.iter().find(|s| s.name == name && s.path == path);
            blocks.extend(found.map(|setting| (setting, Some(frame))));
            if !rules.holds(Rule::BlockBeforeType) {
                blocks.extend(of.map(|setting| (setting, Some(frame))));
            }
            at = frame.up.map(|(field, up)| {
                path.insert(0, field.to_owned());
                up
            });
        }
        let block = if rules.holds(Rule::OuterBlocksFirst) { blocks.last() } else { blocks.first() };
        let is_predefined = frame.record.name == "vfield" && rules.holds(Rule::VfieldLooksInBlocks);
        let nested = frame.up.is_some() && !rules.holds(Rule::NamesOfNestedLeaves);
        let of_scope = |scope: usize| {
            set(&self.scopes[scope].settings, &[leaf], name).or_else(|| {
                let mut types = self.scopes[scope].types.iter().filter(|_| rules.holds(Rule::TypeOfFieldName));
                self.of_type(scope, types.find(|of| of.field == leaf)?, name)
            })
        };
        let (section, global) = (of_scope(scope), of_scope(0));
        let mut scopes = vec![section, global];
        if !rules.holds(Rule::SectionsFirst) {
            scopes.reverse();
        }
        let scope = scopes.into_iter().flatten().next().filter(|_| !is_predefined && !nested).map(|s| (s, None));
        let block = block.copied();
        if rules.holds(Rule::BlocksFirst) { block.or(scope) } else { scope.or(block) }
    }

    fn leaf(
        &self,
        top: &mut Top<'t>,
        frame: &Frame<'_, 't>,
        name: &str,
        computed: Option<&'t [Step]>,
        names: &mut HashMap<String, usize>,
        repeated: bool,
    ) -> Result<LeafId, Wrong> {
        let id = LeafId(u8::try_from(top.leaves.len()).map_err(|_| "over 255 leaves")?);
        let mut leaf = Leaf {
            name: name.to_owned(),
            key: key(names, name),
            path: path_of(frame, &[name.to_owned()]),
            width: Width::Unset,
            interpretation: I::Default(0),
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
            repeated,
            width_origin: None,
            interpretation_origin: Origin::Global,
        };
        let scope = top.scope;
        let mut sharing = Sharing::default();
        let again = !self.rules.holds(Rule::BothOfAName) && top.leaves.iter().any(|l| l.path == leaf.path);
        let found = |property: &str| self.find(scope, frame, name, property).filter(|_| !again);
        if let Some((Setting { value: Value::Text(text), .. }, _)) = found("format") {
            leaf.format = Format::ALL.iter().copied().find(|f| f.name() == text).unwrap_or_default();
        }
        if let Some(steps) = computed {
            leaf.computed = Some(self.resolve(top, Some(frame), steps, true)?);
        } else if name == "tag" && frame.up.is_none() && top.tag.is_some() {
            (leaf.width, leaf.interpretation) = (Width::Number(top.tag_width), I::None);
            if !top.catch_all {
                leaf.interpretation_origin = Origin::Tag;
                leaf.constant = top.tag.map(u64::from);
            }
        } else {
            let (setting, at) = self.find(scope, frame, name, "interpretation").ok_or("no interpretation")?;
            let Value::Interpretation(word, numbers, base) = &setting.value else { return Err("no word".into()) };
            let arg = |i: usize| numbers.get(i).copied().unwrap_or_default();
            leaf.interpretation = match &**word {
                "none" => I::None,
                "baseOffset" => I::BaseOffset(arg(0)),
                "delta" => I::Delta(arg(0)),
                "default" => I::Default(arg(0)),
                "sectionOffset" => I::SectionOffset(arg(0) as u8),
                "stride" => I::Stride { initial: arg(0), stride: arg(1) },
                _ => I::SectionStride { section: arg(0) as u8, stride: arg(1) },
            };
            if !base.is_empty() {
                top.bases.push((id.0.into(), base));
            }
            let previous = self.find(scope, frame, name, "previous").and_then(|(setting, _)| match &setting.value {
                Value::Word(word) => Some(word == "shared"),
                _ => None,
            });
            let relative = matches!(leaf.interpretation, I::Delta(_) | I::Stride { .. }) && at.is_none();
            let own = previous == Some(false) && self.rules.holds(Rule::OwnIsApart);
            sharing.by_name = previous == Some(true) && self.rules.holds(Rule::SharedByName);
            sharing.by_setting = Some(setting).filter(|_| relative && !own && self.rules.holds(Rule::SharedBySetting));
            if let Some((setting, block)) = self.find(scope, frame, name, "width") {
                leaf.width = match &setting.value {
                    Value::Bytes(n) => Width::Array(*n as u32),
                    Value::Until(end) => Width::Until(*end as u8),
                    Value::Word(word) if word == "rest" => Width::Rest,
                    Value::Expression(steps) => {
                        let from = block.filter(|_| self.rules.holds(Rule::PathsFromTheBlock)).unwrap_or(frame);
                        let expression = self.resolve(top, Some(from), steps, block.is_none())?;
                        match &*expression.0 {
                            [ExprOp::Push(n @ 0..=8)] => Width::Number(*n as u8),
                            [ExprOp::Push(n)] => Width::Array(*n as u32),
                            _ => Width::Variable(expression),
                        }
                    }
                    _ => leaf.width,
                };
            }
            leaf.constant = number(found("value").map(|(setting, _)| setting));
            leaf.section = number(found("section").map(|(setting, _)| setting)).map(|n| n as u8);
        }
        top.leaves.push(leaf);
        top.shared.push(sharing);
        Ok(id)
    }

    /// Resolves an expression whose paths start at a frame, or `outwards` at the frames that nest it.
    fn resolve(
        &self,
        top: &Top<'t>,
        from: Option<&Frame<'_, 't>>,
        steps: &[Step],
        outwards: bool,
    ) -> Result<Expr, Wrong> {
        if let Some(n) = fold(steps) {
            return Ok(Expr(vec![ExprOp::Push(n)]));
        }
        let leaf = |path: &[String]| {
            let mut at = from;
            while let Some(frame) = at {
                if let Some(leaf) = earlier(top, &path_of(frame, path), self.rules) {
                    return Ok(leaf);
                }
                at = frame.up.map(|(_, up)| up).filter(|_| outwards && self.rules.holds(Rule::PathsOutwards));
            }
            Err(Wrong::from("a reference to no earlier leaf"))
        };
        let step = |step: &Step| match step {
            Step::Number(n) => Ok(ExprOp::Push(*n)),
            Step::Value(path) => leaf(path).map(ExprOp::Leaf),
            Step::Width(path) => leaf(path).map(|leaf| match top.leaves[usize::from(leaf.0)].width {
                Width::Number(n) => ExprOp::Push(n.into()),
                Width::Array(n) => ExprOp::Push(n.into()),
                _ => ExprOp::Push(0),
            }),
            Step::Operator(op) => Ok(*op),
        };
        let mut ops: Vec<ExprOp> = Vec::new();
        for op in steps.iter().map(step) {
            let op = op?;
            // Fold constants.
            if let [.., ExprOp::Push(a), ExprOp::Push(b)] = *ops
                && let Some(value) = apply(op, a, b)
            {
                ops.truncate(ops.len() - 2);
                ops.push(ExprOp::Push(value));
            } else {
                ops.push(op);
            }
        }
        Ok(Expr(ops))
    }

    /// Resolves bases that are fields: the first leaf with that path, or else with that name.
    fn set_bases(&mut self) {
        for (id, leaf, path) in std::mem::take(&mut self.bases) {
            if let I::Default(_) = self.records[id].leaves[leaf].interpretation {
                // The header of a file belongs to another section.
                let Some(other) = self.records.iter().position(|r| r.tag.is_none() && r.name == path[0]) else {
                    continue;
                };
                let at = self.records[other].leaves.iter().position(|l| l.path == path[1..]);
                self.records[id].leaves[leaf].header = at.map(|at| (RecordId(other as u32), LeafId(at as u8)));
                continue;
            }
            let own = self.records[id].section;
            let is_it = |r: &Record| r.name == path[0] && (r.section == own || r.section.is_none());
            let Some(other) = self.records.iter().position(is_it) else { continue };
            let leaves = &self.records[other].leaves;
            let at = leaves.iter().position(|l| l.path == path[1..]);
            let at = at.or_else(|| leaves.iter().position(|l| path[1..] == [l.name.clone()]));
            if let Some(at) = at {
                self.records[id].leaves[leaf].interpretation =
                    I::BaseOffsetOf(RecordId(other as u32), LeafId(at as u8));
            }
        }
    }

    /// Returns the leaves of a section that share a previous value.
    fn cells(&self, records: &[RecordId]) -> (Vec<Vec<u32>>, Vec<u64>) {
        let ids = records.iter().map(|id| id.0 as usize);
        let mut cells: Vec<Vec<u32>> = Vec::new();
        let mut all: Vec<(usize, usize, u32)> = Vec::new();
        for id in ids {
            cells.push(Vec::new());
            for (i, leaf) in self.records[id].leaves.iter().enumerate() {
                let cell = all.len() as u32;
                all.push((id, i, cell));
                let own = self.shared[id][i];
                for other in 0..all.len() - 1 {
                    let (r, l, _) = all[other];
                    let sharing = self.shared[r][l];
                    let by_name = own.by_name && sharing.by_name && self.records[r].leaves[l].name == leaf.name;
                    let same = |a: &Setting, b: &Setting| std::ptr::eq(a, b);
                    let by_setting = own.by_setting.zip(sharing.by_setting).is_some_and(|(a, b)| same(a, b));
                    // A type of another type sets the property for each name by itself.
                    let by_setting = by_setting && self.records[r].leaves[l].name == leaf.name;
                    if leaf.is_numeric() && self.records[r].leaves[l].is_numeric() && (by_name || by_setting) {
                        let (to, from) = (all[other].2, all.last().map_or(0, |last| last.2));
                        all.iter_mut().filter(|entry| entry.2 == from).for_each(|entry| entry.2 = to);
                    }
                }
            }
        }
        let mut initials = vec![0; all.len()];
        let positions: HashMap<u32, usize> = records.iter().enumerate().map(|(at, id)| (id.0, at)).collect();
        for (id, i, cell) in all {
            cells[positions[&(id as u32)]].push(cell);
            if let Some(initial) = self.records[id].leaves[i].interpretation.initial() {
                initials[cell as usize] = initial;
            }
        }
        (cells, initials)
    }
}

/// Returns a path from the top-level record.
fn path_of(frame: &Frame<'_, '_>, path: &[String]) -> Vec<String> {
    let (mut at, mut path) = (frame, path.to_vec());
    while let Some((field, up)) = at.up {
        path.insert(0, field.to_owned());
        at = up;
    }
    path
}

/// Returns the nearest leaf with a path.
fn earlier(top: &Top<'_>, path: &[String], rules: Rules) -> Option<LeafId> {
    let is_it = |leaf: &Leaf| leaf.path == path && leaf.computed.is_none();
    let nearest = top.leaves.iter().rposition(is_it);
    let found = if rules.holds(Rule::NearestOfSeveral) { nearest } else { top.leaves.iter().position(is_it) };
    found.map(|at| LeafId(at as u8))
}
