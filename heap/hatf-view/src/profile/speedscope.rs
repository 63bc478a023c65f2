//! Profiles for [speedscope](https://www.speedscope.app): one profile per measure, with samples weighted by bytes.

use std::collections::HashMap;
use std::io::{BufWriter, Write as _};

use hatf_lab::profile::HeapInfo;
use serde_json::{Value, json};

use super::{HeapProfile, ProfileForm};
use hatf_trace::Error;

pub(super) static FORM: ProfileForm = ProfileForm {
    name: "speedscope",
    about: "speedscope's JSON: bytes allocated, live at the peak and live at the end",
    ending: "speedscope.json",
    sniff: |_| false,
    open: None,
    create: Some(|profile, _, _, output| {
        let mut out = BufWriter::new(output);
        serde_json::to_writer(&mut out, &document(profile))
            .map_err(|error| Error::from(std::io::Error::from(error)))?;
        out.flush()?;
        Ok(profile.infos.len())
    }),
};

/// A measure of a context.
type Measure = fn(&HeapInfo) -> Option<u64>;

const MEASURES: [(&str, Measure); 3] = [
    ("live at the peak", |info| Some(info.live?.peak.bytes)),
    ("allocated", |info| Some(info.size.total)),
    ("live at the end", |info| Some(info.live?.end.bytes)),
];

fn document(profile: &HeapProfile) -> Value {
    let mut frames = Frames::default();
    let measures = MEASURES.map(|(name, measure)| {
        let (mut samples, mut weights, mut total) = (Vec::new(), Vec::new(), 0_u64);
        for info in &profile.infos {
            if let Some(bytes) = measure(info).filter(|bytes| *bytes > 0) {
                samples.push(frames.stack(profile, info.context));
                weights.push(bytes);
                total = total.saturating_add(bytes);
            }
        }
        json!({
            "type": "sampled", "name": name, "unit": "bytes", "startValue": 0, "endValue": total,
            "samples": samples, "weights": weights,
        })
    });
    json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": "hatf",
        "name": profile.about.get("program").and_then(Value::as_str).unwrap_or("heap profile"),
        "activeProfileIndex": 0,
        "shared": {"frames": frames.list},
        "profiles": measures,
    })
}

/// Distinct frames by function, file and line.
#[derive(Default)]
struct Frames {
    places: HashMap<(String, String, u64), usize>,
    list: Vec<Value>,
}

impl Frames {
    /// Returns the frames of a context, outermost first.
    fn stack(&mut self, profile: &HeapProfile, context: u64) -> Vec<usize> {
        let mut stack = Vec::new();
        for location in profile.stack(context) {
            for (number, name) in location.names().enumerate() {
                let function = location.functions.get(number);
                let (file, line) = function.map_or((String::new(), 0), |of| (of.file.clone(), of.line));
                stack.push(self.place(name, file, line));
            }
        }
        if stack.is_empty() {
            stack.push(self.place(profile.name(context, 1), String::new(), 0));
        }
        stack.reverse();
        stack
    }

    fn place(&mut self, name: String, file: String, line: u64) -> usize {
        let next = self.list.len();
        *self.places.entry((name, file, line)).or_insert_with_key(|(name, file, line)| {
            let mut frame = json!({"name": name});
            if !file.is_empty() {
                frame["file"] = file.as_str().into();
            }
            if *line > 0 {
                frame["line"] = (*line).into();
            }
            self.list.push(frame);
            next
        })
    }
}
