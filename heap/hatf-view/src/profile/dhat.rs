//! Profiles for the viewer of valgrind's DHAT.
//!
//! The viewer expects the maximum live memory of each stack. This value is unknown, so the profile contains the larger
//! of two known values: the live memory at the overall peak and the live memory at the end.

use std::collections::HashMap;
use std::io::{BufWriter, Write as _};

use serde_json::{Value, json};

use super::{HeapProfile, ProfileForm, valgrind_frame};
use hatf_trace::Error;

pub(super) static FORM: ProfileForm = ProfileForm {
    name: "dhat",
    about: "JSON for the viewer of valgrind's DHAT: allocated, lifetimes, live at the peak and at the end",
    ending: "dhat.json",
    sniff: |_| false,
    open: None,
    create: Some(|profile, _, note, output| {
        if profile.infos.iter().any(|info| info.lifetimes.is_none()) {
            note("lifetimes are unknown, so the viewer shows 0");
        }
        let mut out = BufWriter::new(output);
        serde_json::to_writer(&mut out, &document(profile))
            .map_err(|error| Error::from(std::io::Error::from(error)))?;
        out.flush()?;
        Ok(profile.infos.len())
    }),
};

fn document(profile: &HeapProfile) -> Value {
    let mut table = vec!["[root]".to_owned()];
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut end = 0;
    let mut points = Vec::with_capacity(profile.infos.len());
    for info in &profile.infos {
        let mut stack = Vec::new();
        for frame in valgrind_frame::frames(profile, info.context) {
            let next = table.len();
            stack.push(*places.entry(frame).or_insert_with_key(|frame| {
                table.push(frame.clone());
                next
            }));
        }
        let live = info.live.unwrap_or_default();
        let most = if live.end.bytes > live.peak.bytes { live.end } else { live.peak };
        end = end.max(info.lifetimes.map_or(0, |times| times.dealloc_timestamp));
        points.push(json!({
            "tb": info.size.total, "tbk": info.alloc_count,
            "tl": info.lifetimes.map_or(0, |times| times.lifetime.total),
            "mb": most.bytes, "mbk": most.blocks,
            "gb": live.peak.bytes, "gbk": live.peak.blocks,
            "eb": live.end.bytes, "ebk": live.end.blocks,
            "fs": stack,
        }));
    }
    let command = profile.about.get("command").and_then(Value::as_array).map(|words| {
        let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
        words.join(" ")
    });
    // The viewer prints "null" for missing units and requires a process. The time of the peak is unknown.
    json!({
        "dhatFileVersion": 2, "mode": "heap", "verb": "Allocated", "bklt": true, "bkacc": false,
        "bu": "byte", "bsu": "bytes", "bksu": "blocks",
        "tu": "ticks", "Mtu": "Mticks", "tuth": 10,
        "cmd": command.unwrap_or_else(|| "a program".to_owned()), "pid": 0, "tg": end, "te": end,
        "pps": points, "ftbl": table,
    })
}
