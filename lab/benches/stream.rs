//! A streamed result, to files and to S3, against a plain copy of the same bytes to a file: memory and
//! throughput.
//!
//! Each measurement has its own process, and so does the S3 server. The last line is JSON, see
//! `measure`.

#[cfg(feature = "s3")]
#[path = "stream/s3.rs"]
mod s3;

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use futures_util::stream;
use lexopt::ValueExt;
use offcut::backend::{Backend, Fs};
use offcut::{Chunk, TokenCounter, ToolCall, ToolError, ToolOutput, ToolReduction};
use offcut_lab::memory_kib;
use serde_json::{Value, json};

const MIB: u64 = 1 << 20;
/// Bytes that a pipe gives at once.
const CHUNK: usize = 64 * 1024;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    // `cargo test` runs it without arguments, to see that it works.
    let (mut sizes, mut runs) = (vec![1], 1);
    let mut arguments = lexopt::Parser::from_env();
    while let Some(argument) = arguments.next()? {
        match argument {
            lexopt::Arg::Long("bench") => (sizes, runs) = (vec![1, 64, 1024], 5),
            lexopt::Arg::Value(what) => {
                let what = what.string()?;
                #[cfg(feature = "s3")]
                if what == "serve" {
                    return s3::serve();
                }
                let size: u64 = arguments.value()?.string()?.parse()?;
                let place = arguments.value()?.string()?;
                let measured = match what.as_str() {
                    "copy" => copy(Path::new(&place), size)?,
                    "fs" => streamed(|| Ok(Fs::open(Path::new(&place).join("store"))?), size)?,
                    #[cfg(feature = "s3")]
                    "s3" => streamed(|| Ok(offcut_object_store::Objects::open(&place)?), size)?,
                    _ => return Err(format!("{what:?} can't be measured").into()),
                };
                return Ok(writeln!(std::io::stdout(), "{measured}")?);
            }
            other => return Err(other.unexpected().into()),
        }
    }
    measure(&sizes, runs)
}

