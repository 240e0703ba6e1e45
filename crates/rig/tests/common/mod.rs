//! A model server, and an agent with three tools that return too much.
// Each test uses only a part of this module.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

pub(crate) mod model;
pub(crate) mod tools;
