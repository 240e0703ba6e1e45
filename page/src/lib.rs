//! Parts of the pages that Offcut shows in a browser: the report of `offcut replay`, and the live page
//! of `offcut serve`.

#![cfg_attr(docsrs, feature(doc_cfg))]

/// The style that all pages share: colours for light and dark, type, tables, controls and charts.
pub const STYLE: &str = include_str!("parts.css");

/// The functions that all pages share: elements, numbers and charts. A page's own script follows it.
pub const SCRIPT: &str = include_str!("parts.js");

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Page;
