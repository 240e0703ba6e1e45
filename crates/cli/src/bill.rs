//! Estimated bills, in words.

use crate::output;

/// Bytes of a token, for figures that nobody is billed by: tool output of coding agents has three to four.
pub(crate) const BYTES_PER_TOKEN: i64 = 4;

/// Describes an estimate: `paid` in place of `would`, each in bytes, weighted by the prices of a million
/// tokens. With a currency and the source of its prices, it is money. Empty if there is nothing to pay.
pub(crate) fn estimate(paid: f64, would: f64, money: Option<[&str; 2]>) -> String {
    if would <= 0.0 {
        return String::new();
    }
    let share = format!("{:.1} %", 100.0 * paid / would);
    let amount = |bytes: f64| bytes / BYTES_PER_TOKEN as f64 / 1e6;
    match money {
        Some([currency, source]) => format!(
            "By estimate, the input costs {} {:.2} in place of {:.2}, {share} ({}).\n",
            output::visible(currency),
            amount(paid),
            amount(would),
            output::visible(source),
        ),
        None => format!("By estimate, the input costs {share} of what it would have.\n"),
    }
}
