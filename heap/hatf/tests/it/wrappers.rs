//! Wrappers are found in a trace and folded into their callers, and functions are matched between traces.
#![expect(clippy::unwrap_used)]

use std::path::Path;

use metatf_test::Folder;
use serde_json::Value;

use crate::common::{compiled, hatf};

/// Records `program` to a trace with this name.
fn recorded(folder: &Folder, program: &Path, name: &str, arguments: &[&str]) -> String {
    let trace = folder.path(name);
    let program = program.to_str().unwrap();
    hatf([&["record", "--stacks", "-q", "-o", &trace, "--", program], arguments].concat()).exits(0);
    trace
}

/// Returns the names of the functions that allocated memory themselves, and the bytes that they allocated.
fn own(trace: &str, options: &[&str]) -> Vec<(String, u64)> {
    let json = hatf([&["sites", trace, "--format", "json"], options].concat()).exits(0);
    let found: Value = serde_json::from_slice(&json.out).unwrap();
    let groups = found["groups"].as_array().unwrap().iter();
    let own = groups.map(|group| {
        (group["name"].as_str().unwrap().to_owned(), group["own"]["allocated"]["bytes"].as_u64().unwrap())
    });
    own.filter(|(_, bytes)| *bytes > 0).collect()
}

/// Bytes of the functions that allocate through wrappers, four blocks each.
fn callers() -> Vec<(String, u64)> {
    let texts = [2, 14, 28, 16, 6, 26];
    let sizes = (1..=6).zip(texts).flat_map(|(n, text)| {
        [
            ("grab", 100 + n),
            ("xmalloc", 200 + n),
            ("xcalloc", 3 * (100 + n)),
            ("xrealloc", 400 + n),
            ("copy_text", text),
            ("hook", 500 + n),
            ("jump", 1600 + n),
            ("inlined", 2000 + n),
        ]
        .map(|(name, size)| (format!("{name}_{n}"), 4 * size))
    });
    sizes.collect()
}

/// Bytes of the functions that always allocate the same sizes or call themselves.
const NOT_PASSING: [(&str, u64); 4] =
    [("new_node", 48 * 48), ("alloc_point", 24 * 40), ("new_shape", 8 * (72 + 88 + 136)), ("walk", 116_624)];

/// Wrappers are folded with and without optimization, and other functions are not.
#[test]
fn only_wrappers_are_folded() {
    let folder = Folder::new();
    for (name, flags) in [("plain", ["-O0", "-g"]), ("optimized", ["-O2", "-g"])] {
        let Some(program) = compiled(&folder, "wrappers", &flags) else { return };
        let trace = recorded(&folder, &program, &format!("{name}.mtf"), &[]);
        let mut found = own(&trace, &[]);
        let mut expected = callers();
        expected.extend(NOT_PASSING.map(|(name, bytes)| (name.to_owned(), bytes)));
        // These call an allocator and another allocating function, or an allocator from two places.
        expected.extend([("load".to_owned(), 19_284), ("two_places".to_owned(), 3 * 4 * (900 * 6 + 21))]);
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{flags:?}");
    }
}

/// In a stripped program, the amounts are those of the same functions.
#[test]
fn wrappers_need_no_symbols() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "wrappers", &["-O2", "-s"]) else { return };
    let trace = recorded(&folder, &program, "stripped.mtf", &[]);
    let own = own(&trace, &[]);
    assert!(own.iter().all(|(name, _)| name.starts_with("wrappers+0x")), "{own:?}");
    let not_passing = NOT_PASSING.map(|(name, bytes)| (name.to_owned(), bytes));
    for (name, bytes) in callers().into_iter().chain(not_passing) {
        assert_eq!(own.iter().filter(|(_, of)| *of == bytes).count(), 1, "{name}: {bytes} in {own:?}");
    }
}

