//! Finds the modules to which a Rust file refers, which are the arrows of the picture.
//!
//! References are paths that begin with `crate::`, `$crate::` or `super::`, in any position. Code used only by tests
//! (`#[cfg(test)]`) is ignored, and so are exported macros, whose paths belong to their callers.

use crate::tokens::{Token, tokens};

/// The names of a module or an item from the crate's root.
pub(crate) type Names = Vec<String>;

/// The references and exports of a file.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Paths from the root, and the lines on which they occur.
    pub(crate) uses: Vec<(Names, usize)>,
    /// The exported macros, which are names in the root.
    pub(crate) macros: Vec<String>,
    /// The modules in separate files that are used only by tests.
    pub(crate) tests: Vec<Names>,
    /// Names that the file re-exports from the modules inside of it (`pub use`), as pairs of module name and item name.
    pub(crate) taken: Vec<(String, String)>,
}

/// Searches a file, which defines the module with this path.
pub(crate) fn find(source: &str, module: &[String]) -> Found {
    let tokens = tokens(source);
    let mut file = File { tokens: &tokens, module: module.to_vec(), blocks: Vec::new(), found: Found::default() };
    let mut at = 0;
    while at < tokens.len() {
        at = file.step(at);
    }
    file.found
}

struct File<'t> {
    tokens: &'t [Token],
    /// The path of the current module.
    module: Vec<String>,
    /// For each open brace, whether it belongs to a module.
    blocks: Vec<bool>,
    found: Found,
}

impl<'t> File<'t> {
    fn is(&self, at: usize, texts: &[&str]) -> bool {
        let found = self.tokens.get(at..at + texts.len());
        found.is_some_and(|found| found.iter().zip(texts).all(|(token, text)| token.text == *text))
    }

    fn text(&self, at: usize) -> &'t str {
        self.tokens.get(at).map_or("", |token| &token.text)
    }

    /// Processes a token. Returns the index at which to continue.
    fn step(&mut self, at: usize) -> usize {
        match self.text(at) {
            "#" if self.is(at + 1, &["["]) || self.is(at + 1, &["!", "["]) => return self.attribute(at),
            "mod" if self.is(at + 2, &["{"]) => {
                self.module.push(self.text(at + 1).to_owned());
                self.blocks.push(true);
                return at + 3;
            }
            "{" => self.blocks.push(false),
            "}" if self.blocks.pop() == Some(true) => drop(self.module.pop()),
            "use" if self.blocks.is_empty() => {
                let first = at + 1 + 2 * usize::from(self.is(at + 1, &["self", "::"]));
                let module = self.text(first).to_owned();
                let names: Vec<_> = self.leaves(first).map(|name| (module.clone(), name.to_owned())).collect();
                self.found.taken.extend(names);
            }
            "crate" if self.is(at + 1, &["::"]) => self.path(at + 2, Vec::new()),
            "super" if at < 2 || !self.is(at - 2, &["super", "::"]) => {
                let mut after = at;
                while self.is(after, &["super", "::"]) {
                    after += 2;
                }
                let above = self.module.len().saturating_sub((after - at) / 2);
                self.path(after, self.module[..above].to_vec());
            }
            _ => {}
        }
        at + 1
    }

    /// Adds the path at an index, or each path of a group, prefixed by `names`.
    fn path(&mut self, mut at: usize, mut names: Names) {
        let line = self.tokens.get(at).map_or(0, |token| token.line);
        loop {
            if self.is(at, &["{"]) {
                let end = self.matching(at);
                while at < end && !self.is(at + 1, &["}"]) {
                    self.path(at + 1, names.clone());
                    // Advance to the next comma.
                    at += 1;
                    while at < end && !self.is(at, &[","]) {
                        at = if self.is(at, &["{"]) { self.matching(at) + 1 } else { at + 1 };
                    }
                }
                return;
            }
            at += 2 * usize::from(self.is(at, &["r", "#"]));
            names.push(self.text(at).to_owned());
            if !self.is(at + 1, &["::"]) || self.is(at + 2, &["<"]) {
                self.found.uses.push((names, line));
                return;
            }
            at += 2;
        }
    }

    /// Returns the names imported by a `use` tree.
    fn leaves(&self, at: usize) -> impl Iterator<Item = &'t str> {
        let end = (at..self.tokens.len()).find(|i| self.text(*i) == ";").unwrap_or(self.tokens.len());
        let last = (at..end).filter(|i| matches!(self.text(i + 1), "," | "}" | ";"));
        last.map(|i| self.text(i)).filter(|text| !matches!(*text, "}" | "," | "{"))
    }

    /// Returns the index of the brace or bracket that closes the one at an index.
    fn matching(&self, at: usize) -> usize {
        let mut depth = 0_usize;
        for i in at..self.tokens.len() {
            match self.text(i) {
                "{" | "(" | "[" => depth += 1,
                "}" | ")" | "]" => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                return i;
            }
        }
        self.tokens.len()
    }

    /// Skips an attribute, and the item after it if the item is ignored.
    fn attribute(&mut self, at: usize) -> usize {
        let inner = self.is(at + 1, &["!"]);
        let begin = at + 1 + usize::from(inner);
        let end = self.matching(begin);
        let words: Vec<&str> = (begin + 1..end).map(|i| self.text(i)).collect();
        let tests = words.starts_with(&["cfg"])
            && words.contains(&"test")
            && !words.iter().any(|word| ["any", "not"].contains(word));
        if tests && inner {
            return self.tokens.len();
        }
        if !tests && words != ["macro_export"] {
            return end + 1;
        }
        // The item extends to its block or its semicolon.
        let mut item = end + 1;
        while self.is(item, &["#"]) {
            item = self.matching(item + 1) + 1;
        }
        let mut last = item;
        while last < self.tokens.len() && !matches!(self.text(last), ";" | "{") {
            last = if matches!(self.text(last), "(" | "[") { self.matching(last) + 1 } else { last + 1 };
        }
        if !tests {
            self.found.macros.push(self.text(item + 2).to_owned());
        } else if self.text(last) == ";" && self.text(last.wrapping_sub(2)) == "mod" {
            let name = self.text(last - 1).to_owned();
            self.found.tests.push(self.module.iter().cloned().chain([name]).collect());
        }
        self.matching(last) + 1
    }
}

