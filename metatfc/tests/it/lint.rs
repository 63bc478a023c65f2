//! `check --lint`: rules, ways to disable them, and savings, which are verified by rewriting the trace.

use super::common::{metatfc, run};
use metatf_test::Folder;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;

const LOG: &str = "\
// What a service did.

tag.width = 1;
section log 1 {
    // When, in microseconds.
    time.width = 8; time.interpretation = none; time.unit = \"us\";
    // The client.
    client.width = 4; client.interpretation = none;
    // A request came.
    request: (tag, time, client, path, bytes) {
        tag.value = 4;
        path.width = 1; path.interpretation = none;
        bytes.interpretation = none; bytes.width = 8;
    }
    // It was answered.
    answer: (tag, time, client, status, vfield) {
        tag.value = 5;
        status.width = 2; status.interpretation = none; vfield.data.format = \"utf8\";
    }
    // Nobody sends it.
    retry: (tag, time, client) { tag.value = 6; }
}
";

/// Returns records with times less than 100 apart, few clients, sizes of up to three bytes, and the status 200 in every
/// answer.
fn jsonl(records: u32) -> String {
    let (mut out, mut time, mut random) = (String::new(), 0_u64, 0x9E37_79B9_7F4A_7C15_u64);
    for n in 0..records {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        time += random % 97;
        let (client, bytes) = (random >> 20 & 255, random >> 30 & 0xf_ffff);
        let _ = writeln!(
            out,
            r#"{{"@section":"log","@record":"request","time":{time},"client":{client},"path":{},"bytes":{bytes}}}"#,
            n % 9
        );
        let _ = writeln!(
            out,
            r#"{{"@section":"log","@record":"answer","time":{},"client":{client},"status":200,"vfield":"ok"}}"#,
            time + 3
        );
    }
    out
}

fn log() -> Folder {
    let folder = Folder::new();
    folder.write("log.dtd", LOG);
    let encoded = run(&folder, &["convert", "--dtd", "log.dtd", "-", "log.mtf"], jsonl(3000).as_bytes());
    assert_eq!(encoded.status, 0, "{}", encoded.err);
    folder
}

/// Returns the exit status, and an object with the sizes and the list of findings.
fn json(folder: &Path, args: &[&str]) -> (i32, Value) {
    let run = metatfc(folder, &[&["check", "--lint", "--deny-warnings", "--message-format", "json"], args].concat());
    let lines: Vec<Value> = run.text().lines().map(|line| serde_json::from_str(line).expect(&run.err)).collect();
    let (findings, sizes): (Vec<_>, Vec<_>) = lines.into_iter().partition(|line| line["severity"] == "suggestion");
    let mut report = sizes.into_iter().next().unwrap_or_default();
    report["findings"] = findings.into();
    (run.status, report)
}

/// Returns the rule and line of each finding.
fn findings(report: &Value) -> Vec<(&str, u64)> {
    let all = report["findings"].as_array().expect("a list").iter();
    all.map(|found| (found["code"].as_str().expect("a rule"), found["line"].as_u64().expect("a line"))).collect()
}

#[test]
fn rules_of_the_text() {
    let folder = log();
    let (status, report) = json(&folder, &["log.dtd"]);
    assert_eq!((status, findings(&report)), (0, vec![]));
    let (status, report) = json(&folder, &["--deny", "undocumented-field", "log.dtd"]);
    let field = |line| ("undocumented-field", line);
    assert_eq!((status, findings(&report)), (1, vec![field(12), field(13), field(18)]));
    folder.write("b.dtd", "section b 1 { }\nsection B 2 { mark: (tag) { tag.value = 4; } }\n");
    let text = metatfc(&folder, &["check", "--lint", "log.dtd", "b.dtd"]).exits(0);
    for word in ["b.dtd:1:9", "empty-section", "undocumented-record", "similar-names", "differ only in case"] {
        assert!(text.err.contains(word), "{word}: {}", text.err);
    }
    assert!(text.err.contains("0 errors, 0 warnings, 5 suggestions"), "{}", text.err);
    assert_eq!(metatfc(&folder, &["check", "log.dtd", "b.dtd"]).exits(0).err, "");
    let all = "empty-section,undocumented-record,undocumented-section,similar-names";
    let allowed = metatfc(&folder, &["check", "--deny-warnings", "--allow", all, "log.dtd", "b.dtd"]);
    assert_eq!((allowed.status, &*allowed.err), (0, ""));
}

