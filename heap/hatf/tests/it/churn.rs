//! `hatf churn`: short-lived blocks.

use std::path::Path;
use std::process::Command;

use insta::assert_snapshot;
use metatf_test::Folder;
use serde_json::Value;

use crate::common::hatf;

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/");

/// The block counts of a recorded program agree with those of other commands, whichever blocks count as short-lived.
#[test]
fn blocks_of_a_program() {
    let trace = DATA.to_owned() + "gawk.raw32.zst";
    let of = |options: &[&str]| -> Value {
        let command = [&["churn", &trace, "--format", "json"], options].concat();
        serde_json::from_str(&hatf(command).exits(0).text()).unwrap()
    };
    let text = hatf(["churn", &trace]).exits(0).text().replace(DATA, "");
    assert_snapshot!("churn-gawk", text);
    let report: Value = serde_json::from_str(&hatf(["simulate", &trace, "--format", "json"]).exits(0).text()).unwrap();
    let none = of(&["--meanwhile", "0"]);
    let all = of(&["--meanwhile", "1000GiB"]);
    for churn in [&none, &all] {
        assert_eq!(churn["trace"]["objects"], report["trace"]["objects"]);
    }
    // `hatf sites` reports the same short-lived blocks.
    let sites: Value = serde_json::from_str(&hatf(["sites", &trace, "--format", "json"]).exits(0).text()).unwrap();
    let short: Vec<_> = sites["sites"].as_array().unwrap().iter().map(|site| &site["short"]).collect();
    assert_eq!(short, [&of(&[])["short"]]);
    assert!(short[0]["blocks"].as_u64() > sites["sites"][0]["temporary"]["blocks"].as_u64(), "{sites}");
    hatf(["sites", &trace, "--by", "short"]).exits(0).prints("hatf churn shows which of these");
    // The raw records contain no stacks, and a realloc does not end a block.
    let [site] = &all["sites"].as_array().unwrap()[..] else { panic!("{all}") };
    assert_eq!(site["allocated"]["blocks"], report["trace"]["objects"]);
    // Blocks that are never freed do not count as live at once.
    assert!(site["most_live"].as_u64() < report["trace"]["max_objects"].as_u64(), "{site}");
    assert!(none["short"]["blocks"].as_u64() < all["short"]["blocks"].as_u64());
    assert!(all["short"]["blocks"].as_u64() <= Some(report["trace"]["objects"].as_u64().unwrap()));
}

/// Each of three ways in which blocks overlap has its own suggested replacement.
#[test]
fn what_would_do_instead() {
    let folder = Folder::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/churn.c");
    let (program, trace) = (folder.path("churn"), folder.path("t.mtf"));
    let compiled = Command::new("cc").args(["-O1", "-fno-builtin", "-o", &program]).arg(source).output().unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    hatf(["record", "--quiet", "--stacks", "-o", &trace, "--", &program]).exits(0);
    let churn: Value = serde_json::from_str(&hatf(["churn", &trace, "--format", "json"]).exits(0).text()).unwrap();
    let of = |largest| churn["sites"].as_array().unwrap().iter().find(|site| site["largest"] == largest).unwrap();
    for (largest, instead, most_live, blocks) in [(71, "buffer", 1, 500), (72, "arena", 8, 4000), (73, "pool", 2, 500)]
    {
        let site = of(largest);
        assert_eq!(site["allocated"]["blocks"], blocks, "{site}");
        assert_eq!((&site["instead"], &site["most_live"]), (&instead.into(), &most_live.into()), "{site}");
    }
    let text = hatf(["churn", &trace, "--depth", "2"]).exits(0).text();
    for said in ["a buffer ", "an arena of 576 B", "a pool of 2"] {
        assert!(text.contains(said), "{text}");
    }
    // A sample does not show which blocks are live at the same time.
    hatf(["record", "--quiet", "--sample", "64", "--stacks", "-o", &trace, "--", &program]).exits(0);
    let churn: Value = serde_json::from_str(&hatf(["churn", &trace, "--format", "json"]).exits(0).text()).unwrap();
    assert!(churn["sites"].as_array().unwrap().iter().all(|site| site["instead"].is_null()), "{churn}");
}
