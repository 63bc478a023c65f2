//! The DTDs in the book are accepted without warnings, except for `mistakes.dtd`.

use metatf_parser::parse;
use metatf_test::root;

#[test]
fn samples_are_accepted() {
    let mut seen = 0;
    for entry in std::fs::read_dir(root().join("docs/samples")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "dtd") {
            continue;
        }
        seen += 1;
        let parsed = parse(&path.display().to_string(), &std::fs::read(&path).unwrap());
        if path.ends_with("mistakes.dtd") {
            assert!(parsed.errors() > 0);
        } else {
            assert_eq!(parsed.diagnostics, [], "{}", path.display());
        }
    }
    assert!(seen > 1);
}
