//! Runs every target over its seeds and over inputs that fuzzing found, without a fuzzer.

#![allow(clippy::unwrap_used, reason = "what helps tests is part of them")]

use std::path::Path;

use offcut_fuzz::TARGETS;

/// Stack size in bytes: trees of values take deep recursion in unoptimized tests.
const STACK: usize = 64 << 20;

fn holds_over_its_corpus(target: &'static str) {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = home.join("corpus").join(target).read_dir().unwrap();
    let mut inputs: Vec<_> = folder.map(|file| file.unwrap().path()).collect();
    inputs.sort();
    assert!(!inputs.is_empty(), "there are no seeds");
    let run = move || {
        for input in inputs {
            let data = std::fs::read(&input).unwrap();
            let held = std::panic::catch_unwind(|| offcut_fuzz::run(target, &data));
            assert!(
                held.is_ok(),
                "{} breaks a law: see above",
                input.strip_prefix(home).unwrap().display()
            );
        }
    };
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(run);
    if let Err(panic) = thread.unwrap().join() {
        std::panic::resume_unwind(panic);
    }
}

macro_rules! targets {
    ($($target:ident)*) => {
        $(
            #[test]
            fn $target() {
                holds_over_its_corpus(stringify!($target));
            }
        )*

        #[test]
        fn every_target_has_a_corpus() {
            assert_eq!(TARGETS.map(|(name, _)| name), [$(stringify!($target)),*]);
        }
    };
}

targets! {
    anthropic body gemini hint key mcp mcp_events mcp_http openai_chat preview reader replay responses schema settings_file splitter
}
