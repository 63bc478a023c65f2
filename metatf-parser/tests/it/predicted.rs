//! Tests the interpretation `predicted`: models, the fields they use, sharing, and keywords used as names.
#![allow(clippy::unwrap_used, clippy::panic)] // Test helpers may panic.

use metatf_parser::schema::{
    Dtd, HeapRole, Interpretation, LeafId, Model, ModelKind, Predictor, PredictorKind, RecordId, Width,
};
use metatf_parser::{Code, format, parse};

const MISSES: &str = "section misses 2 { miss: (value) { value.width = 8; value.interpretation = none; } }";

fn dtd(text: &str) -> Dtd {
    let text = format!("{MISSES} {text}");
    let parsed = parse("test.dtd", text.as_bytes());
    parsed.dtd.unwrap_or_else(|| panic!("{:#?}", parsed.diagnostics))
}

fn codes(text: &str) -> Vec<Code> {
    parse("test.dtd", format!("{MISSES} {text}").as_bytes()).diagnostics.iter().map(|d| d.code).collect()
}

/// Returns the IDs of a leaf and its record, given their names.
fn at(dtd: &Dtd, record: &str, path: &[&str]) -> (RecordId, LeafId) {
    let index = dtd.records.iter().position(|r| r.name == record).unwrap();
    (RecordId(u32::try_from(index).unwrap()), dtd.records[index].leaf_at(path).unwrap().0)
}

fn model<'d>(dtd: &'d Dtd, record: &str, path: &[&str]) -> &'d Model {
    let (record, leaf) = at(dtd, record, path);
    let leaf = dtd.record(record).unwrap().leaf(leaf).unwrap();
    let Interpretation::Predicted(id) = leaf.interpretation else { panic!("{leaf:?}") };
    &dtd.models[usize::from(id.0)]
}

fn predictors<'d>(dtd: &'d Dtd, record: &str, path: &[&str]) -> &'d [Predictor] {
    let ModelKind::Values(predictors) = &model(dtd, record, path).kind else { panic!() };
    predictors
}

#[test]
fn every_predictor() {
    let dtd = dtd("section s 1 { size.width = 4; size.interpretation = none;
        a: (tag, size, x) { tag.value = 4;
            x.interpretation = predicted 1 (lastValue 4, stride, fcm 3 by size, dfcm 2 by tag,) 2; }
        b: (tag, x) { tag.value = 5; x.interpretation = predicted 1 lastValue 16 2; x.width = 3; } }");
    let kinds: Vec<_> = predictors(&dtd, "a", &["x"]).iter().map(|p| (p.kind, p.by)).collect();
    assert_eq!(
        kinds,
        [
            (PredictorKind::LastValue(4), None),
            (PredictorKind::Stride, None),
            (PredictorKind::Fcm(3), Some(at(&dtd, "a", &["size"]))),
            (PredictorKind::Dfcm(2), Some(at(&dtd, "a", &["tag"]))),
        ]
    );
    assert_eq!(kinds.iter().map(|(kind, _)| kind.candidates()).sum::<u8>(), 9);
    assert_eq!(model(&dtd, "a", &["x"]).section, 2);
    assert_eq!(predictors(&dtd, "b", &["x"]), [Predictor { kind: PredictorKind::LastValue(16), by: None }]);
    // A code is one byte unless the DTD sets a width.
    let width = |record| dtd.records.iter().find(|r| r.name == record).unwrap().leaf_at(&["x"]).unwrap().1;
    assert_eq!((width("a").width.clone(), &width("a").width_origin), (Width::Number(1), &None));
    assert_eq!(width("b").width, Width::Number(3));
}

#[test]
fn every_event_of_a_heap() {
    let dtd =
        dtd("section s 1 { size.width = 4; size.interpretation = none; thread.width = 1; thread.interpretation = none;
        address.previous = shared;
        alloc: (tag, size, address) { tag.value = 4; address.interpretation = predicted 1 heap allocated size 2; }
        free: (tag, address) { tag.value = 5; address.interpretation = predicted 1 (heap freed by switch.thread) 2; }
        used: (tag, address) { tag.value = 6; address.interpretation = predicted 1 heap used 2; }
        switch: (tag, thread) { tag.value = 7; } }");
    let heap = |record| match &model(&dtd, record, &["address"]).kind {
        ModelKind::Heap { role, by } => (*role, *by),
        other => panic!("{other:?}"),
    };
    assert_eq!(heap("alloc"), (HeapRole::Allocated { size: at(&dtd, "alloc", &["size"]) }, None));
    assert_eq!(heap("free"), (HeapRole::Freed, Some(at(&dtd, "switch", &["thread"]))));
    assert_eq!(heap("used"), (HeapRole::Used, None));
}

