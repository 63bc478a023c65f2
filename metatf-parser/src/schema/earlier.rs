//! The paths of a leaf in earlier versions of its DTD, according to its earlier names (spec 2, `was`; spec 5.3).

use super::{Item, LeafId, Record, Repeated};

/// Maximum number of paths per leaf. Each part of a path that has an earlier name doubles the number of paths.
const MOST_PATHS: usize = 16;

impl Record {
    /// Returns the dotted paths of each leaf under its earlier names, and under the names that repetitions would have
    /// if the DTD gave them none. Leaves without such names in their paths are omitted.
    #[must_use]
    pub fn earlier_paths(&self) -> Vec<(LeafId, Vec<String>)> {
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
                Item::Leaf(id) | Item::Repeat { body: Repeated::Leaf(id), .. } => self.leaf(*id, prefixes),
                Item::Nested { key, items, .. } => self.under(vec![key.clone()], items, prefixes),
                Item::Repeat { key, body: Repeated::Record { record, items, .. }, .. } => {
                    self.under(names(key, record, &[], ""), items, prefixes);
                }
                Item::Repeat { count, key, body: Repeated::Group(items) } => {
                    let keys = self.record.leaf(*count).map_or_else(Vec::new, |leaf| match leaf.computed {
                        Some(_) => names(key, "items", &[], ""),
                        None => names(key, &leaf.name, &leaf.was, "_items"),
                    });
                    self.under(keys, items, prefixes);
                }
            }
        }
    }

    /// Visits the items of an object with these keys.
    fn under(&mut self, keys: Vec<String>, items: &[Item], prefixes: &[String]) {
        let keys: Vec<String> = keys.into_iter().map(|key| key + ".").collect();
        self.items(items, &joined(prefixes, &keys));
    }

    fn leaf(&mut self, id: LeafId, prefixes: &[String]) {
        let Some(leaf) = self.record.leaf(id) else { return };
        let mut paths = joined(prefixes, &names(&leaf.key, &leaf.name, &leaf.was, ""));
        paths.remove(0);
        if !paths.is_empty() {
            self.paths.push((id, paths));
        }
    }
}

/// Returns a key, followed by its earlier forms. A key consists of a name and an ending, as in `address`, `address_2`
/// and `n_items`; the earlier forms contain the earlier names. Any other key is the name of a repetition, which has
/// `name` and the ending as its first earlier form.
fn names(key: &str, name: &str, was: &[String], ending: &str) -> Vec<String> {
    let rest = key.strip_prefix(name).and_then(|rest| rest.strip_prefix(ending));
    let is_number = |rest: &str| rest.strip_prefix('_').is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()));
    let number = rest.filter(|rest| rest.is_empty() || is_number(rest));
    let unnamed = number.is_none().then(|| format!("{name}{ending}"));
    let rest = number.unwrap_or_default();
    std::iter::once(key.to_owned()).chain(unnamed).chain(was.iter().map(|was| format!("{was}{ending}{rest}"))).collect()
}

fn joined(prefixes: &[String], keys: &[String]) -> Vec<String> {
    let all = prefixes.iter().flat_map(|prefix| keys.iter().map(move |key| format!("{prefix}{key}")));
    all.take(MOST_PATHS).collect()
}
