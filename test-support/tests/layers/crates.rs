//! Reads a crate: its modules at every depth, and who of them names whom.

use crate::uses::{Found, Names, find};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// One module names an item of another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Arrow {
    pub(crate) from: Names,
    /// The module that has the item; empty: the crate's root.
    pub(crate) to: Names,
    /// Path from the root of the repository, and line.
    pub(crate) place: String,
}

/// The modules of a crate, and the arrows between them.
#[derive(Debug, Default)]
pub(crate) struct Crate {
    pub(crate) modules: BTreeSet<Names>,
    pub(crate) arrows: Vec<Arrow>,
}

/// Reads the crate in a folder of the repository.
pub(crate) fn read(repository: &Path, folder: &str) -> Crate {
    let src = repository.join(folder).join("src");
    let mut files = Vec::new();
    walk(&src, &mut files);
    files.sort();
    assert!(!files.is_empty(), "{} holds no Rust", src.display());
    let files = files.iter().map(|file| {
        let source = std::fs::read_to_string(file).unwrap();
        let place = file.strip_prefix(repository).unwrap().display().to_string();
        (place, module(file.strip_prefix(&src).unwrap()), source)
    });
    of_files(files)
}

/// Reads a crate from its files: their places, their modules, and their text.
pub(crate) fn of_files(files: impl Iterator<Item = (String, Names, String)>) -> Crate {
    let mut found: Vec<(String, Names, Found)> = files
        .map(|(place, module, source)| {
            let uses = find(&source, &module);
            (place, module, uses)
        })
        .collect();
    // What only tests have may look at all.
    let tests: Vec<Names> = found.iter().flat_map(|(.., found)| found.tests.clone()).collect();
    found.retain(|(_, module, _)| !tests.iter().any(|test| module.starts_with(test)));

    let mut modules: BTreeSet<Names> = BTreeSet::new();
    for (_, module, _) in &found {
        modules.extend((1..=module.len()).map(|length| module[..length].to_vec()));
    }
    // Where names of a module are from that it takes from others; and, of the root, exported macros.
    let mut taken: BTreeMap<(&[String], &str), Option<Names>> = BTreeMap::new();
    for (_, module, found) in &found {
        for (from, name) in &found.taken {
            let child = [&module[..], std::slice::from_ref(from)].concat();
            let known = taken.entry((module, name)).or_default();
            *known = known.take().or(modules.contains(&child).then_some(child));
        }
        taken.extend(found.macros.iter().map(|name| ((&[][..], &**name), Some(module.clone()))));
    }
    // The module that has an item; none: another crate, from which the root takes it.
    let resolve = |names: &[String]| -> Option<Names> {
        let mut at = Vec::new();
        for name in names {
            at.push(name.clone());
            if modules.contains(&at) {
                continue;
            }
            at.pop();
            let from = taken.get(&(&at[..], &**name)).cloned();
            return match from {
                Some(Some(module)) => Some(module),
                Some(None) if at.is_empty() => None,
                _ => Some(at),
            };
        }
        Some(at)
    };
    let mut arrows = Vec::new();
    for (place, module, found) in &found {
        for (names, line) in &found.uses {
            if let Some(to) = resolve(names) {
                arrows.push(Arrow { from: module.clone(), to, place: format!("{place}:{line}") });
            }
        }
    }
    Crate { modules, arrows }
}

/// The modules of one folder, and the arrows between them: of each the first place.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Folder {
    pub(crate) modules: BTreeSet<String>,
    pub(crate) arrows: BTreeMap<(String, String), String>,
}

impl Crate {
    /// Returns the modules of each folder, by its names from the crate's root, and where modules name what the root itself has.
    ///
    /// Compared are modules of one folder: that a folder's own file uses what is in it, and the other way round, is not an arrow between them.
    pub(crate) fn folders(&self) -> (BTreeMap<Names, Folder>, Vec<String>) {
        let (mut folders, mut of_root) = (BTreeMap::<Names, Folder>::new(), Vec::new());
        for module in &self.modules {
            let (name, parent) = module.split_last().unwrap();
            folders.entry(parent.to_vec()).or_default().modules.insert(name.clone());
        }
        for Arrow { from, to, place } in &self.arrows {
            let same = from.iter().zip(to).take_while(|(from, to)| from == to).count();
            match (from.get(same), to.get(same)) {
                (Some(one), Some(other)) => {
                    let folder = folders.entry(from[..same].to_vec()).or_default();
                    folder.arrows.entry((one.clone(), other.clone())).or_insert_with(|| place.clone());
                }
                (Some(_), None) if to.is_empty() => of_root.push(format!("{place} names an item of the crate's root")),
                _ => {}
            }
        }
        (folders, of_root)
    }
}

impl Folder {
    /// Returns the modules that one names.
    pub(crate) fn below<'f>(&'f self, module: &str) -> impl Iterator<Item = &'f str> {
        self.arrows.keys().filter(move |(from, _)| from == module).map(|(_, to)| to.as_str())
    }

    /// Returns the modules, those first that others name: of several that could come next, the first by name. Modules in circles come last.
    pub(crate) fn order(&self) -> Vec<&str> {
        let mut left: BTreeSet<&str> = self.modules.iter().map(String::as_str).collect();
        let mut order = Vec::new();
        while let Some(next) = left.iter().copied().find(|module| self.below(module).all(|to| !left.contains(to))) {
            left.remove(next);
            order.push(next);
        }
        order.extend(left);
        order
    }

    /// Returns the shortest circle of modules, an arrow a line with its place; empty: there is none.
    pub(crate) fn circle(&self) -> Vec<String> {
        let circles = self.modules.iter().filter_map(|module| self.way_back(module));
        let Some(circle) = circles.min_by_key(Vec::len) else { return Vec::new() };
        let arrows = circle.iter().zip(circle.iter().cycle().skip(1));
        arrows
            .map(|(from, to)| {
                let place = self.arrows.get(&(from.to_string(), to.to_string())).map_or("", String::as_str);
                format!("{place}: {from} -> {to}")
            })
            .collect()
    }

    /// Returns the modules on the shortest way from one back to it; `None`: there is none.
    fn way_back<'f>(&'f self, module: &'f str) -> Option<Vec<&'f str>> {
        let mut before: BTreeMap<&str, &str> = BTreeMap::new();
        let mut next = vec![module];
        while !next.is_empty() {
            let mut further = Vec::new();
            for from in next {
                for to in self.below(from) {
                    if to == module {
                        let mut way = vec![from];
                        while let Some(last) = before.get(way[way.len() - 1]).filter(|_| way[way.len() - 1] != module) {
                            way.push(last);
                        }
                        way.reverse();
                        return Some(way);
                    }
                    if !before.contains_key(to) {
                        before.insert(to, from);
                        further.push(to);
                    }
                }
            }
            next = further;
        }
        None
    }
}

/// The module that a file holds, by its path in `src`.
fn module(file: &Path) -> Names {
    let mut module: Names = file.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let last = module.last().map_or("", String::as_str);
    if last == "mod" || module.len() == 1 && matches!(last, "lib" | "main") {
        module.pop();
    }
    module
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}