/// Runs this program again with `arguments` and parses the JSON that it prints.
fn in_a_child(arguments: &[String]) -> Result<Value> {
    let output = Command::new(std::env::current_exe()?)
        .args(arguments)
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err(format!("{arguments:?} failed: {}", output.status).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The best results for one size on one backend.
struct Best {
    seconds: f64,
    peak: f64,
}

impl Best {
    fn of_none() -> Self {
        Self {
            seconds: f64::MAX,
            peak: 0.0,
        }
    }

    fn add(&mut self, measured: &Value) {
        self.seconds = self.seconds.min(number(measured, "seconds"));
        self.peak = self.peak.max(number(measured, "peak_over_idle_mib"));
    }
}

/// Runs each size several times, copy and backends alternating, and prints the best of each.
fn measure(sizes: &[u64], runs: usize) -> Result<()> {
    let mut out = std::io::stdout();
    let (mut peaks, mut ratios) = (json!({}), json!({}));
    for size in sizes {
        let name = format!("{size}_mib");
        let home = tempfile::tempdir()?;
        let mut best_copy = f64::MAX;
        let mut backends = vec![("fs", Best::of_none())];
        if cfg!(feature = "s3") {
            backends.push(("s3", Best::of_none()));
        }
        for run in 0..runs {
            let directory = home.path().join(run.to_string());
            std::fs::create_dir(&directory)?;
            let path = directory
                .to_str()
                .ok_or("the temporary directory is not UTF-8")?;
            let in_child = |what: &str, place: &str| {
                in_a_child(&[what.into(), size.to_string(), place.into()])
            };
            best_copy = best_copy.min(number(&in_child("copy", path)?, "seconds"));
            for (backend, best) in &mut backends {
                #[cfg(feature = "s3")]
                if *backend == "s3" {
                    // Dropping the server frees its content.
                    let server = s3::Server::start()?;
                    best.add(&in_child(backend, &server.url(path))?);
                    continue;
                }
                best.add(&in_child(backend, path)?);
            }
            std::fs::remove_dir_all(&directory)?;
        }
        for (backend, best) in &backends {
            let Best { seconds, peak } = best;
            let ratio = best_copy / seconds;
            let rate = *size as f64 / seconds;
            writeln!(
                out,
                "{backend} {size:>5} MiB: {ratio:.2} of a plain copy ({rate:.0} MiB/s), {peak:.1} MiB over idle",
            )?;
            peaks[backend][&name] = json!(peak);
            ratios[backend][&name] = json!(ratio);
        }
    }
    let all = json!({"peak_over_idle_mib": peaks, "throughput_ratio": ratios});
    Ok(writeln!(out, "{all}")?)
}

fn number(measured: &Value, field: &str) -> f64 {
    measured[field].as_f64().unwrap_or(f64::NAN)
}

/// Number of further streams of a small size, so that the best time has no warm-up in it.
fn repeats(mib: u64) -> u64 {
    16 / mib
}

/// A mebibyte of build-log lines.
fn text() -> Bytes {
    let lines = (0..).map(|n| {
        format!(
            "[{n:>6}] Compiling crate-{} v0.{}.{} (registry)\n",
            n % 977,
            n % 13,
            n % 7
        )
    });
    let mut text: Vec<u8> = lines
        .flat_map(String::into_bytes)
        .take(MIB as usize)
        .collect();
    text[MIB as usize - 1] = b'\n';
    text.into()
}

/// Repeats `text` up to `mib` mebibytes. All chunks are slices of it, so making them costs nothing.
fn chunks(text: &Bytes, mib: u64) -> impl Iterator<Item = Bytes> + Send + 'static {
    let text = text.clone();
    (0..mib).flat_map(move |_| {
        let text = text.clone();
        (0..MIB as usize / CHUNK).map(move |n| text.slice(n * CHUNK..(n + 1) * CHUNK))
    })
}

fn streamed<B: Backend>(open: impl FnOnce() -> Result<B>, mib: u64) -> Result<Value> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let store = Arc::new(open()?);
        let reduction = ToolReduction::recommended(store.clone());
        // Without the tables of an encoding, which load in the background and don't matter here.
        let reduction = reduction.token_counter(TokenCounter::Estimate).build()?;
        let text = text();
        // Resets the peak.
        std::fs::write("/proc/self/clear_refs", "5")?;
        let idle = memory_kib("VmRSS")?;
        let cold = one_stream(&reduction, &*store, "call_1", chunks(&text, mib)).await?;
        let peak = memory_kib("VmHWM")?.saturating_sub(idle);
        let mut seconds = cold;
        for again in 0..repeats(mib) {
            let warm = one_stream(
                &reduction,
                &*store,
                &format!("again_{again}"),
                chunks(&text, mib),
            )
            .await?;
            seconds = seconds.min(warm);
        }
        Ok(json!({"seconds": seconds, "peak_over_idle_mib": peak as f64 / 1024.0}))
    })
}

/// Returns the seconds that it takes.
async fn one_stream(
    reduction: &ToolReduction,
    store: &dyn Backend,
    id: &str,
    chunks: impl Iterator<Item = Bytes> + Send + 'static,
) -> Result<f64> {
    let start = Instant::now();
    let source = stream::iter(chunks.map(|bytes| Ok::<_, ToolError>(Chunk::Bytes(bytes))));
    let call = ToolCall::new(id, "build", "{}");
    let shown = reduction
        .truncate(&call, ToolOutput::stream(source))
        .await?;
    let seconds = start.elapsed().as_secs_f64();
    let decision = &shown.report.decisions[0];
    let location = &decision.locations[0];
    let key = store
        .resolve(location.as_str())
        .ok_or("the location is not the store's")?;
    if store.read(&key, 0..1).await?.total != decision.bytes.before {
        return Err(format!("{location} does not hold what was streamed").into());
    }
    Ok(seconds)
}

fn copy(directory: &Path, mib: u64) -> Result<Value> {
    let text = text();
    let mut seconds = f64::MAX;
    for again in 0..=repeats(mib) {
        let start = Instant::now();
        let mut file = std::fs::File::create(directory.join(format!("copy_{again}")))?;
        for chunk in chunks(&text, mib) {
            file.write_all(&chunk)?;
        }
        seconds = seconds.min(start.elapsed().as_secs_f64());
    }
    Ok(json!({"seconds": seconds}))
}
