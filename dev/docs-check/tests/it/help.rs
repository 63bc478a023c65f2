//! The book contains the help texts of all commands.
#![allow(clippy::unwrap_used, reason = "a test")]

use metatf_docs_check::{commands, run};
use metatf_test::{Folder, golden, root, skip};

/// Compares `docs/help/PROGRAM.txt` with the help of each command that has a manual page.
#[test]
fn help_is_in_the_book() {
    let commands = commands();
    let has_tables = |line: &String| line.contains("- parquet:");
    if !run("hatf convert --help", &Folder::new(), &commands).iter().any(has_tables) {
        return skip("hatf was built without the feature `tables`, which a build of the whole workspace enables");
    }
    for program in ["hatf", "metatfc"] {
        let folder = Folder::new();
        assert!(run(&format!("{program} --install-docs share"), &folder, &commands).is_empty());
        let pages = std::fs::read_dir(folder.join("share/man/man1")).unwrap();
        let mut names: Vec<_> = pages.map(|page| page.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        let mut texts = String::new();
        for name in names {
            let line = format!("{} --help", name.trim_end_matches(".1").replace('-', " "));
            texts += &format!("$ {line}\n{}\n\n", run(&line, &folder, &commands).join("\n"));
        }
        golden::hold(&root().join(format!("docs/help/{program}.txt")), &texts);
    }
}
