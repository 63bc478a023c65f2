//! Suppression files of other tools that `hatf leaks` reads, from arbitrary bytes.

use std::path::Path;

use hatf_view::suppress::{Entry, Frame, SuppressionForm, Suppressions, write};

/// Maximum number of lines used as frames, and of suppressions tried with them. The time is the product of both and of
/// their lengths.
const MOST: usize = 32;

/// Parses a suppression file whose lines also serve as stack frames. Parsed suppressions may match the stack; generated
/// suppressions must parse again.
///
/// # Panics
/// Panics if a generated suppression does not parse or does not match the stack.
pub fn suppress(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let lines: Vec<&str> = text.lines().map(|line| line.trim().split(':').next_back().unwrap_or_default()).collect();
    let pairs = lines.iter().copied().zip(lines.iter().copied().skip(1)).zip(1..);
    let frame = |((function, object), line): ((_, _), u64)| Frame { function, object, file: function, line };
    let frames: Vec<Frame<'_>> = pairs.map(frame).take(MOST).collect();
    let mut read = Suppressions::default();
    if read.add("input", &text).is_ok() {
        for suppression in read.list().iter().take(MOST) {
            let _ = (suppression.takes(&frames), suppression.cannot_match());
        }
    }
    for form in [SuppressionForm::Valgrind, SuppressionForm::Lsan] {
        let entry =
            Entry { name: "1 byte".to_owned(), function: lines.first().copied().unwrap_or(""), frames: frames.clone() };
        let (written, left_out) = write(&text, &[entry], form);
        let mut again = Suppressions::default();
        again.add("written", &written).expect("it was just written");
        assert_eq!(again.list().len() as u64 + left_out, 1, "{written}");
        if left_out == 0 && !frames.is_empty() {
            assert!(again.list().iter().all(|one| one.takes(&frames)), "{written}: {frames:?}");
        }
    }
}

/// Returns files of both tools. They are unrelated to the vectors, so only one vector returns them.
pub(crate) fn seeds(path: &Path, _: &[u8]) -> Vec<Vec<u8>> {
    if !path.ends_with("bad/dtd/base-unknown-record/format.dtd") {
        return Vec::new();
    }
    let valgrind = "# two\n{\n   one\n   Memcheck:Leak\n   match-leak-kinds: definite\n   fun:malloc\n   fun:own::Table<int>::*\n   ...\n   obj:*/libx.so.?\n   src:main.c:12\n}\n{\n   two\n   Memcheck:Param\n   write(buf)\n   ...\n}\n";
    let lsan = "# mine\nleak:^own::parse*$\nleak:libx.so\nrace:x\n";
    // Names with angle brackets that do not enclose template arguments.
    let marks = "# mine\nleak:^own::parse*$\nleak>libx.so\nrace:x\n";
    [valgrind, lsan, marks].map(|text| text.as_bytes().to_vec()).into()
}
