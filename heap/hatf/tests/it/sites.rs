//! `hatf sites`: memory by functions of the program.
#![expect(clippy::unwrap_used)]

use metatf_test::{Folder, root};
use serde_json::Value;

use crate::common::{compiled_cpp, hatf};

/// Bytes of an item in the shop: the item itself (a string and a vector), its name and its prices.
const ITEM: u64 = 32 + 24 + 101 + 50 * 4;

fn groups(trace: &str, more: &[&str]) -> Vec<Value> {
    let args = [&["sites", trace, "--format", "json"], more].concat();
    let found: Value = serde_json::from_slice(&hatf(args).exits(0).out).unwrap();
    found["groups"].as_array().unwrap().clone()
}

fn of<'g>(groups: &'g [Value], name: &str) -> &'g Value {
    groups.iter().find(|group| group["name"].as_str().unwrap().starts_with(name)).unwrap()
}

fn bytes(group: &Value, side: &str, measure: &str) -> u64 {
    group[side][measure]["bytes"].as_u64().unwrap()
}

/// Containers, `operator new`, strings and wrappers are folded into the function that uses them.
#[test]
fn memory_is_the_programs_functions() {
    let folder = Folder::new();
    let Some(program) = compiled_cpp(&folder, "shop", &["-O1", "-g"]) else { return };
    let (trace, named) = (folder.path("shop.mtf"), folder.path("shop.sym.mtf"));
    hatf(["record", "--stacks", "-q", "-o", &trace, "--", program.to_str().unwrap()]).exits(0);
    hatf(["symbolize", &trace]).exits(0);

    let all = groups(&named, &[]);
    let (add, load, main) = (of(&all, "shop::add"), of(&all, "shop::load"), of(&all, "main"));
    assert_eq!(bytes(add, "own", "allocated"), 200 * ITEM);
    assert_eq!(bytes(add, "own", "peak"), 200 * ITEM);
    assert_eq!(bytes(load, "own", "allocated"), 200 * 8);
    assert_eq!(bytes(load, "inclusive", "allocated"), 200 * (ITEM + 8));
    assert_eq!(add["callers"].as_array().unwrap().len(), 1, "{add}");
    assert!(add["callers"][0]["name"].as_str().unwrap().starts_with("shop::load"), "{add}");
    // A function that only allocates, for several callers, is folded as well.
    assert!(!all.iter().any(|group| group["name"].as_str().unwrap().contains("xmalloc")), "{all:?}");
    assert_eq!(
        (bytes(of(&all, "shop::first"), "own", "leaked"), bytes(of(&all, "shop::second"), "own", "leaked")),
        (1000, 2000)
    );
    // Allocations by a recursive function count once, and by line.
    let fill = of(&all, "shop::fill");
    assert_eq!(
        (bytes(fill, "own", "allocated"), bytes(fill, "inclusive", "allocated")),
        (9 * 64 + 10 * 10, 9 * 64 + 10 * 10)
    );
    let lines: Vec<_> =
        fill["lines"].as_array().unwrap().iter().map(|line| line["allocated"]["bytes"].as_u64().unwrap()).collect();
    assert_eq!(lines, [10 * 10, 9 * 64]);
    let sum = |side| all.iter().map(|group| bytes(group, side, "allocated")).sum::<u64>();
    assert!(bytes(main, "inclusive", "allocated") <= sum("own") && sum("own") < sum("inclusive"), "{all:?}");

    let text = hatf(["sites", &named, "--by", "peak", "--rows", "2"]).exits(0).text();
    assert!(text.contains("shop::add") && text.contains("shop.cpp:") && text.contains("<- shop::load"), "{text}");
}

