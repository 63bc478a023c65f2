//! `hatf model`: models of real traces, and synthetic traces.

use crate::common::hatf;
use insta::assert_snapshot;
use metatf_test::Folder;

/// Directory of traces of programs, as compressed raw records.
const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/");

/// Each model can be fitted, generates the same trace for the same seed, and its traces can be read.
#[test]
fn fit_and_generate() {
    let folder = Folder::new();
    let (model, trace, again) = (folder.path("model.json"), folder.path("a.mtf"), folder.path("b.mtf"));
    let models = ["mean", "cdf", "size", "time", "trans", "cdf-p2", "outline", "mix:size=cdf,iat=time,ht=size"];
    let mut sizes = String::new();
    for name in models {
        let source = DATA.to_owned() + "gawk.raw32.zst";
        let text = hatf(["model", "fit", &source, "-m", name, "-o", &model]).exits(0).text();
        let bytes = std::fs::metadata(&model).unwrap().len().to_string();
        assert!(text.replace(',', "").contains(&bytes), "{bytes}: {text}");
        sizes += text.split("\nMODEL").nth(1).unwrap().split("\n\n").next().unwrap();
        sizes.push('\n');
        if name == "mean" {
            assert_snapshot!("model-fit", text.replace(DATA, "").replace(&model, "model.json"));
        }
        hatf(["model", "generate", &model, "-o", &trace]).exits(0).says(" events, ");
        hatf(["model", "generate", &model, "-o", &again, "--seed", "1", "--threads", "1"]).exits(0);
        assert_eq!(std::fs::read(&trace).unwrap(), std::fs::read(&again).unwrap(), "{name}");
        hatf(["model", "generate", &model, "-o", &again, "--seed", "2", "--events", "1234"]).exits(0);
        hatf(["simulate", &again, "--invariants"]).exits(0).prints("1,234 events");
        hatf(["fragmentation", &again]).exits(0).prints("1,234 events");
    }
    assert_snapshot!("model-sizes", sizes);
}

