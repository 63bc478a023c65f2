//! The seeds of the symbolization fuzz target contain the symbols that are looked up, so mutations stay close to them.

use hatf_view::symbolize::{Frame, Image, Symbolizer};
use metatf_tests::symbolizing::PROGRAMS;

#[test]
fn functions_of_the_seeds() {
    for program in PROGRAMS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("input");
        std::fs::write(&path, program).unwrap();
        let entry = u64::from_le_bytes(program[24..32].try_into().unwrap());
        let path = path.display().to_string();
        let image = Image { path, build_id: String::new() };
        let answer = Symbolizer::default().symbolize(&image, &[entry + 2, entry.wrapping_sub(1)]);
        let place = |frame: &Frame| (frame.function.clone(), frame.line, frame.first_line);
        let places: Vec<_> = answer.frames.iter().flatten().map(place).collect();
        assert_eq!(places, [("_start".to_owned(), 5, 5), ("outer".to_owned(), 4, 4)]);
    }
}
