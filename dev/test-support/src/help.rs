//! The help texts of a program, which are stored in one file of the book.

use std::path::Path;

use crate::{Folder, Run, golden, root};

/// Compares `docs/help/PROGRAM.txt` with the help texts of a program and all its commands.
///
/// The commands are those for which `PROGRAM man` writes a page.
///
/// # Panics
/// Panics if a text differs and should not be rewritten, or if a command has no help.
#[track_caller]
pub fn hold(program: &str, run: impl Fn(&[&str]) -> Run) {
    let folder = Folder::new();
    run(&["man", &folder.path("")]).exits(0);
    let pages = std::fs::read_dir(folder.path("")).unwrap();
    let mut names: Vec<_> = pages.map(|page| page.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let mut texts = String::new();
    for name in names {
        let mut words: Vec<_> = name.trim_end_matches(".1").split('-').collect();
        words.push("--help");
        let help = run(&words[1..]).exits(0).text();
        texts += &format!("$ {}\n{help}\n", words.join(" "));
    }
    golden::hold(&root().join(Path::new("docs/help").join(program)).with_extension("txt"), &texts);
}
