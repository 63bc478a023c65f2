//! The DTDs for testing the grammars: every file in the repository, and every block in the book.

use std::path::{Path, PathBuf};

use metatf_test::{page, root};

/// A text and its name.
pub(crate) struct Text {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

/// Returns all `.dtd` files in the repository, including vectors and invalid DTDs, sorted by name.
pub(crate) fn files() -> Vec<Text> {
    let mut paths = Vec::new();
    let root = root();
    walk(&root, &mut paths);
    paths.sort();
    let texts: Vec<_> = paths
        .into_iter()
        .map(|path| {
            let name = path.strip_prefix(&root).expect("it is of the repository").to_string_lossy().into_owned();
            Text { name, bytes: std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())) }
        })
        .collect();
    assert!(texts.len() > 300, "{} DTDs; the vectors alone are more", texts.len());
    texts
}

fn walk(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && !path.is_symlink() {
            if !name.starts_with('.') && !["target", "node_modules", "corpus", "artifacts"].contains(&&*name) {
                walk(&path, paths);
            }
        } else if name.ends_with(".dtd") {
            paths.push(path);
        }
    }
}

/// Returns the DTD blocks in the book and the README. Some are parts of a DTD.
pub(crate) fn blocks() -> Vec<Text> {
    let docs = root().join("docs");
    let mut pages: Vec<_> = std::fs::read_dir(&docs).unwrap().map(|entry| entry.unwrap().path()).collect();
    pages.push(root().join("README.md"));
    pages.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    pages.sort();
    let mut texts = Vec::new();
    for path in pages {
        let text = std::fs::read_to_string(&path).unwrap();
        let page = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for block in page::blocks(&text).into_iter().filter(|block| block.info.starts_with("dtd")) {
            texts.push(Text { name: format!("{page}:{}", block.line), bytes: (block.lines.join("\n") + "\n").into() });
        }
    }
    assert!(texts.len() > 10, "{} blocks", texts.len());
    texts
}
