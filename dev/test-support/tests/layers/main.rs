//! Checks the layers. At every depth of every crate, the modules of a directory must refer to each other in one
//! direction only. The code determines the order.
//!
//! The order is drawn in DESIGN.md, in the block after `<!-- layers -->`; `METATF_BLESS=1` redraws it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failing test must panic")]

mod crates;
mod picture;
mod tokens;
mod uses;

use crates::{of_files, read};
use metatf_test::{golden, page, root};

/// Returns the directories of the published crates, lowest first. Each crate depends only on crates before it.
fn folders() -> Vec<String> {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let members = manifest.lines().skip_while(|line| *line != "members = [").skip(1).take_while(|line| *line != "]");
    let is_published = |folder: &String| {
        let manifest = std::fs::read_to_string(root().join(folder).join("Cargo.toml")).unwrap();
        !manifest.contains("\npublish = false\n")
    };
    let members = members.map(|line| line.trim_matches([' ', ',', '"']).to_owned());
    let mut left: Vec<String> = members.filter(is_published).collect();
    left.sort();
    let mut folders: Vec<String> = Vec::new();
    while !left.is_empty() {
        let is_next = |folder: &String| {
            let below = picture::dependencies(&root().join(folder).join("Cargo.toml"));
            left.iter().all(|other| other == folder || !below.iter().any(|name| name == crate_name(other)))
        };
        let next = left.iter().position(is_next).unwrap();
        folders.push(left.remove(next));
    }
    folders
}

/// Returns the name of the crate in a directory, which is the directory's own name.
fn crate_name(folder: &str) -> &str {
    folder.rsplit('/').next().unwrap_or(folder)
}

#[test]
fn modules_of_a_folder_name_each_other_in_one_direction() {
    let mut wrong = Vec::new();
    for crate_folder in &folders() {
        let (folders, of_root) = read(&root(), crate_folder).folders();
        wrong.extend(of_root);
        for (module, folder) in &folders {
            let circle = folder.circle();
            if !circle.is_empty() {
                wrong.push(format!("a circle in {crate_folder}, {}:", module.join("::")));
                wrong.extend(circle.iter().map(|arrow| format!("    {arrow}")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}\nMove an item to where it belongs.", wrong.join("\n"));
}

#[test]
fn the_picture_in_design_is_current() {
    let crates: Vec<_> = folders().into_iter().map(|folder| (read(&root(), &folder).folders().0, folder)).collect();
    let lines = picture::draw(&root(), &crates);
    let path = root().join("DESIGN.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut blocks = page::blocks(&text).into_iter();
    let block = blocks.find(|block| block.above.as_deref() == Some("layers") && block.info == "mermaid").unwrap();
    golden::hold(&path, &page::replace(&text, &[(block.line, lines)]));
}

/// Returns the cycles in the directories of a crate made of these files, and the problems with its root.
fn circles(files: &[(&str, &str)]) -> (Vec<Vec<String>>, Vec<String>) {
    let files = files.iter().map(|(module, source)| {
        let names = module.split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect();
        (format!("{module}.rs"), names, (*source).to_owned())
    });
    let (folders, of_root) = of_files(files).folders();
    let circles = folders.values().map(crates::Folder::circle).filter(|circle| !circle.is_empty());
    (circles.collect(), of_root)
}

#[test]
fn circles_are_found_with_their_places() {
    let root = ("", "mod a; mod b; mod c;");
    let (found, of_root) =
        circles(&[root, ("a", "use crate::b::X;"), ("b", "\nuse super::c;"), ("c", "use crate::a::Y;")]);
    assert_eq!(found, [["a.rs:1: a -> b", "b.rs:2: b -> c", "c.rs:1: c -> a"]]);
    assert_eq!(of_root, [""; 0]);
    // The shorter of two cycles is reported.
    let (found, _) =
        circles(&[root, ("a", "use crate::b::X;"), ("b", "use crate::{a, c};"), ("c", "use crate::a::Y;")]);
    assert_eq!(found, [["a.rs:1: a -> b", "b.rs:1: b -> a"]]);
    // A cycle in tests only is not reported.
    let (found, _) =
        circles(&[root, ("a", "use crate::b::X;"), ("b", "#[cfg(test)] mod tests { use crate::a; }"), ("c", "")]);
    assert!(found.is_empty());
}

#[test]
fn circles_in_folders_and_through_names_that_are_passed_on() {
    let root = ("", "mod a; mod b;");
    let folder = ("a", "mod x; mod y; pub use x::X; pub use y::Y;");
    let (found, _) = circles(&[root, folder, ("a::x", "use super::y::Z;"), ("a::y", "use crate::a::X;"), ("b", "")]);
    assert_eq!(found, [["a::x.rs:1: x -> y", "a::y.rs:1: y -> x"]]);
    // A directory's own file and the files in it may refer to each other.
    let (found, _) = circles(&[root, ("a", "mod x; use x::X; struct Own;"), ("a::x", "use super::Own;"), ("b", "")]);
    assert!(found.is_empty());
    // A module below one directory refers to a module below another one.
    let (found, _) = circles(&[root, folder, ("a::x", "use crate::b::B;"), ("a::y", ""), ("b", "use crate::a::Y;")]);
    assert_eq!(found, [["a::x.rs:1: a -> b", "b.rs:1: b -> a"]]);
}

#[test]
fn the_root_is_above_all_modules() {
    let root = ("", "mod a; mod b; pub use other::Error; struct Own;");
    let macros = ("b", "#[macro_export] macro_rules! given { () => {} }");
    let (_, of_root) = circles(&[root, macros, ("a", "use crate::Error; use crate::Own; crate::given!();")]);
    assert_eq!(of_root, ["a.rs:1 names an item of the crate's root"]);
}
