//! DTDs intended for copying are formatted as by `metatfc fmt`.
#![allow(clippy::unwrap_used, reason = "a test")]

use metatf_test::root;

#[test]
fn dtds_of_examples_are_laid_out() {
    let examples = std::fs::read_dir(root().join("examples")).unwrap().map(|entry| entry.unwrap().path());
    let mut seen = 0;
    for folder in examples.filter(|path| path.is_dir()).chain([root().join("docs/first-hour")]) {
        for file in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if file.extension().is_some_and(|extension| extension == "dtd") {
                let text = std::fs::read_to_string(&file).unwrap();
                let laid_out = metatf_parser::format("", text.as_bytes()).unwrap();
                assert_eq!(text, laid_out, "{}: `metatfc fmt` changes it", file.display());
                seen += 1;
            }
        }
    }
    assert!(seen >= 8, "{seen}");
}