/// Options select the functions to fold and the meaning of a row.
#[test]
fn groups_are_chosen() {
    let folder = Folder::new();
    let Some(program) = compiled_cpp(&folder, "shop", &["-O1", "-g"]) else { return };
    let (trace, named) = (folder.path("shop.mtf"), folder.path("shop.sym.mtf"));
    hatf(["record", "--stacks", "-q", "-o", &trace, "--", program.to_str().unwrap()]).exits(0);
    hatf(["symbolize", &trace]).exits(0);

    let whole = groups(&named, &["--whole"]);
    assert_eq!(bytes(of(&whole, "shop::xmalloc"), "own", "leaked"), 3000);
    let without = groups(&named, &["--skip", "shop::add"]);
    assert_eq!(bytes(of(&without, "shop::load"), "own", "allocated"), 200 * (ITEM + 8));
    let project = groups(&named, &["--project", "shop::load"]);
    assert_eq!(bytes(of(&project, "shop::load"), "own", "allocated"), 200 * (ITEM + 8));
    let files = groups(&named, &["--group", "file"]);
    let file = files.iter().find(|group| group["file"].as_str().unwrap().ends_with("shop.cpp")).unwrap();
    assert_eq!(bytes(file, "own", "leaked"), 3000);
    let modules = groups(&named, &["--group", "module"]);
    assert!(modules.iter().any(|group| group["module"].as_str().unwrap().ends_with("/shop")), "{modules:?}");
    let lines = groups(&named, &["--group", "line"]);
    let of_fill = lines.iter().filter(|group| group["name"].as_str().unwrap().starts_with("shop::fill"));
    // The third line is the recursive call.
    assert_eq!(of_fill.filter(|group| bytes(group, "own", "allocated") > 0).count(), 2);

    let around = hatf(["sites", &named, "--of", "shop::add", "--by", "allocated"]).exits(0).text();
    assert!(
        around.contains("called by") && around.contains("shop::load") && around.contains("allocates itself"),
        "{around}"
    );
    let nothing = hatf(["sites", &named, "--of", "no such function"]).exits(1);
    nothing.says("no function, file or module in any stack has a name that contains this text");
    hatf(["sites", &named, "--of", "lood"]).exits(1).says("similar: `shop::load");
    hatf(["sites", &named, "--whole", "--skip", "x"]).exits(2);
    for command in [&["sites", &named][..], &["leaks", &named], &["diff", &named, &named]] {
        let nothing = hatf([command, &["--project", "shop::lood"]].concat()).exits(1);
        nothing.says("--project `shop::lood`: no function").says("similar: `shop::load");
    }
}

/// Writes a trace with times in seconds: `read_line` at 1, mark `ready` at 2, `add_word` at 3 and 5, mark `done` at 6.
fn timed(folder: &Folder) -> String {
    let sample = std::fs::read_to_string(root().join("docs/samples/sites.jsonl")).unwrap();
    let mut lines: Vec<String> = sample.lines().take(12).map(str::to_owned).collect();
    let stack =
        |frames: &str, offset| format!("{{\"offset\":{offset},\"element\":{{\"depth\":2,\"frame\":[{frames}]}}}}");
    let (read, add) = (stack("4198480,4198544", 2), stack("4198416,4198544", 20));
    let malloc = |time: u64, stack: &str, size: u64, address: u64| {
        let time = time * 1_000_000_000;
        format!(
            "{{\"@section\":\"heap\",\"@record\":\"malloc\",\"time\":{time},\"stack\":{stack},\"size\":{size},\"usable\":0,\"address\":{address}}}"
        )
    };
    let free = |time: u64, address: u64| {
        let time = time * 1_000_000_000;
        format!("{{\"@section\":\"heap\",\"@record\":\"free\",\"time\":{time},\"stack\":0,\"address\":{address}}}")
    };
    let mark = |time: u64, offset: u64, name: &str| {
        let time = time * 1_000_000_000;
        format!(
            "{{\"@section\":\"heap\",\"@record\":\"mark\",\"time\":{time},\"name\":{{\"offset\":{offset},\"element\":{{\"vfield\":\"{name}\"}}}}}}"
        )
    };
    lines.extend([
        malloc(1, &read, 1000, 0x1_0000),
        mark(2, 83, "ready"),
        malloc(3, &add, 10, 0x2_0000),
        malloc(3, &add, 20, 0x3_0000),
        free(4, 0x3_0000),
        malloc(5, &add, 30, 0x4_0000),
        mark(6, 89, "done"),
        free(7, 0x1_0000),
        free(8, 0x2_0000),
    ]);
    let path = folder.path("timed.jsonl");
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    path
}

