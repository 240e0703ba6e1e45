//! Breaks of the provider's cache, planted in requests made from real transcripts: what `offcut replay --cache` and
//! `offcut serve` say of them, and what they say the break has cost.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use offcut::format::{Messages, WireFormat};
use offcut::{Settings, ToolReduction};
use serde_json::{Value, json};

use crate::http::{self, Provider};
use crate::planted::{Kind, Part, Sequence, parts, sequence};
use crate::server::Server;
use crate::traces::{IS_WHOLE, files, skipped};

const SEQUENCES: u64 = if IS_WHOLE { 500 } else { 40 };
/// The number of sequences that go through a server too.
const SERVED: u64 = if IS_WHOLE { 190 } else { 20 };
/// Longer than the lifetime of Anthropic's cache.
const PAUSE: Duration = Duration::from_secs(303);

/// A miss as the doctor names it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Named {
    /// The index of the request.
    request: usize,
    reason: String,
    place: String,
}

/// Counts of a kind: planted, named rightly, placed rightly, and tokens by the doctor's and the provider's count.
type Row = ([u64; 3], [u64; 2]);

#[derive(Default)]
struct Table {
    rows: BTreeMap<Kind, Row>,
    unbroken: u64,
    invented: u64,
    wrong: Vec<String>,
}

impl Table {
    fn add(&mut self, seed: u64, sequence: &Sequence, named: &[Named]) {
        let Some(planted) = &sequence.planted else {
            self.unbroken += 1;
            self.invented += named.len() as u64;
            if !named.is_empty() {
                self.wrong.push(format!(
                    "seed {seed}, {}: invented {named:?}",
                    sequence.format
                ));
            }
            return;
        };
        let ([count, reason, place], _) = self.rows.entry(planted.kind).or_default();
        *count += 1;
        let is_named = |named: &Named| {
            named.request == planted.request && named.reason == planted.kind.reason()
        };
        let is_placed = named
            .iter()
            .any(|one| is_named(one) && one.place == planted.place);
        *reason += u64::from(named.iter().any(is_named));
        *place += u64::from(is_placed);
        // Without marks, each later request is read whole too.
        let stays = |one: &Named| one.reason == "unmarked" && one.request > planted.request;
        let others = named.iter().filter(|one| !is_named(one) && !stays(one));
        let others = others.count() as u64;
        self.invented += others;
        if !is_placed || others > 0 {
            let format = sequence.format;
            self.wrong.push(format!(
                "seed {seed}, {format}: {planted:?}, named {named:?}"
            ));
        }
    }

    /// Shows the table, and checks that 95 % are named and placed rightly, and that none is invented.
    fn check(&self, of: &str) {
        println!(
            "{of}: kind, planted, named, place right; tokens by the doctor and by the provider"
        );
        let mut sums = [0; 3];
        for (kind, (counts, [doctor, provider])) in &self.rows {
            let [planted, named, placed] = counts;
            println!(
                "{:15} {planted:4} {named:4} {placed:4} {doctor:9} {provider:9}",
                format!("{kind:?}")
            );
            sums.iter_mut()
                .zip(counts)
                .for_each(|(sum, count)| *sum += count);
        }
        let [planted, named, placed] = sums;
        println!(
            "{:15} {planted:4} {named:4} {placed:4}; {} unbroken, {} invented",
            "all", self.unbroken, self.invented
        );
        self.wrong.iter().for_each(|wrong| println!("  {wrong}"));
        assert!(placed * 100 >= planted * 95, "{placed} of {planted}");
        assert_eq!(self.invented, 0);
    }
}

/// The sequence of a seed, with or without a break: all kinds and formats in turn.
fn made(
    files: &[PathBuf],
    seed: u64,
    is_broken: bool,
    is_in: impl Fn(Kind, WireFormat) -> bool,
) -> Sequence {
    let each = WireFormat::ALL
        .into_iter()
        .flat_map(|format| Kind::ALL.map(|kind| (kind, format)));
    let each: Vec<_> = each
        .filter(|(kind, format)| kind.is_in(*format) && is_in(*kind, *format))
        .collect();
    // 7 is prime to their number, so that few have formats of all kinds too.
    let (kind, format) = each[7 * seed as usize % each.len()];
    sequence(
        files,
        format,
        Some(kind).filter(|_| is_broken),
        2 * seed + u64::from(is_broken),
    )
}