#[test]
fn statuses() {
    let folder = log();
    let status = |args: &[&str]| metatfc(&folder, &[&["check", "--lint"], args].concat()).status;
    assert_eq!(status(&["--allow", "no-such-rule", "log.dtd"]), 2);
    assert_eq!(status(&["--allow", "similar-names", "--deny", "similar-names", "log.dtd"]), 2);
    assert_eq!(status(&["--deny", "unused-record", "log.dtd"]), 2);
    assert_eq!(status(&["--trace", "log.mtf", "log.dtd", "heap"]), 2);
    assert_eq!(status(&["--least", "101", "log.dtd"]), 2);
    assert_eq!(status(&[]), 2);
    assert_eq!(status(&["missing.dtd", "log.dtd"]), 1);
    assert_eq!(status(&["--explain", "wasteful-width"]), 0);
    folder.write("wrong.dtd", "section s 1 { r: (tag, x) { tag.value = 4; } }");
    let wrong = metatfc(&folder, &["check", "--lint", "wrong.dtd"]);
    assert_eq!(wrong.status, 1);
    assert!(wrong.err.contains("E0502"), "{}", wrong.err);
    // A trace of a different format.
    folder.write("other.dtd", LOG.replace("client", "user"));
    let other = metatfc(&folder, &["check", "--trace", "log.mtf", "other.dtd"]);
    assert_eq!(other.status, 1);
    assert!(other.err.contains("log.mtf: other.dtd lacks") && other.err.contains("client"), "{}", other.err);
}

/// Returns the sizes that `stat` reports for the trace when written with this DTD and without plans.
fn measured(folder: &Folder, dtd: &str) -> (u64, u64) {
    let recoded =
        metatfc(folder, &["convert", "--plan", "naive", "--to-dtd", dtd, "--no-embed-dtd", "log.mtf", "again.mtf"]);
    assert_eq!(recoded.status, 0, "{}", recoded.err);
    let stat = metatfc(folder, &["stat", "--format", "json", "--dtd", dtd, "again.mtf"]);
    let stat: Value = serde_json::from_slice(&stat.out).expect("JSON");
    let raw = stat["sections"].as_array().expect("a list").iter().filter_map(|s| s["raw_bytes"].as_u64()).sum();
    (raw, folder.size("again.mtf"))
}

#[test]
fn savings_are_true() {
    let folder = log();
    let (status, report) = json(&folder, &["--trace", "log.mtf", "--stored", "--deny", "unused-record", "log.dtd"]);
    assert_eq!(status, 1);
    let found = findings(&report);
    for wanted in [("unused-record", 21), ("wasteful-interpretation", 6), ("wasteful-width", 8), ("wasteful-width", 13)]
    {
        assert!(found.contains(&wanted), "{wanted:?}: {report:#}");
    }
    let before = measured(&folder, "log.dtd");
    assert_eq!(report["size"]["records"], before.0);
    let mut sized = 0;
    for finding in report["findings"].as_array().expect("a list") {
        let Some(saves) = finding["saves"].as_object() else { continue };
        sized += 1;
        let edit = &finding["suggestion"];
        let place = |name: &str| usize::try_from(edit[name].as_u64().expect("a place")).expect("a place");
        let mut text = LOG.to_owned();
        text.replace_range(place("start")..place("end"), edit["text"].as_str().expect("a text"));
        folder.write("edited.dtd", &text);
        let after = measured(&folder, "edited.dtd");
        assert_eq!(saves["records"], before.0 - after.0, "{finding:#}\n{text}");
        // The DTD names in the headers have different lengths.
        let (saved, real) = (saves["files"].as_i64().expect("bytes"), before.1.cast_signed() - after.1.cast_signed());
        assert!((saved - real).abs() <= 64, "{saved}, in truth {real}");
    }
    assert!(sized >= 4, "{report:#}");
    assert!(report["together"]["size"]["records"].as_u64().expect("bytes") < before.0 / 2, "{report:#}");
}

