//! Faults around a store, caused on purpose: processes are killed, calls fail, disks fill up, many
//! processes write at once. Then everything is read back and compared.
//!
//! ```text
//! cargo run --release --example faults
//! cargo run --release --example faults --features s3-server    # over the wire too, to an S3 server of its own
//! cargo run --release --example faults -- --kills 30 --results 300 --seed 7 --json
//! ```
//!
//! The tools' results are made from the seed, so the checker knows every byte (`originals`).
//! `conversation` is the loop and its proof; the other files cause the faults.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that talks to a person"
)]

mod contention;
mod conversation;
#[cfg(unix)]
mod disk;
mod injected;
mod kills;
mod log;
#[cfg(unix)]
#[path = "../../tests/common/mount.rs"]
mod mount;
mod originals;
mod result;
mod store;
mod tally;
#[cfg(feature = "s3-server")]
mod wire;

use std::process::ExitCode;
use std::time::Instant;

use lexopt::{Arg, ValueExt};
use offcut::backend::Fs;

use result::Result;
use tally::Tally;

/// Share of a store's calls that fail.
const RATES: [f64; 2] = [0.01, 0.2];

/// Upper bound on the results that each of several processes stores.
const AT_ONCE: u64 = 1_000;

const HELP: &str = "\
cargo run --release --example faults [-- OPTIONS]

  --kills N      how many processes are killed, for each store (500)
  --results N    how many results meet faults, for each rate, disk and store (10000)
  --seed N       what is random (1)
  --json         a line of JSON at the end
";

struct Options {
    kills: u64,
    results: u64,
    seed: u64,
    json: bool,
}

/// The table, printed row by row.
struct Table {
    all: Tally,
}

impl Table {
    fn begin() -> Self {
        println!(
            "| store | what goes wrong | how often | results | compared | lost | overwritten | dangling | half-written | hidden |"
        );
        println!("|---|---|---|---|---|---|---|---|---|---|");
        Self {
            all: Tally::default(),
        }
    }

    fn add(&mut self, store: &str, what: &str, begun: Instant, tally: Tally) {
        let Tally {
            kills,
            faults,
            results,
            writes,
            lost,
            overwritten,
            dangling,
            half_written,
            hidden,
            problems,
        } = &tally;
        let often = if kills + faults > 0 {
            (kills + faults).to_string()
        } else {
            "-".to_owned()
        };
        println!(
            "| {store} | {what} | {often} | {results} | {writes} | {lost} | {overwritten} | {dangling} | {half_written} | {hidden} |"
        );
        eprintln!("  {:.0} s", begun.elapsed().as_secs_f64());
        for problem in problems {
            eprintln!("  PROBLEM: {problem}");
        }
        self.all += tally;
    }
}

async fn run(options: &Options) -> Result<Tally> {
    let Options {
        kills,
        results,
        seed,
        json: _,
    } = *options;
    log::watch()?;
    let mut table = Table::begin();

    let begun = Instant::now();
    let home = tempfile::tempdir()?;
    let tally = kills::run(kills, seed, async |n| {
        Ok(home.path().join(n.to_string()).display().to_string())
    })
    .await?;
    table.add("`Fs`, durable", "the process is killed", begun, tally);

    for rate in RATES {
        let (begun, home) = (Instant::now(), tempfile::tempdir()?);
        let tally = injected::run(Fs::open(home.path())?, results, rate, seed).await?;
        let what = format!(
            "{} % of the calls fail or hang, before or after",
            rate * 100.0
        );
        table.add("`Fs`", &what, begun, tally);
    }

    #[cfg(unix)]
    for trouble in disk::Trouble::ALL {
        let begun = Instant::now();
        match disk::run(trouble, results, seed)? {
            Some(tally) => table.add("`Fs`", trouble.what(), begun, tally),
            None => eprintln!("SKIPPED, {}: it can't be arranged here", trouble.what()),
        }
    }

    let (begun, home) = (Instant::now(), tempfile::tempdir()?);
    let tally = contention::run(
        &home.path().display().to_string(),
        results.min(AT_ONCE),
        seed,
    )
    .await?;
    table.add("`Fs`", "8 processes, the same ids", begun, tally);

    #[cfg(feature = "s3-server")]
    over_the_wire(options, &mut table).await?;
    #[cfg(not(feature = "s3-server"))]
    eprintln!("SKIPPED, S3 over the wire: add `--features s3-server`");
    Ok(table.all)
}

#[cfg(feature = "s3-server")]
async fn over_the_wire(options: &Options, table: &mut Table) -> Result<()> {
    let Options {
        kills,
        results,
        seed,
        json: _,
    } = *options;
    let (begun, wire) = (Instant::now(), wire::Wire::start().await);
    let mut tally = kills::run(kills, seed, async |n| Ok(wire.url(&format!("kills-{n}")))).await?;
    wire.overwritten(&mut tally);
    table.add("S3", "the process is killed", begun, tally);

    for rate in RATES {
        let (begun, wire) = (Instant::now(), wire::Wire::start().await);
        let tally = wire.run(results, rate, seed).await?;
        let what = format!(
            "{} % of the requests: 500, 503, 403, no answer, half of one",
            rate * 100.0
        );
        table.add("S3", &what, begun, tally);
    }

    let (begun, wire) = (Instant::now(), wire::Wire::start().await);
    let mut tally = contention::run(&wire.url("contention"), results.min(AT_ONCE), seed).await?;
    wire.overwritten(&mut tally);
    table.add("S3", "8 processes, the same ids", begun, tally);
    Ok(())
}

async fn start() -> Result<ExitCode> {
    let mut options = Options {
        kills: 500,
        results: 10_000,
        seed: 1,
        json: false,
    };
    let mut arguments = lexopt::Parser::from_env();
    while let Some(argument) = arguments.next()? {
        match argument {
            Arg::Long("kills") => options.kills = arguments.value()?.parse()?,
            Arg::Long("results") => options.results = arguments.value()?.parse()?,
            Arg::Long("seed") => options.seed = arguments.value()?.parse()?,
            Arg::Long("json") => options.json = true,
            Arg::Short('h') | Arg::Long("help") => {
                print!("{HELP}");
                return Ok(ExitCode::SUCCESS);
            }
            // This program, run again as a child.
            Arg::Value(child) => {
                match child.string()?.as_str() {
                    kills::LIVE => kills::live(&mut arguments).await?,
                    contention::CONTEND => contention::contend(&mut arguments).await?,
                    #[cfg(unix)]
                    disk::DISK => disk::suffer(&mut arguments).await?,
                    other => {
                        return Err(format!("{other:?} is unknown; see `--help`").into());
                    }
                }
                return Ok(ExitCode::SUCCESS);
            }
            other => return Err(other.unexpected().into()),
        }
    }
    let all = run(&options).await?;
    if options.json {
        println!("{}", all.to_json());
    }
    Ok(if all.holds() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

#[tokio::main]
async fn main() -> ExitCode {
    match start().await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("faults: {error}");
            ExitCode::FAILURE
        }
    }
}