/// The misses that the doctor names in a log of each sequence.
fn replayed(sequences: &[Sequence]) -> Vec<Vec<Named>> {
    let home = tempfile::tempdir().unwrap();
    let logs = sequences.iter().enumerate().map(|(nth, sequence)| {
        let log = home.path().join(format!("{nth}.jsonl"));
        let lines = sequence
            .requests
            .iter()
            .map(|(_, body)| format!("{body}\n"));
        std::fs::write(&log, lines.collect::<String>()).unwrap();
        log
    });
    let logs: Vec<_> = logs.collect();
    let output = Command::new(env!("CARGO_BIN_EXE_offcut"))
        .args(["replay", "--cache", "--json"])
        .args(&logs)
        .output();
    let said: Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
    assert_eq!(said["conversations"], sequences.len());
    let mut named = vec![Vec::new(); sequences.len()];
    for miss in said["misses"].as_array().unwrap() {
        let log = logs
            .iter()
            .position(|log| miss["log"] == log.to_str().unwrap());
        named[log.unwrap()].push(Named {
            request: miss["line"].as_u64().unwrap() as usize - 1,
            reason: miss["kind"].as_str().unwrap().to_owned(),
            place: miss["part"].as_str().unwrap().to_owned(),
        });
    }
    named
}

#[test]
fn breaks_in_logs_are_named_and_none_is_invented() {
    let files = files();
    if files.is_empty() {
        return skipped();
    }
    // The model is not in Gemini's bodies, and times are not in logs.
    let is_in = |kind, format| match kind {
        Kind::Model => format != WireFormat::Gemini,
        _ => kind != Kind::Expired,
    };
    let mut table = Table::default();
    let seeds: Vec<_> = (0..SEQUENCES)
        .flat_map(|seed| [(seed, true), (seed, false)])
        .collect();
    for seeds in seeds.chunks(50) {
        let make = |(seed, is_broken): &(u64, bool)| made(&files, *seed, *is_broken, is_in);
        let sequences: Vec<_> = seeds.iter().map(make).collect();
        for (((seed, _), sequence), named) in seeds.iter().zip(&sequences).zip(replayed(&sequences))
        {
            table.add(*seed, sequence, &named);
        }
    }
    table.check("offcut replay --cache");
}

/// A provider's own account of its cache: the parts of each request of a conversation.
#[derive(Default)]
struct Account {
    seen: HashMap<String, Vec<Vec<Part>>>,
    known: HashMap<String, u64>,
    /// By conversation: tokens that were sent before, and billed as new once more.
    again: HashMap<String, u64>,
}

impl Account {
    /// The usage of a request, in the words of its provider.
    fn answer(&mut self, counter: &ToolReduction, request: &http::Message) -> String {
        let path = request.head.split(' ').nth(1).unwrap().to_owned();
        let goes_by_marks = path.contains("/messages");
        let body: Value = serde_json::from_str(&request.body).unwrap();
        let marks_end = body.get("cache_control").is_some();
        let mut now = parts(&(path.clone(), body));
        now.last_mut().unwrap().is_marked |= marks_end;
        let sequence = request.header("x-sequence").unwrap();
        let mut tokens = |parts: &[Part]| -> u64 {
            let each = parts
                .iter()
                .filter(|part| !["model", "options"].contains(&part.name));
            each.map(|part| {
                *self
                    .known
                    .entry(part.text.clone())
                    .or_insert_with(|| count(counter, &part.text))
            })
            .sum()
        };
        let seen = self.seen.entry(sequence.to_owned()).or_default();
        let held = seen.iter().map(|before| {
            let same = now
                .iter()
                .zip(before)
                .take_while(|(now, before)| now.text == before.text)
                .count();
            let reaches =
                |at: &usize| before[*at].is_marked && now[*at..].iter().any(|part| part.is_marked);
            match goes_by_marks {
                true => (0..same).rev().find(reaches).map_or(0, |at| at + 1),
                false => same,
            }
        });
        let held = match request.header("x-lost") {
            Some(_) => 0,
            None => held.max().unwrap_or(0),
        };
        let (all, cached) = (tokens(&now), tokens(&now[..held]));
        let mut again = 0;
        for part in &now[held..] {
            if seen.iter().flatten().any(|seen| seen.text == part.text) {
                again += tokens(std::slice::from_ref(part));
            }
        }
        self.again.insert(sequence.to_owned(), again);
        seen.push(now);
        let usage = if path.contains("/chat/") {
            json!({"usage": {"prompt_tokens": all, "prompt_tokens_details": {"cached_tokens": cached}}})
        } else if goes_by_marks {
            json!({"usage": {"input_tokens": all - cached, "cache_read_input_tokens": cached}})
        } else if path.contains("/responses") {
            json!({"usage": {"input_tokens": all, "input_tokens_details": {"cached_tokens": cached}}})
        } else {
            json!({"usageMetadata": {"promptTokenCount": all, "cachedContentTokenCount": cached}})
        };
        usage.to_string()
    }
}

fn count(counter: &ToolReduction, text: &str) -> u64 {
    let mut alone = [json!({"role": "user", "content": text})];
    counter.count_tokens(&Messages::new(&WireFormat::OpenAiChat, &mut alone), &[])
}

/// The tokens that the server counts as missed so far, for one reason.
fn missed(server: &Server, reason: &str) -> u64 {
    let metrics = http::post(server.address, "/metrics", &[], "")
        .unwrap()
        .body;
    let lines = metrics
        .lines()
        .filter(|line| line.starts_with("offcut_cache_missed_tokens_total"));
    let lines = lines.filter(|line| line.contains(&format!("reason=\"{reason}\"")));
    lines
        .map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
        .sum()
}

