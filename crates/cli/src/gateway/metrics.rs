//! Figures for Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;

use crate::lock::locked;
use std::time::Duration;

rows! {
    /// A counter, whose name ends in `_total`, or a gauge: its name for Prometheus, and help.
    Metric: (&'static str, &'static str) {
        Bytes => ("offcut_bytes_total",
            "Bytes of requests, before (0 for those that only read back) and after."),
        Reads => ("offcut_reads_total",
            "Reads of stored content, as the next requests of their conversations or the calls of a plug tell."),
        Untouched => ("offcut_untouched_conversations_total",
            "Conversations of which the provider took only the original, which pass untouched since."),
        CacheMisses => ("offcut_cache_misses_total",
            "Requests of which the provider's cache could have held more, by upstream and reason."),
        CacheMissedBytes => ("offcut_cache_missed_bytes_total",
            "Bytes that were sent before and are billed as new once more, by upstream and reason."),
        CacheMissedTokens => ("offcut_cache_missed_tokens_total",
            "The same in input tokens, by the provider's own count, where it says what its cache held."),
        SenderBytes => ("offcut_sender_bytes_total",
            "Bytes of requests, before (0 for those that only read back) and after, by tenant, model and client: the first 200 of these, and others."),
        SenderTokens => ("offcut_sender_tokens_total",
            "Input tokens by the provider's own count, by tenant, model and client."),
        StoreAvailable => ("offcut_store_available",
            "1 if the store took what it was last given, and 0 if not, or while it is left alone."),
        Build => ("offcut_build_info",
            "1, with the version of the program."),
        Requests => ("offcut_requests_total",
            "Requests, by upstream and outcome."),
        Unreduced => ("offcut_unreduced_total",
            "Requests that were not reduced, or only in part, although they might have been, by reason."),
        Replies => ("offcut_replies_total",
            "Replies, by upstream and status: 0 where the provider did not answer, 499 where the client left before."),
        BrokenReplies => ("offcut_broken_replies_total",
            "Replies that broke off after their status, by upstream."),
        Connections => ("offcut_connections",
            "Open connections of clients."),
        ProviderTokens => ("offcut_provider_tokens_total",
            "Input tokens by the provider's own count: fresh, cached, and written to the cache."),
    }
}

/// Upper bounds of added latency in seconds.
const BOUNDS: [f64; 10] = [
    0.000_5, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.0,
];

/// All figures of a server.
#[derive(Debug, Default)]
pub(crate) struct Metrics(Mutex<MetricFigures>);

#[derive(Debug, Default)]
struct MetricFigures {
    /// By metric and labels, as they are written.
    values: BTreeMap<(Metric, String), u64>,
    added: [u64; BOUNDS.len() + 1],
    added_seconds: f64,
}

/// Labels as Prometheus reads them.
fn written(labels: &[(&str, &str)]) -> String {
    let labels = labels
        .iter()
        .map(|(name, value)| format!("{name}=\"{value}\""));
    let labels: Vec<_> = labels.collect();
    match labels.is_empty() {
        true => String::new(),
        false => format!("{{{}}}", labels.join(",")),
    }
}

impl Metrics {
    /// Adds to a counter. Labels need no escape.
    pub(crate) fn add(&self, metric: Metric, labels: &[(&'static str, &str)], amount: u64) {
        let mut figures = locked(&self.0);
        let value = figures.values.entry((metric, written(labels))).or_default();
        *value = value.saturating_add(amount);
    }

    /// Sets a figure.
    pub(crate) fn set(&self, metric: Metric, labels: &[(&'static str, &str)], value: u64) {
        let key = (metric, written(labels));
        locked(&self.0).values.insert(key, value);
    }

    /// Adds a request's time in this server before it went on.
    pub(crate) fn took(&self, time: Duration) {
        let seconds = time.as_secs_f64();
        let bucket = BOUNDS.iter().position(|bound| seconds <= *bound);
        let mut figures = locked(&self.0);
        figures.added[bucket.unwrap_or(BOUNDS.len())] += 1;
        figures.added_seconds += seconds;
    }

    /// Writes all figures in Prometheus' text format.
    pub(crate) fn text(&self) -> String {
        let figures = locked(&self.0);
        let mut text = String::new();
        for metric in Metric::ALL {
            let (name, help) = metric.row();
            let is_counter = name.ends_with("_total");
            let kind = if is_counter { "counter" } else { "gauge" };
            _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
            for ((of, labels), value) in &figures.values {
                if of == metric {
                    _ = writeln!(text, "{name}{labels} {value}");
                }
            }
        }
        let name = "offcut_added_seconds";
        _ = writeln!(
            text,
            "# HELP {name} Time that requests with a conversation spent in this server before they went on.\n# TYPE {name} histogram"
        );
        let mut sum = 0;
        for (bound, count) in BOUNDS.iter().zip(&figures.added) {
            sum += count;
            _ = writeln!(text, "{name}_bucket{{le=\"{bound}\"}} {sum}");
        }
        sum += figures.added[BOUNDS.len()];
        _ = writeln!(
            text,
            "{name}_bucket{{le=\"+Inf\"}} {sum}\n{name}_sum {}\n{name}_count {sum}",
            figures.added_seconds
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alerts_and_dashboard_ask_for_what_there_is() {
        let files = [
            include_str!("../../deploy/alerts.yml"),
            include_str!("../../deploy/alerts.test.yml"),
            include_str!("../../deploy/dashboard.json"),
        ];
        for file in files {
            for name in file.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
            {
                let mut known = Metric::ALL.iter().map(|metric| metric.row().0);
                assert!(
                    !name.starts_with("offcut_")
                        || name == "offcut_added_seconds_bucket"
                        || known.any(|known| known == name),
                    "{name}"
                );
            }
        }
    }

    #[test]
    fn figures_are_written_in_prometheus_own_format() {
        let metrics = Metrics::default();
        metrics.add(
            Metric::Requests,
            &[("upstream", "openai"), ("outcome", "reduced")],
            2,
        );
        metrics.add(Metric::Connections, &[], 3);
        metrics.set(Metric::Connections, &[], 2);
        metrics.took(Duration::from_micros(700));
        metrics.took(Duration::from_secs(9));
        let text = metrics.text();
        for line in [
            "offcut_requests_total{upstream=\"openai\",outcome=\"reduced\"} 2",
            "offcut_connections 2",
            "offcut_added_seconds_bucket{le=\"0.0005\"} 0",
            "offcut_added_seconds_bucket{le=\"0.001\"} 1",
            "offcut_added_seconds_bucket{le=\"+Inf\"} 2",
            "offcut_added_seconds_count 2",
        ] {
            assert!(
                text.lines().any(|written| written == line),
                "{line} in\n{text}"
            );
        }
    }
}
