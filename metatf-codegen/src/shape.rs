//! Derives a struct with its fields and their byte layout from a record's items.

use metatf_parser::schema::{Dtd, Format, Interpretation, Item, Leaf, LeafId, Names, Record, Repeated, Width};

use crate::docs;
use crate::model::{Body, Field, Kind, LARGEST_ARRAY, Model, Piece, Shape, Struct, Ty};
use crate::named::named;
use crate::names::{Scope, camel, ident, snake};
use crate::options::Lookup;
use crate::uses::{Uses, leaf, vfield};

/// A builder of the structs of one top record. Nested structs come before the structs that contain them.
pub(crate) struct Shaper<'s, 'd> {
    pub(crate) model: &'s mut Model,
    pub(crate) types: &'s mut Scope,
    pub(crate) lookup: &'s Lookup<'s>,
    pub(crate) dtd: &'d Dtd,
    pub(crate) record: &'d Record,
    pub(crate) uses: Uses,
    /// The name of the top record's struct.
    pub(crate) top: String,
    /// The structs of nested records and groups so far, as their paths in options and their indices.
    pub(crate) nested: &'s mut Vec<(Vec<String>, usize)>,
}

/// An unfinished struct.
struct Draft {
    shape: Shape,
    names: Scope,
    /// The first leaf of the struct's record, from which leaves are numbered.
    base: u8,
    /// The paths by which options refer to the struct.
    paths: Vec<String>,
    /// The prefix for the names of the struct's groups.
    owner: String,
}

impl Shaper<'_, '_> {
    /// Returns the shape of the top record's struct.
    pub(crate) fn top_shape(&mut self, paths: &[String]) -> Shape {
        let (items, owner) = (self.record.items.clone(), self.top.clone());
        self.shape(&items, 0, paths, &owner)
    }

    /// Returns the shape of a struct with these items. `base` is the first leaf of the record that lists them.
    fn shape(&mut self, items: &[Item], base: u8, paths: &[String], owner: &str) -> Shape {
        let (names, owner) = (Scope::default(), owner.to_owned());
        let mut draft = Draft { shape: Shape::default(), names, base, paths: paths.to_vec(), owner };
        // Name the fields first, because the layout of a count refers to the name of the counted field.
        let fields: Vec<Option<usize>> = items.iter().map(|item| self.field(&mut draft, items, item)).collect();
        for (item, field) in items.iter().zip(&fields) {
            self.lay_out(&mut draft, items, &fields, item, *field);
        }
        draft.shape.bytes = draft.shape.fields.iter().any(|f| self.model.has_bytes(&f.ty));
        draft.shape
    }

    /// Adds the field of an item. Constants, counts and lengths have no field.
    fn field(&mut self, draft: &mut Draft, items: &[Item], item: &Item) -> Option<usize> {
        let record = self.record;
        let (key, ty, docs) = match item {
            Item::Leaf(id) => {
                let l = leaf(record, *id)?;
                let derived = self.uses.counts_only(record, items, *id).is_some()
                    || self.uses.measures_only(record, items, *id).is_some();
                if l.is_implied() || derived {
                    return None;
                }
                (&l.key, self.leaf_type(draft, *id, l), docs::of_leaf(self.dtd, record, l, false))
            }
            Item::Nested { key, record: name, doc, items } => {
                if let Some((length, data)) = vfield(record, &self.uses, name, items) {
                    let l = leaf(record, data)?;
                    let docs = docs::of_vfield(key, l.doc.as_deref().or(doc.as_deref()), leaf(record, length)?, false);
                    (key, self.leaf_type(draft, data, l), docs)
                } else {
                    let index = self.nested(name, doc.as_deref(), items, first_leaf(items)?);
                    (key, Ty::Struct(index), docs::under(doc.as_deref(), format!("The nested record `{name}`.")))
                }
            }
            Item::Repeat { count, key, body } => {
                let optional = record.is_optional(*count);
                let (ty, mut docs) = self.repeated(draft, key, body, !optional)?;
                if let Some(count) = leaf(record, *count).filter(|l| l.computed.is_some()) {
                    docs.push(match optional {
                        true => format!(
                            "Present exactly if `{}` is 1. The writer returns an error if they disagree.",
                            count.key
                        ),
                        false if record.ends_by_content().is_some() => {
                            format!("The items are counted by `{}`.", count.key)
                        }
                        false => format!("The number of items is `{}`.", count.key),
                    });
                }
                (key, if optional { Ty::Optional(Box::new(ty)) } else { Ty::List(Box::new(ty)) }, docs)
            }
        };
        let paths: Vec<String> = draft.paths.iter().map(|path| format!("{path}.{key}")).collect();
        let wanted = self.lookup.rename(&paths).unwrap_or_else(|| snake(key));
        let name = draft.names.take(&[ident(&wanted).to_string()]);
        let attributes = self.lookup.field_attributes(&paths);
        let target = self.target(item);
        draft.shape.fields.push(Field { name, ty, docs, target, attributes });
        Some(draft.shape.fields.len() - 1)
    }

