//! A streamed result against a plain copy of the same bytes to a file: memory, throughput, time to the first byte.
//!
//! Each measurement is a process of its own. The last line is JSON, see `main`.

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use lexopt::ValueExt;
use offcut::backend::Fs;
use offcut::{Chunk, TokenCounter, ToolCall, ToolError, ToolOutput, ToolReduction};
use offcut_benches::{in_a_child, memory_kib};
use serde_json::{Value, json};

const MIB: u64 = 1 << 20;
/// As much as a pipe gives at once.
const CHUNK: usize = 64 * 1024;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    // `cargo test` runs it without an argument: that it works, not how fast.
    let (mut sizes, mut runs) = (vec![1], 1);
    let mut arguments = lexopt::Parser::from_env();
    while let Some(argument) = arguments.next()? {
        match argument {
            lexopt::Arg::Long("bench") => (sizes, runs) = (vec![1, 64, 1024], 5),
            lexopt::Arg::Value(what) => {
                let size: u64 = arguments.value()?.string()?.parse()?;
                let directory = arguments.value()?;
                let measured = match what.to_str() {
                    Some("offcut") => offcut(Path::new(&directory), size)?,
                    Some("copy") => copy(Path::new(&directory), size)?,
                    _ => return Err(format!("{what:?} can't be measured").into()),
                };
                return Ok(writeln!(std::io::stdout(), "{measured}")?);
            }
            other => return Err(other.unexpected().into()),
        }
    }
    measure(&sizes, runs)
}

/// Runs each size several times, the two in turn, and says what the best of each came to.
fn measure(sizes: &[u64], runs: usize) -> Result<()> {
    let mut out = std::io::stdout();
    let (mut peaks, mut ratios, mut firsts) = (json!({}), json!({}), json!({}));
    for size in sizes {
        let home = tempfile::tempdir()?;
        let (mut best_copy, mut best_offcut) = (f64::MAX, f64::MAX);
        let (mut peak, mut first) = (0.0, f64::MAX);
        for run in 0..runs {
            let directory = home.path().join(run.to_string());
            std::fs::create_dir(&directory)?;
            let in_child = |what: &str| -> Result<Value> {
                let directory = directory.to_str().ok_or("the temporary directory is not UTF-8")?;
                Ok(in_a_child(&[what.into(), size.to_string(), directory.into()])?)
            };
            let copied = in_child("copy")?;
            let streamed = in_child("offcut")?;
            best_copy = best_copy.min(number(&copied, "seconds"));
            best_offcut = best_offcut.min(number(&streamed, "seconds"));
            peak = number(&streamed, "peak_over_idle_mib").max(peak);
            first = first.min(number(&streamed, "first_byte_ms"));
            std::fs::remove_dir_all(&directory)?;
        }
        let ratio = best_copy / best_offcut;
        writeln!(
            out,
            "fs {size:>5} MiB: {ratio:.2} of a plain copy ({:.0} MiB/s), {peak:.1} MiB over idle, first byte after {first:.2} ms",
            *size as f64 / best_offcut
        )?;
        let name = format!("{size}_mib");
        peaks[&name] = json!(peak);
        ratios[&name] = json!(ratio);
        firsts[&name] = json!(first);
    }
    let all = json!({
        "peak_over_idle_mib": {"fs": peaks},
        "throughput_ratio": {"fs": ratios},
        "first_byte_ms": firsts,
    });
    Ok(writeln!(out, "{all}")?)
}

fn number(measured: &Value, field: &str) -> f64 {
    measured[field].as_f64().unwrap_or(f64::NAN)
}

/// Lines of a build log, `mib` of them, in chunks. All chunks are slices of one: making them costs nothing.
fn chunks(mib: u64) -> impl Iterator<Item = Bytes> {
    let lines = (0..).map(|n| format!("[{n:>6}] Compiling crate-{} v0.{}.{} (registry)\n", n % 977, n % 13, n % 7));
    let mut text: Vec<u8> = lines.flat_map(String::into_bytes).take(MIB as usize).collect();
    text[MIB as usize - 1] = b'\n';
    let text = Bytes::from(text);
    (0..mib).flat_map(move |_| {
        let text = text.clone();
        (0..MIB as usize / CHUNK).map(move |n| text.slice(n * CHUNK..(n + 1) * CHUNK))
    })
}

fn offcut(directory: &Path, mib: u64) -> Result<Value> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build()?;
    runtime.block_on(async {
        let reduction = ToolReduction::recommended(Fs::open(directory.join("store"))?);
        // Without the tables of an encoding, which are loaded meanwhile and have nothing to do with streams.
        let reduction = reduction.token_counter(TokenCounter::Estimate).build()?;
        let chunks = chunks(mib);
        // The peak so far is forgotten.
        std::fs::write("/proc/self/clear_refs", "5")?;
        let idle = memory_kib("VmRSS")?;
        let start = Instant::now();
        let source = stream::iter(chunks.map(|bytes| Ok::<_, ToolError>(Chunk::Bytes(bytes))));
        let mut shown = reduction.truncate_stream(&ToolCall::new("call_1", "build", "{}"), ToolOutput::stream(source));
        let mut first = None;
        while let Some(chunk) = shown.next().await {
            chunk?;
            first.get_or_insert_with(|| start.elapsed());
        }
        let seconds = start.elapsed().as_secs_f64();
        let report = shown.report().ok_or("the stream has no report")?;
        let location = report.decisions[0].locations[0].as_str();
        if std::fs::metadata(location)?.len() != mib * MIB {
            return Err(format!("{location} does not hold {mib} MiB").into());
        }
        Ok(json!({
            "seconds": seconds,
            "peak_over_idle_mib": (memory_kib("VmHWM")?.saturating_sub(idle)) as f64 / 1024.0,
            "first_byte_ms": first.ok_or("nothing was shown")?.as_secs_f64() * 1e3,
        }))
    })
}

fn copy(directory: &Path, mib: u64) -> Result<Value> {
    let chunks = chunks(mib);
    let start = Instant::now();
    let mut file = std::fs::File::create(directory.join("copy"))?;
    for chunk in chunks {
        file.write_all(&chunk)?;
    }
    Ok(json!({"seconds": start.elapsed().as_secs_f64()}))
}