#[test]
fn what_a_path_means() {
    let dtd = dtd("x.width = 1; x.interpretation = none; y.width = 1; y.interpretation = none;
        n.width = 1; n.interpretation = none;
        box: (x, y)
        global: (tag, x) { tag.value = 9; }
        section s 1 {
            z.interpretation = predicted 1 fcm 1 by x 2;
            near: (tag, x, y, x, z) { tag.value = 4; }
            outer: (tag, inner) { tag.value = 5; }
            inner: (x, z)
            nested: (tag, x, box, z) { tag.value = 6; z.interpretation = predicted 1 fcm 1 by box.x 2; }
            first: (tag, box, x, z) { tag.value = 7; z.interpretation = predicted 1 fcm 1 by nested.x 2; }
            long: (tag, z) { tag.value = 8; z.interpretation = predicted 1 fcm 1 by nested.box.y 2; }
            far: (tag, z) { tag.value = 10; z.interpretation = predicted 1 fcm 1 by global.x 2; }
            self: (tag, box, z) { tag.value = 11; z.interpretation = predicted 1 fcm 1 by self.y 2; }
            item: (tag, x, n*(x, z)) { tag.value = 12; }
            over: (tag, x, n*(x), z) { tag.value = 13; }
        }");
    let by = |record, path: &[&str]| predictors(&dtd, record, path)[0].by;
    assert_eq!(by("near", &["z"]), Some(at(&dtd, "near", &["x_2"])), "the nearest before it");
    assert_eq!(by("outer", &["inner", "z"]), Some(at(&dtd, "outer", &["inner", "x"])));
    assert_eq!(by("nested", &["z"]), Some(at(&dtd, "nested", &["box", "x"])));
    assert_eq!(
        by("first", &["z"]),
        Some(at(&dtd, "nested", &["x"])),
        "a field of the record, before those nested in it"
    );
    assert_eq!(by("long", &["z"]), Some(at(&dtd, "nested", &["box", "y"])));
    assert_eq!(by("far", &["z"]), Some(at(&dtd, "global", &["x"])));
    assert_eq!(by("self", &["z"]), Some(at(&dtd, "self", &["box", "y"])), "any of that name where no path fits");
    assert_eq!(by("item", &["n_items", "z"]), Some(at(&dtd, "item", &["n_items", "x"])), "in the same item");
    assert_eq!(by("over", &["z"]), Some(at(&dtd, "over", &["x"])), "not one in a repetition that is over");
}

/// Spec 3.2, 3.3: predicted fields may be counts and lengths of other fields.
#[test]
fn counts_and_lengths() {
    let dtd = dtd("section s 1 { n.interpretation = predicted 1 stride 2; v.width = 1; v.interpretation = none;
        r: (tag, n*v, d) { tag.value = 4; d.width = n.value * n.width; d.interpretation = none; } }");
    let (record, leaf) = at(&dtd, "r", &["d"]);
    assert!(matches!(dtd.record(record).unwrap().leaf(leaf).unwrap().width, Width::Variable(_)));
}

#[test]
fn the_words_of_models_are_names_elsewhere() {
    let names = "lastValue fcm dfcm heap allocated freed used by";
    for name in names.split(' ') {
        let text = format!(
            "section {name} 1 {{ {name}.width = 2; {name}.interpretation = none; {name}.{name} = {name};
                r: (tag, {name}, x) {{ tag.value = 4; x.interpretation = predicted 1 heap allocated {name} by {name} 2; }}
                q: (tag, x) {{ tag.value = 5; x.interpretation = predicted 1 (fcm 2 by r.{name}, stride) 2; }} }}
            section other 3 {{ {name}: (tag, y) {{ tag.value = 4; y.width = 1; y.interpretation = none; }}
                s: (tag, x) {{ tag.value = 5; x.interpretation = predicted 1 stride by {name}.y 2; }} }}"
        );
        let dtd = dtd(&text);
        let named = at(&dtd, "r", &[name]);
        let kind = ModelKind::Heap { role: HeapRole::Allocated { size: named }, by: Some(named) };
        assert_eq!(model(&dtd, "r", &["x"]).kind, kind);
        assert_eq!(predictors(&dtd, "q", &["x"])[0].by, Some(named));
        assert_eq!(predictors(&dtd, "s", &["x"])[0].by, Some(at(&dtd, name, &["y"])));
        let formatted = format("test.dtd", format!("{MISSES} {text}").as_bytes()).unwrap();
        assert!(dtd.same_meaning(&parse("test.dtd", formatted.as_bytes()).dtd.unwrap()), "{formatted}");
    }
    assert_eq!(codes("section s 1 { r: (tag, predicted) { tag.value = 4; } }"), [Code::ReservedWord]);
}

