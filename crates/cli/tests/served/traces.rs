//! Real transcripts, driven through servers as an agent sends them: at each call the whole history.
//!
//! `OFFCUT_TRACES` names a folder of transcripts, as for `tests/traces.rs`. Without optimization some of them are
//! tested in one format each, with it all of them in three.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use offcut::format::{LoopFormat, Messages, WireFormat};
use offcut::{Settings, ToolReduction};
use serde_json::{Value, json};

use crate::convert::{Converter, Step, turns};
use crate::http::{self, Provider};
use crate::server::Server;

pub const IS_WHOLE: bool = !cfg!(debug_assertions);
const FORMATS: [(WireFormat, &str, &str); 3] = [
    (WireFormat::OpenAiChat, "/v1/chat/completions", "messages"),
    (WireFormat::Responses, "/v1/responses", "input"),
    (WireFormat::Anthropic, "/v1/messages", "messages"),
];
/// The greatest difference of a format's bill from the replay's, in points of the bill without Offcut.
const POINTS: f64 = 1.0;

/// The transcripts, or a sample of them.
pub fn files() -> Vec<PathBuf> {
    let folder = std::env::var_os("OFFCUT_TRACES");
    let entries = folder.and_then(|folder| std::fs::read_dir(folder).ok());
    let paths = entries.into_iter().flatten();
    let mut files: Vec<_> = paths
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .filter(|path| IS_WHOLE || path.metadata().is_ok_and(|file| file.len() < 250_000))
        .collect();
    files.sort();
    let every = if IS_WHOLE { 1 } else { 15 };
    files.into_iter().step_by(every).collect()
}

pub fn skipped() {
    eprintln!("SKIPPED: OFFCUT_TRACES names no folder with JSON files");
}

/// The messages of each call of the model.
fn histories(file: &Path, format: WireFormat) -> Vec<Vec<Value>> {
    let trace: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let mut conversation = Converter::new(format);
    let mut histories = Vec::new();
    for turn in turns(trace["messages"].as_array().unwrap()) {
        match turn {
            Step::Say(role, text) => conversation.say(&role, &text),
            Step::Answer(call, text) => conversation.answer(&call, vec![text.into()]),
            Step::Ask(text, calls) => {
                histories.push(conversation.messages.clone());
                conversation.ask(&text, &calls);
            }
        }
    }
    histories
}

/// The servers that a conversation goes through.
#[derive(Clone, Copy, Debug)]
enum Arm {
    One,
    /// Killed and started again in the middle.
    Restarted,
    /// Three over one store, in turn.
    Replicas,
}

/// Sends the requests of a conversation through servers with a new store in `home`. Returns what arrived.
fn send(
    arm: Arm,
    requests: &[String],
    path: &str,
    provider: &Provider,
    home: &Path,
) -> Vec<String> {
    // Its path is in the hints, and so are names that are made with its secret: both stay the same.
    let secret = home.join("store/meta/naming-secret");
    let bytes = std::fs::read(&secret);
    _ = std::fs::remove_dir_all(home.join("store"));
    if let Ok(bytes) = bytes {
        std::fs::create_dir_all(home.join("store/meta")).unwrap();
        std::fs::write(&secret, bytes).unwrap();
    }
    let settings = format!(
        "preset = \"recommended\"\n[serve.upstreams]\nopenai = \"{0}\"\nanthropic = \"{0}\"\n",
        provider.url
    );
    let start = || Server::start(home, &settings);
    let count = if matches!(arm, Arm::Replicas) { 3 } else { 1 };
    let mut servers: Vec<_> = (0..count).map(|_| start()).collect();
    for (number, body) in requests.iter().enumerate() {
        if matches!(arm, Arm::Restarted) && number == requests.len() / 2 {
            servers.clear();
            servers.push(start());
        }
        let server = &servers[number % servers.len()];
        let reply = http::post(server.address, path, &[], body).unwrap();
        let outcome = reply.header("x-offcut").unwrap();
        assert!(["reduced", "unchanged"].contains(&outcome), "{outcome}");
    }
    provider
        .take()
        .into_iter()
        .map(|message| message.body)
        .collect()
}

/// Counts the tokens of messages, each once.
struct Counter {
    reduction: ToolReduction,
    known: HashMap<String, u64>,
}

impl Counter {
    fn count(&mut self, format: WireFormat, message: &Value) -> u64 {
        let reduction = &self.reduction;
        let count = || {
            let mut alone = [message.clone()];
            reduction.count_tokens(&Messages::new(&format, &mut alone), &[])
        };
        *self.known.entry(message.to_string()).or_insert_with(count)
    }

