//! The target `mcp_http` with libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| offcut_fuzz::run("mcp_http", data));
