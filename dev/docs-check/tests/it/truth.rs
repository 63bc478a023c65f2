//! The table of programs with planted behavior in `docs/findings.md` is that of the test which runs them.

use metatf_test::{golden, root};

/// Returns the rows of the book's table.
fn rows(table: &str) -> String {
    let mut rows = String::new();
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let (key, value) = line.trim_start().split_once(' ').unwrap_or((line, ""));
        let value = value.trim().replace('*', "…");
        match key {
            "" => {}
            "planted" => rows += &format!(" {value} |"),
            "first" => rows += &format!(" {value}"),
            "also" | "never" | "churn" => {}
            name => rows += &format!("\n| `{name}` |"),
        }
    }
    rows.trim_start().lines().map(|row| format!("{row} |\n")).collect()
}

#[test]
fn the_book_shows_the_table() {
    let table = std::fs::read_to_string(root().join("heap/hatf/tests/truth/table.txt")).unwrap();
    let path = root().join("docs/findings.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, _) = text.split_once("<!-- truth -->\n").unwrap();
    let head = "| program | planted | first sentences |\n| --- | --- | --- |\n";
    golden::hold(&path, &format!("{before}<!-- truth -->\n{head}{}", rows(&table)));
}