/// The reported sizes match those of `convert` for JSON lines, which does not widen a field for the first time, however far it is from
/// 0.
#[test]
fn sizes_are_those_of_encode() {
    let folder = Folder::new();
    let log =
        LOG.replace("time.width = 8; time.interpretation = none;", "time.width = 3; time.interpretation = delta 0;");
    let since_1970 = jsonl(3000).lines().fold(String::new(), |mut lines, line| {
        let (before, time) = line.split_once("\"time\":").expect("a time");
        let (time, behind) = time.split_once(',').expect("more fields");
        let time = 1_700_000_000_000_000 + 1000 * time.parse::<u64>().expect("a number");
        let _ = writeln!(lines, "{before}\"time\":{time},{behind}");
        lines
    });
    let encoded = |dtd: &str| {
        let written = run(&folder, &["convert", "--no-embed-dtd", "--dtd", dtd, "-", "log.mtf"], since_1970.as_bytes());
        assert_eq!(written.status, 0, "{}", written.err);
        let stat = metatfc(&folder, &["stat", "--format", "json", "--dtd", dtd, "log.mtf"]);
        let stat: Value = serde_json::from_slice(&stat.out).expect("JSON");
        stat["sections"].as_array().expect("a list").iter().filter_map(|s| s["raw_bytes"].as_u64()).sum::<u64>()
    };
    folder.write("log.dtd", &log);
    let before = encoded("log.dtd");
    let (_, report) = json(&folder, &["--trace", "log.mtf", "--stored", "log.dtd"]);
    assert_eq!(report["size"]["records"], before);
    let mut sized = 0;
    for finding in report["findings"].as_array().expect("a list") {
        let Some(saves) = finding["saves"].as_object() else { continue };
        sized += 1;
        let edit = &finding["suggestion"];
        let place = |name: &str| usize::try_from(edit[name].as_u64().expect("a place")).expect("a place");
        let mut text = log.clone();
        text.replace_range(place("start")..place("end"), edit["text"].as_str().expect("a text"));
        folder.write("edited.dtd", &text);
        assert_eq!(saves["records"], before - encoded("edited.dtd"), "{finding:#}");
    }
    assert!(sized >= 3, "{report:#}");
    assert!(!findings(&report).iter().any(|(_, line)| *line == 6), "no width of `time`: {report:#}");
}

/// Without `--stored`, no suggestion makes the compressed file larger.
#[test]
fn compressed_files_decide() {
    let folder = log();
    let (_, report) = json(&folder, &["--trace", "log.mtf", "log.dtd"]);
    let saved: Vec<_> = report["findings"].as_array().expect("a list").iter().map(|f| &f["saves"]["files"]).collect();
    assert!(!saved.is_empty() && saved.iter().all(|saved| saved.as_i64() >= Some(0)), "{report:#}");
}

/// If the language defines the encoding of a field, the suggestion sets it in the record's block.
#[test]
fn fields_of_the_language() {
    let folder = log();
    let (_, report) = json(&folder, &["--trace", "log.mtf", "--stored", "log.dtd"]);
    let all = report["findings"].as_array().expect("a list").iter();
    let length = |found: &&Value| found["saves"]["fields"][0] == "answer.vfield.length";
    let found = all.clone().find(length).unwrap_or_else(|| panic!("{report:#}"));
    assert_eq!(found["suggestion"]["text"], " vfield.length.interpretation = default 2;");
}

#[test]
fn what_is_left_out() {
    let folder = log();
    let (status, report) =
        json(&folder, &["--trace", "log.mtf", "--allow", "wasteful-interpretation,wasteful-width", "log.dtd"]);
    assert_eq!((status, findings(&report)), (0, vec![]));
    let (status, report) = json(&folder, &["--trace", "log.mtf", "--least", "100", "log.dtd"]);
    assert_eq!((status, findings(&report)), (0, vec![]));
    let allowed = LOG.replace("time.unit = \"us\";", "time.unit = \"us\"; // lint: allow wasteful-interpretation");
    folder.write("log.dtd", allowed);
    let (_, report) = json(&folder, &["--trace", "log.mtf", "--stored", "log.dtd"]);
    let lines: Vec<u64> = findings(&report).iter().map(|(_, line)| *line).collect();
    assert!(lines.contains(&13) && !lines.contains(&6), "{report:#}");
    let text = metatfc(&folder, &["check", "--trace", "log.mtf", "--stored", "log.dtd"]).err;
    assert!(text.contains("saves") && text.contains("log.mtf: ") && text.contains("edits, "), "{text}");
}