#[test]
fn breaks_before_a_server_are_named_at_their_cost() {
    let files = files();
    if files.is_empty() {
        return skipped();
    }
    let reduction =
        ToolReduction::builder().settings(Settings::recommended(), offcut::backend::open);
    let counter = reduction
        .backend(offcut::backend::Memory::new())
        .build()
        .unwrap();
    let account = Arc::<Mutex<Account>>::default();
    let own = account.clone();
    let provider =
        Provider::answering(move |_, request| own.lock().unwrap().answer(&counter, request));
    let home = tempfile::tempdir().unwrap();
    let settings = format!(
        "max_length_for_trunc = 100000000\nmax_tokens_for_clear = 100000000\n[serve]\ntenant_key = \"0123456789abcdef\"\ntenant_header = \"x-team\"\n[serve.upstreams]\nopenai = \"{0}\"\nanthropic = \"{0}\"\ngemini = \"{0}\"\n",
        provider.url
    );
    let server = Server::start(home.path(), &settings);
    let send = |seed: u64, sequence: &Sequence, at: usize, is_lost: bool| {
        let name = format!("{seed} {}", sequence.planted.is_some());
        // Each is a conversation of its own, though some have the same first call.
        let mut headers = vec![("x-sequence", name.as_str()), ("x-team", name.as_str())];
        headers.extend(is_lost.then_some(("x-lost", "1")));
        let (path, body) = &sequence.requests[at];
        let reply = http::post(server.address, path, &headers, &body.to_string()).unwrap();
        let said = reply
            .header("x-offcut-cache")?
            .split(['=', ';', '"'])
            .map(str::trim)
            .map(str::to_owned);
        let said: Vec<_> = said.collect();
        Some(Named {
            request: at,
            reason: said[2].clone(),
            place: said[5].clone(),
        })
    };
    let is_in = |kind, _| IS_WHOLE || kind != Kind::Expired;
    let seeds = (0..SERVED).flat_map(|seed| [(seed, true), (seed, false)]);
    let sequences: Vec<_> = seeds
        .map(|(seed, is_broken)| (seed, made(&files, seed, is_broken, is_in)))
        .collect();
    let waits = |sequence: &Sequence| {
        sequence
            .planted
            .as_ref()
            .is_some_and(|planted| planted.kind == Kind::Expired)
    };
    let (late, soon): (Vec<_>, Vec<_>) =
        sequences.iter().partition(|(_, sequence)| waits(sequence));
    let mut named: HashMap<u64, Vec<Named>> = HashMap::new();
    for (seed, sequence) in &late {
        let broken = sequence.planted.as_ref().unwrap().request;
        let said = (0..broken).filter_map(|at| send(*seed, sequence, at, false));
        named.insert(*seed, said.collect());
    }
    let begun = Instant::now();
    let (mut table, mut off) = (Table::default(), Vec::new());
    for (seed, sequence) in soon.into_iter().chain(late) {
        let planted = sequence.planted.as_ref();
        let is_late = waits(sequence);
        let mut said = named.remove(seed).filter(|_| is_late).unwrap_or_default();
        if is_late {
            std::thread::sleep(PAUSE.saturating_sub(begun.elapsed()));
        }
        let first = planted
            .filter(|_| is_late)
            .map_or(0, |planted| planted.request);
        for at in first..sequence.requests.len() {
            let Some(planted) = planted.filter(|planted| planted.request == at) else {
                said.extend(send(*seed, sequence, at, false));
                continue;
            };
            let reason = planted.kind.reason();
            let before = missed(&server, reason);
            said.extend(send(*seed, sequence, at, is_late));
            // It is known once the reply has ended.
            let counted = || missed(&server, reason) - before;
            let mut tries = (0..50).map(|_| {
                std::thread::sleep(Duration::from_millis(20));
                counted()
            });
            let tokens = tries.find(|tokens| *tokens > 0).unwrap_or(0);
            let again = account.lock().unwrap().again[&format!("{seed} true")];
            let (_, sums) = table.rows.entry(planted.kind).or_default();
            sums[0] += tokens;
            sums[1] += again;
            off.push((
                100.0 * (tokens as f64 / again.max(1) as f64 - 1.0).abs(),
                planted.kind,
            ));
        }
        table.add(*seed, sequence, &said);
        drop(provider.take());
    }
    off.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let quantile = |part: usize| off[(off.len() - 1) * part / 100];
    let [median, most, worst] = [50, 90, 100].map(quantile);
    println!("cost off by, in %: median {median:?}, 90 % {most:?}, worst {worst:?}");
    table.check("offcut serve");
    let sums = table.rows.values().map(|(_, sums)| sums);
    let [doctor, provider] = sums.fold([0, 0], |sum, row| [sum[0] + row[0], sum[1] + row[1]]);
    assert!(doctor.abs_diff(provider) * 100 <= provider * 5 && most.0 <= 5.0);
}
