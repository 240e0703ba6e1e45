#![doc = include_str!(concat!(env!("OUT_DIR"), "/README.md"))]

/// Modules without code, each documented by the page of its name.
macro_rules! pages {
    ($($module:ident: $file:literal,)*) => {
        $(
            #[doc = include_str!(concat!(env!("OUT_DIR"), "/", $file))]
            pub mod $module {}
        )*
    };
}

pages! {
    agents: "agents.md",
    coming_from: "coming-from.md",
    comparison: "comparison.md",
    configuration: "configuration.md",
    cookbook: "cookbook.md",
    formats: "formats.md",
    glossary: "glossary.md",
    guarantees: "guarantees.md",
    guide: "guide.md",
    litellm: "litellm.md",
    mcp: "mcp.md",
    object_stores: "object-stores.md",
    options: "options.md",
    peers: "peers.md",
    performance: "performance.md",
    previews: "previews.md",
    reports: "reports.md",
    rules: "rules.md",
    seams: "seams.md",
    serve: "serve.md",
    state: "state.md",
    stores: "stores.md",
    sweeping: "sweeping.md",
    trials: "trials.md",
    troubleshooting: "troubleshooting.md",
}
