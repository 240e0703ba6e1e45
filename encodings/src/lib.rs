#![cfg_attr(docsrs, feature(doc_cfg))]
#![doc = include_str!("../README.md")]

mod encoding;
mod known;
mod segments;

pub use encoding::Encoding;
