//! Lets the module of Node find Node's functions when it is loaded.

fn main() {
    if std::env::var_os("CARGO_FEATURE_NODE").is_some() {
        napi_build::setup();
    }
}
