//! The target `openai_chat` with libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| offcut_fuzz::run("openai_chat", data));
