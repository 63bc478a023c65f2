//! `hatf sites`: which function of the program has memory.
#![expect(clippy::unwrap_used)]

use metatf_test::Folder;
use serde_json::Value;

use crate::common::{compiled_cpp, hatf};

/// Bytes of an item of the shop: itself (a string and a vector), its name, its prices.
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
    // A function that only allocates, for several, is none of them.
    assert!(!all.iter().any(|group| group["name"].as_str().unwrap().contains("xmalloc")), "{all:?}");
    assert_eq!(
        (bytes(of(&all, "shop::first"), "own", "leaked"), bytes(of(&all, "shop::second"), "own", "leaked")),
        (1000, 2000)
    );
    // What a function that calls itself allocated counts once, and by its lines.
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

/// What is folded, and what a row is, can be said.
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
    // It calls itself at a third.
    assert_eq!(of_fill.filter(|group| bytes(group, "own", "allocated") > 0).count(), 2);

    let around = hatf(["sites", &named, "--of", "shop::add", "--by", "allocated"]).exits(0).text();
    assert!(
        around.contains("called by") && around.contains("shop::load") && around.contains("allocates itself"),
        "{around}"
    );
    let nothing = hatf(["sites", &named, "--of", "no such function"]).exits(0).text();
    assert!(nothing.contains("none of the stacks lead through it"), "{nothing}");
    hatf(["sites", &named, "--whole", "--skip", "x"]).exits(2);
}
