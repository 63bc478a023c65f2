//! Conformance vectors, read by the oracle. With all rules intact it returns the expected output, and each broken rule
//! changes the output of at least one vector.

mod level;

use crate::models;
use crate::oracle::{self, Chapter, Options, Raw, Rule};
pub use level::{Level, levels, list};
use metatf::container::Order;
use serde_json::Value;
use std::collections::HashMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Vector: the input of the oracle and its expected answer.
pub struct Vector {
    /// Directory of the vector, relative to the directory of all tests.
    pub name: String,
    folder: PathBuf,
    kind: Kind,
    dtd: Option<String>,
    trace: Vec<u8>,
    case: Value,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Good,
    Bad,
    /// Predicted leaves: a trace in `tests/models`.
    Model,
}

/// Lines printed, and whether they end with an error; first without `--all`, then with it.
pub type Answer = [(Vec<String>, bool); 2];

/// Returns the names of the subdirectories of a directory.
fn folders(of: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(of).expect("the vectors are there").map(|entry| entry.unwrap());
    let mut names: Vec<String> =
        entries.filter(|entry| entry.path().is_dir()).map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Returns all vectors that are Meta-TF traces.
#[must_use]
pub fn vectors() -> Vec<Vector> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let places = [("vectors/good", Kind::Good), ("vectors/bad/trace", Kind::Bad), ("models", Kind::Model)];
    let mut found = Vec::new();
    for (place, kind) in places {
        for name in folders(&tests.join(place)) {
            let folder = tests.join(place).join(&name);
            let file = |name: &str| std::fs::read(folder.join(name));
            let Ok(trace) = file("trace.mtf").or_else(|_| file("trace.raw")) else { continue };
            let dtd = file("format.dtd").ok().and_then(|text| String::from_utf8(text).ok());
            let case = file("case.json").ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
            found.push(Vector { name: format!("{place}/{name}"), folder, kind, dtd, trace, case });
        }
    }
    found
}

impl Vector {
    /// Returns the path of the trace.
    #[must_use]
    pub fn trace_file(&self) -> PathBuf {
        let file = |name: &str| Some(self.folder.join(name)).filter(|path| path.exists());
        file("trace.mtf").or_else(|| file("trace.raw")).expect("a vector has a trace")
    }

    /// Returns the path of the DTD.
    #[must_use]
    pub fn dtd_file(&self) -> PathBuf {
        self.folder.join("format.dtd")
    }

    /// Returns whether the trace has a header.
    #[must_use]
    pub fn is_trace(&self) -> bool {
        self.trace.starts_with(b"\x7fMTF")
    }

    /// Returns the oracle's answer.
    #[must_use]
    pub fn answer(&self, broken: Option<Rule>) -> Answer {
        if self.kind == Kind::Model {
            let schema = crate::runtime::schema(self.dtd.as_deref().unwrap_or_default());
            let (seen, wrong) = models::of_oracle(&schema, &self.trace, broken);
            return [(seen.iter().map(|seen| format!("{seen:?}")).collect(), wrong), (Vec::new(), wrong)];
        }
        let raw = (self.case["mode"] == "raw").then(|| Raw {
            class: if self.case["class"] == 1 { 1 } else { 2 },
            order: if self.case["byteorder"] == "big" { Order::Big } else { Order::Little },
            section: self.case["section"].as_str().unwrap_or_default(),
        });
        let salvage = self.case["mode"] == "salvage";
        let options = Options { dtd: self.dtd.as_deref(), salvage, raw, broken };
        let (lines, end) = oracle::lines(&self.trace, options);
        lines.map(|lines| (lines, end.is_err()))
    }

    /// Returns the differences between an answer and the files of the vector.
    #[must_use]
    pub fn complaints(&self, [(some, wrong), (all, _)]: &Answer) -> Vec<String> {
        let mut out = Vec::new();
        if self.kind == Kind::Model {
            return out;
        }
        if *wrong != (self.kind == Kind::Bad) && self.case["mode"] != "salvage" {
            out.push(format!("{}: it ends with an error: {wrong}", self.name));
        }
        for (file, found) in [("expected.jsonl", some), ("expected_all.jsonl", all)] {
            let Ok(text) = std::fs::read_to_string(self.folder.join(file)) else { continue };
            let expected: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            let found: Vec<Value> = found.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
            // A bad trace may list only the first lines.
            let differ = (0..expected.len().max(found.len())).find(|i| {
                let (a, b) = (expected.get(*i), found.get(*i));
                !a.zip(b).is_some_and(|(a, b)| same(a, b))
            });
            if let Some(i) = differ {
                let [e, f] = [expected.get(i), found.get(i)].map(|v| v.map(Value::to_string).unwrap_or_default());
                out.push(format!("{}: {file}, line {}\n  expected {e}\n  found    {f}", self.name, i + 1));
            }
        }
        out
    }
}

