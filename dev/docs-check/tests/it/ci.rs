//! The table in CONTRIBUTING.md lists the steps that `.ci/run` and the workflows run, and each crate has one binary of
//! integration tests.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

use metatf_test::root;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

/// Returns the steps named in a workflow.
fn of_workflow(name: &str) -> BTreeSet<String> {
    let text = read(&format!(".github/workflows/{name}.yml"));
    let lines = text.lines().map(|line| line.trim().trim_start_matches("- "));
    let steps = lines.filter_map(|line| line.strip_prefix("steps: ").or_else(|| line.strip_prefix("run: .ci/run ")));
    steps.flat_map(str::split_whitespace).map(str::to_owned).collect()
}

#[test]
fn the_table_of_steps_is_what_runs() {
    let script = read(".ci/run");
    let steps: BTreeSet<&str> =
        script.lines().filter_map(|line| Some(line.strip_prefix("step_")?.split_once("()")?.0)).collect();
    let (_, all) = script.split_once("\nall=(").expect("the list of steps");
    let all: BTreeSet<String> = all.split_once(')').unwrap().0.split(' ').map(str::to_owned).collect();
    let runs = [all, of_workflow("ci"), of_workflow("nightly")];

    let mut listed = BTreeSet::new();
    let page = read("CONTRIBUTING.md");
    let (_, table) = page.split_once("| step | ").expect("the table of steps");
    for line in table.lines().skip(2).take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        for name in cells[1].split(", ").filter_map(|name| name.strip_prefix('`')?.strip_suffix('`')) {
            listed.insert(name);
            for (runs, cell) in runs.iter().zip(&cells[3..]) {
                assert_eq!(runs.contains(name), *cell == "yes", "`{name}` in: {line}");
            }
            assert!(runs.iter().any(|runs| runs.contains(name)), "nothing runs `{name}`");
        }
    }
    assert_eq!(listed, steps);
}

/// Actions of other projects are pinned to a commit, and a workflow states its permissions.
#[test]
fn workflows_trust_nothing_that_can_move() {
    let mut uses = 0;
    for file in std::fs::read_dir(root().join(".github/workflows")).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        assert!(text.contains("\npermissions:\n"), "{text}");
        for line in text.lines().filter_map(|line| line.trim().trim_start_matches("- ").strip_prefix("uses: ")) {
            let commit = line.split_once('@').map_or("", |(_, commit)| commit.split(' ').next().unwrap());
            assert!(commit.len() == 40 && commit.chars().all(|c| c.is_ascii_hexdigit()), "{line}");
            uses += 1;
        }
    }
    assert!(uses > 5, "{uses}");
}

/// The files named in recipes exist. Paths are relative to the root; a path that contains `NAME` stands for a new file.
#[test]
fn the_files_of_recipes_exist() {
    let page = read("CONTRIBUTING.md");
    let is_from_root = |path: &&str| path.split('/').next().is_some_and(|first| root().join(first).is_dir());
    let quoted = page.split('`').skip(1).step_by(2).filter(|quoted| quoted.contains('/'));
    let paths: Vec<&str> = quoted.filter_map(|quoted| quoted.split_whitespace().next()).filter(is_from_root).collect();
    assert!(paths.len() > 80, "{}", paths.len());
    // The output of a command need not exist.
    let is_made = |path: &str| ["target/", "dev/fuzz/artifacts"].iter().any(|made| path.starts_with(made));
    let is_missing = |path: &&str| !path.contains(['*', '<']) && !path.contains("NAME") && !root().join(path).exists();
    let missing: Vec<&str> = paths.into_iter().filter(is_missing).filter(|path| !is_made(path)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// A second test binary in a crate, which Miri runs.
const MORE: (&str, &str) = ("metatf", "loops");

#[test]
fn a_crate_has_one_binary_of_tests() {
    let manifest = read("Cargo.toml");
    let members = manifest.split_once("members = [").unwrap().1.split_once(']').unwrap().0;
    let mut found = 0;
    for crate_ in members.lines().filter_map(|line| line.trim().strip_prefix('"')?.strip_suffix("\",")) {
        let Ok(folder) = std::fs::read_dir(root().join(crate_).join("tests")) else { continue };
        let mut binaries: Vec<String> = folder
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "rs") || path.join("main.rs").exists())
            .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
            .filter(|name| MORE != (crate_, &**name))
            .collect();
        binaries.sort();
        assert!(binaries.len() <= 1, "{crate_}/tests: {binaries:?} are modules of it/main.rs");
        found += binaries.len();
    }
    assert!(found > 10, "{found}");
}

/// Targets compiled without a test harness, which would require an additional compilation. Each entry contains their
/// number in the crate's manifest, and their files.
const WITHOUT_HARNESS: [(&str, usize, &[&str]); 7] = [
    ("dev/benches", 6, &["src/main.rs", "src/bin"]),
    ("heap/hatf", 1, &["src/main.rs", "src/stack_limit.rs", "src/command"]),
    ("tables/hatf-arrow", 1, &["src"]),
    ("tables/metatf-duckdb", 1, &["src"]),
    ("tables/python", 1, &["src"]),
    ("telemetry/metatf-telemetry", 1, &["examples"]),
    ("tests", 3, &["src"]),
];

#[test]
fn what_has_no_harness_has_no_tests() {
    let mut found = Vec::new();
    for crate_ in members() {
        let targets = read(&format!("{crate_}/Cargo.toml")).lines().filter(|line| *line == "test = false").count();
        found.extend((targets > 0).then_some((crate_, targets)));
    }
    found.sort_unstable();
    assert_eq!(found, WITHOUT_HARNESS.map(|(crate_, targets, _)| (crate_.to_owned(), targets)));

    for (crate_, _, paths) in WITHOUT_HARNESS {
        for path in paths.iter().flat_map(|path| sources(&root().join(crate_).join(path))) {
            let text = std::fs::read_to_string(&path).unwrap();
            for mark in ["#[test]", "#[cfg(test)]", "proptest! {"] {
                assert!(!text.lines().any(|line| line.trim() == mark), "the tests of {} are not run", path.display());
            }
        }
    }
}

/// Unit tests of packages must run outside of the repository. The step `package` compiles them there, but not for each
/// change.
#[test]
fn unit_tests_of_packages_need_no_more_than_these() {
    let is_published = |crate_: &String| !read(&format!("{crate_}/Cargo.toml")).contains("\npublish = false");
    let published: Vec<_> = members().into_iter().filter(is_published).collect();
    assert!(published.iter().any(|crate_| crate_ == "metatf-parser"), "{published:?}");
    for path in published.iter().flat_map(|crate_| sources(&root().join(crate_).join("src"))) {
        let text = std::fs::read_to_string(&path).unwrap();
        // Only the step `loom` compiles models.
        let text = text.replace("#[cfg(all(loom, test))]\npub(crate) use metatf_test::model;\n", "");
        assert!(!text.contains("metatf_test::") && !text.contains("metatf_tests::"), "{}", path.display());
    }
}

fn members() -> Vec<String> {
    let manifest = read("Cargo.toml");
    let members = manifest.split_once("members = [").unwrap().1.split_once(']').unwrap().0;
    let names = members.lines().filter_map(|line| line.trim().strip_prefix('"')?.strip_suffix("\","));
    names.map(str::to_owned).collect()
}

/// Returns a file, or the sources in a directory.
fn sources(path: &Path) -> Vec<PathBuf> {
    if !path.is_dir() {
        return vec![path.to_owned()];
    }
    let entries = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.flat_map(|path| sources(&path));
    files.filter(|path| path.extension().is_some_and(|extension| extension == "rs")).collect()
}
