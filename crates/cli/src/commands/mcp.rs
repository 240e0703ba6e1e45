//! `offcut mcp`.

#[cfg(feature = "serve")]
mod listen;
#[cfg(feature = "serve")]
mod remote;
mod secret;
mod server;

#[cfg(feature = "serve")]
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;
use std::sync::Arc;

use offcut::Settings;
use offcut_mcp::McpGateway;
use sha2::{Digest, Sha256};

use crate::failure::{Failure, OrFail as _};
use crate::{args, child, output, settings, units};

/// The reader's name unless the settings have one that few servers use.
const READER: &str = "read_stored_result";

pub(crate) fn run(args: &args::Mcp) -> Result<ExitCode, Failure> {
    #[cfg(feature = "serve")]
    if let Some(address) = args.listen {
        return listen::run(args, address, || gateway(args)).map(ExitCode::from);
    }
    let runtime = settings::runtime()?;
    let code = runtime.block_on(async {
        // Before the server starts, because this program may be ended at any time.
        let signals = child::listen().or_fail("signals can't be received")?;
        let client = (tokio::io::stdin(), tokio::io::stdout());
        #[cfg(feature = "serve")]
        if let Some(url) = &args.url {
            let remote = remote::remote(args, url)?;
            return remote::run(remote, signals, &gateway(args).conversation(), client).await;
        }
        server::run(
            &args.command,
            signals,
            &gateway(args).conversation(),
            client,
        )
        .await
    });
    // A read of stdin that nobody waits for any more would hold it up.
    runtime.shutdown_background();
    code.map(ExitCode::from)
}

/// The gateway, or one that changes nothing.
fn gateway(args: &args::Mcp) -> Arc<McpGateway> {
    Arc::new(shortening(args).unwrap_or_else(|failure| {
        output::report(&failure);
        output::warn("passing everything as it is, without offcut");
        McpGateway::passing().log(output::warn)
    }))
}

fn shortening(args: &args::Mcp) -> Result<McpGateway, Failure> {
    let (settings, origin) = named(args)?;
    let reduction = settings::build(&settings, &origin)?;
    Ok(McpGateway::new(reduction.session(&session(args)))
        .max_message(usize::try_from(args.max_message).unwrap_or(usize::MAX))
        .log(output::warn))
}

/// The settings, and the name of their source.
fn named(args: &args::Mcp) -> Result<(Settings, String), Failure> {
    let (mut settings, origin) = settings::named(&args.of_user, settings::user_store)?;
    let default = Settings::default().read_file_tool_name;
    if args.reader.is_some() {
        settings.read_file_tool_name.clone_from(&args.reader);
    } else if settings.read_file_tool_name == default {
        settings.read_file_tool_name = Some(READER.to_owned());
    }
    // Clients that share a place read what they know the name of, so names must not be short.
    #[cfg(feature = "serve")]
    if args.listen.is_some() {
        settings.names = offcut::StoredNames::CallId;
    }
    Ok((settings, origin))
}

/// The session's id: that of the arguments, or of the command.
fn session(args: &args::Mcp) -> String {
    let id = args.session.clone().unwrap_or_else(|| of_command(args));
    // In the place of clients over stdio, names can be guessed.
    #[cfg(feature = "serve")]
    if args.listen.is_some() {
        return format!("{id}-http");
    }
    id
}

/// An id that only this command in this directory has, and that only those who know the secret can compute.
fn of_command(args: &args::Mcp) -> String {
    let mut words = vec![std::env::current_dir().unwrap_or_default().into_os_string()];
    words.extend(args.command.iter().cloned());
    #[cfg(feature = "serve")]
    words.extend(args.url.as_deref().map(OsString::from));
    let mut digest = Sha256::new_with_prefix(secret::secret());
    for word in words {
        // Lengths keep words apart.
        digest.update(word.len().to_le_bytes());
        digest.update(word.as_bytes());
    }
    format!("mcp-{}", units::hex(&digest.finalize()[..12]))
}
