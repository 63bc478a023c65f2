//! `docs/versions.md` contains the version numbers of the code, and the specification has a rule for each runtime
//! error.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use metatf_parser::schema::Format;
use metatf_test::root;

fn text(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the value of a constant.
fn constant(path: &str, name: &str) -> String {
    let text = text(path);
    let found = text.split_once(&format!("const {name}: ")).and_then(|(_, rest)| rest.split_once(" = "));
    let (value, _) = found.and_then(|(_, rest)| rest.split_once(';')).unwrap_or_else(|| panic!("{path}: no {name}"));
    value.to_owned()
}

#[test]
fn the_page_of_versions_has_the_numbers_of_the_code() {
    let page = text("docs/versions.md");
    let numbers = [
        ("[revision of a model](#models)", "metatf-parser/src/schema/mod.rs", "MODEL_REVISION"),
        ("[heap traces](#heap-traces)", "heap/hatf-trace/src/heap/mod.rs", "VERSION"),
        ("spool of a recording", "heap/hatf-record/src/layout.rs", "VERSION"),
        ("buffers of telemetry", "telemetry/metatf-telemetry/src/layout.rs", "VERSION"),
        ("[reports as JSON](#reports)", "output/metatf-cli/src/streams.rs", "JSON_VERSION"),
        ("model of allocation", "heap/hatf-research/src/model/file.rs", "VERSION"),
    ];
    let generated = "metatf/src/generated.rs";
    let interface = format!("{}.{}", constant(generated, "MAJOR"), constant(generated, "MINOR"));
    let numbers = numbers.map(|(name, path, constant_name)| (name, path, constant(path, constant_name)));
    for (name, path, number) in numbers.into_iter().chain([("[generated code](#generated-code)", generated, interface)])
    {
        let row = format!("| {name} | {number} |");
        assert!(page.contains(&row), "docs/versions.md has no row {row:?}, the number of {path}");
    }
}

#[test]
fn each_error_of_the_runtime_has_its_rule() {
    let code = text("metatf-container/src/error.rs");
    let (_, rest) = code.split_once("pub enum ErrorKind {").unwrap();
    let (variants, _) = rest.split_once("\n}").unwrap();
    // Names of variants are indented once and fields twice; documentation begins with `/`.
    let name = |line: &str| {
        let name = line.strip_prefix("    ")?.split(['(', ',', ' ']).next()?;
        name.starts_with(char::is_uppercase).then(|| name.to_owned())
    };
    let variants: Vec<String> = variants.lines().filter_map(name).collect();
    let page = text("docs/specification.md");
    let (_, rest) = page.split_once("### 7.1").unwrap();
    let (table, _) = rest.split_once("### 7.2").unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let mut rows: Vec<&str> = rows.map(|(name, _)| name).collect();
    rows.sort_unstable();
    let mut sorted = variants.clone();
    sorted.sort();
    assert!(variants.len() > 20, "{variants:?}");
    assert_eq!(rows, sorted, "errors of section 7.1, and those of the runtime");
}

#[test]
fn the_registry_lists_each_format() {
    let page = text("docs/registry.md");
    let (_, rest) = page.split_once("<!-- formats -->").unwrap();
    let (table, _) = rest.split_once("\n\n").unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let mut rows: Vec<&str> = rows.map(|(name, _)| name).collect();
    rows.sort_unstable();
    let mut known: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
    known.sort_unstable();
    assert_eq!(rows, known, "formats of docs/registry.md, and those of the parser");
}

/// Returns the text between `before` and the next `"`.
fn quoted<'a>(text: &'a str, before: &str) -> &'a str {
    let found = text.split_once(before).and_then(|(_, rest)| rest.split_once('"'));
    found.unwrap_or_else(|| panic!("no {before:?}")).0
}

#[test]
fn all_that_is_released_has_one_version() {
    let workspace = text("Cargo.toml");
    let version = quoted(&workspace, "[workspace.package]\nversion = \"");
    let mut checked = 0;
    let members = workspace.split_once("members = [").unwrap().1.split_once(']').unwrap().0;
    let members = members.lines().filter_map(|line| line.trim().strip_prefix('"')?.strip_suffix("\","));
    let manifests = members.map(|member| format!("{member}/Cargo.toml"));
    for manifest in manifests.chain(["Cargo.toml".to_owned()]) {
        for line in text(&manifest).lines().filter(|line| line.contains("path = \"") && line.contains("version = \"")) {
            assert_eq!(quoted(line, "version = \"").trim_start_matches('='), version, "{manifest}: {line}");
            checked += 1;
        }
    }
    assert!(checked > 20, "{checked}");
    for package in [
        "dev/editors/vscode/package.json",
        "dev/editors/vscode/package-lock.json",
        "dev/editors/tree-sitter-metatf/tree-sitter.json",
    ] {
        assert_eq!(quoted(&text(package), "\"version\": \""), version, "{package}");
    }
    let changes = text("CHANGELOG.md");
    let heading = changes.lines().find(|line| line.starts_with("## ") && *line != "## [Unreleased]").unwrap();
    assert!(heading.starts_with(&format!("## [{version}]")), "the latest version in CHANGELOG.md: {heading}");
    assert!(
        text("docs/versions.md").contains(&format!("have version {version}.")),
        "docs/versions.md: another version"
    );
}