/// Compares two values, including the order of keys. `tag` keys of predefined records are ignored, and 1.0 equals 1.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            let predefined =
                ["comment", "section", "metadata"].iter().any(|name| a.get("@record") == Some(&(*name).into()));
            let keys = |object: &serde_json::Map<String, Value>| -> Vec<(String, Value)> {
                let kept = object.iter().filter(|(key, _)| !(predefined && *key == "tag"));
                kept.map(|(key, value)| (key.clone(), value.clone())).collect()
            };
            let (a, b) = (keys(a), keys(b));
            a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| a.0 == b.0 && same(&a.1, &b.1))
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Number(a), Value::Number(b)) if a.is_f64() || b.is_f64() => a.as_f64() == b.as_f64(),
        (a, b) => a == b,
    }
}

/// Returns, for each rule, the vectors whose answer changes if the rule is broken.
#[must_use]
pub fn noticed(vectors: &[Vector]) -> HashMap<Rule, Vec<&str>> {
    let of_models = |rule: &Rule| Chapter::Models.rules().contains(rule);
    // A trace of `tests/models` is long, and counts only for the rule that it is named after.
    let is_for = |vector: &Vector, rule: &Rule| {
        let own = vector.name.strip_prefix("models/");
        own.map_or(!of_models(rule), |own| own == kebab(*rule))
    };
    // Long vectors that pin bounds, not rules.
    let is_of_bounds = |vector: &Vector| {
        ["x-columns-edge-", "x-predicted-edge-", "x-dictionary-"].iter().any(|long| vector.name.contains(long))
    };
    let of = |vector: &Vector| -> Vec<Rule> {
        if is_of_bounds(vector) {
            return Vec::new();
        }
        let (whole, asked) = oracle::asked(|| vector.answer(None));
        let shows = |rule: &Rule| is_for(vector, rule) && vector.answer(Some(*rule)) != whole;
        asked.into_iter().filter(shows).collect()
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let share = |first: usize| vectors.iter().skip(first).step_by(threads).map(of).collect::<Vec<_>>();
    let shown: Vec<Vec<Rule>> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map(|first| {
                scope.spawn({
                    let share = &share;
                    move || share(first)
                })
            })
            .collect();
        let shares: Vec<_> = running.into_iter().map(|thread| thread.join().expect("it answers")).collect();
        (0..vectors.len()).map(|i| shares[i % threads][i / threads].clone()).collect()
    });
    let mut found: HashMap<Rule, Vec<&str>> = HashMap::new();
    for (vector, rules) in vectors.iter().zip(shown) {
        for rule in rules {
            found.entry(rule).or_default().push(&vector.name);
        }
    }
    found
}

/// Returns the name of a rule in kebab case: `ClosesUp` becomes `closes-up`.
#[must_use]
pub fn kebab(rule: Rule) -> String {
    let mut name = String::new();
    for c in format!("{rule:?}").chars() {
        if c.is_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.extend(c.to_lowercase());
    }
    name
}

/// Maximum number of vectors that the index lists per rule.
const NAMED: usize = 3;

/// Returns the index of rules and vectors as Markdown.
#[must_use]
pub fn index(noticed: &HashMap<Rule, Vec<&str>>) -> String {
    let mut out = include_str!("conformance/index.md").to_owned();
    for chapter in Chapter::ALL {
        let _ = write!(out, "\n## {}\n\n| rule | what it says | vectors |\n| --- | --- | --- |\n", chapter.title());
        for rule in chapter.rules() {
            let names = noticed.get(rule).map_or(&[][..], |names| names);
            let mut cell: Vec<String> = names.iter().take(NAMED).map(|name| format!("`{}`", short(name))).collect();
            if names.len() > NAMED {
                cell.push(format!("{} more", names.len() - NAMED));
            }
            let _ = writeln!(out, "| {} | {} | {} |", kebab(*rule), rule.says(), cell.join(", "));
        }
    }
    out
}

fn short(name: &str) -> &str {
    name.strip_prefix("vectors/").unwrap_or(name)
}