    /// The bill of a conversation: a tenth for messages that were in the request before, and the rest whole.
    fn bill(&mut self, format: WireFormat, histories: &[Vec<Value>]) -> f64 {
        let (mut bill, mut before): (f64, &[Value]) = (0.0, &[]);
        for history in histories {
            let same = before.iter().zip(history).take_while(|(a, b)| a == b);
            let same = same.count();
            for (number, message) in history.iter().enumerate() {
                let weight = if number < same { 0.1 } else { 1.0 };
                bill += weight * self.count(format, message) as f64;
            }
            before = history;
        }
        bill
    }
}

/// The bill of the replay under `recommended`, in percent of the bill without.
fn replayed(files: &[PathBuf]) -> f64 {
    let policy = Path::new(env!("CARGO_MANIFEST_DIR")).join("policies/recommended.toml");
    let output = Command::new(env!("CARGO_BIN_EXE_offcut"))
        .arg("replay")
        .args(files)
        .args(["--json", "--policy"])
        .arg(format!("recommended={}", policy.display()))
        .output()
        .unwrap();
    let figures: Value = serde_json::from_slice(&output.stdout).unwrap();
    let bill = |policy: usize| figures["policies"][policy]["bill"].as_f64().unwrap();
    100.0 * bill(1) / bill(0)
}

#[test]
fn transcripts_cost_what_the_replay_says_and_are_the_same_from_any_server() {
    let files = files();
    if files.is_empty() {
        return skipped();
    }
    // Hints name it, and a long random name would cost what no user's folder does.
    let home = tempfile::Builder::new()
        .prefix("offcut")
        .rand_bytes(2)
        .tempdir()
        .unwrap();
    let provider = Provider::start();
    let reduction =
        ToolReduction::builder().settings(Settings::recommended(), offcut::backend::open);
    let reduction = reduction.backend(offcut::backend::Memory::new()).build();
    let mut counter = Counter {
        reduction: reduction.unwrap(),
        known: HashMap::new(),
    };
    let mut bills = [[0.0; 2]; FORMATS.len()];
    let mut calls = 0;
    for (number, file) in files.iter().enumerate() {
        for (nth, (format, path, field)) in FORMATS.into_iter().enumerate() {
            if !IS_WHOLE && nth != number % FORMATS.len() {
                continue;
            }
            let histories = histories(file, format);
            calls += histories.len();
            let tools = format.tool(&counter.reduction.read_file_tool());
            let request = |history: &Vec<Value>| {
                json!({"model": "m", field: history, "tools": [tools]}).to_string()
            };
            let requests: Vec<_> = histories.iter().map(request).collect();
            let sent = send(Arm::One, &requests, path, &provider, home.path());
            for arm in [Arm::Restarted, Arm::Replicas] {
                let other = send(arm, &requests, path, &provider, home.path());
                for (call, (one, other)) in sent.iter().zip(&other).enumerate() {
                    assert!(
                        one == other,
                        "{}: {format}, call {call}, {arm:?}",
                        file.display()
                    );
                }
            }
            let sent: Vec<Vec<Value>> = sent
                .iter()
                .map(|body| {
                    let mut body: Value = serde_json::from_str(body).unwrap();
                    serde_json::from_value(body[field].take()).unwrap()
                })
                .collect();
            let all = [
                counter.bill(format, &histories),
                counter.bill(format, &sent),
            ];
            for (sum, bill) in bills[nth].iter_mut().zip(all) {
                *sum += bill;
            }
        }
    }
    // In the sample, each format has other transcripts.
    if IS_WHOLE {
        let expected = replayed(&files);
        for ([without, with], (format, ..)) in bills.iter().zip(FORMATS) {
            let bill = 100.0 * with / without;
            println!("{format}: {bill:.2} % of the bill, and {expected:.2} % in the replay");
            assert!((bill - expected).abs() < POINTS, "{format}");
        }
    } else {
        let [without, with] = [0, 1].map(|kind| bills.iter().map(|bill| bill[kind]).sum::<f64>());
        let (bill, expected) = (100.0 * with / without, replayed(&files));
        println!("{bill:.2} % of the bill, and {expected:.2} % in the replay");
        assert!((bill - expected).abs() < POINTS);
    }
    println!(
        "{} transcripts, {calls} calls, each through five servers",
        files.len()
    );
}
