//! Scoped memory: the document's example, and its simulations.

mod common;

use common::hatf;
use insta::assert_snapshot;
use metatf_test::Folder;

#[test]
fn the_example() {
    let folder = Folder::new();
    for variant in ["figure1", "table2"] {
        let path = folder.path(variant);
        hatf(["regions", "example", "--variant", variant, "-o", &path]).exits(0);
        let grid = ["--block", "64,256", "--intra", "first,best", "--inter", "capture,first,best"];
        let text = hatf([&["regions", "simulate", &path][..], &grid].concat()).exits(0).text();
        assert_snapshot!(variant, text.replace(&path, variant));
    }
    for (name, arguments) in
        [("simulate", ["regions", "simulate", "--help"]), ("example", ["regions", "example", "--help"])]
    {
        assert_snapshot!(format!("help-{name}"), hatf(arguments).exits(0).text());
    }
}

#[test]
fn as_data_and_as_pictures() {
    let folder = Folder::new();
    let (path, five, six) = (folder.path("example.mtf"), folder.path("5.svg"), folder.path("6.svg"));
    hatf(["regions", "example", "--mc", "30", "-o", &path]).exits(0);
    let options = ["--block", "64,128", "--svg", &six, "--over-time", &five, "--format", "json"];
    let text = hatf([&["regions", "simulate", &path][..], &options].concat()).exits(0).text();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&json["managers"][1]["block"], &json["trace"]["regions"]), (&128.into(), &33.into()));
    for (picture, shows) in [(five, ">64 first capture<"), (six, ">first capture<")] {
        let picture = std::fs::read_to_string(picture).unwrap();
        assert!(picture.contains(shows) && picture.ends_with("</svg>\n"), "{picture}");
    }
}

#[test]
fn by_mistake() {
    let folder = Folder::new();
    let path = folder.path("example.mtf");
    hatf(["regions", "example", "-o", &path]).exits(0);
    hatf(["regions", "simulate", &path, "--block", "0"]).exits(2);
    hatf(["regions", "simulate", &path, "--block", "16", "--oversize", "error"])
        .exits(2)
        .says("larger than a block of 16");
    hatf(["regions", "simulate", "/no/such/trace"]).exits(1).says("/no/such/trace");
    let heap = folder.path("heap.mtf");
    hatf(["convert", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/gawk.raw32.zst"), &heap]).exits(0);
    hatf(["regions", "simulate", &heap]).exits(1).says("not a trace of scoped memory");
    hatf(["report", &path]).exits(1).says("not a heap trace");
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    std::fs::write(&path, bytes).unwrap();
    hatf(["regions", "simulate", &path]).exits(1).says(&format!("hatf: {path}: offset "));
}
