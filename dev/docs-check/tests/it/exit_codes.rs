//! The commands return the exit codes listed in `docs/errors.md`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use metatf_docs_check::{commands, run, sandbox};
use metatf_test::root;
use std::collections::BTreeSet;

/// Commands that create the files used below: `good.mtf`, `slow.mtf` (one value differs), `torn.mtf`, `heap.mtf`,
/// `cut.mtf`.
const FILES: &str = "\
metatfc convert --dtd samples/requests.dtd --codec stored samples/requests.jsonl good.mtf
sed 's/\"took\":180/\"took\":190/' samples/requests.jsonl | metatfc convert --dtd samples/requests.dtd - slow.mtf
head -c 950 good.mtf > torn.mtf
hatf convert samples/short.rep heap.mtf
head -c 200 heap.mtf > cut.mtf
metatfc new - > fresh.dtd
echo 'a: (' > bad.dtd
printf 'section s 1 {\\nr: (tag) { tag.value = 4; }\\n}\\n' > ugly.dtd
echo '{' > bad.jsonl";

/// Test cases, each with a table row without its backquotes, a command line, and its exit code.
const CASES: &[(&str, &str, u8)] = &[
    ("metatfc new", "metatfc new spans", 0),
    ("metatfc new", "metatfc new spans", 1),
    ("metatfc new", "metatfc new ''", 2),
    ("metatfc check", "metatfc check samples/tasks.dtd", 0),
    ("metatfc check", "metatfc check bad.dtd", 1),
    ("metatfc check", "metatfc check --deny-warnings /dev/null", 1),
    ("metatfc check", "metatfc check", 2),
    ("metatfc fmt", "metatfc fmt - < samples/tasks.dtd", 0),
    ("metatfc fmt", "metatfc fmt bad.dtd", 1),
    ("metatfc fmt", "metatfc fmt", 2),
    ("metatfc fmt --check", "metatfc fmt --check fresh.dtd", 0),
    ("metatfc fmt --check", "metatfc fmt --check ugly.dtd", 1),
    ("metatfc fmt --check", "metatfc fmt --check", 2),
    ("metatfc gen", "metatfc gen samples/tasks.dtd", 0),
    ("metatfc gen", "metatfc gen bad.dtd", 1),
    ("metatfc gen", "metatfc gen --rename nothing=x samples/tasks.dtd", 2),
    ("metatfc show", "metatfc show samples/tasks.dtd", 0),
    ("metatfc show", "metatfc show bad.dtd", 1),
    ("metatfc show", "metatfc show", 2),
    ("metatfc show --doc", "metatfc show samples/tasks.dtd --doc pages", 0),
    ("metatfc show --doc", "metatfc show bad.dtd --doc pages", 1),
    ("metatfc show --doc", "metatfc show samples/tasks.dtd --doc pages --format json", 2),
    ("metatfc diff", "metatfc diff good.mtf samples/requests.dtd", 0),
    ("metatfc diff", "metatfc diff samples/tasks.dtd samples/tasks-2.dtd", 1),
    ("metatfc diff", "metatfc diff --new-version 1 samples/tasks.dtd samples/tasks.dtd", 2),
    ("metatfc check", "metatfc check --lint samples/wasteful.dtd", 0),
    ("metatfc check", "metatfc check --lint --deny-warnings samples/wasteful.dtd", 1),
    ("metatfc check", "metatfc check samples/requests.dtd --allow no-rule", 2),
    ("metatfc dump", "metatfc dump good.mtf", 0),
    ("metatfc dump", "metatfc dump good.mtf | true", 0),
    ("metatfc dump", "metatfc dump torn.mtf", 1),
    ("metatfc dump", "metatfc dump .", 1),
    ("metatfc dump", "metatfc dump good.mtf > /dev/full", 1),
    ("metatfc dump", "metatfc dump good.mtf --head -1", 2),
    ("metatfc dump --salvage", "metatfc dump --salvage good.mtf", 0),
    ("metatfc dump --salvage", "metatfc dump --salvage torn.mtf", 1),
    ("metatfc dump --salvage", "metatfc dump --salvage --raw good.mtf", 2),
    ("metatfc convert", "metatfc convert --dtd samples/requests.dtd samples/requests.jsonl out.mtf", 0),
    ("metatfc convert", "metatfc convert --dtd samples/requests.dtd bad.jsonl out.mtf", 1),
    ("metatfc convert", "metatfc convert --dtd samples/requests.dtd samples/requests.jsonl /dev/full", 1),
    ("metatfc convert", "metatfc convert samples/requests.jsonl out.mtf", 2),
    ("metatfc convert", "metatfc convert good.mtf out.mtf", 0),
    ("metatfc convert", "metatfc convert torn.mtf out.mtf", 1),
    ("metatfc convert", "metatfc convert good.mtf out.mtf --to-dtd heap", 1),
    ("metatfc convert", "metatfc convert good.mtf out.mtf --fields nothing", 2),
    ("metatfc diff", "metatfc diff good.mtf good.mtf", 0),
    ("metatfc diff", "metatfc diff good.mtf slow.mtf", 1),
    ("metatfc diff", "metatfc diff good.mtf torn.mtf", 1),
    ("metatfc diff", "metatfc diff good.mtf", 2),
    ("metatfc stat", "metatfc stat good.mtf", 0),
    ("metatfc stat", "metatfc stat torn.mtf", 1),
    ("metatfc stat", "metatfc stat", 2),
    ("metatfc verify", "metatfc verify good.mtf slow.mtf", 0),
    ("metatfc verify", "metatfc verify good.mtf torn.mtf", 1),
    ("metatfc verify", "metatfc verify --salvage out.mtf good.mtf torn.mtf", 2),
    ("metatfc --install-docs", "metatfc --install-docs share", 0),
    ("metatfc --install-docs", "metatfc --install-docs good.mtf", 1),
    ("metatfc --install-docs", "metatfc --install-docs", 2),
    ("hatf recover", "hatf recover", 0),
    ("hatf recover", "hatf recover /nothing", 1),
    ("hatf recover", "hatf recover -o heap.mtf", 2),
    ("hatf inspect", "sleep 20 > sleep.log 2>&1 & hatf inspect $!", 0),
    ("hatf inspect", "hatf inspect 4294967295", 1),
    ("hatf inspect", "hatf inspect heap.mtf", 1),
    ("hatf inspect", "hatf inspect", 2),
    (
        "hatf agent",
        "printf 'directory = \"x\"\\n[[rule]]\\naction = \"off\"\\n' > p.toml; hatf agent --check p.toml",
        0,
    ),
    ("hatf agent", "hatf agent nothing.toml", 1),
    ("hatf agent", "hatf agent", 2),
    ("hatf report", "hatf report heap.mtf", 0),
    ("hatf report", "hatf report heap.mtf | true", 0),
    ("hatf report", "hatf report cut.mtf", 1),
    ("hatf report", "hatf report", 2),
    ("hatf diff", "hatf diff heap.mtf heap.mtf --fail-over 0%", 0),
    ("hatf diff", "hatf diff samples/sites.jsonl samples/sites-2.jsonl", 0),
    ("hatf diff", "hatf diff samples/sites.jsonl samples/sites-2.jsonl | true", 0),
    ("hatf diff", "hatf diff samples/sites.jsonl samples/sites-2.jsonl --by temporary --fail-over 0%", 0),
    ("hatf diff", "hatf diff samples/sites.jsonl samples/sites-2.jsonl --fail-over 5%", 1),
    ("hatf diff", "hatf diff heap.mtf cut.mtf", 1),
    ("hatf diff", "hatf diff nothing.mtf heap.mtf", 1),
    ("hatf diff", "hatf diff heap.mtf heap.mtf > /dev/full", 1),
    ("hatf diff", "hatf diff heap.mtf", 2),
    ("hatf diff", "hatf diff heap.mtf heap.mtf --fail-over 5parsec", 2),
    ("hatf diff", "hatf diff - -", 2),
    ("hatf dump", "hatf dump heap.mtf", 0),
    ("hatf dump", "hatf dump heap.mtf | true", 0),
    ("hatf dump", "hatf dump cut.mtf", 1),
    ("hatf dump", "hatf dump heap.mtf > /dev/full", 1),
    ("hatf dump", "hatf dump heap.mtf --address heap", 2),
    ("hatf convert", "hatf convert heap.mtf heap.jsonl", 0),
    ("hatf convert", "hatf convert --to heap heap.mtf - | true", 0),
    ("hatf convert", "hatf convert cut.mtf heap.jsonl", 1),
    ("hatf convert", "hatf convert --strict heap.mtf heap.raw32", 1),
    ("hatf convert", "hatf convert --to heap heap.mtf /dev/full", 1),
    ("hatf convert", "hatf convert heap.mtf heap.unknown", 2),
    ("hatf tour", "hatf tour -o /nothing/tour.mtf", 1),
    ("hatf tour", "hatf tour nothing", 2),
    ("hatf --install-docs", "hatf --install-docs share", 0),
    ("hatf --install-docs", "hatf --install-docs heap.mtf", 1),
    ("hatf --install-docs", "hatf --install-docs", 2),
    ("the program's code", "hatf record --no-trace --report sh -c 'exit 42'", 42),
    ("128 + N", "hatf record --no-trace --report sh -c 'kill -9 $$'", 137),
    ("125", "hatf record -o /nothing/trace.mtf true", 125),
    ("125", "hatf record -o /dev/full true", 125),
    ("126", "hatf record --no-trace --report ./bad.dtd", 126),
    ("127", "hatf record --no-trace --report ./nothing", 127),
];

