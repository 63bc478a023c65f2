//! Analyses of well-formed traces that make no sense: none panics, none fails without a reason, and they agree on their
//! counts.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::File;
use std::path::Path;

use hatf_trace::EventSink as _;
use hatf_trace::forms::FORMS;
use hatf_trace::heap::{HeapOptions, HeapWriter};
use metatf_test::Folder;

use crate::common::{hatf, nonsense};

/// Analyses and conversions of a trace. `T` is the trace, `U` another trace, and `O` an output file.
const COMMANDS: &[&str] = &[
    "report T --format json",
    "report T --with sites,churn,leaks,fragmentation,profile",
    "report T --with sites --html O.html",
    "sites T --format json",
    "sites T --by temporary --blocks",
    "sites T --group module --of main",
    "sites T --whole --by copied",
    "sites T --by slack",
    "sites T --by short",
    "sites T --live-between 1ms..9ms --format json",
    "sites T --at peak",
    "sites T --format folded",
    "sites T --by leaked --format svg -o O.svg",
    "processes T",
    "churn T --format json",
    "fragmentation T --at peak,worst,end --format json",
    "profile T -o O.prof --format json",
    "simulate T --format json --invariants=1",
    "whatif T --format json",
    "regions infer T --format json",
    "model fit T -m cdf -o O.cdf",
    "model fit T -m outline -o O.outline",
    "model fit T -m time --clock bytes -o O.time",
    "diff T U --format json",
    "diff U T",
    "dump T",
    "diff T U --html O.html",
    "leaks T --format json",
    "report T --with sites,fragmentation,whatif --html O.html",
    "cut T -o O.cut --between 1ms..",
    "cut T -o O.sample --sample 512",
    "cut T -o O.part --between 1ms.. --sample-blocks 20",
    "convert T U O.merged --to heap --as-is",
    "anonymize T -o O.nameless --check",
];

/// Returns pseudorandom bytes for a seed (xorshift64*).
fn random(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = || {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes()[7]
    };
    std::iter::repeat_with(next).take(length).collect()
}

fn write(path: &Path, seed: u64) {
    let options = HeapOptions { resolution: 1000, ..HeapOptions::default() };
    let mut writer = HeapWriter::new(File::create(path).unwrap(), &options).unwrap();
    writer.user_metadata(&serde_json::from_str(r#"{"clock":{"resolution_ns":1000}}"#).unwrap()).unwrap();
    nonsense::give(&random(seed, 6000), &mut writer).unwrap();
    writer.finish().unwrap();
}

#[test]
fn no_analysis_fails_on_nonsense() {
    let seeds = 4 * metatf_test::factor();
    let mut failed = 0;
    for seed in (1..=seeds).map(u64::from) {
        let folder = Folder::new();
        let (trace, other) = (folder.join("nonsense.mtf"), folder.join("other.mtf"));
        write(&trace, seed);
        write(&other, seed + 1000);
        let forms = FORMS.iter().filter(|form| form.create.is_some());
        let convert = forms.map(|form| format!("convert T O.{0} --to {0}", form.name));
        for command in COMMANDS.iter().map(|command| (*command).to_owned()).chain(convert) {
            let place = |word: &str| match word {
                "T" => folder.path("nonsense.mtf"),
                "U" => folder.path("other.mtf"),
                _ if word.starts_with("O.") => folder.path(word),
                _ => word.to_owned(),
            };
            let run = hatf(command.split(' ').map(place));
            let about = format!("seed {seed}: hatf {command}\n{}", run.err);
            assert!(matches!(run.status, 0 | 1), "{about}");
            if run.status == 1 {
                let names_a_file = ["nonsense.", "other."].iter().any(|name| run.err.contains(name));
                assert!(names_a_file, "no file is named: {about}");
                failed += 1;
            } else if command.contains("json") && !command.contains("convert") {
                let text = run.text();
                let parsed = serde_json::from_str::<serde_json::Value>(&text);
                assert!(parsed.is_ok(), "{about}\n{text}");
            }
        }
        let json = |arguments: &[&str]| -> serde_json::Value {
            let run = hatf([arguments, &["--format", "json", &folder.path("nonsense.mtf")]].concat());
            serde_json::from_str(&run.exits(0).text()).unwrap()
        };
        let (report, sites) = (json(&["report"]), json(&["sites"]));
        assert_eq!(report["contradictions"], sites["trace"]["contradictions"], "seed {seed}");
    }
    assert!(
        failed < seeds as usize * COMMANDS.len() / 4,
        "{failed} of the commands refuse the trace: nothing is tested"
    );
}
