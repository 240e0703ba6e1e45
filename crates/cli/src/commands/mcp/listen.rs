//! `offcut mcp --listen`: clients over HTTP, in front of a server over HTTP or of servers that are started
//! for them.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::sync::Arc;

use offcut_mcp::{Conversation, McpEndpoint, McpGateway};
use rustix::process::Signal;
use tokio::io::DuplexStream;
use tokio::sync::mpsc;

use super::{remote, server};
use crate::commands::serve::{ADDRESS, listener};
use crate::failure::{Failure, OrFail as _, chain};
use crate::{args, child, output, serving};

/// Number of bytes between a session and the server's stdin.
const PIPE: usize = 8 * 1024;

/// Serves clients until a signal ends it. Returns the exit code.
pub(super) fn run(
    args: &args::Mcp,
    address: SocketAddr,
    gateway: impl FnOnce() -> Arc<McpGateway>,
) -> Result<u8, Failure> {
    if !address.ip().is_loopback() && !args.expose {
        return Err(Failure::usage(
            format!("--listen {address} lets other machines connect"),
            "listen on 127.0.0.1, or add --expose if that is meant",
        ));
    }
    // Otherwise only clients would learn of it.
    if let Some(program) = args.command.first()
        && !child::is_program(program)
    {
        let message = format!("there is no program {}", program.display());
        return Err(Failure::usage(message, server::COMMAND));
    }
    let runtime = serving::runtime()?;
    let served = runtime.block_on(async {
        let remote = args.url.as_deref().map(|url| remote::remote(args, url));
        let endpoint = match remote.transpose()? {
            Some(remote) => McpEndpoint::before(gateway(), remote),
            None => {
                let command = args.command.clone();
                McpEndpoint::hosting(gateway(), move |conversation, client| {
                    host(command.clone(), conversation, client)
                })
            }
        };
        let endpoint = args
            .allow_host
            .iter()
            .fold(endpoint, McpEndpoint::allow_host);
        let mut signals = child::listen().or_fail("signals can't be received")?;
        let (listener, address) = listener(address, ADDRESS).await?;
        output::announce(&format!("http://{address}/mcp\n"))?;
        let stop = async {
            signals.recv().await;
        };
        let served = endpoint.serve(listener, stop).await;
        served.map_err(|error| Failure::new(chain(&error)))
    });
    runtime.shutdown_background();
    served.map(|()| 0)
}

/// Runs a server for one session. Once its client has gone, it is asked to end, and then killed.
async fn host(
    command: Vec<OsString>,
    conversation: Conversation,
    (mut reader, writer): (DuplexStream, DuplexStream),
) {
    let (signals, received) = mpsc::unbounded_channel();
    let (mut to_server, from_client) = tokio::io::duplex(PIPE);
    let passed = async move {
        _ = tokio::io::copy(&mut reader, &mut to_server).await;
        drop(to_server);
        tokio::time::sleep(server::GRACE_WITHOUT_CLIENT).await;
        _ = signals.send(Signal::TERM);
        std::future::pending::<()>().await;
    };
    let served = async {
        let client = (from_client, writer);
        let code = server::run(&command, received, &conversation, client).await?;
        if code != 0 {
            output::warn(&format!("a server has ended with exit code {code}"));
        }
        Ok::<_, Failure>(())
    };
    tokio::select! {
        served = served => if let Err(failure) = served {
            output::report(&failure);
        },
        () = passed => {}
    }
}
