//! Tests that workers return the same answers as one process, even if a worker is killed while it reads.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use arrow_array::RecordBatch;
use datafusion::common::assert_batches_eq;
use metatf_distributed::{Cluster, Token, in_process, register};
use url::Url;

const QUESTIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/fleet/questions");
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/1.0");
const HOSTS: usize = 24;

/// A worker process, which is killed at the end of a test.
struct Worker {
    process: Child,
    url: Url,
    /// The worker's messages about the tables that it reads.
    said: Receiver<String>,
}

impl Worker {
    fn start(folder: &Path) -> Self {
        Self::start_with(folder, None)
    }

    fn start_with(folder: &Path, token: Option<&str>) -> Self {
        let mut process =
            worker("127.0.0.1:0", folder, token).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut url).unwrap();
        let (sender, said) = channel();
        let lines = BufReader::new(process.stderr.take().unwrap()).lines();
        std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Self { process, url: Url::parse(url.trim()).unwrap(), said }
    }

    fn signal(&self, signal: &str) {
        assert!(Command::new("kill").args([signal, &self.process.id().to_string()]).status().unwrap().success());
    }
}

/// Returns the command of a worker.
fn worker(address: &str, folder: &Path, token: Option<&str>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_metatf-distributed"));
    command.args(["worker", address]).arg(folder).env_remove("METATF_WORKER_TOKEN");
    command.envs(token.map(|token| ("METATF_WORKER_TOKEN", token)));
    command
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// Creates a fleet from copies of the repository's traces, in two classes.
fn fleet(count: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let (mut hosts, mut whatif) =
        ("trace,host,class\n".to_owned(), "trace,allocator,held_bytes,held_now_bytes\n".to_owned());
    for number in 0..count {
        let (class, golden) =
            [("script", "heap.gawk-default.mtf"), ("threads", "heap.python_threads-default.mtf")][number % 2];
        let trace = format!("{class}/{class}-{number}.mtf");
        let path = folder.path().join("traces").join(&trace);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::copy(Path::new(GOLDEN).join(golden), path).unwrap();
        hosts.push_str(&format!("{trace},{class}-{number},{class}\n"));
        whatif.push_str(&format!("{trace},other,{},{}\n", 1000 * number, 10_000 + number));
    }
    std::fs::write(folder.path().join("hosts.csv"), hosts).unwrap();
    std::fs::write(folder.path().join("whatif.csv"), whatif).unwrap();
    folder
}

fn question(name: &str) -> String {
    std::fs::read_to_string(format!("{QUESTIONS}/{name}.sql")).unwrap()
}

async fn alone(folder: &Path, query: &str) -> Vec<RecordBatch> {
    let session = in_process(2);
    register(&session, folder).await.unwrap();
    session.sql(query).await.unwrap().collect().await.unwrap()
}

fn compare(expected: &[RecordBatch], found: &[RecordBatch]) {
    let expected = datafusion::arrow::util::pretty::pretty_format_batches(expected).unwrap().to_string();
    let expected: Vec<&str> = expected.lines().collect();
    assert_batches_eq!(expected, found);
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_answer_as_one_process_does() {
    let folder = fleet(HOSTS);
    let workers = [Worker::start(folder.path()), Worker::start(folder.path())];
    let cluster = Cluster::new(workers.iter().map(|worker| worker.url.clone()).collect(), folder.path());
    for name in ["top-sites", "growth", "savings", "lifetimes", "regressions"] {
        let query = question(name);
        let answer = cluster.query(&query).await.unwrap();
        assert_eq!((answer.workers, answer.failed.len()), (2, 0));
        compare(&alone(folder.path(), &query).await, &answer.batches);
    }
    // Each worker read some traces, and no trace was read twice for a query.
    let query = "select sum(allocations) as objects, count(distinct trace) as traces, count(*) as rows from traces";
    workers.iter().for_each(|worker| worker.said.try_iter().for_each(drop));
    compare(&alone(folder.path(), query).await, &cluster.query(query).await.unwrap().batches);
    let read: Vec<Vec<String>> = workers.iter().map(|worker| worker.said.try_iter().collect()).collect();
    assert!(read.iter().all(|lines| !lines.is_empty()), "{read:?}");
    let mut all = read.concat();
    all.sort();
    all.dedup();
    assert_eq!((all.len(), read.concat().len()), (HOSTS, HOSTS), "{read:?}");
}

/// A trace is divided into ranges: each worker reads some of its rows, and together they read all rows.
#[tokio::test(flavor = "multi_thread")]
async fn two_workers_share_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("traces/numbers.mtf");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    write_numbers(&path);
    assert!(std::fs::metadata(&path).unwrap().len() > 3 << 20);
    let workers = [Worker::start(folder.path()), Worker::start(folder.path())];
    let cluster = Cluster::new(workers.iter().map(|worker| worker.url.clone()).collect(), folder.path());
    let query = "select count(*) as rows, sum(n) as sum, count(distinct \"@number\") as numbers, max(\"@number\") as last, min(\"@trace\") as trace from records.r";
    let answer = cluster.query(query).await.unwrap();
    assert_batches_eq!(
        [
            "+--------+--------------+---------+--------+-------------+",
            "| rows   | sum          | numbers | last   | trace       |",
            "+--------+--------------+---------+--------+-------------+",
            "| 600000 | 179999700000 | 600000  | 599999 | numbers.mtf |",
            "+--------+--------------+---------+--------+-------------+",
        ],
        &answer.batches
    );
    let read: Vec<Vec<String>> = workers.iter().map(|worker| worker.said.try_iter().collect()).collect();
    assert!(read.iter().all(|lines| !lines.is_empty()), "{read:?}");
    // Compare with one process, and with rows that are not aggregated.
    compare(&alone(folder.path(), query).await, &answer.batches);
    let query = "select n from records.r where \"@number\" % 100000 = 99999 order by n";
    compare(&alone(folder.path(), query).await, &cluster.query(query).await.unwrap().batches);
}

/// Writes a trace of many groups with consecutive numbers from 0.
fn write_numbers(path: &Path) {
    use metatf::container::{Codec, WriteOptions};
    use metatf::dynamic::{OwnedRecord, Schema, Writer};
    let dtd = b"section s 1 { r: (tag, n) { tag.value = 4; n.width = 8; n.interpretation = none; } }";
    let schema = Schema::parse("numbers.dtd", dtd).unwrap();
    let options = WriteOptions { codec: Codec::Stored, trial: None, group_size: 1 << 18, ..WriteOptions::default() };
    let mut writer = Writer::new(std::fs::File::create(path).unwrap(), &schema, &options).unwrap();
    let mut owned = OwnedRecord::default();
    let record = u16::try_from(schema.dtd.records.len() - 1).unwrap();
    for n in 0..600_000 {
        owned.clear();
        owned.push_number(n);
        writer.record(1, record, &owned).unwrap();
    }
    writer.finish().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_is_killed_while_it_reads() {
    let folder = fleet(600);
    let workers = [Worker::start(folder.path()), Worker::start(folder.path())];
    let cluster = Cluster::new(workers.iter().map(|worker| worker.url.clone()).collect(), folder.path());
    let query = question("lifetimes");
    let expected = alone(folder.path(), &query).await;
    let asked = tokio::spawn(async move { cluster.query(&query).await });
    // Stop the worker while most of its traces are unread, so that the query is still running when it is killed.
    let first = workers[1].said.recv_timeout(Duration::from_secs(300)).unwrap();
    workers[1].signal("-STOP");
    assert!(first.starts_with("lifetimes of "), "{first}");
    assert!(!asked.is_finished());
    workers[1].signal("-KILL");
    let answer = asked.await.unwrap().unwrap();
    assert_eq!((answer.workers, answer.failed.len()), (1, 1), "{:?}", answer.failed);
    assert!(!answer.failed[0].1.is_empty());
    compare(&expected, &answer.batches);
}

#[tokio::test(flavor = "multi_thread")]
async fn all_workers_are_gone_or_a_trace_is_damaged() {
    let folder = fleet(HOSTS);
    let worker = Worker::start(folder.path());
    let cluster = Cluster::new(vec![worker.url.clone()], folder.path());
    let damaged = folder.path().join("traces/script/script-4.mtf");
    let mut bytes = std::fs::read(&damaged).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..].iter_mut().for_each(|byte| *byte ^= 0x5a);
    std::fs::write(&damaged, bytes).unwrap();
    let error = cluster.query("select count(*) from sites").await.unwrap_err().to_string();
    assert!(error.contains("script/script-4.mtf: "), "{error}");
    // A trace that cannot be opened is an error only for queries that read it, even if it is the first one.
    let first = folder.path().join("traces/script/script-0.mtf");
    let mut bytes = std::fs::read(&first).unwrap();
    bytes[..1000].iter_mut().for_each(|byte| *byte ^= 0x5a);
    std::fs::write(&first, bytes).unwrap();
    let hosts = cluster.query("select count(*) as hosts from hosts").await.unwrap();
    assert_batches_eq!(
        ["+-------+", "| hosts |", "+-------+", &format!("| {HOSTS:<5} |"), "+-------+"],
        &hosts.batches
    );
    let error = cluster.query("select count(*) from records.malloc").await.unwrap_err().to_string();
    assert!(error.contains("script/script-0.mtf: "), "{error}");
    let error = cluster.query("select nothing from sites").await.unwrap_err().to_string();
    assert!(error.contains("nothing"), "{error}");
    drop(worker);
    let error = cluster.query("select count(*) from sites").await.unwrap_err().to_string();
    assert!(error.contains("no worker accepts connections"), "{error}");
}

#[test]
fn a_worker_that_other_machines_reach_needs_a_token() {
    let folder = fleet(1);
    let refused = worker("0.0.0.0:0", folder.path(), None).output().unwrap();
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("METATF_WORKER_TOKEN"), "{refused:?}");
    let short = worker("127.0.0.1:0", folder.path(), Some("short")).output().unwrap();
    assert!(String::from_utf8_lossy(&short.stderr).contains("at least 16"), "{short:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_know_the_token_gets_no_answer() {
    let folder = fleet(4);
    let token = "a token of this test";
    let workers = [
        Worker::start_with(folder.path(), Some(&token.replace(' ', "-"))),
        Worker::start_with(folder.path(), Some(&token.replace(' ', "-"))),
    ];
    let cluster = Cluster::new(workers.iter().map(|worker| worker.url.clone()).collect(), folder.path());
    let query = question("top-sites");
    let refused = cluster.query(&query).await.unwrap_err().to_string();
    assert!(refused.contains("token"), "{refused}");
    let wrong = cluster.clone().with_token(Token::new("a-token-of-this-tesT").unwrap());
    assert!(wrong.query(&query).await.unwrap_err().to_string().contains("token"));
    let known = cluster.with_token(Token::new("a-token-of-this-test").unwrap());
    compare(&alone(folder.path(), &query).await, &known.query(&query).await.unwrap().batches);
}

/// A worker refuses a plan that reads another directory, and reads none of its files.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_reads_its_folder_alone() {
    let (own, other) = (fleet(2), fleet(2));
    let workers = [Worker::start(own.path()), Worker::start(own.path())];
    let cluster = Cluster::new(workers.iter().map(|worker| worker.url.clone()).collect(), other.path());
    for query in ["select count(*) from traces", "select count(*) from hosts"] {
        if let Err(error) = cluster.query(query).await {
            assert!(error.to_string().contains("outside the worker's directory"), "{error}");
        } else {
            assert!(query.contains("hosts"), "a small table may be read by the one who asks");
        }
    }
    assert!(workers.iter().all(|worker| worker.said.try_iter().next().is_none()));
}
