//! Profiles as folded lines, which flame graph tools read.

use std::io::{BufWriter, Write as _};

use hatf_lab::sites::folded;
use metatf_page::{Flame, Unit};

use super::ProfileForm;
use hatf_trace::stacks::Location;

pub(super) static FORM: ProfileForm = ProfileForm {
    name: "folded",
    about: "Lines for flame graphs: each stack with its allocated bytes",
    ending: "folded",
    sniff: |_| false,
    open: None,
    create: Some(|profile, _, _, output| {
        let mut graph = Flame::new("", Unit::Bytes);
        for info in &profile.infos {
            let mut names: Vec<String> = profile.stack(info.context).flat_map(Location::names).collect();
            names.reverse();
            if names.is_empty() {
                names.push(profile.name(info.context, 1));
            }
            graph.add(names, info.size.total);
        }
        let mut out = BufWriter::new(output);
        folded(&graph, &mut out)?;
        out.flush()?;
        Ok(profile.infos.len())
    }),
};
