//! Reads the modules of a crate at every depth and the references between them.

use crate::uses::{Found, Names, find};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A reference from one module to an item in another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Arrow {
    pub(crate) from: Names,
    /// The module that contains the item; empty for the crate's root.
    pub(crate) to: Names,
    /// The path relative to the repository root, and the line number.
    pub(crate) place: String,
}

/// The modules of a crate, and the arrows between them.
#[derive(Debug, Default)]
pub(crate) struct Crate {
    pub(crate) modules: BTreeSet<Names>,
    pub(crate) arrows: Vec<Arrow>,
}

/// Reads the crate in a directory of the repository.
pub(crate) fn read(repository: &Path, folder: &str) -> Crate {
    let src = repository.join(folder).join("src");
    let mut files = Vec::new();
    walk(&src, &mut files);
    files.sort();
    assert!(!files.is_empty(), "{} contains no Rust sources", src.display());
    let files = files.iter().map(|file| {
        let source = std::fs::read_to_string(file).unwrap();
        let place = file.strip_prefix(repository).unwrap().display().to_string();
        (place, module(file.strip_prefix(&src).unwrap()), source)
    });
    of_files(files)
}

/// Reads a crate from its files. Each file is specified by its location, its module and its source text.
pub(crate) fn of_files(files: impl Iterator<Item = (String, Names, String)>) -> Crate {
    let mut found: Vec<(String, Names, Found)> = files
        .map(|(place, module, source)| {
            let uses = find(&source, &module);
            (place, module, uses)
        })
        .collect();
    // Code used only by tests may refer to everything.
    let tests: Vec<Names> = found.iter().flat_map(|(.., found)| found.tests.clone()).collect();
    found.retain(|(_, module, _)| !tests.iter().any(|test| module.starts_with(test)));

    let mut modules: BTreeSet<Names> = BTreeSet::new();
    for (_, module, _) in &found {
        modules.extend((1..=module.len()).map(|length| module[..length].to_vec()));
    }
    // The origin of each name that a module re-exports. For the root, this includes exported macros.
    let mut taken: BTreeMap<(&[String], &str), Option<Names>> = BTreeMap::new();
    for (_, module, found) in &found {
        for (from, name) in &found.taken {
            let child = [&module[..], std::slice::from_ref(from)].concat();
            let known = taken.entry((module, name)).or_default();
            *known = known.take().or(modules.contains(&child).then_some(child));
        }
        taken.extend(found.macros.iter().map(|name| ((&[][..], &**name), Some(module.clone()))));
    }
    // Returns the module that contains an item, or `None` for an item that the root re-exports from another crate.
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

/// The modules of one directory, and the first location of each arrow between them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Folder {
    pub(crate) modules: BTreeSet<String>,
    pub(crate) arrows: BTreeMap<(String, String), String>,
}

impl Crate {
    /// Returns the modules of each directory, by the directory's path from the crate root, and the locations at which
    /// modules refer to items of the root itself.
    ///
    /// Only modules of the same directory are compared. References between a directory's own file and the modules
    /// inside of it are not arrows.
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
    /// Returns the modules to which a module refers.
    pub(crate) fn below<'f>(&'f self, module: &str) -> impl Iterator<Item = &'f str> {
        self.arrows.keys().filter(move |(from, _)| from == module).map(|(_, to)| to.as_str())
    }

    /// Returns the modules in an order in which each follows the modules that it refers to. If several modules could be
    /// next, the order is alphabetical. Modules in cycles come last.
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

    /// Returns the shortest cycle of modules, with one line per arrow and its location, or an empty list if there is no
    /// cycle.
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

    /// Returns the modules on the shortest path from a module back to itself, or `None` if there is no such path.
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

/// Returns the module defined by a file, given by its path in `src`.
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