    /// Returns the number of the stream section into which the offsets in an item lead.
    fn target(&self, item: &Item) -> Option<u8> {
        let (Item::Leaf(id) | Item::Repeat { body: Repeated::Leaf(id), .. }) = item else { return None };
        match leaf(self.record, *id)?.interpretation {
            Interpretation::SectionOffset(section) => Some(section),
            _ => None,
        }
    }

    /// Returns the type and docs of a repeated field if `several` is set, or else of an optional field.
    fn repeated(&mut self, draft: &Draft, key: &str, body: &Repeated, several: bool) -> Option<(Ty, Vec<String>)> {
        let record = self.record;
        Some(match body {
            Repeated::Leaf(id) => {
                let l = leaf(record, *id)?;
                let ty = if l.constant.is_some() { Ty::Unit } else { self.leaf_type(draft, *id, l) };
                (ty, docs::of_leaf(self.dtd, record, l, several))
            }
            Repeated::Record { record: name, doc, items } => match self.vfield_item(name, items) {
                Some((length, data)) => {
                    let doc = leaf(record, data)?.doc.as_deref().or(doc.as_deref());
                    (Ty::Bytes, docs::of_vfield(name, doc, leaf(record, length)?, several))
                }
                None => {
                    let what = if several { "Nested records" } else { "The nested record" };
                    let docs = docs::under(doc.as_deref(), format!("{what} `{name}`."));
                    (Ty::Struct(self.nested(name, doc.as_deref(), items, first_leaf(items)?)), docs)
                }
            },
            Repeated::Group(items) => {
                let docs =
                    vec![if several { format!("The items of `{key}`.") } else { format!("The fields of `{key}`.") }];
                (Ty::Struct(self.group(draft, key, items)), docs)
            }
        })
    }

    /// Builds the struct for the items of a repeated group.
    fn group(&mut self, draft: &Draft, key: &str, items: &[Item]) -> usize {
        let paths: Vec<String> = draft.paths.iter().map(|path| format!("{path}.{key}")).collect();
        let name = format!("{}{}Item", draft.owner, camel(key.strip_suffix("_items").unwrap_or(key)));
        let shape = self.shape(items, draft.base, &paths, &name);
        let docs = vec![format!("An item of `{key}` in `{}`.", draft.owner)];
        self.intern(&paths, &[name], docs, shape)
    }

    /// Builds the struct of a nested record.
    fn nested(&mut self, name: &str, doc: Option<&str>, items: &[Item], base: u8) -> usize {
        let paths = [name.to_owned()];
        let shape = self.shape(items, base, &paths, &camel(name));
        let docs = docs::or(docs::lines(doc), || format!("The nested record `{name}`."));
        self.intern(&paths, &[camel(name), format!("{}{}", self.top, camel(name))], docs, shape)
    }

    /// Returns an existing struct with the same paths and shape, or a new one.
    fn intern(&mut self, paths: &[String], names: &[String], docs: Vec<String>, shape: Shape) -> usize {
        let same = self.nested.iter().find(|(known, index)| {
            known == paths && self.model.structs.get(*index).is_some_and(|s| s.shape.same_as(&shape))
        });
        if let Some((_, index)) = same {
            let fields = self.model.structs.get_mut(*index).map(|s| &mut s.shape.fields);
            for (field, other) in fields.into_iter().flatten().zip(&shape.fields) {
                docs::merge(&mut field.docs, &other.docs);
                field.target = field.target.filter(|target| other.target == Some(*target));
            }
            return *index;
        }
        let wanted = self.lookup.rename(paths).map(|name| vec![name]);
        let name = self.types.take(&wanted.unwrap_or_else(|| names.to_vec()));
        let attributes = self.lookup.record_attributes(paths);
        self.model.structs.push(Struct { name, docs, layout: Vec::new(), attributes, shape });
        let index = self.model.structs.len() - 1;
        self.nested.push((paths.to_vec(), index));
        index
    }

    /// Returns the leaves of a `vfield` whose length is determined by its data.
    fn vfield_item(&self, name: &str, items: &[Item]) -> Option<(LeafId, LeafId)> {
        let found = vfield(self.record, &self.uses, name, items)?;
        leaf(self.record, found.0)?.constant.is_none().then_some(found)
    }

    /// Returns the type of a leaf's field. A count or length is a plain number regardless of its format.
    fn leaf_type(&mut self, draft: &Draft, id: LeafId, l: &Leaf) -> Ty {
        match self.kind(id, l) {
            Kind::Named => named(self.model, self.types, self.lookup, &draft.owner, l).map_or(Ty::U64, Ty::Named),
            Kind::Number => Ty::U64,
            Kind::Signed => Ty::I64,
            Kind::Single => Ty::F32,
            Kind::Float => Ty::F64,
            Kind::Bytes => Ty::Bytes,
            Kind::Array => match l.width {
                Width::Array(n) => Ty::Array(n),
                _ => Ty::Bytes,
            },
        }
    }

