//! Draws the layers as a Mermaid flowchart. It shows the crates with their modules, lowest first, and the dependencies
//! between the modules of the runtime. Arrows implied by other arrows are omitted.

use crate::crate_name;
use crate::crates::Folder;
use crate::uses::Names;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The crate whose modules are drawn individually.
const IN_FULL: &str = "metatf";

/// Returns the lines of the chart.
pub(crate) fn draw(root: &Path, crates: &[(BTreeMap<Names, Folder>, String)]) -> Vec<String> {
    let mut lines = vec!["flowchart TB".to_owned()];
    for (folders, folder) in crates {
        let name = crate_name(folder);
        let Some(top) = folders.get(&[][..]) else { continue };
        if name != IN_FULL {
            lines.push(format!("    {name}[\"<b>{name}</b><br>{}\"]", top.order().join(", ")));
            continue;
        }
        lines.push(format!("    subgraph {IN_FULL}"));
        let order = top.order();
        for (at, module) in order.iter().enumerate().rev() {
            let node = |module: &str| format!("{IN_FULL}.{module}[{module}]");
            let below: Vec<String> = direct(top, &order, at).into_iter().map(node).collect();
            let to = if below.is_empty() { String::new() } else { format!(" --> {}", below.join(" & ")) };
            lines.push(format!("        {}{to}", node(module)));
        }
        lines.push("    end".to_owned());
    }
    for (_, folder) in crates {
        let (name, uses) = (crate_name(folder), dependencies(&root.join(folder).join("Cargo.toml")));
        let others = crates.iter().map(|(_, other)| crate_name(other));
        let below: Vec<&str> = others.filter(|other| uses.iter().any(|name| name == other)).collect();
        if !below.is_empty() {
            lines.push(format!("    {name} --> {}", below.join(" & ")));
        }
    }
    lines
}

/// Returns the dependencies of a crate, including dependencies for a specific system, but not dependencies of tests and
/// build scripts.
pub(crate) fn dependencies(manifest: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(manifest).unwrap_or_default();
    let named =
        |title: &str| title == "dependencies" || (title.starts_with("target.") && title.ends_with(".dependencies"));
    let sections = text.split("\n[").filter_map(|section| section.split_once("]\n"));
    let lines = sections.filter(|(title, _)| named(title)).flat_map(|(_, section)| section.lines());
    let name = |line: &str| line.split(['.', ' ', '=']).next().unwrap_or_default().to_owned();
    lines.map(name).collect()
}

/// Returns the modules to which a module refers, highest first. Omits modules implied by other modules.
fn direct<'o>(folder: &Folder, order: &[&'o str], at: usize) -> Vec<&'o str> {
    let names = |from: usize| {
        let places = folder.below(order[from]).filter_map(|to| order.iter().position(|module| *module == to));
        places.filter(|below| *below < from).collect::<BTreeSet<_>>()
    };
    let mut reached = BTreeSet::new();
    let mut direct = Vec::new();
    for below in names(at).into_iter().rev() {
        if reached.insert(below) {
            direct.push(order[below]);
        }
        let mut left = vec![below];
        while let Some(next) = left.pop() {
            left.extend(names(next).into_iter().filter(|further| reached.insert(*further)));
        }
    }
    direct
}