/// Each command folds the same functions, and all commands but those that print data name the functions.
#[test]
fn all_commands_fold_and_say_so() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "wrappers", &["-O0", "-g"]) else { return };
    let trace = recorded(&folder, &program, "all.mtf", &[]);
    let says = |arguments: &[&str]| {
        let run = hatf(arguments).exits(0);
        let text = run.text();
        assert!(text.contains("Folded as wrappers: grab, do_xmalloc and 8 more; --whole shows them."), "{text}");
        text
    };
    says(&["sites", &trace, "--by", "peak"]);
    says(&["sites", &trace, "--of", "grab_1", "--by", "peak"]);
    says(&["report", &trace, "--with", "sites"]);
    let leaks = says(&["leaks", &trace, "--rows", "100"]);
    assert!(leaks.contains("grab_1 at") && !leaks.contains("grab at"), "{leaks}");
    let one = recorded(&folder, &program, "one.mtf", &["one"]);
    says(&["diff", &one, &trace]);
    let same = hatf(["diff", &trace, &trace]).exits(0).text();
    assert!(!same.contains("grab"), "{same}");
    let (page, run) = (folder.path("run.html"), folder.path("run.mtf"));
    let ran = hatf(["run", "-o", &run, program.to_str().unwrap()]).exits(0);
    ran.says("Folded as wrappers: grab, do_xmalloc and 8 more; --whole shows them.");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("Folded as wrappers: grab, do_xmalloc and 8 more; --whole shows them."));
    let svg = folder.path("all.svg");
    hatf(["sites", &trace, "--format", "svg", "-o", &svg]).exits(0).says("Folded as wrappers: grab");
    let svg = std::fs::read_to_string(svg).unwrap();
    assert!(svg.contains("grab_1") && !svg.contains(">grab<"), "{svg}");

    let whole = hatf(["sites", &trace, "--by", "peak", "--whole"]).exits(0).text();
    assert!(!whole.contains("Folded"), "{whole}");
    assert!(own(&trace, &["--whole"]).contains(&("grab".to_owned(), 4 * (600 + 21 + 6 * 1600 + 21))));
}

/// If only one of two traces shows that a function is a wrapper, the function is folded in both.
#[test]
fn two_traces_fold_the_same_functions() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "wrappers", &["-O0", "-g"]) else { return };
    let (one, all) = (recorded(&folder, &program, "one.mtf", &["one"]), recorded(&folder, &program, "all.mtf", &[]));
    assert!(own(&one, &[]).iter().any(|(name, _)| name == "grab"));
    for (before, after) in [(&one, &all), (&all, &one)] {
        let json = hatf(["diff", before, after, "--format", "json"]).exits(0);
        let found: Value = serde_json::from_slice(&json.out).unwrap();
        let names: Vec<_> =
            found["functions"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
        let has = |name: &str| names.iter().any(|found| found.starts_with(&format!("{name} at")));
        // The functions that ran only once in both traces are the same.
        assert!(has("grab_2") && !has("grab_1") && !has("grab"), "{names:?}");
    }
}

/// A program with another name or in another directory has the same functions, with and without symbols.
#[test]
fn functions_are_matched_by_identity() {
    let folder = Folder::new();
    for flags in [["-O0", "-g"], ["-O2", "-s"]] {
        let Some(program) = compiled(&folder, "wrappers", &flags) else { return };
        let before = recorded(&folder, &program, "before.mtf", &[]);
        let other = folder.join("other");
        std::fs::create_dir_all(&other).unwrap();
        for copy in [folder.join("renamed"), other.join("wrappers"), other.join("wrappers-0123456789abcdef")] {
            std::fs::copy(&program, &copy).unwrap();
            let after = recorded(&folder, &copy, "after.mtf", &[]);
            let json = hatf(["diff", &before, &after, "--format", "json"]).exits(0);
            let found: Value = serde_json::from_slice(&json.out).unwrap();
            for table in ["functions", "sites"] {
                assert_eq!(found[table].as_array().map_or(0, Vec::len), 0, "{flags:?} {copy:?} {}", found[table]);
            }
            let text = hatf(["diff", &before, &after]).exits(0).text();
            assert!(!text.contains("new") && !text.contains("gone"), "{text}");
        }
    }
}
