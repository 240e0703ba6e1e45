//! Conversations as data: the steps of an agent loop.

use std::fmt;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Just, Strategy, any, prop_oneof};

use super::text::{Text, sayings, texts};

/// One step of a loop.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Adds a message that has nothing to do with tools.
    Say {
        speaker: Speaker,
        text: Text,
        style: u8,
    },
    /// The model calls tools, some of which answer.
    Round {
        says: Option<Text>,
        calls: Vec<CallSpec>,
        style: u8,
    },
    /// A result without a known call.
    Orphan { call: CallSpec, style: u8 },
    /// A message that no provider would send.
    Odd(u8),
    /// A clear pass.
    Clear,
    /// A restart of the program over the same store.
    Restart,
    /// A round trip of the messages through JSON.
    RoundTrip,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaker {
    User,
    Assistant,
    System,
}

#[derive(Clone, Debug)]
pub(crate) struct CallSpec {
    pub(crate) id: Id,
    pub(crate) tool: Tool,
    pub(crate) arguments: Args,
    /// `None` if the tool never answers.
    pub(crate) output: Option<Output>,
}

/// A call id. `Debug` shows only the length of a long one.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Id(pub(crate) String);

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.len() > 80 {
            write!(f, "Id({} B)", self.0.len())
        } else {
            write!(f, "Id({:?})", self.0)
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tool {
    Grep,
    Cat,
    Shell,
    Fetch,
    Hostile,
    Nameless,
}

impl Tool {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Grep => "grep",
            Self::Cat => "cat",
            Self::Shell => "shell",
            Self::Fetch => "fetch",
            Self::Hostile => {
                "../x\"] {reader}\n[offcut/1 gone -] 呼叫呼叫呼叫呼叫呼叫呼叫呼叫呼叫呼叫呼叫呼叫呼叫呼叫"
            }
            Self::Nameless => "",
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Args {
    Empty,
    Json(Text),
    NotJson(Text),
    /// A path, and a list of texts.
    Strings(Vec<Text>),
    /// Placeholder for cleared arguments, as if the model had copied it.
    Cleared(usize),
}

#[derive(Clone, Debug)]
pub(crate) struct Output {
    pub(crate) body: Body,
    pub(crate) is_error: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Body {
    Parts(Vec<PartSpec>),
    /// Text with invalid bytes in it.
    Bytes(Text),
    /// A stream that ends with an error.
    Broken(Text),
    /// Our reader's answer about stored content.
    Page {
        which: usize,
        offset: i8,
        limit: Option<u8>,
        pattern: bool,
    },
    /// Another reader's output about stored content.
    Cat {
        which: usize,
        numbers: bool,
        header: bool,
        skip: usize,
        /// Leaves out one line in every `without`; 0 leaves out none.
        without: usize,
    },
}

#[derive(Clone, Debug)]
pub(crate) enum PartSpec {
    Text(Text),
    Json(Text),
    Media {
        mime: Mime,
        length: usize,
        seed: u8,
    },
    Link(usize),
    Opaque(Text),
    /// A hint from the conversation, perhaps with text after it.
    Copy {
        which: usize,
        more: Option<Text>,
    },
    /// A text like a hint.
    Forged(Forgery),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mime {
    Png,
    Wav,
    Pdf,
    Json,
    Unknown,
}

impl Mime {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Wav => "audio/wav",
            Self::Pdf => "application/pdf",
            Self::Json => "application/json",
            Self::Unknown => "x-thing/../\"{tool}",
        }
    }
}

/// A text that looks like a hint: a changed one of ours, or an invented one.
#[derive(Clone, Debug)]
pub(crate) struct Forgery {
    /// Index of the real hint that it starts from; `None` starts from scratch.
    pub(crate) like: Option<usize>,
    pub(crate) kind: Option<HintKind>,
    pub(crate) place: Place,
    pub(crate) prose: Option<Text>,
    pub(crate) preview: Option<Text>,
    pub(crate) notes: [bool; 3],
    pub(crate) bytes: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HintKind {
    Truncated,
    Cleared,
    Link,
    Page(u64, u64),
    Matches,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The real hint's own location.
    Same,
    /// The location of other content of ours.
    Known(usize),
    /// An empty location below our root.
    Invented,
    Foreign,
    Nowhere,
}

pub(crate) fn ids() -> impl Strategy<Value = Id> {
    let hostile = [
        "../../etc/cron.d/x",
        "..",
        ".",
        "/etc/passwd",
        "a\0b",
        "呼叫",
        "C:\\x",
        "con",
        "Call_0",
        "call_0 ",
        "call_0-2",
        "call_0-args",
        "call_0.json",
        "call_0.png",
        ".staging",
        "trunc",
        "Clear",
        "call_0\n]",
    ];
    prop_oneof![
        8 => Just("call_0".to_owned()),
        8 => (1_u8..5).prop_map(|n| format!("call_{n}")),
        3 => Just(String::new()),
        4 => (0..hostile.len()).prop_map(move |n| hostile[n].to_owned()),
        1 => prop_oneof![Just(64), Just(65), Just(2_000)].prop_map(|length| "x".repeat(length)),
    ]
    .prop_map(Id)
}

fn tools() -> impl Strategy<Value = Tool> {
    prop_oneof![
        6 => Just(Tool::Grep),
        4 => Just(Tool::Cat),
        4 => Just(Tool::Shell),
        4 => Just(Tool::Fetch),
        1 => Just(Tool::Hostile),
        1 => Just(Tool::Nameless),
    ]
}

fn forgeries() -> impl Strategy<Value = Forgery> {
    let kind = prop_oneof![
        1 => Just(HintKind::Truncated),
        1 => Just(HintKind::Cleared),
        1 => Just(HintKind::Link),
        2 => Just(HintKind::Matches),
        3 => (prop_oneof![1_u64..9, Just(u64::MAX)], prop_oneof![0_u64..9, Just(u64::MAX)])
            .prop_map(|(l, b)| HintKind::Page(l, b)),
    ];
    let place = prop_oneof![
        4 => Just(Place::Same),
        2 => (0_usize..6).prop_map(Place::Known),
        1 => Just(Place::Invented),
        1 => Just(Place::Foreign),
        1 => Just(Place::Nowhere),
    ];
    let said = || option::weighted(0.4, sayings());
    let shown = option::weighted(0.5, texts());
    let notes = prop_oneof![3 => Just([false; 3]), 1 => any::<[bool; 3]>()];
    let bytes = option::weighted(0.3, prop_oneof![0_u64..9_000, Just(u64::MAX)]);
    let like = option::weighted(0.7, 0_usize..6);
    (
        like,
        option::weighted(0.4, kind),
        place,
        said(),
        shown,
        notes,
        bytes,
    )
        .prop_map(
            |(like, kind, place, prose, preview, notes, bytes)| Forgery {
                like,
                kind,
                place,
                prose,
                preview,
                notes,
                bytes,
            },
        )
}

fn parts() -> impl Strategy<Value = PartSpec> {
    let mimes = prop_oneof![
        4 => Just(Mime::Png),
        1 => Just(Mime::Wav),
        1 => Just(Mime::Pdf),
        1 => Just(Mime::Json),
        1 => Just(Mime::Unknown),
    ];
    let media = (mimes, prop_oneof![0_usize..60, 300_usize..4_000], 0_u8..3)
        .prop_map(|(mime, length, seed)| PartSpec::Media { mime, length, seed });
    prop_oneof![
        14 => texts().prop_map(PartSpec::Text),
        2 => texts().prop_map(PartSpec::Json),
        2 => media,
        1 => prop_oneof![5_usize..40, 300_usize..900].prop_map(PartSpec::Link),
        1 => sayings().prop_map(PartSpec::Opaque),
        2 => copies(),
        3 => forgeries().prop_map(PartSpec::Forged),
    ]
}

fn pages() -> impl Strategy<Value = Body> {
    (0_usize..6, -9_i8..20, option::of(1_u8..9), any::<bool>()).prop_map(
        |(which, offset, limit, pattern)| Body::Page {
            which,
            offset,
            limit,
            pattern,
        },
    )
}

fn cats() -> impl Strategy<Value = Body> {
    let without = prop_oneof![2 => Just(0), 1 => 2_usize..40];
    (
        0_usize..6,
        any::<bool>(),
        any::<bool>(),
        0_usize..30,
        without,
    )
        .prop_map(|(which, numbers, header, skip, without)| Body::Cat {
            which,
            numbers,
            header,
            skip,
            without,
        })
}

fn copies() -> impl Strategy<Value = PartSpec> {
    (0_usize..6, option::weighted(0.3, sayings()))
        .prop_map(|(which, more)| PartSpec::Copy { which, more })
}

fn outputs() -> impl Strategy<Value = Output> {
    let many = vec(
        (0_usize..400)
            .prop_map(|length| PartSpec::Text(Text::new(super::text::Kind::Lines, length, 1))),
        5..60,
    );
    let body = prop_oneof![
        16 => parts().prop_map(|part| Body::Parts(vec![part])),
        5 => vec(parts(), 0..5).prop_map(Body::Parts),
        1 => many.prop_map(Body::Parts),
        1 => texts().prop_map(Body::Bytes),
        1 => texts().prop_map(Body::Broken),
        2 => pages(),
        2 => cats(),
    ];
    (body, prop_oneof![5 => Just(false), 1 => Just(true)])
        .prop_map(|(body, is_error)| Output { body, is_error })
}

fn calls() -> impl Strategy<Value = CallSpec> {
    let arguments = prop_oneof![
        2 => Just(Args::Empty),
        4 => texts().prop_map(Args::Json),
        1 => sayings().prop_map(Args::NotJson),
        2 => vec(texts(), 0..20).prop_map(Args::Strings),
        1 => (0_usize..6).prop_map(Args::Cleared),
    ];
    let output = option::weighted(0.93, outputs());
    (ids(), tools(), arguments, output).prop_map(|(id, tool, arguments, output)| CallSpec {
        id,
        tool,
        arguments,
        output,
    })
}

/// Generates loops that use everything a conversation can contain.
pub(crate) fn conversations() -> impl Strategy<Value = Vec<Step>> {
    let speaker = || {
        prop_oneof![
            Just(Speaker::User),
            Just(Speaker::Assistant),
            Just(Speaker::System)
        ]
    };
    let says = option::weighted(0.3, sayings());
    let step = prop_oneof![
        10 => (says, vec(calls(), 1..4), any::<u8>()).prop_map(|(says, calls, style)| Step::Round { says, calls, style }),
        4 => (speaker(), sayings(), any::<u8>()).prop_map(|(speaker, text, style)| Step::Say { speaker, text, style }),
        5 => Just(Step::Clear),
        1 => (calls(), any::<u8>()).prop_map(|(call, style)| Step::Orphan { call, style }),
        1 => any::<u8>().prop_map(Step::Odd),
        1 => Just(Step::Restart),
        1 => Just(Step::RoundTrip),
    ];
    vec(step, 1..14).prop_map(|mut steps| {
        // Loops run a pass before their last call too.
        steps.push(Step::Say {
            speaker: Speaker::Assistant,
            text: Text::new(super::text::Kind::Lines, 20, 0),
            style: 0,
        });
        steps.push(Step::Clear);
        steps
    })
}

/// Generates long results, then imitations of their hints, then a pass that must tell them apart.
pub(crate) fn imitations() -> impl Strategy<Value = Vec<Step>> {
    let body = prop_oneof![
        6 => forgeries().prop_map(|forgery| Body::Parts(vec![PartSpec::Forged(forgery)])),
        2 => vec(prop_oneof![forgeries().prop_map(PartSpec::Forged), copies()], 1..4).prop_map(Body::Parts),
        1 => pages(),
        1 => cats(),
    ];
    let round = |call: CallSpec| Step::Round {
        says: None,
        calls: vec![call],
        style: 0,
    };
    let call = |body, n: usize| CallSpec {
        id: Id(format!("call_{n}")),
        tool: Tool::Grep,
        arguments: Args::Empty,
        output: Some(Output {
            body,
            is_error: false,
        }),
    };
    let long = (texts(), 4_000_usize..9_000)
        .prop_map(|(text, length)| PartSpec::Text(Text { length, ..text }));
    (vec(long, 1..3), vec(body, 1..6)).prop_map(move |(long, bodies)| {
        let reals = long.into_iter().map(|part| Body::Parts(vec![part]));
        let mut steps: Vec<Step> = reals
            .chain(bodies)
            .enumerate()
            .map(|(n, body)| round(call(body, n)))
            .collect();
        steps.push(Step::Say {
            speaker: Speaker::Assistant,
            text: Text::new(super::text::Kind::Lines, 20, 0),
            style: 0,
        });
        steps.push(Step::Clear);
        steps
    })
}

/// Generates conversations without imitations, odd messages or parts other than text: simple enough
/// for a simple reducer.
pub(crate) fn simple_conversations() -> impl Strategy<Value = Vec<Step>> {
    let output = |text| Output {
        body: Body::Parts(vec![PartSpec::Text(text)]),
        is_error: false,
    };
    let call = (ids(), texts(), any::<bool>()).prop_map(move |(id, text, is_error)| CallSpec {
        id,
        tool: Tool::Grep,
        arguments: Args::Empty,
        output: Some(Output {
            is_error,
            ..output(text)
        }),
    });
    let step = prop_oneof![
        6 => (vec(call, 1..3), any::<u8>()).prop_map(|(calls, style)| Step::Round { says: None, calls, style }),
        2 => (sayings(), any::<u8>()).prop_map(|(text, style)| Step::Say { speaker: Speaker::Assistant, text, style }),
        3 => Just(Step::Clear),
    ];
    vec(step, 3..12)
}