/// Table rows that cannot be tested here, because the result depends on whether the machine has one of the tour's
/// programs. A test of `hatf` covers them.
const ELSEWHERE: &[(&str, u8)] = &[("hatf tour", 0)];

#[test]
fn commands_end_as_the_tables_say() {
    let (folder, commands) = (sandbox(), commands());
    assert_eq!(run(FILES, &folder, &commands), [""; 0]);
    let mut wrong = Vec::new();
    for (_, line, code) in CASES {
        // For a pipe, the expected exit code is the code of the first command.
        let ended = match line.strip_suffix(" | true") {
            Some(first) => run(&format!("{{ {first}; echo \"code $?\" >&2; }} | true"), &folder, &commands),
            None => run(&format!("({line}); echo \"code $?\""), &folder, &commands),
        };
        if !ended.contains(&format!("code {code}")) {
            wrong.push(format!("{line}: expected {code}\n{}", ended.join("\n")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_row_has_its_cases() {
    let page = std::fs::read_to_string(root().join("docs/errors.md")).unwrap();
    let (_, section) = page.split_once("## Exit codes").unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let rows: BTreeSet<String> = rows.map(|row| row.trim_matches('`').to_owned()).collect();
    let cases = |row: &str| -> BTreeSet<u8> {
        let shown = CASES.iter().filter(|case| case.0 == row).map(|case| case.2);
        shown.chain(ELSEWHERE.iter().filter(|case| case.0 == row).map(|case| case.1)).collect()
    };
    for row in rows.iter().filter(|row| row.contains("metatfc ") || row.starts_with("hatf ")) {
        assert_eq!(cases(row), BTreeSet::from([0, 1, 2]), "{row}");
    }
    for (row, _, _) in CASES {
        assert!(rows.contains(*row), "docs/errors.md has no row for `{row}`");
    }
}