/// Spec 4: as with `delta`, leaves share state if the same property of a section or the top level sets their model.
#[test]
fn sharing() {
    let cells = |text: &str| -> [u32; 2] {
        let dtd = dtd(text);
        let section = dtd.section_named("s").unwrap();
        [section.cells[3][1], section.cells[4][1]]
    };
    let same = |text: &str| {
        let [a, b] = cells(text);
        a == b
    };
    let records = "a: (tag, x) { tag.value = 4; } b: (tag, x) { tag.value = 5; }";
    assert!(same(&format!("section s 1 {{ x.interpretation = predicted 1 fcm 1 2; {records} }}")));
    assert!(!same(&format!("section s 1 {{ x.interpretation = predicted 1 fcm 1 2; x.previous = own; {records} }}")));
    let blocks = "a: (tag, x) { tag.value = 4; x.interpretation = predicted 1 heap freed 2; }
        b: (tag, x) { tag.value = 5; x.width = 8; x.interpretation = delta 0; }";
    assert!(!same(&format!("section s 1 {{ {blocks} }}")));
    assert!(same(&format!("section s 1 {{ x.previous = shared; {blocks} }}")));
}

#[test]
fn models_are_part_of_the_meaning() {
    let variants = [
        "lastValue 4 2",
        "lastValue 5 2",
        "stride 2",
        "fcm 2 2",
        "dfcm 2 2",
        "fcm 2 by y 2",
        "fcm 2 by z 2",
        "(stride, stride) 2",
        "heap freed 2",
        "heap used 2",
        "heap allocated y 2",
        "heap allocated z 2",
        "heap freed by y 2",
        "stride 3",
        "stride by other.y 2",
    ];
    let parsed: Vec<Dtd> = variants
        .iter()
        .map(|model| {
            dtd(&format!(
                "section more 3 {{ m: (value) {{ value.width = 8; value.interpretation = none; }} }}
                section s 1 {{ y.width = 1; y.interpretation = none; z.width = 1; z.interpretation = none;
                    other: (tag, y) {{ tag.value = 4; }}
                    r: (tag, y, z, x) {{ tag.value = 5; x.interpretation = predicted 1 {model}; }} }}"
            ))
        })
        .collect();
    for (i, a) in parsed.iter().enumerate() {
        for (j, b) in parsed.iter().enumerate() {
            let about = (variants[i], variants[j]);
            assert_eq!((a.same_meaning(b), a.fingerprint() == b.fingerprint()), (i == j, i == j), "{about:?}");
        }
    }
}

#[test]
fn formatting() {
    let text = "section m 2{v:(x){x.width=8;x.interpretation=none;}}
section s 1 { r:(tag,size,x){tag.value=4;
x.interpretation=predicted 1( lastValue 4 ,stride,// why
fcm 3 by size , dfcm 2 ,) 2 ;
x.doc=\"at\";} size.width=4;size.interpretation=predicted 1 heap   freed by r . x 2;}";
    let formatted = format("test.dtd", text.as_bytes()).unwrap();
    assert!(formatted.contains("predicted 1 (lastValue 4, stride, // why\n"), "{formatted}");
    assert!(formatted.contains("fcm 3 by size, dfcm 2) 2;"), "{formatted}");
    assert!(formatted.contains("size.interpretation = predicted 1 heap freed by r.x 2;"), "{formatted}");
    assert_eq!(format("test.dtd", formatted.as_bytes()).unwrap(), formatted);
}

/// With `previous = own`, each leaf of each record has its own model. The number of models is limited.
#[test]
fn very_many() {
    let fields = vec!["x"; 254].join(", ");
    let records = |n: usize| -> String {
        (0..n).map(|i| format!("r{i}: (tag, {fields}) {{ tag.value = {}; }}\n", i + 4)).collect()
    };
    let text = |n| format!("tag.width = 4; x.interpretation = predicted 1 stride 2; x.previous = own; {}", records(n));
    let most = parse("test.dtd", format!("{MISSES} {}", text(2)).as_bytes()).dtd.unwrap();
    assert_eq!(most.models.len(), 508);
    assert_eq!(codes(&text(259)), [Code::LargeSchema], "65786 are too many");
}
