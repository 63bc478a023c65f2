//! `lsp`: runs a language server for DTDs on standard input and output.
//!
//! `metatf_parser` analyzes the text ([`index`](metatf_parser::index())), and this module exchanges messages. After
//! each change, the entire text is analyzed again, which takes a few milliseconds. Messages are built as plain JSON,
//! because there are only a dozen kinds; the test deserializes each message into the types of the protocol.

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
Editors start this command and communicate with it through the Language Server
Protocol. The server provides diagnostics as you type, hover, definitions,
references, rename, completion, formatting, quick fixes, an outline, semantic
highlighting, and the width of each field.

If the initialization option `trace` contains the path of a trace, hover also
shows the field widths in that trace.

docs/editors.md in the repository contains the settings for Neovim, Helix, Zed
and VS Code.";

/// Run a language server for editors: diagnostics, hover, rename, completion (Language Server Protocol)
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    /// Accepted because editors pass it; the server always uses standard input and output
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

/// The time without messages after which diagnostics are published.
const PAUSE: Duration = Duration::from_millis(20);

fn serve(connection: &Connection) -> Result<()> {
    let protocol = |error: lsp_server::ProtocolError| Failure::Failed(format!("editor: {error}"));
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
        // Responses take precedence over diagnostics, which are published when typing pauses.
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
