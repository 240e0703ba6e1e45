//! The built-in policies.

/// The policies of this program, by name; the default is first.
pub const READY: [(&str, &str); 6] = [
    ("recommended", include_str!("../policies/recommended.toml")),
    ("eino", include_str!("../policies/eino.toml")),
    ("anthropic", include_str!("../policies/anthropic.toml")),
    ("aggressive", include_str!("../policies/aggressive.toml")),
    ("gentle", include_str!("../policies/gentle.toml")),
    (
        "cache-friendly",
        include_str!("../policies/cache-friendly.toml"),
    ),
];
