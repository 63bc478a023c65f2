//! Checks that the queries compile, and that highlights cover every name, number, string and comment.

use metatf_editors_check::language;
use tree_sitter::Query;

use crate::texts::files;
use crate::tokens::{Class, classes};

#[test]
fn compile() {
    let folder = metatf_test::root().join("dev/editors/tree-sitter-metatf/queries");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let query = Query::new(&language(), &text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(query.pattern_count() > 0, "{}", path.display());
        names.push(path.file_stem().unwrap_or_default().to_string_lossy().into_owned());
    }
    names.sort();
    assert_eq!(names, ["folds", "highlights", "indents", "locals", "tags"]);
}

#[test]
fn classes_of_a_record() {
    let text = "section heap 1 { // c\n r: (tag, ns: n*x) { x.width = 0x4; x.interpretation = predicted 1 heap allocated by by used 2; x.doc = \"d\"; } }";
    let classes = classes(text);
    let class = |word: &str| classes[text.find(word).unwrap()];
    assert_eq!(class("section"), Some(Class::Keyword));
    assert_eq!(class("heap"), Some(Class::Section));
    assert_eq!(class("1 {"), Some(Class::Number));
    assert_eq!(class("// c"), Some(Class::Comment));
    assert_eq!(class("r:"), Some(Class::Record));
    assert_eq!(class("ns:"), Some(Class::Name));
    assert_eq!(class("n*"), Some(Class::Name));
    assert_eq!(class("width"), Some(Class::Property));
    assert_eq!(class("0x4"), Some(Class::Number));
    assert_eq!(class("predicted"), Some(Class::Keyword));
    // The first `by` is the field that contains the sizes, the second is the keyword.
    assert_eq!(class("by by"), Some(Class::Name));
    assert_eq!(class("by used"), Some(Class::Keyword));
    assert_eq!(class("used"), Some(Class::Name));
    assert_eq!(class("\"d\""), Some(Class::String));
}

#[test]
fn nothing_is_without_a_class() {
    for text in files() {
        let Ok(content) = std::str::from_utf8(&text.bytes) else { continue };
        let parsed = metatf_parser::parse(&text.name, &text.bytes);
        if parsed.dtd.is_none() {
            continue;
        }
        let classes = classes(content);
        let bare = content.char_indices().find(|(at, c)| c.is_alphanumeric() && classes[*at].is_none());
        assert_eq!(bare, None, "{}", text.name);
    }
}
