//! Draws the layers as a Mermaid flowchart: an arrow from a module to what it stands on, those apart that others imply.

use crate::crates::Crate;
use crate::table::Layers;
use std::collections::BTreeSet;

/// Returns the lines of the chart.
pub(crate) fn draw(crates: &[(&Layers, Crate)]) -> Vec<String> {
    let mut lines = vec!["flowchart TB".to_owned()];
    for (layers, found) in crates {
        lines.push(format!("    subgraph {}", layers.folder));
        let node = |module: &str| format!("{}.{module}[{module}]", layers.folder);
        let mut alone: BTreeSet<&str> = layers.modules.iter().copied().collect();
        for (at, module) in layers.modules.iter().enumerate().rev() {
            let below = direct(found, layers, at);
            for to in &below {
                lines.push(format!("        {} --> {}", node(module), node(to)));
                alone.remove(module);
                alone.remove(to);
            }
        }
        lines.extend(alone.iter().map(|module| format!("        {}", node(module))));
        lines.push("    end".to_owned());
    }
    lines
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