    fn kind(&self, id: LeafId, l: &Leaf) -> Kind {
        match (&l.width, l.format) {
            (Width::Array(n), _) if *n <= LARGEST_ARRAY => Kind::Array,
            (Width::Array(_) | Width::Variable(_) | Width::Until(_) | Width::Rest, _) => Kind::Bytes,
            _ if self.uses.any(id) => Kind::Number,
            _ if l.names != Names::None => Kind::Named,
            (_, Format::Signed) => Kind::Signed,
            (_, Format::F32) => Kind::Single,
            (_, Format::F64) => Kind::Float,
            _ => Kind::Number,
        }
    }

    /// Adds the pieces of an item, in the order of its leaves.
    fn lay_out(&self, draft: &mut Draft, items: &[Item], fields: &[Option<usize>], item: &Item, field: Option<usize>) {
        let name = |field: Option<usize>| field.and_then(|f| draft.shape.fields.get(f)).map(|f| f.name.clone());
        let at = |id: LeafId| id.0.saturating_sub(draft.base);
        let own = name(field).unwrap_or_default();
        let mut pieces = Vec::new();
        match item {
            Item::Leaf(id) => {
                let Some(l) = leaf(self.record, *id).filter(|l| !l.is_tag()) else { return };
                let field_of = |position: Option<usize>| name(position.and_then(|p| fields.get(p).copied().flatten()));
                let measured = self.uses.measures_only(self.record, items, *id);
                let measured = measured.and_then(|data| items.iter().position(|i| *i == Item::Leaf(data)));
                let leaf = at(*id);
                pieces.push(if let Some(value) = l.constant {
                    Piece::Constant { leaf, value }
                } else if let Some(field) = field_of(self.uses.counts_only(self.record, items, *id)) {
                    Piece::Count { leaf, field }
                } else if let Some(field) = field_of(measured) {
                    Piece::Length { leaf, field }
                } else {
                    Piece::One { leaf, field: own, kind: self.kind(*id, l) }
                });
            }
            Item::Nested { record: name, items, .. } => match vfield(self.record, &self.uses, name, items) {
                Some((length, data)) => {
                    let Some((l, d)) = leaf(self.record, length).zip(leaf(self.record, data)) else { return };
                    let leaf = at(length);
                    pieces.push(match l.constant {
                        Some(value) => Piece::Constant { leaf, value },
                        None => Piece::Length { leaf, field: own.clone() },
                    });
                    pieces.push(Piece::One { leaf: at(data), field: own, kind: self.kind(data, d) });
                }
                None => {
                    pieces.push(Piece::Nested { base: first_leaf(items).map_or(0, |l| l - draft.base), field: own })
                }
            },
            Item::Repeat { count, body, .. } => {
                let Some(body) = self.body(draft.base, body) else { return };
                let count_leaf = at(*count);
                pieces.push(if self.record.is_optional(*count) {
                    Piece::Optional { count: count_leaf, field: own, body }
                } else {
                    Piece::Each { count: count_leaf, field: own, body }
                });
            }
        }
        draft.shape.pieces.append(&mut pieces);
    }

    fn body(&self, base: u8, body: &Repeated) -> Option<Body> {
        let at = |id: LeafId| id.0.saturating_sub(base);
        Some(match body {
            Repeated::Leaf(id) => {
                let l = leaf(self.record, *id)?;
                match l.constant {
                    Some(value) => Body::Constant { leaf: at(*id), value },
                    None => Body::One { leaf: at(*id), kind: self.kind(*id, l) },
                }
            }
            Repeated::Record { record: name, items, .. } => match self.vfield_item(name, items) {
                Some((length, data)) => Body::Vfield { length: at(length), data: at(data) },
                None => Body::Nested { base: first_leaf(items)?.saturating_sub(base) },
            },
            // The items of a group are numbered like the surrounding record.
            Repeated::Group(_) => Body::Nested { base: 0 },
        })
    }
}

/// Returns the first leaf of the items. Records are never empty.
fn first_leaf(items: &[Item]) -> Option<u8> {
    match items.first()? {
        Item::Leaf(id) => Some(id.0),
        Item::Nested { items, .. } => first_leaf(items),
        // In a valid record, a repetition is never the first item, because its count precedes it in the same record.
        Item::Repeat { body: Repeated::Leaf(id), .. } => Some(id.0),
        Item::Repeat { body: Repeated::Group(items) | Repeated::Record { items, .. }, .. } => first_leaf(items),
    }
}

impl Shape {
    /// Checks whether both shapes have the same fields and layout. Docs and attributes are ignored, because they come
    /// from the record's own definition.
    fn same_as(&self, other: &Self) -> bool {
        let fields = |s: &Self| s.fields.iter().map(|f| (f.name.clone(), f.ty.clone())).collect::<Vec<_>>();
        fields(self) == fields(other) && self.pieces == other.pieces
    }
}