/// The built-in DTDs have no findings.
#[test]
fn built_in() {
    let folder = Folder::new();
    let files = std::fs::read_dir(metatf_test::root().join("dtds")).expect("they are there").flatten();
    let files: Vec<String> = files.map(|file| file.path().to_string_lossy().into_owned()).collect();
    let files: Vec<String> = files.into_iter().filter(|file| file.ends_with(".dtd")).collect();
    let mut args = vec!["check", "--lint"];
    args.extend(files.iter().map(String::as_str));
    let run = metatfc(&folder, &args);
    assert!(run.status == 0 && !run.err.contains("suggestion"), "{}", run.err);
    assert_eq!(metatfc(&folder, &["check", "--lint", "--deny-warnings", "heap", "pcap"]).status, 0);
}

/// A source of random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[usize::try_from(self.below(of.len() as u64)).expect("an index")]
    }

    /// Returns the statements that set the encoding of a field.
    fn encoding(&mut self, field: &str) -> String {
        let interpretation = match self.below(6) {
            0 => "none".to_owned(),
            1 => format!("baseOffset {}", self.below(300)),
            2 => "stride 5 3".to_owned(),
            3 => format!("default {}", self.below(3)),
            _ => "delta 0".to_owned(),
        };
        format!("{field}.width = {}; {field}.interpretation = {interpretation};\n", self.pick(&[1, 2, 3, 4, 8]))
    }

    /// Returns the next value of a field, given its previous value.
    fn next(&mut self, shape: u64, last: u64, n: u64) -> u64 {
        match shape {
            0 => 7,
            1 => self.below(200),
            2 => last + self.below(40),
            3 => 1_700_000_000_000 + n * 977 + self.below(50),
            4 => [0, 90_000][usize::from(n % 2 == 1)],
            5 if self.below(100) == 0 => self.below(1 << 50),
            5 => self.below(3),
            6 => last.wrapping_sub(self.below(9)),
            7 => n / 40 * 1000,
            _ => self.below(1 << 40),
        }
    }
}

/// The fields of random traces; `opt` is optional, and `item` is repeated.
const FIELDS: [&str; 6] = ["time", "one", "two", "three", "opt", "item"];

