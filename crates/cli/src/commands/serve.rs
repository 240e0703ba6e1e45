//! `offcut serve`.

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use crate::gateway::{Gateway, ServeSettings};
use offcut::Settings;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tracing::Level;
use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::filter::{Targets, filter_fn};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use super::tidy;
use crate::failure::{Failure, OrFail as _};
use crate::replay::Prices;
use crate::serving::{self, Journal, Running, prepared, unusable};
use crate::{args, output, stores};

pub(crate) fn run(args: &args::Serve, json: bool) -> Result<ExitCode, Failure> {
    let _log = log_to_stderr(args.log, json);
    #[cfg(unix)]
    allow_many_files();
    let (mut serve, reduction, origin) = prepared(&args.of_user)?;
    if let Some(listen) = args.listen {
        serve.listen = listen;
    }
    serve.expose |= args.expose;
    serve.holdout = args.holdout.unwrap_or(serve.holdout);
    let (_journal, runtime, gateway) = server(serve, &reduction, &origin, &args.prices)?;
    runtime.block_on(async {
        if args.require_store {
            let ready = gateway.ready().await;
            ready.or_fail("a store does not answer, or takes nothing")?;
        }
        let (clients, address) = listener(gateway.settings().listen, ADDRESS).await?;
        let note = |text: &str| match json {
            // Whoever reads the log as JSON can read nothing else.
            true => tracing::info!("{text}"),
            false => output::note(text),
        };
        for text in Gateway::notes(gateway.settings(), &reduction) {
            note(&text);
        }
        let monitor = match gateway.settings().metrics_listen {
            Some(address) => Some(listener(address, MONITORS).await?.0),
            None => None,
        };
        let page = gateway.page();
        let page = page.map(|page| format!("http://{}{page}", serving::own(address)));
        let running = page.as_deref().and_then(Running::note);
        if let Some(page) = &page {
            // Others may read a log: the token stays in its own file.
            let is_log = !std::io::stderr().is_terminal();
            let shown = page.split('#').next().filter(|_| is_log).unwrap_or(page);
            note(&format!("{shown} shows what passes"));
            if is_log && running.is_some() {
                note("`offcut status` has that address with its token");
            }
        }
        let url = format!("http://{address}");
        output::announce(&match json {
            true => format!("{}\n", json!({"url": url})),
            false => format!("{url}\n"),
        })?;
        let stop = async {
            asked_to_end(1).await;
            // From now on, nobody is answered.
            drop(running);
        };
        tokio::select! {
            () = gateway.serve(clients, monitor, stop) => Ok(()),
            () = asked_to_end(2) => Err(Failure::new("a second signal ended the server before its requests")),
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Advice for an address that can't be listened on.
pub(super) const ADDRESS: &str =
    "choose another address with --listen; port 0 takes one that is free";

/// Advice for an address of `metrics_listen`.
const MONITORS: &str = "choose another address for `metrics_listen` in the table [serve]";

/// Listens on an address. Returns the one that it is, for port 0 is any.
pub(super) async fn listener(
    address: SocketAddr,
    advice: &str,
) -> Result<(TcpListener, SocketAddr), Failure> {
    let listener = TcpListener::bind(address).await;
    let listener = listener.or_advise(format_args!("{address} can't be listened on"), advice)?;
    let address = listener.local_addr().unwrap_or(address);
    Ok((listener, address))
}

/// Raises the soft limit on open files, often 1024, to the hard one: each request takes two connections.
#[cfg(unix)]
fn allow_many_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::debug!(%error, "the limit on open files stays");
    }
}

/// Prepares a server by the settings in `origin` and a card of prices: with a journal, which writes what is left once it
/// is dropped, and the runtime to serve on.
pub(super) fn server(
    serve: ServeSettings,
    reduction: &Settings,
    origin: &str,
    prices: &str,
) -> Result<(Journal, Runtime, Gateway), Failure> {
    let prices = Prices::open(prices)?;
    tidy::while_serving(reduction);
    let (journal, runtime) = (Journal::start(), serving::runtime()?);
    let inside = runtime.enter();
    let gateway = Gateway::reducing(serve, reduction, stores::open_for_server)
        .map_err(|error| unusable(origin, &error))?;
    drop(inside);
    let gateway = journal.keep(gateway.with_card(serving::card(&prices)));
    Ok((journal, runtime, gateway))
}

/// Returns once signals have asked this process to end so many `times`. Those within a second count once: some senders
/// send two.
async fn asked_to_end(times: u32) {
    #[cfg(unix)]
    if let Ok(mut signals) = crate::child::listen() {
        for nth in 0..times {
            if nth > 0 {
                tokio::time::sleep(Duration::from_secs(1)).await;
                while signals.try_recv().is_ok() {}
            }
            signals.recv().await;
        }
        return;
    }
    for _ in 0..times {
        _ = tokio::signal::ctrl_c().await;
    }
}

/// Logs to stderr, from a thread of its own: if nobody reads it, lines are left out and no request waits. The
/// guard writes what is left.
fn log_to_stderr(level: Level, as_json: bool) -> WorkerGuard {
    let (stderr, guard) = NonBlockingBuilder::default()
        .buffered_lines_limit(10_000)
        .finish(std::io::stderr());
    // It logs each of its retries.
    let of_object_store = match level {
        Level::INFO => Level::WARN,
        other => other,
    };
    let levels = Targets::new()
        .with_default(level)
        .with_target("object_store", of_object_store);
    // A store that is down fails for each result, and the server says so once for a request.
    let once = filter_fn(move |event| {
        let is_failure = *event.level() == Level::WARN;
        level >= Level::DEBUG || !is_failure || !event.target().starts_with("offcut::report")
    });
    let log = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(stderr)
        .with_ansi(false)
        .with_target(false)
        .log_internal_errors(false);
    if as_json {
        let log = log.json().flatten_event(true).with_span_list(false);
        let log = log.finish();
        log.with(levels).with(once).init();
    } else {
        log.finish().with(levels).with(once).init();
    }
    guard
}
