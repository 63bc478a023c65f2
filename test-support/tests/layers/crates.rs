//! Reads a crate: its modules, and who of them names whom.

use crate::uses::{Found, Names, find};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The module that holds the others, which stands above them.
pub(crate) const ROOT: &str = "(root)";

/// One module names another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Arrow {
    pub(crate) from: String,
    pub(crate) to: String,
    /// Path from the root of the repository, and line.
    pub(crate) place: String,
}

/// The modules of a crate, or of a module of it, and the arrows between them.
#[derive(Debug, Default)]
pub(crate) struct Crate {
    pub(crate) modules: BTreeSet<String>,
    pub(crate) arrows: Vec<Arrow>,
}

/// Reads the crate in a folder of the repository: its top-level modules, or those of the module `within`.
pub(crate) fn read(repository: &Path, folder: &str, within: Option<&str>) -> Crate {
    let src = repository.join(folder).join("src");
    let mut files = Vec::new();
    walk(&src, &mut files);
    files.sort();
    assert!(!files.is_empty(), "{} holds no Rust", src.display());
    let mut found: Vec<(&PathBuf, Names, Found)> = Vec::new();
    for file in &files {
        let module = module(file.strip_prefix(&src).unwrap());
        let uses = find(&std::fs::read_to_string(file).unwrap(), &module);
        found.push((file, module, uses));
    }
    // What only tests have may look at all.
    let tests: Vec<Names> = found.iter().flat_map(|(.., found)| found.tests.clone()).collect();
    found.retain(|(_, module, _)| !tests.iter().any(|test| module.starts_with(test)));

    let base: Names = within.map(str::to_owned).into_iter().collect();
    let child = |names: &Names| names.strip_prefix(&*base)?.first().cloned();
    let modules: BTreeSet<String> = found.iter().filter_map(|(_, module, _)| child(module)).collect();
    // Where the names of the module that holds them are from: what its file takes, and exported macros.
    let mut origin: BTreeMap<&str, &str> = modules.iter().map(|module| (&**module, &**module)).collect();
    for (_, module, found) in &found {
        if *module == base {
            let taken = found.taken.iter().filter(|(module, _)| modules.contains(module));
            origin.extend(taken.map(|(module, name)| (&**name, &**module)));
        } else if base.is_empty() {
            origin.extend(found.macros.iter().map(|name| (&**name, &*module[0])));
        }
    }
    // What that file takes from another crate is no arrow between modules.
    let of_others: BTreeSet<&str> = found
        .iter()
        .filter(|(_, module, _)| *module == base)
        .flat_map(|(.., found)| &found.taken)
        .filter(|(module, name)| !modules.contains(module) && !origin.contains_key(&**name))
        .map(|(_, name)| &**name)
        .collect();
    let mut arrows = Vec::new();
    for (file, module, found) in &found {
        let Some(from) = child(module) else { continue };
        for (names, line) in &found.uses {
            let Some(name) = child(names).filter(|name| !of_others.contains(&**name)) else { continue };
            let to = *origin.get(&*name).unwrap_or(&ROOT);
            if to != from {
                let place = format!("{}:{line}", file.strip_prefix(repository).unwrap().display());
                arrows.push(Arrow { from: from.clone(), to: to.to_owned(), place });
            }
        }
    }
    Crate { modules, arrows }
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
