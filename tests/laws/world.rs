//! The stores and settings that drive a conversation.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures_util::StreamExt;
use offcut::backend::{Backend, Fs, Memory};
use offcut::handler::{Action, HandlerError};
use offcut::hint::Language;
use offcut::preview::Preview;
use offcut::{
    BuildError, Builder, OnOffloadError, PreviewLength, StoredNames, TokenCounter, ToolCall,
    ToolPolicy, ToolReduction,
};
use offcut_testkit::Faulty;
use proptest::option;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use tempfile::TempDir;

/// Every setting, as data.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) store: Store,
    pub(crate) counter: Counter,
    /// Added to the smallest limit that builds.
    pub(crate) more_limit: usize,
    /// Percentage of the room that the limit leaves.
    pub(crate) preview_percent: usize,
    pub(crate) stub_length: usize,
    pub(crate) previews: Previews,
    pub(crate) threshold: u64,
    pub(crate) keep: usize,
    pub(crate) at_least: u64,
    pub(crate) names: StoredNames,
    pub(crate) keep_errors: bool,
    pub(crate) clear_inputs: bool,
    pub(crate) inputs_above: usize,
    pub(crate) texts_above: Option<usize>,
    pub(crate) language: Language,
    pub(crate) has_reader: bool,
    pub(crate) mode: OnOffloadError,
    pub(crate) root: bool,
    pub(crate) session: bool,
    pub(crate) tools: Tools,
    pub(crate) handlers: Handlers,
}

/// Behaviour of the user's handlers and callbacks for every tool. None may change the outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handlers {
    None,
    /// Ask for the default treatment.
    Default,
    Fail,
    Panic,
}

impl Handlers {
    fn wish(self) -> Result<Action, HandlerError> {
        match self {
            Self::None | Self::Default => Ok(Action::Default),
            Self::Fail => Err("a handler's failure".into()),
            // Unlike `panic!`, does not call the hook that prints the panic.
            Self::Panic => std::panic::resume_unwind(Box::new("a handler's panic")),
        }
    }

    fn set(self, builder: Builder) -> Builder {
        if self == Self::None {
            return builder;
        }
        let builder = builder
            .trunc_handler(move |_| async move { self.wish() })
            .clear_handler(move |_| self.wish())
            .clear_post_process(move |_, _| Box::pin(async move { self.wish().map(drop) }));
        if self == Self::Default {
            return builder;
        }
        let name = move |call: &ToolCall| self.wish().map(|_| call.id.clone());
        builder.trunc_id_with(name).clear_id_with(name)
    }
}

/// The preview settings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Previews {
    pub(crate) preview: Preview,
    /// True if lengths grow with the text.
    pub(crate) grow: bool,
    /// Percentage of the limit above which results within it get a preview.
    pub(crate) above: Option<usize>,
}

/// Overrides for single tools.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tools {
    /// True if `fetch` has its own store.
    pub(crate) fetch_elsewhere: bool,
    /// True if `shell` is never truncated.
    pub(crate) shell_whole: bool,
    /// True if `cat` is never cleared.
    pub(crate) cat_stays: bool,
    /// Bytes added to the least limit, and the stub length, of `grep`.
    pub(crate) grep_lengths: Option<(usize, usize)>,
}

/// Creates an empty home for stores of one kind. Two homes of a kind differ only in their content.
pub(crate) type Store = fn() -> Box<dyn Home>;

/// The place where stores keep their content; dropping it deletes the content.
pub(crate) trait Home: fmt::Debug + Send + Sync {
    /// Opens the store called `name`. All homes of a kind use the same locations for the same name.
    fn open(&self, name: &str) -> Arc<dyn Backend>;

    /// The directory that holds the stores, if there is one.
    fn path(&self) -> Option<&Path> {
        None
    }

    /// Makes the `nth` write from now on fail, after it took effect if `is_done`. Does nothing if
    /// no faulty layer lies below the stores.
    fn fault(&self, _nth: u64, _is_done: bool) {}

    /// Cancels the planned fault.
    fn heal(&self) {}
}

#[derive(Debug)]
struct InMemory;

impl Home for InMemory {
    fn open(&self, name: &str) -> Arc<dyn Backend> {
        Arc::new(Memory::named(name).unwrap())
    }
}

pub(crate) fn memory() -> Box<dyn Home> {
    Box::new(InMemory)
}

