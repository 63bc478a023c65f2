//! The index of the shipped DTDs and of all vectors stays correct under random edits.
#![allow(clippy::unwrap_used, reason = "a test that goes wrong has to panic")]

use metatf_tests::editing::edit_dtd;
use proptest::prelude::any;
use proptest::proptest;
use std::sync::LazyLock;

static TEXTS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let shipped = std::fs::read_dir(metatf_test::root().join("dtds")).unwrap().flatten().map(|file| file.path());
    let vectors = metatf_tests::targets::vectors().into_iter().filter(|path| path.ends_with("format.dtd"));
    let mut paths: Vec<_> = shipped.filter(|path| path.is_file()).chain(vectors).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
});

proptest! {
    #[test]
    fn random_edits(text in any::<usize>(), edits in proptest::collection::vec(any::<[u8; 4]>(), 0..5)) {
        let text = &TEXTS[text % TEXTS.len()];
        let count = u8::try_from(edits.len()).unwrap();
        edit_dtd(&[&[count], edits.concat().as_slice(), text].concat());
    }
}

#[test]
fn texts_as_they_are() {
    assert!(TEXTS.len() > 100);
    TEXTS.iter().for_each(|text| edit_dtd(&[&[0], text.as_slice()].concat()));
}