/// Returns a random DTD and the lines of a random trace.
fn random_trace(random: &mut Random) -> (String, String) {
    let mut global = random.encoding("time");
    let (mut section, mut of_a, mut of_b) = (String::new(), String::new(), String::new());
    for field in &FIELDS[1..] {
        let encoding = random.encoding(field);
        match (random.below(3), *field) {
            (0, _) => global += &encoding,
            (1, _) => section += &encoding,
            (_, "three") => of_b += &encoding,
            (_, other) => {
                of_a += &encoding;
                if other == "one" {
                    of_b += &random.encoding(other);
                }
            }
        }
    }
    let dtd = format!(
        "// Random.\n{global}section log 1 {{\n{section}n.width = 1; n.interpretation = none; flags.width = 1; flags.interpretation = none;
    // A.\n    a: (time, flags, (flags.bit 0)*opt, one, path, n*item, two) {{ tag.value = 4; {of_a} path.width = 3; path.interpretation = sectionOffset 2; }}
    // B.\n    b: (one, time, three) {{ tag.value = 5; {of_b} }}\n}}\n// C.\nsection paths 2 {{ path_entry: vfield {{ vfield.data.format = \"utf8\"; }} }}\n"
    );
    let shapes: Vec<u64> = FIELDS.iter().map(|_| random.below(9)).collect();
    let (mut lines, mut last, mut paths) = (String::new(), [0_u64; FIELDS.len()], 0);
    for n in 0..500 + random.below(500) {
        let mut value = |field: usize, random: &mut Random| {
            last[field] = random.next(shapes[field], last[field], n);
            last[field]
        };
        let (time, one) = (value(0, random), value(1, random));
        if random.below(3) > 0 {
            let flags = random.below(2);
            let opt = if flags == 1 { format!("\"opt\":{},", value(4, random)) } else { String::new() };
            let items: Vec<String> = (0..random.below(4)).map(|_| value(5, random).to_string()).collect();
            // All paths occur in the first group, because `convert` moves later strings to the group before.
            let path = if paths < 20 { paths } else { random.below(20) };
            paths += 1;
            let two = value(2, random);
            let _ = writeln!(
                lines,
                r#"{{"@section":"log","@record":"a","time":{time},"flags":{flags},{opt}"one":{one},"path":"/{path}","item":[{}],"two":{two}}}"#,
                items.join(",")
            );
        } else {
            let three = value(3, random);
            let _ = writeln!(lines, r#"{{"@section":"log","@record":"b","one":{one},"time":{time},"three":{three}}}"#);
        }
        if paths > 20 && random.below(300) == 0 {
            lines += "{\"@group\":1}\n";
        }
    }
    (dtd, lines)
}

/// Every suggestion for a random trace saves exactly what it promises when the same lines are encoded again, and never
/// costs anything.
#[test]
fn random_traces_save_what_is_promised() {
    let (mut suggestions, mut all_together) = (0, 0);
    for case in 0..8 * u64::from(metatf_test::factor()) {
        let folder = Folder::new();
        let (dtd, lines) =
            random_trace(&mut Random(0x9E37_79B9_7F4A_7C15 ^ (case + 1).wrapping_mul(0x2545_F491_4F6C_DD1D)));
        folder.write("lines.jsonl", &lines);
        // The names have the same length, because the header contains the name.
        let encoded = |name: &str, text: &str| {
            folder.write(name, text);
            let args = ["convert", "--no-embed-dtd", "--dtd", name, "lines.jsonl", "trace.mtf"];
            assert_eq!(metatfc(&folder, &args).exits(0).err, "", "{text}");
            let stat = metatfc(&folder, &["stat", "--format", "json", "--dtd", name, "trace.mtf"]);
            let stat: Value = serde_json::from_slice(&stat.out).expect("JSON");
            let sections = stat["sections"].as_array().expect("a list").iter();
            (sections.filter_map(|section| section["raw_bytes"].as_u64()).sum::<u64>(), folder.size("trace.mtf"))
        };
        for stored in [true, false] {
            let before = encoded("lint.dtd", &dtd);
            let args = ["--trace", "trace.mtf", "lint.dtd", "--stored"];
            let (_, report) = json(&folder, &args[..if stored { 4 } else { 3 }]);
            assert_eq!(report["size"]["records"], before.0, "{report:#}\n{dtd}");
            assert_eq!(report["size"]["files"], before.1, "{report:#}\n{dtd}");
            let mut edits = Vec::new();
            for finding in report["findings"].as_array().expect("a list") {
                let Some(saves) = finding["saves"].as_object() else { continue };
                let edit = &finding["suggestion"];
                let place = |name: &str| usize::try_from(edit[name].as_u64().expect("a place")).expect("a place");
                let (span, new) = (place("start")..place("end"), edit["text"].as_str().expect("a text"));
                let mut text = dtd.clone();
                text.replace_range(span.clone(), new);
                let after = encoded("edit.dtd", &text);
                let about = format!("{finding:#}\n{text}");
                assert!(after.0 < before.0, "{about}");
                assert_eq!(saves["records"], before.0 - after.0, "{about}");
                assert_eq!(saves["files"], before.1.cast_signed() - after.1.cast_signed(), "{about}");
                assert!(stored || after.1 <= before.1, "{about}");
                if edits.iter().all(|(other, _): &(std::ops::Range<usize>, String)| {
                    span.end <= other.start || other.end <= span.start
                }) {
                    edits.push((span, new.to_owned()));
                }
                suggestions += 1;
            }
            if edits.len() > 1 {
                edits.sort_by_key(|(span, _)| std::cmp::Reverse(span.start));
                let mut text = dtd.clone();
                edits.iter().for_each(|(span, new)| text.replace_range(span.clone(), new));
                let after = encoded("edit.dtd", &text);
                assert_eq!(report["together"]["size"]["records"], after.0, "{report:#}\n{text}");
                assert_eq!(report["together"]["size"]["files"], after.1, "{report:#}\n{text}");
                all_together += 1;
            }
        }
    }
    assert!(suggestions >= 8 && all_together >= 2, "{suggestions} suggestions, {all_together} together");
}