/// Options select the blocks live at a time, and those allocated in a range and live at its end.
#[test]
fn moments_and_ranges_are_chosen() {
    let folder = Folder::new();
    let trace = timed(&folder);
    let amounts = |options: &[&str], measure: &str| {
        let all = groups(&trace, options);
        let of = |name| bytes(of(&all, name), "own", measure);
        (of("read_line"), of("add_word"))
    };
    for (at, expected) in [
        ("1s", (1000, 0)),
        ("3s", (1000, 30)),
        ("3500ms", (1000, 30)),
        ("4s", (1000, 10)),
        ("mark:ready", (1000, 0)),
        ("mark:done", (1000, 40)),
        ("3", (1000, 30)),
        ("peak", (1000, 40)),
        ("8s", (0, 30)),
        ("end", (0, 30)),
    ] {
        assert_eq!(amounts(&["--skip", "copy", "--at", at], "at"), expected, "{at}");
    }
    // All commands mean the same points.
    for at in ["3s", "mark:done", "4", "worst", "sparsest", "end"] {
        let json = |command: &str| {
            let text = hatf([command, trace.as_str(), "--at", at, "--format", "json"]).exits(0).text();
            serde_json::from_str::<serde_json::Value>(&text).unwrap()
        };
        let moment = &json("fragmentation")["moments"][0];
        let (tick, bytes) = (moment["tick"].as_u64().unwrap(), moment["live"].as_u64().unwrap());
        let live = |at| amounts(&["--skip", "copy", "--at", at], "at");
        assert_eq!(live(at), live(&tick.to_string()), "{at}");
        assert_eq!(json("leaks")["live"]["bytes"], bytes, "{at}");
    }
    for (range, expected) in [
        ("0s..3s", (1000, 30)),
        ("1s..4s", (0, 10)),
        ("3s..5s", (0, 30)),
        ("mark:ready..mark:done", (0, 40)),
        ("mark:ready..", (0, 30)),
        ("..peak", (1000, 40)),
        ("peak..end", (0, 0)),
        ("3.00 s to 5.00 s", (0, 30)),
        ("3.00 s .. 5.00 s", (0, 30)),
    ] {
        assert_eq!(amounts(&["--skip", "copy", "--live-between", range], "between"), expected, "{range}");
    }
    // A report rounds the end of the trace up.
    let rounded = hatf(["sites", &trace, "--at", "8.004 s", "--by", "peak"]).exits(0);
    rounded.prints("chosen time: after event 7, at 8.00 s");
    hatf(["fragmentation", &trace, "--at", "3.00 s"]).exits(0).prints("after event 3");
    let text = hatf(["sites", &trace, "--at", "3s", "--live-between", "1s..end"]).exits(0).text();
    for said in [
        "chosen time: after event 3, at 3.00 s",
        "range: from after event 1, at 1.00 s, to event 7, at 8.00 s",
        "LIVE AT THE CHOSEN TIME: 1.01 KiB in 3 blocks",
        "ALLOCATED IN THE RANGE, LIVE AT ITS END: 30 B in 1 block",
    ] {
        assert!(text.contains(said), "{said}\n{text}");
    }
    assert!(!text.contains("TEMPORARY"), "{text}");
    // A block that lives for a second is not short-lived.
    assert!(!hatf(["sites", &trace, "--by", "short"]).exits(0).text().contains("hatf churn"));
    let folded = hatf(["sites", &trace, "--format", "folded", "--live-between", "1s..mark:done"]).exits(0).text();
    assert_eq!(folded, "main;add_word;copy 40\n");

    for (options, said) in [
        (["--at", "8.01s"], "8.01 s is after the end of the trace at 8.00 s"),
        (["--at", "60s"], "60.0 s is after the end of the trace at 8.00 s"),
        (["--at", "mark:steady"], "mark:steady is not in the trace; available marks: ready, done"),
        (["--live-between", "mark:done..mark:ready"], "mark:ready is not in the range"),
        (["--live-between", "5s..3s"], "the range ends before it starts"),
        (["--at", "9"], "there is no event 9: the trace has only 7 events"),
        (["--at", "soon"], "expected a time"),
        (["--live-between", "5s"], "expected two times or marks"),
    ] {
        hatf([&["sites", trace.as_str()], &options[..]].concat()).exits(2).says(said);
    }
}

/// By site, bytes copied by realloc and usable bytes beyond the requested size sum to the totals in the report.
#[test]
fn realloc_and_slack_are_by_site() {
    let json = |arguments: &[&str]| -> Value {
        serde_json::from_slice(&hatf([arguments, &["--format", "json"]].concat()).exits(0).out).unwrap()
    };
    let sum = |found: &Value, measure: &str| -> u64 {
        let sites = found["sites"].as_array().unwrap();
        sites.iter().map(|site| site[measure]["bytes"].as_u64().unwrap()).sum()
    };
    let gawk = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/gawk.raw32.zst");
    let report = json(&["report", gawk]);
    let copied = sum(&json(&["sites", gawk, "--by", "copied"]), "copied");
    assert!(
        copied > 0 && Some(copied) == report["calls"]["realloc_bytes_copied"].as_u64(),
        "{copied} {}",
        report["calls"]
    );
    hatf(["sites", gawk, "--by", "copied"]).exits(0).prints("COPIED BY REALLOC");
    hatf(["sites", gawk, "--by", "slack"]).exits(2).says("hatf record --usable");
    hatf(["diff", gawk, gawk, "--by", "copied"]).exits(2).says("possible values: peak");
    assert!(json(&["sites", gawk])["sites"][0].get("copied").is_none());

    let folder = Folder::new();
    let Some(program) = compiled_cpp(&folder, "shop", &["-O1", "-g"]) else { return };
    let trace = folder.path("shop.mtf");
    hatf(["record", "--stacks", "--usable", "-q", "-o", &trace, "--", program.to_str().unwrap()]).exits(0);
    let usable = &json(&["report", &trace])["usable"];
    let slack = sum(&json(&["sites", &trace, "--by", "slack"]), "slack");
    assert!(
        slack > 0 && slack == usable["usable"].as_u64().unwrap() - usable["asked"].as_u64().unwrap(),
        "{slack} {usable}"
    );
}
