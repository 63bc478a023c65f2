//! Tests every command with optional fields and with byte arrays that contain records of a section (spec 3.3, 3.7).

use super::common::{metatfc, run};
use metatf_test::Folder;

const DTD: &str = "section s 1 {
    time.width = 2; time.interpretation = delta 0;
    r: (tag, time, flags, (flags.bit 0)*size, (flags.bit 1)*(x, y), length, (length.value / 2)*item, options) {
        tag.value = 4;
        flags.width = 1; flags.interpretation = none; length.width = 1; length.interpretation = none;
        size.width = 1; size.interpretation = none; item.width = 2; item.interpretation = none;
        x.width = 1; x.interpretation = none; y.width = 1; y.interpretation = none;
        options.width = length.value; options.interpretation = none; options.section = 2;
    }
}
section options 2 { option: (code) { code.width = 2; code.interpretation = none; } }
";

const LINES: &str = r#"{"@section":"s","@record":"r","time":1,"flags":3,"size":300,"items":{"x":1,"y":2},"length":4,"item":[7,8],"options":[{"@record":"option","code":258},{"@record":"option","code":3}]}
{"@section":"s","@record":"r","time":2,"flags":0,"length":0,"item":[],"options":[]}
{"@section":"s","@record":"r","time":3,"flags":1,"size":5,"length":3,"item":[9],"options":"010203"}
"#;

fn folder() -> Folder {
    let here = Folder::new();
    here.write("s.dtd", DTD);
    for order in ["little", "big"] {
        let args = ["convert", "--dtd", "s.dtd", "--order", order, "-", &format!("{order}.mtf")];
        run(&here, &args, LINES.as_bytes()).exits(0);
    }
    here
}

#[test]
fn printed_in_every_form() {
    let here = &folder();
    for trace in ["little.mtf", "big.mtf"] {
        assert_eq!(metatfc(here, &["dump", "--format", "jsonl", trace]).exits(0).text(), LINES);
        let csv = "@number,time,flags,size,items,length,item,options\n\
            0,1,3,300,\"{\"\"x\"\":1,\"\"y\"\":2}\",4,\"[7,8]\",BYTES\n1,2,0,,,0,[],\"\"\n2,3,1,5,,3,[9],010203\n";
        let bytes = if trace == "big.mtf" { "01020003" } else { "02010300" };
        let printed = metatfc(here, &["convert", trace, "-", "--to", "csv"]).exits(0).text();
        assert_eq!(printed, csv.replace("BYTES", bytes));
        let text = metatfc(here, &["dump", trace]).exits(0).text();
        assert!(text.contains("size=300  items={x=1 y=2}  length=4"), "{text}");
        assert!(text.contains("size=-    items=-          length=0"), "{text}");
        let hex = metatfc(here, &["dump", "--format", "hex", trace]).exits(0).text();
        assert!(hex.contains("(flags.bit 0)"), "{hex}");
        let chosen = metatfc(here, &["dump", "--format", "jsonl", "--where", "size == 5", trace]).exits(0).text();
        assert_eq!(chosen.lines().count(), 1, "{chosen}");
        metatfc(here, &["verify", trace]).exits(0);
    }
}

#[test]
fn copied_by_every_tool() {
    let here = &folder();
    for (preset, order) in [("fast", "little"), ("archive", "big")] {
        let (trace, new) = (&format!("{order}.mtf"), &format!("{preset}.mtf"));
        metatfc(here, &["convert", "--preset", preset, trace, new]).exits(0);
        assert_eq!(metatfc(here, &["dump", "--format", "jsonl", new]).exits(0).text(), LINES);
        metatfc(here, &["diff", trace, new]).exits(0);
    }
    metatfc(here, &["sort", "--by", "time", "big.mtf", "-o", "sorted.mtf"]).exits(0);
    assert_eq!(metatfc(here, &["dump", "--format", "jsonl", "sorted.mtf"]).exits(0).text(), LINES);
    metatfc(here, &["sort", "--by", "time", "-o", "twice.mtf", "big.mtf", "sorted.mtf"]).exits(0);
    // Numbers in byte arrays have the byte order of their trace.
    let refused = metatfc(here, &["sort", "--by", "time", "-o", "both.mtf", "big.mtf", "little.mtf"]).exits(1);
    refused.says("different byte orders");
}

#[test]
fn other_bits_and_other_sections_are_other_formats() {
    let here = &folder();
    for (name, from, to) in [
        ("bit.dtd", "flags.bit 0", "flags.bit 2"),
        ("section.dtd", "options.section = 2;", ""),
        ("always.dtd", "(flags.bit 0)*size", "size"),
    ] {
        here.write(name, DTD.replace(from, to));
        let text = metatfc(here, &["diff", "s.dtd", name]).text();
        assert!(text.contains("break"), "{name}: {text}");
    }
}

#[test]
fn lines_that_do_not_agree() {
    let here = &folder();
    let line = LINES.lines().next().unwrap_or_default();
    for (from, to, says) in [
        ("\"flags\":3", "\"flags\":2", "the record has 1 items, but"),
        ("\"size\":300,", "", "the record has 0 items, but"),
        ("[7,8]", "[7]", "the record has 1 items, but"),
        ("\"code\":3}", "\"code\":70000}", "`options`: the value 70000 does not fit in 2 bytes"),
        ("{\"@record\":\"option\",\"code\":3}", "{\"code\":3}", "`options`: `@record` (a string) is missing"),
        ("\"code\":3}", "\"code\":3,\"x\":1}", "`options`: the record has no field `x`"),
        ("option\",\"code\":3", "comment\",\"code\":3", "`options`: the section has no record `comment`"),
    ] {
        let line = line.replace(from, to);
        run(here, &["convert", "--dtd", "s.dtd", "-", "x.mtf"], line.as_bytes()).exits(1).says(says);
    }
}
