//! Runs a worker, or sends a query to workers.

use std::path::Path;
use std::process::ExitCode;

use datafusion::error::{DataFusionError, Result};
use metatf_distributed::{Cluster, Guard, Token, in_process, register, serve};
use tokio::net::TcpListener;
use url::Url;

const USAGE: &str = "\
usage: metatf-distributed worker ADDRESS FOLDER
       metatf-distributed query FOLDER QUERY.sql [WORKER..]

A worker listens on ADDRESS, such as 127.0.0.1:8080 (port 0 selects a free port), and prints its URL.
It reads traces and CSV tables below FOLDER.
If other machines can reach the address, a token is required: set METATF_WORKER_TOKEN to the same string of 16 or more
characters for workers and queries. Connections are not encrypted: use a private network or a tunnel.
query runs a query on the traces FOLDER/traces/**/*.mtf and the tables FOLDER/*.csv, and prints CSV.
Record tables are in the schema records: from records.malloc. Their column \"@trace\" contains the name of the trace.
WORKER is the URL of a worker, which must also have access to FOLDER; without workers, the query runs in this process.
";

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["worker", address, folder] => work(address, Path::new(folder)).await,
        ["query", folder, query, workers @ ..] => ask(Path::new(folder), query, workers).await,
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("metatf-distributed: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn work(address: &str, folder: &Path) -> Result<()> {
    let guard = Guard::new(folder, token()?)?;
    let listener = TcpListener::bind(address).await?;
    println!("http://{}", listener.local_addr()?);
    serve(listener, guard).await
}

/// Returns the token from the environment.
fn token() -> Result<Option<Token>> {
    let text = std::env::var_os("METATF_WORKER_TOKEN");
    text.map(|text| Token::new(&text.to_string_lossy())).transpose()
}

async fn ask(folder: &Path, file: &str, workers: &[&str]) -> Result<()> {
    let query =
        std::fs::read_to_string(file).map_err(|error| DataFusionError::Execution(format!("{file}: {error}")))?;
    let batches = if workers.is_empty() {
        let session = in_process(2);
        register(&session, folder).await?;
        session.sql(&query).await?.collect().await?
    } else {
        let url =
            |text: &&str| Url::parse(text).map_err(|error| DataFusionError::Execution(format!("{text}: {error}")));
        let cluster = Cluster::new(workers.iter().map(url).collect::<Result<_>>()?, folder);
        let cluster = match token()? {
            Some(token) => cluster.with_token(token),
            None => cluster,
        };
        let answer = cluster.query(&query).await?;
        for (workers, error) in &answer.failed {
            eprintln!("metatf-distributed: with {workers} workers: {error}; retried with {}", answer.workers);
        }
        answer.batches
    };
    let mut writer = arrow_csv::Writer::new(std::io::stdout());
    batches.iter().try_for_each(|batch| writer.write(batch)).map_err(DataFusionError::from)
}
