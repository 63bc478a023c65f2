//! Recording a sample: estimates are close to the true values, and each sampled block has its end.
#![expect(clippy::unwrap_used, clippy::cast_precision_loss)]

use std::collections::BTreeMap;

use crate::common::{compiled, hatf};
use metatf_test::Folder;
use serde_json::Value;

/// Number of calls of each function in the program.
const COUNT: u64 = 200_000;
/// Blocks and bytes that each function allocates. `churn` runs in two threads.
const TRUTH: [(&str, u64, u64); 3] = [
    ("churn", 4 * COUNT, 2 * COUNT * (64 + 256)),
    ("keep", COUNT, COUNT * 100),
    ("large", COUNT / 100, COUNT / 100 * 300_000),
];

/// Returns the allocated and the leaked blocks and bytes, by the innermost function.
fn by_function(sites: &Value) -> BTreeMap<String, [u64; 4]> {
    let mut found = BTreeMap::new();
    for site in sites["sites"].as_array().unwrap() {
        let name = site["stack"][0]["functions"][0]["name"].as_str().unwrap_or("?").to_owned();
        let sums: &mut [u64; 4] = found.entry(name).or_default();
        for (sum, (measure, what)) in sums.iter_mut().zip([
            ("allocated", "blocks"),
            ("allocated", "bytes"),
            ("leaked", "blocks"),
            ("leaked", "bytes"),
        ]) {
            *sum += site[measure][what].as_u64().unwrap();
        }
    }
    found
}

#[test]
fn estimates() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "sample", &["-O1"]) else { return };
    if cfg!(not(target_arch = "x86_64")) {
        return;
    }
    let (trace, program) = (folder.path("trace.mtf"), program.display().to_string());
    hatf(["record", "-q", "--stacks", "--sample", "32KiB", "-o", &trace, "--", &program, &COUNT.to_string()]).exits(0);
    hatf(["symbolize", &trace, "-o", &trace]).exits(0);
    let sites: Value = serde_json::from_slice(&hatf(["sites", &trace, "--format", "json"]).exits(0).out).unwrap();
    assert_eq!(sites["sampling"], 32 * 1024);
    let found = by_function(&sites);
    for (name, blocks, bytes) in TRUTH {
        let [found_blocks, found_bytes, left_blocks, left_bytes] = found[name];
        // The number of samples has nearly a Poisson distribution, so this is five standard deviations.
        let samples = (bytes as f64 / 32768.0).min(blocks as f64);
        let bound = 5.0 / samples.sqrt();
        let off = |found: u64, truth: u64| (found as f64 / truth as f64 - 1.0).abs();
        assert!(off(found_bytes, bytes) < bound, "{name}: {found_bytes} of {bytes} bytes");
        // `churn` allocates blocks of two sizes, of which the smaller are sampled less often.
        assert!(off(found_blocks, blocks) < 3.0 * bound, "{name}: {found_blocks} of {blocks} blocks");
        let (left_blocks_expected, left_bytes_expected) =
            if name == "keep" { (found_blocks, found_bytes) } else { (0, 0) };
        assert_eq!((left_blocks, left_bytes), (left_blocks_expected, left_bytes_expected), "{name}");
    }
    let report = hatf(["report", &trace]).exits(0).prints("One block per 32.0 KiB was recorded on average.");
    assert!(!report.text().contains("records are missing") && !report.text().contains("not in the trace"));
    hatf(["simulate", &trace]).exits(0).says("the trace is a sample");
    // A report on a complete trace does not mention samples.
    hatf(["record", "-q", "-o", &trace, "--", &program, "10"]).exits(0);
    assert!(!hatf(["report", &trace]).exits(0).text().contains("SAMPLE"));
}

#[test]
fn wrong_means() {
    for mean in ["0", "x", "-1"] {
        hatf(["record", "--sample", mean, "true"]).exits(2).says("such as 512KiB");
    }
}
