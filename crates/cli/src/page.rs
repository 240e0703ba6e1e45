//! Parts of the pages that Offcut shows in a browser: the report of `offcut replay`, and the live page
//! of `offcut serve`.

/// The style that all pages share: colours for light and dark, type, tables, controls and charts.
pub(crate) const STYLE: &str = include_str!("page/parts.css");

/// The functions that all pages share: elements, numbers and charts. A page's own script follows it.
pub(crate) const SCRIPT: &str = include_str!("page/parts.js");