/// A trace with times yields a synthetic trace with times, in order.
#[test]
fn times() {
    let folder = Folder::new();
    let (model, trace) = (folder.path("model.json"), folder.path("a.mtf"));
    let source = DATA.to_owned() + "python_threads.raw64.zst";
    let json = hatf(["model", "fit", &source, "-m", "mean", "--clock", "time", "-o", &model, "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json.exits(0).text()).unwrap();
    assert_eq!((&json["words"], &json["model"]), (&3.into(), &"mean".into()));
    hatf(["model", "generate", &model, "-o", &trace, "--events", "20000"]).exits(0);
    let report = hatf(["report", &trace, "--format", "json"]).exits(0).text();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let comments = report["comments"].to_string();
    assert!(comments.contains("synthetic: model mean, seed 1"), "{comments}");
    assert!(report["duration"].as_u64().unwrap() > 1_000_000, "{report}");
    let back = folder.path("back.json");
    hatf(["model", "fit", &trace, "-m", "mean", "--clock", "time", "-o", &back]).exits(0);
    // A pipe receives the same records.
    let piped = hatf(["model", "generate", &model, "-o", "-", "--events", "20000"]).exits(0);
    folder.write("piped.mtf", &piped.out);
    let raw = |name: &str| {
        hatf(["convert", &folder.path(name), &folder.path("raw"), "--to", "raw64"]).exits(0);
        folder.read("raw")
    };
    assert!(raw("piped.mtf") == raw("a.mtf"));
}

/// The complete experiment, on parts of two traces, has the same results with any number of threads.
#[test]
fn evaluate() {
    let folder = Folder::new();
    let svg = folder.path("figures.svg");
    let [gawk, perl] = ["gawk.raw32.zst", "perl_hash.raw32.zst"].map(|name| DATA.to_owned() + name);
    let options = ["--trials", "3", "--buckets", "100", "-m", "all,outline", "--svg", &svg];
    let text = hatf([&["model", "evaluate", &gawk, &perl], &options[..]].concat()).exits(0).text();
    assert_snapshot!("model-evaluate", text);
    let again = hatf([&["model", "evaluate", &gawk, &perl, "--threads", "1"], &options[..]].concat()).exits(0).text();
    assert_eq!(text, again);
    let picture = std::fs::read_to_string(&svg).unwrap();
    assert!(picture.contains(">MaxObjects / actual<") && picture.ends_with("</svg>\n"), "{picture}");
    assert!(!picture.contains("NaN"), "{picture}");
}

/// Some models are evaluated with JSON output, and the memory limit stops one.
#[test]
fn evaluate_as_data() {
    let gawk = DATA.to_owned() + "gawk.raw32.zst";
    let models = "mix:size=cdf,iat=time,ht=size,variants,mean";
    let options = ["--trials", "2", "-m", models, "-a", "bsd,first:grow=64", "--buckets", "7", "--format", "json"];
    let text = hatf([&["model", "evaluate", &gawk], &options[..]].concat()).exits(0).text();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["ops"]["models"].as_array().unwrap().len(), 9);
    assert_eq!(json["ops"]["models"][0], "mix:size=cdf,iat=time,ht=size");
    assert_eq!(json["ops"]["allocators"][1], "first:grow=64");
    let trials = json["programs"][0]["models"][8]["trials"].as_array().unwrap();
    let [first, second] = &trials[..] else { panic!("{trials:?}") };
    assert!(first["done"]["objects"].is_u64() && first != second);
    // The first trial is the trace that `generate` writes.
    let folder = Folder::new();
    let (model, trace) = (folder.path("model.json"), folder.path("a.mtf"));
    hatf(["model", "fit", &gawk, "-m", "mean", "-o", &model]).exits(0);
    hatf(["model", "generate", &model, "-o", &trace]).exits(0);
    let simulated = hatf(["simulate", &trace, "-a", "bsd,first:grow=64", "--format", "json"]).exits(0).text();
    let simulated: serde_json::Value = serde_json::from_str(&simulated).unwrap();
    for name in ["objects", "bytes", "max_objects", "max_bytes"] {
        assert_eq!(simulated["trace"][name], first["done"][name], "{name}");
    }
    for n in [0, 1] {
        assert_eq!(simulated["allocators"][n]["ops"], first["done"]["allocators"][n]["ops"]);
    }
    let stopped = hatf(["model", "evaluate", &gawk, "-m", "trans,cdf", "--memory-limit", "10K", "--trials", "2"]);
    stopped.exits(0).prints("gawk, trans: 2 trials reached the memory limit").prints("cdf    stopped  stopped");
}

#[test]
fn by_mistake() {
    let folder = Folder::new();
    let (trace, model) = (DATA.to_owned() + "gawk.raw32.zst", folder.path("model.json"));
    hatf(["model", "fit", &trace, "-m", "median"]).exits(2).says("`median` is not one of mean, cdf");
    hatf(["model", "fit", &trace, "-m", "mean", "--clock", "time", "-o", &model]).exits(1).says("has no timestamps");
    hatf(["model", "fit", &trace, "-m", "outline", "--clock", "bytes"]).exits(2).says("requires --clock events");
    hatf(["model", "fit", &trace, "-m", "time", "--buckets", "0"]).exits(2).says("a number from 1 to");
    hatf(["model", "fit", "/dev/null", "--from", "raw32", "-m", "cdf", "-o", &model]).exits(1).says("has no events");
    hatf(["model", "fit", &trace, "-m", "mean", "-o", "/no/such/folder/x"]).exits(1).says("/no/such/folder/x");
    hatf(["model", "evaluate", &trace, "-m", "mean,x"]).exits(2).says("`x` is not one of mean");
    hatf(["model", "evaluate", &trace, "-a", "slab"]).exits(2).says("`slab` is not one of bsd");
    hatf(["model", "evaluate", &trace, "--memory-limit", "9X"]).exits(2).says("such as 512M or 4G");
    hatf(["model", "generate", "/no/such/model"]).exits(1).says("/no/such/model");
    hatf(["model", "generate", &trace]).exits(1).says("not a model");
    assert!(!std::fs::exists(&model).unwrap());
    hatf(["model", "fit", &trace, "-m", "mean", "-o", &model]).exits(0);
    hatf(["model", "generate", &model, "--events", "100000", "-o", "/dev/full"]).exits(1).says("/dev/full");
    let hostile =
        std::fs::read_to_string(&model).unwrap().replace("\"size\":[", "\"size\":[1,99999999999999999999999],\"x\":[");
    std::fs::write(&model, hostile).unwrap();
    let says = "model.json: the model cannot be used: it is not a model";
    hatf(["model", "generate", &model, "-o", &folder.path("out")]).exits(1).says(says);
    assert!(!std::fs::exists(folder.path("out")).unwrap());
}

/// With `--events`, only the first events of a long trace are used, and a message says so.
#[test]
fn evaluate_the_first_events() {
    let gawk = DATA.to_owned() + "gawk.raw32.zst";
    let arguments = ["model", "evaluate", &gawk, "-m", "mean", "-a", "bsd", "--trials", "1", "--format", "json"];
    let objects = |run: metatf_test::Run| -> u64 {
        let json: serde_json::Value = serde_json::from_slice(&run.out).unwrap();
        json["programs"][0]["actual"]["objects"].as_u64().unwrap()
    };
    let first = hatf(arguments.iter().copied().chain(["--events", "1000"])).exits(0).says("the first 1,000 events");
    let all = hatf(arguments).exits(0);
    assert!(objects(first) <= 1000 && objects(all) > 1000);
}
