//! `lsp`: a language server for DTDs on standard input and output.
//!
//! `metatf_parser` analyzes the text ([`index`](metatf_parser::index())), and this module exchanges messages. After
//! each change, the entire text is analyzed again, which takes a few milliseconds. Messages are built as plain JSON
//! because there are only a dozen kinds; the test deserializes each into the types of the protocol.

mod answers;
mod document;
mod edits;
mod place;
mod server;
mod widths;

use crate::failure::{Failure, Result};
use lsp_server::{Connection, Message};
use server::Server;
use std::time::Duration;

const MORE: &str = "\
An editor starts it, and speaks the Language Server Protocol with it. It has
mistakes as you type, hover, definitions, references, rename, completion,
formatting, corrections, an outline, colours, and the width of each field.

With `trace` in the initialization options, a path, hover also says which widths
fields have in that trace.

docs/editors.md in the repository of this program has the lines for Neovim,
Helix, Zed and VS Code.";

/// Serve editors: mistakes as you type, hover, rename, completion (Language Server Protocol)
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    /// Ignored: the server has no other channel (editors give it)
    #[arg(long, hide = true)]
    stdio: bool,
}

pub(crate) fn run(_: &Args) -> Result<()> {
    let (connection, threads) = Connection::stdio();
    let served = serve(&connection);
    // The writer thread ends when all senders are dropped.
    drop(connection);
    let joined = threads.join();
    served?;
    joined.map_err(|e| Failure::io("standard input and output", &e))
}

/// The pause without messages after which diagnostics are published.
const PAUSE: Duration = Duration::from_millis(20);

fn serve(connection: &Connection) -> Result<()> {
    let protocol = |error: lsp_server::ProtocolError| Failure::Failed(format!("the editor: {error}"));
    let (id, params) = match connection.initialize_start() {
        Ok(started) => started,
        // The input ended before an editor connected.
        Err(error) if error.channel_is_disconnected() => return Ok(()),
        Err(error) => return Err(protocol(error)),
    };
    let mut server = Server::new(&params);
    connection.initialize_finish(id, server.capabilities()).map_err(protocol)?;
    let mut send = |answer| connection.sender.send(answer).is_ok();
    loop {
        // Answers have priority; diagnostics are published when typing pauses.
        let received = match server.is_published() {
            true => connection.receiver.recv().ok(),
            false => match connection.receiver.recv_timeout(PAUSE) {
                Err(error) if error.is_timeout() => {
                    server.publish(&mut send);
                    continue;
                }
                received => received.ok(),
            },
        };
        let Some(message) = received else { return Ok(()) };
        if let Message::Request(request) = &message
            && connection.handle_shutdown(request).map_err(protocol)?
        {
            return Ok(());
        }
        server.handle(message, &mut send);
    }
}