impl Home for TempDir {
    fn open(&self, name: &str) -> Arc<dyn Backend> {
        Arc::new(
            Fs::open(self.path().join(name))
                .unwrap()
                .shown_as(format!("/stores/{name}")),
        )
    }

    fn path(&self) -> Option<&Path> {
        Some(self.path())
    }
}

pub(crate) fn files() -> Box<dyn Home> {
    Box::new(tempfile::tempdir().unwrap())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counter {
    Estimate,
    /// A closure that charges little for whitespace.
    Words,
    Tiktoken,
}

pub(crate) fn words(text: &str) -> u64 {
    text.split_ascii_whitespace().count() as u64 + (text.len() / 6) as u64
}

/// Picks the default strategy half of the time.
pub(crate) fn preview() -> impl Strategy<Value = Preview> {
    let others = prop_oneof![
        Just(Preview::Lines),
        Just(Preview::Index),
        Just(Preview::Mixed)
    ];
    prop_oneof![Just(Preview::HeadTail), others]
}

pub(crate) fn setups(store: Store) -> impl Strategy<Value = Setup> {
    let counter = prop_oneof![8 => Just(Counter::Estimate), 3 => Just(Counter::Words), 1 => Just(Counter::Tiktoken)];
    let lengths = (
        0_usize..3_000,
        0_usize..=100,
        prop_oneof![2 => Just(0), 1 => 1_usize..400],
    );
    let previews = (
        preview(),
        any::<bool>(),
        option::weighted(0.3, 0_usize..=100),
    );
    let previews = previews.prop_map(|(preview, grow, above)| Previews {
        preview,
        grow,
        above,
    });
    let clear = (
        prop_oneof![3 => 1_u64..400, 1 => 400_u64..3_000],
        0_usize..4,
        prop_oneof![2 => Just(0), 1 => 1_u64..900],
        any::<bool>(),
        any::<bool>(),
        prop_oneof![Just(0), 0_usize..600],
        option::of(0_usize..600),
    );
    let mode = prop_oneof![
        Just(OnOffloadError::KeepOriginal),
        Just(OnOffloadError::PreviewOnly),
        Just(OnOffloadError::Fail)
    ];
    let language = prop_oneof![Just(Language::English), Just(Language::Chinese)];
    let names = prop_oneof![Just(StoredNames::CallId), Just(StoredNames::Short)];
    let others = (
        language,
        any::<bool>(),
        mode,
        any::<bool>(),
        any::<bool>(),
        names,
    );
    let grep = option::weighted(0.4, (0_usize..2_000, 0_usize..300));
    let tools = (any::<bool>(), any::<bool>(), any::<bool>(), grep).prop_map(
        |(elsewhere, whole, stays, grep_lengths)| Tools {
            fetch_elsewhere: elsewhere,
            shell_whole: whole,
            cat_stays: stays,
            grep_lengths,
        },
    );
    let handlers = prop_oneof![
        5 => Just(Handlers::None), 1 => Just(Handlers::Default), 1 => Just(Handlers::Fail), 1 => Just(Handlers::Panic)
    ];
    let all = (counter, lengths, previews, clear, others, tools, handlers);
    all.prop_map(
        move |(counter, lengths, previews, clear, others, tools, handlers)| {
            let (more_limit, preview_percent, stub_length) = lengths;
            let (threshold, keep, at_least, keep_errors, clear_inputs, inputs_above, texts_above) =
                clear;
            let (language, has_reader, mode, root, session, names) = others;
            Setup {
                store,
                counter,
                more_limit,
                preview_percent,
                stub_length,
                previews,
                threshold,
                keep,
                at_least,
                names,
                keep_errors,
                clear_inputs,
                inputs_above,
                texts_above,
                language,
                has_reader,
                mode,
                root,
                session,
                tools,
                handlers,
            }
        },
    )
}

/// The stores, which outlive a process, and the settings that each process starts with.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) setup: Setup,
    pub(crate) stores: [Faulty<Arc<dyn Backend>>; 2],
    pub(crate) home: Box<dyn Home>,
    /// Number of decisions reported.
    pub(crate) decisions: Arc<AtomicU64>,
}

impl World {
    pub(crate) fn new(setup: Setup) -> Self {
        let home = (setup.store)();
        let stores = ["one", "two"].map(|name| Faulty::new(home.open(name)));
        Self {
            setup,
            stores,
            home,
            decisions: Arc::default(),
        }
    }

