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

/// A field that occurs once is found between repetitions and optional fields, too.
#[test]
fn fields_between_repetitions() {
    let here = &Folder::new();
    here.write(
        "b.dtd",
        "section s 1 {
    // Something that happened.
    r: (tag, n, n*(item, m, m*part), at, (at.bit 0)*extra, key, rest, rest*word) {
        tag.value = 4;
        n.width = 1; n.interpretation = none; item.width = 1; item.interpretation = none;
        m.width = 1; m.interpretation = none; part.width = 1; part.interpretation = none;
        at.width = 4; at.interpretation = none; at.role = \"time\"; at.unit = \"ms\";
        extra.width = 1; extra.interpretation = none; rest.width = 1; rest.interpretation = none;
        key.width = 2; key.interpretation = none; key.format = \"signed\";
        word.width = 1; word.interpretation = none;
    }
}
",
    );
    let mut lines: Vec<(u64, i64, String)> = Vec::new();
    for i in 0..300_u64 {
        let (at, key) = (i * 7919 % 1009, i64::try_from(i * 31 % 211).expect("it fits") - 100);
        let items: Vec<String> = (0..i % 4)
            .map(|j| format!(r#"{{"item":{j},"m":{},"part":{:?}}}"#, j % 3, vec![9; (j % 3) as usize]))
            .collect();
        let extra = if at % 2 == 1 { format!(r#""extra":{},"#, i % 200) } else { String::new() };
        let rest: Vec<String> = (0..i % 5).map(|j| j.to_string()).collect();
        let line = format!(
            r#"{{"@section":"s","@record":"r","n":{},"n_items":[{}],"at":{at},{extra}"key":{key},"rest":{},"word":[{}]}}"#,
            i % 4,
            items.join(",").replace(' ', ""),
            i % 5,
            rest.join(",")
        );
        lines.push((at, key, line + "\n"));
    }
    let text: String = lines.iter().map(|(.., line)| line.as_str()).collect();
    run(here, &["convert", "--dtd", "b.dtd", "-", "b.mtf"], text.as_bytes()).exits(0);
    let dump = |trace: &str| metatfc(here, &["dump", "--format", "jsonl", trace]).exits(0).text();
    assert_eq!(dump("b.mtf"), text);
    metatfc(here, &["sort", "b.mtf", "-o", "at.mtf"]).exits(0);
    lines.sort_by_key(|line| line.0);
    assert_eq!(dump("at.mtf"), lines.iter().map(|(.., line)| line.as_str()).collect::<String>());
    metatfc(here, &["sort", "--by", "key", "at.mtf", "-o", "key.mtf"]).exits(0);
    lines.sort_by_key(|line| line.1);
    assert_eq!(dump("key.mtf"), lines.iter().map(|(.., line)| line.as_str()).collect::<String>());
    for (field, occurs) in [("item", "is repeated"), ("part", "is repeated"), ("extra", "is optional")] {
        metatfc(here, &["sort", "--by", field, "b.mtf", "-o", "-"])
            .exits(2)
            .says(&format!("--by: {field} of record r {occurs}, but the field must be an integer that occurs once"));
    }
    let chosen = metatfc(here, &["dump", "--format", "jsonl", "--where", "key == 7", "b.mtf"]).exits(0).text();
    assert_eq!(chosen, lines.iter().filter(|line| line.1 == 7).map(|(.., line)| line.as_str()).collect::<String>());
    // The expression of a count is not a field.
    let unknown = metatfc(here, &["dump", "--where", "none", "b.mtf"]).exits(2);
    unknown.says("available fields: n, n_items.item, n_items.m, n_items.part, at, extra, key, rest, word");
    let log = metatfc(here, &["dump", "--format", "lines", "b.mtf"]).exits(0).text();
    assert!(log.contains("key=-100"), "{log}");
    metatfc(here, &["show", "--doc", "pages", "b.dtd"]).exits(0);
    let page = here.text("pages/section-1.html");
    for (field, occurs) in [("at", "4"), ("extra", "1, optional"), ("n_items.item", "1, repeated"), ("key", "2")] {
        let row = format!("id=\"r.{field}\">");
        let row = page.split(&row).nth(1).and_then(|rest| rest.split("</tr>").next()).expect(field);
        assert!(row.contains(&format!("<td>{occurs}</td>")), "{row}");
    }
}
