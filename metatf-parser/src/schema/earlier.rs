//! The paths of a leaf in earlier versions of its DTD, according to its earlier names (spec 2, `was`).

use super::{Item, Leaf, LeafId, Record, Repeated};

/// Maximum number of paths per leaf. Each part of a path that has an earlier name doubles the number of paths.
const MOST_PATHS: usize = 16;

impl Record {
    /// Returns the dotted paths of each leaf under its earlier names. Leaves without earlier names in their paths are
    /// omitted.
    #[must_use]
    pub fn earlier_paths(&self) -> Vec<(LeafId, Vec<String>)> {
        if self.leaves.iter().all(|leaf| leaf.was.is_empty()) {
            return Vec::new();
        }
        let mut walk = Walk { record: self, paths: Vec::new() };
        walk.items(&self.items, &[String::new()]);
        walk.paths
    }
}

struct Walk<'r> {
    record: &'r Record,
    paths: Vec<(LeafId, Vec<String>)>,
}

impl Walk<'_> {
    /// Visits items whose paths start with one of `prefixes`. The first prefix is the current prefix. Items nest at
    /// most 32 levels deep (spec 3.5).
    fn items(&mut self, items: &[Item], prefixes: &[String]) {
        for item in items {
            match item {
                Item::Leaf(id) => self.leaf(*id, prefixes),
                Item::Nested { key, items, .. } => self.items(items, &joined(prefixes, &[format!("{key}.")])),
                Item::Repeat { body: Repeated::Leaf(id), .. } => self.leaf(*id, prefixes),
                Item::Repeat { count, key, body: Repeated::Group(items) | Repeated::Record { items, .. } } => {
                    let keys = self.record.leaf(*count).map(|leaf| names(leaf, key)).unwrap_or_default();
                    let keys: Vec<String> = keys.into_iter().map(|key| key + ".").collect();
                    self.items(items, &joined(prefixes, &keys));
                }
            }
        }
    }

    fn leaf(&mut self, id: LeafId, prefixes: &[String]) {
        let Some(leaf) = self.record.leaf(id) else { return };
        let mut paths = joined(prefixes, &names(leaf, &leaf.key));
        paths.remove(0);
        if !paths.is_empty() {
            self.paths.push((id, paths));
        }
    }
}

/// Returns a key that starts with the name of a leaf (`address_2`, `n_items`), followed by the same key with each of
/// the leaf's earlier names.
fn names(leaf: &Leaf, key: &str) -> Vec<String> {
    let rest = key.strip_prefix(&leaf.name).unwrap_or_default();
    std::iter::once(key.to_owned()).chain(leaf.was.iter().map(|was| format!("{was}{rest}"))).collect()
}

fn joined(prefixes: &[String], keys: &[String]) -> Vec<String> {
    let all = prefixes.iter().flat_map(|prefix| keys.iter().map(move |key| format!("{prefix}{key}")));
    all.take(MOST_PATHS).collect()
}
