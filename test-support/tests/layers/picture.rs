//! Draws the layers as a Mermaid flowchart: crates with their modules, lowest first, and, of the runtime, which module stands on
//! which. Arrows that others imply are left out.

use crate::crates::Crate;
use crate::table::Layers;
use std::collections::BTreeSet;
use std::path::Path;

/// The crate whose modules are drawn one by one.
const IN_FULL: &str = "metatf";

/// Returns the lines of the chart.
pub(crate) fn draw(root: &Path, crates: &[(&Layers, Crate)]) -> Vec<String> {
    let mut lines = vec!["flowchart TB".to_owned()];
    let whole: Vec<_> = crates.iter().filter(|(layers, _)| layers.within.is_none()).collect();
    for (layers, found) in &whole {
        if layers.folder != IN_FULL {
            lines.push(format!("    {0}[\"<b>{0}</b><br>{1}\"]", layers.folder, layers.modules.join(", ")));
            continue;
        }
        lines.push(format!("    subgraph {IN_FULL}"));
        for (at, module) in layers.modules.iter().enumerate().rev() {
            let node = |module: &str| format!("{IN_FULL}.{module}[{module}]");
            let below: Vec<String> = direct(found, layers, at).into_iter().map(node).collect();
            let to = if below.is_empty() { String::new() } else { format!(" --> {}", below.join(" & ")) };
            lines.push(format!("        {}{to}", node(module)));
        }
        lines.push("    end".to_owned());
    }
    for (layers, _) in &whole {
        let uses = dependencies(&root.join(layers.folder).join("Cargo.toml"));
        let below = whole.iter().map(|(other, _)| other.folder).filter(|other| uses.iter().any(|name| name == other));
        let below: Vec<&str> = below.collect();
        if !below.is_empty() {
            lines.push(format!("    {} --> {}", layers.folder, below.join(" & ")));
        }
    }
    lines
}

/// The dependencies of a crate that are not for tests or build scripts, those of one system among them.
fn dependencies(manifest: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(manifest).unwrap_or_default();
    let named =
        |title: &str| title == "dependencies" || (title.starts_with("target.") && title.ends_with(".dependencies"));
    let sections = text.split("\n[").filter_map(|section| section.split_once("]\n"));
    let lines = sections.filter(|(title, _)| named(title)).flat_map(|(_, section)| section.lines());
    let name = |line: &str| line.split(['.', ' ', '=']).next().unwrap_or_default().to_owned();
    lines.map(name).collect()
}

/// The modules that one names, without those that these stand on in turn; the highest first.
fn direct<'l>(found: &Crate, layers: &'l Layers, at: usize) -> Vec<&'l str> {
    let names = |from: usize| {
        let of = found.arrows.iter().filter(move |arrow| arrow.from == layers.modules[from]);
        of.filter_map(|arrow| layers.modules.iter().position(|module| *module == arrow.to)).collect::<BTreeSet<_>>()
    };
    let mut reached = BTreeSet::new();
    let mut direct = Vec::new();
    for below in names(at).into_iter().rev().filter(|below| *below < at) {
        if reached.insert(below) {
            direct.push(layers.modules[below]);
        }
        let mut left = vec![below];
        while let Some(next) = left.pop() {
            left.extend(names(next).into_iter().filter(|further| *further < next && reached.insert(*further)));
        }
    }
    direct
}