    /// Starts a process: a reduction that knows nothing but the stores.
    pub(crate) fn reduction(&self) -> ToolReduction {
        let mut least = 1;
        loop {
            match self.try_build(least) {
                Ok(reduction) if self.setup.session => return reduction.session("s1"),
                Ok(reduction) => return reduction,
                Err(BuildError::LimitTooSmall { at_least, .. }) => least = at_least,
                Err(other) => panic!("{other}"),
            }
        }
    }

    fn try_build(&self, least: usize) -> Result<ToolReduction, BuildError> {
        let Setup {
            tools, previews, ..
        } = self.setup;
        let length = |at_most| {
            if previews.grow {
                PreviewLength::curve(3.0, 0.7, at_most)
            } else {
                PreviewLength::Bytes(at_most)
            }
        };
        let limit = least + self.setup.more_limit;
        let decisions = Arc::clone(&self.decisions);
        let mut builder = ToolReduction::builder()
            .on_report(move |report| {
                decisions.fetch_add(report.decisions.len() as u64, Ordering::Relaxed);
            })
            .backend(self.stores[0].clone())
            .max_length_for_trunc(limit)
            .preview(previews.preview)
            .preview_above(previews.above.map(|percent| least * percent / 100))
            .preview_length(length(least * self.setup.preview_percent / 100))
            .stub_length(length(self.setup.stub_length))
            .max_tokens_for_clear(self.setup.threshold)
            .clear_retention_suffix_limit(self.setup.keep)
            .clear_at_least_tokens(self.setup.at_least)
            .names(self.setup.names)
            .keep_errors(self.setup.keep_errors)
            .clear_tool_inputs(self.setup.clear_inputs)
            .clear_tool_inputs_above(self.setup.inputs_above)
            .clear_user_texts_above(self.setup.texts_above)
            .language(self.setup.language)
            .read_file_tool_name(self.setup.has_reader.then_some("read_file"))
            .on_offload_error(self.setup.mode)
            .root_dir(if self.setup.root { "agents/a-1" } else { "" });
        builder = match self.setup.counter {
            Counter::Estimate => builder.token_counter(TokenCounter::Estimate),
            Counter::Words => builder.count_tokens_with(words),
            Counter::Tiktoken => builder.token_counter(TokenCounter::O200kBase),
        };
        if tools.fetch_elsewhere {
            builder = builder.tool("fetch", ToolPolicy::new().backend(self.stores[1].clone()));
        }
        if tools.shell_whole {
            builder = builder.tool("shell", ToolPolicy::new().skip_truncation(true));
        }
        if tools.cat_stays {
            builder = builder.clear_exclude_tools(["cat"]);
        }
        if let Some((more, stub)) = tools.grep_lengths {
            let policy = ToolPolicy::new()
                .max_length_for_trunc(least + more)
                .stub_length(length(stub));
            builder = builder.tool("grep", policy);
        }
        self.setup.handlers.set(builder).build()
    }

    /// Lists everything stored, by store and key.
    pub(crate) async fn stored(&self) -> BTreeMap<String, Bytes> {
        let mut all = BTreeMap::new();
        for (store, name) in self.stores.iter().zip(["one", "two"]) {
            let mut entries = store.inner().list();
            while let Some(entry) = entries.next().await {
                let entry = entry.unwrap();
                let page = store.inner().read(&entry.key, 0..u64::MAX).await.unwrap();
                assert_eq!(
                    (page.total, page.bytes.len() as u64),
                    (entry.bytes, entry.bytes)
                );
                all.insert(format!("{name}/{}", entry.key), page.bytes);
            }
        }
        all
    }

    /// Lists every path below the stores' directory, relative to it; empty for other stores.
    pub(crate) fn paths(&self) -> Vec<String> {
        fn walk(at: &Path, home: &Path, found: &mut Vec<String>) {
            for entry in at.read_dir().unwrap() {
                let path = entry.unwrap().path();
                found.push(
                    path.strip_prefix(home)
                        .unwrap()
                        .to_str()
                        .unwrap()
                        .to_owned(),
                );
                if path.is_dir() && !path.is_symlink() {
                    walk(&path, home, found);
                }
            }
        }
        let mut found = Vec::new();
        if let Some(home) = self.home.path() {
            walk(home, home, &mut found);
        }
        found.sort();
        found
    }
}
