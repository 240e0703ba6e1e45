//! `offcut mcp --url`: a server over HTTP.

use std::io;

use offcut_mcp::{Conversation, Remote, RemoteError};
use rustix::process::Signal;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

use crate::failure::{Failure, OrFail as _, chain};
use crate::{args, child};

/// Advice for headers.
const HEADER: &str =
    "write --header 'Authorization: Bearer ${TOKEN}' with TOKEN in the environment";

/// Carries the messages between a client, a reader and a writer, and the server. Returns the exit code: 128 and the
/// signal's number if one of `signals` ended it.
pub(super) async fn run(
    remote: Remote,
    mut signals: mpsc::UnboundedReceiver<Signal>,
    conversation: &Conversation,
    client: (impl AsyncRead + Unpin, impl AsyncWrite + Unpin),
) -> Result<u8, Failure> {
    let mut ended_by = None;
    let stop = async {
        while let Some(signal) = signals.recv().await {
            // A terminal's signals are for the client too, which ends this program by its stdin.
            if signal == Signal::TERM || signal == Signal::HUP || signal == Signal::INT {
                ended_by = Some(signal);
                return;
            }
        }
    };
    let done = remote.run(conversation, client, stop).await;
    match (ended_by, done) {
        (Some(signal), _) => Ok(128 + child::signal_number(signal)),
        // A client that has gone needs no answer.
        (None, Err(error)) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).or_fail("the server can't be used")
        }
        _ => Ok(0),
    }
}

pub(super) fn remote(args: &args::Mcp, url: &str) -> Result<Remote, Failure> {
    let mut remote = match Remote::new(url) {
        Err(error @ RemoteError::Certificates(_)) => return Err(Failure::new(chain(&error))),
        remote => remote.or_refuse("--url", "name a URL such as https://example.com/mcp")?,
    };
    for header in &args.header {
        let (name, value) = header
            .split_once(':')
            .ok_or("there is no colon after the header's name")
            .or_refuse("--header", HEADER)?;
        let added = remote.header(name, &expanded(value)?);
        remote = added.or_refuse(format_args!("--header {name:?}"), HEADER)?;
    }
    if let Some(name) = &args.bearer_token_env_var {
        let token = variable(name)?;
        let added = remote.header("Authorization", &format!("Bearer {token}"));
        remote = added.or_refuse(name, HEADER)?;
    }
    Ok(remote)
}

/// A text with the values of the environment variables that it names as `${NAME}`.
fn expanded(text: &str) -> Result<String, Failure> {
    let (mut all, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, after)) = after.split_once('}') else {
            break;
        };
        all.push_str(before);
        all.push_str(&variable(name)?);
        rest = after;
    }
    all.push_str(rest);
    Ok(all)
}

fn variable(name: &str) -> Result<String, Failure> {
    std::env::var(name).map_err(|_| {
        Failure::usage(
            format!("the environment variable {name:?} is not set, or not text"),
            "set it in the client's configuration, under \"env\"",
        )
    })
}
