//! Finds counts and lengths, which only repeat information in a field and therefore need no separate field.

use metatf_parser::schema::{Expr, ExprOp, Item, Leaf, LeafId, Record, Repeated, Width};

/// The number of uses of each leaf's value.
pub(crate) struct Uses {
    counted: Vec<u32>,
    measured: Vec<u32>,
    /// Uses in expressions that compute counts. The leaf's value cannot be derived from these counts.
    computed: Vec<u32>,
}

impl Uses {
    pub(crate) fn of(record: &Record) -> Self {
        let none = vec![0; record.leaves.len()];
        let mut uses = Self { counted: none.clone(), measured: none.clone(), computed: none };
        uses.counts(&record.items);
        for leaf in &record.leaves {
            if let Width::Variable(expr) = &leaf.width {
                uses.refers(expr, |u| &mut u.measured);
            }
            if let Some(expr) = &leaf.computed {
                uses.refers(expr, |u| &mut u.computed);
            }
        }
        uses
    }

    fn refers(&mut self, expr: &Expr, list: impl Fn(&mut Self) -> &mut Vec<u32>) {
        for op in &expr.0 {
            if let ExprOp::Leaf(id) = op {
                self.bump(&list, *id);
            }
        }
    }

    fn bump(&mut self, list: impl Fn(&mut Self) -> &mut Vec<u32>, id: LeafId) {
        if let Some(n) = list(self).get_mut(usize::from(id.0)) {
            *n += 1;
        }
    }

    /// Counts the uses in repetitions. The parser bounds the nesting depth (spec 3.5).
    fn counts(&mut self, items: &[Item]) {
        for item in items {
            match item {
                Item::Leaf(_) => {}
                Item::Nested { items, .. } => self.counts(items),
                Item::Repeat { count, body, .. } => {
                    self.bump(|u| &mut u.counted, *count);
                    if let Repeated::Group(items) | Repeated::Record { items, .. } = body {
                        self.counts(items);
                    }
                }
            }
        }
    }

    /// Checks whether the leaf is a count or a length.
    pub(crate) fn any(&self, id: LeafId) -> bool {
        let at = usize::from(id.0);
        self.counted.get(at) != Some(&0) || self.measured.get(at) != Some(&0)
    }

    /// Checks whether the leaf is the count of a repetition.
    pub(crate) fn is_count(&self, id: LeafId) -> bool {
        self.counted.get(usize::from(id.0)).is_some_and(|n| *n > 0)
    }

    fn only(&self, id: LeafId, counted: u32, measured: u32) -> bool {
        let at = usize::from(id.0);
        self.counted.get(at) == Some(&counted)
            && self.measured.get(at) == Some(&measured)
            && self.computed.get(at) == Some(&0)
    }

    /// Checks whether a leaf is only the length of one byte array.
    pub(crate) fn measures_one(&self, record: &Record, id: LeafId) -> bool {
        leaf(record, id).is_some_and(|l| l.constant.is_none()) && self.only(id, 0, 1)
    }

    /// Returns the index of the repetition in `items` for which this leaf is only the count.
    pub(crate) fn counts_only(&self, record: &Record, items: &[Item], id: LeafId) -> Option<usize> {
        let plain = leaf(record, id)?.constant.is_none() && self.only(id, 1, 0);
        let counted = |i: &Item| matches!(i, Item::Repeat { count, .. } if *count == id);
        items.iter().position(counted).filter(|_| plain)
    }

    /// Returns the byte array in `items` for which this leaf is only the length.
    pub(crate) fn measures_only(&self, record: &Record, items: &[Item], id: LeafId) -> Option<LeafId> {
        let plain = leaf(record, id)?.constant.is_none() && self.only(id, 0, 1);
        let measured = items.iter().find_map(|item| match item {
            Item::Leaf(data) if is_length(record, id, *data) => Some(*data),
            _ => None,
        });
        measured.filter(|_| plain)
    }
}

fn is_length(record: &Record, length: LeafId, data: LeafId) -> bool {
    let width = leaf(record, data).map(|l| &l.width);
    matches!(width, Some(Width::Variable(expr)) if expr.0 == [ExprOp::Leaf(length)])
}

pub(crate) fn leaf(record: &Record, id: LeafId) -> Option<&Leaf> {
    record.leaves.get(usize::from(id.0))
}

/// Returns the leaves of a nested `vfield` that can be represented by its data (spec 8), because the length is constant
/// or determined by the data.
pub(crate) fn vfield(record: &Record, uses: &Uses, name: &str, items: &[Item]) -> Option<(LeafId, LeafId)> {
    let (&[Item::Leaf(length), Item::Leaf(data)], "vfield") = (items, name) else { return None };
    let bytes = leaf(record, data).is_some_and(|l| !l.is_numeric());
    let follows = uses.measures_only(record, items, length) == Some(data);
    let constant = leaf(record, length).is_some_and(|l| l.constant.is_some());
    (bytes && (follows || constant)).then_some((length, data))
}