#[test]
fn paths_from_the_root_are_found() {
    let source = "
        use crate::{a::{x, y}, b, c::*};
        pub(crate) fn f() -> crate::d::T { super::super::e::g(); super::sibling() }
        mod inner { use super::super::super::h; use super::super::other; }
        #[cfg(test)] mod tests { use crate::t; }
        #[cfg(test)] mod apart;
        #[cfg(all(test, feature = \"x\"))] #[allow(dead_code)] fn only(a: [u8; 3]) { crate::t() }
        #[macro_export] macro_rules! given { () => { $crate::private::x() } }
        macro_rules! kept { () => { $crate::i::x!() } }
        const TEXT: &str = \"crate::t\"; // crate::t
    ";
    let found = find(source, &["outer".to_owned(), "file".to_owned()]);
    let uses: Vec<_> = found.uses.iter().map(|(names, line)| (names.join("::"), *line)).collect();
    let expected = [
        ("a::x", 2),
        ("a::y", 2),
        ("b", 2),
        ("c::*", 2),
        ("d::T", 3),
        ("e::g", 3),
        ("outer::sibling", 3),
        ("h", 4),
        ("outer::other", 4),
        ("i::x", 9),
    ];
    assert_eq!(uses, expected.map(|(names, line)| (names.to_owned(), line)));
    assert_eq!(
        (&*found.macros, &*found.tests),
        (&["given".to_owned()][..], &[["outer", "file", "apart"].map(str::to_owned).to_vec()][..])
    );
}

#[test]
fn a_module_says_where_its_names_are_from() {
    let found = find("pub use a::{b::C, D as E}; use self::f::G; pub mod h;", &[]);
    let taken: Vec<_> = found.taken.iter().map(|(module, name)| (module.as_str(), name.as_str())).collect();
    assert_eq!(taken, [("a", "C"), ("a", "E"), ("f", "G")]);
}
