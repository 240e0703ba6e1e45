//! A JSON document as an outline: what its fields hold, the short ones first, and the sizes of what is left out.
//!
//! ```text
//! {7 fields, 3264 B}
//! url: https://example.com/repos/ada/shop/pulls/112/comments/2738927704
//! user: {4 fields, 1479 B}
//! labels: [2 items, 133 B]
//!  [0]: {"name":"bug","color":"d73a4a"}
//!  [1]: {"name":"good first issue","color":"7057ff"}
//! files: [90 items, 11030 B]
//!  [0]: {"path":"src/part_0.rs","lines":[0,1],"kind":"new"}
//!  … 89 more
//! body: "It rounds \"half\" up.\nAnd more of it. It rounds \"half\" … 482 B
//! [… more …]
//! ```

use std::borrow::Cow;

use crate::json::{Kind, Node, View};
use crate::preview::rows::{MORE, cell, cell_of_text, cut};

/// Maximum lengths in bytes of a value that is shown whole, and of the beginning of a longer text, the most that fits.
const TEXTS: [usize; 4] = [3_840, 960, 240, MIN_TEXT];
const MIN_TEXT: usize = 60;
/// Maximum numbers of items of a list, the most that fit.
const ITEMS: [usize; 4] = [60, 20, 6, 2];
/// Maximum numbers of fields of an object, the most that fit.
const FIELDS: [usize; 5] = [usize::MAX, 100, 60, 30, 12];
/// Of a longer value in bytes, blanks between its own values included, only a part is shown.
const MAX_WHOLE: usize = 16 * 1024;
/// Minimum length in bytes of a long text.
const LONG: usize = 120;
/// One in so many of the scalars must be shown.
const SHOWN: usize = 4;
/// Values in values that are looked into.
const MAX_DEPTH: usize = 8;

/// Returns an outline of the JSON below `root` in at most `budget` bytes. Where most of it is long texts, or little
/// fits, the names in it tell more.
pub(crate) fn show(root: Node<'_>, before: &str, budget: usize) -> Option<String> {
    let (scalars, bytes) = count_scalars(root);
    if bytes * 2 > root.range().len() {
        return None;
    }
    let room = budget.checked_sub(before.len() + MORE.len())?;
    let top = OutlineLine::new(0, String::new(), root);
    let left = room.checked_sub(top.rendered(MIN_TEXT).len())?;
    let lines = opened(top, left);
    let rendered = |most: usize| -> String {
        let lines = lines.iter();
        lines.map(|line| line.rendered(most)).collect()
    };
    let mut tries = TEXTS.into_iter().map(|most| (most, rendered(most)));
    let (most, shown) = tries.find(|(_, shown)| shown.len() <= room)?;
    let whole = lines.iter().filter(|line| line.is_whole(most));
    let told = whole.filter_map(|line| Some(count_scalars(line.node?).0));
    if told.sum::<usize>() * SHOWN < scalars {
        return None;
    }
    Some(format!("{before}{shown}{MORE}"))
}

struct OutlineLine<'j> {
    depth: usize,
    /// With a colon at its end, if a value follows.
    label: String,
    node: Option<Node<'j>>,
}

impl<'j> OutlineLine<'j> {
    fn new(depth: usize, label: String, node: Node<'j>) -> Self {
        Self {
            depth,
            label,
            node: Some(node),
        }
    }

    /// Its value, or the first `most` bytes of a text.
    fn says(&self, most: usize) -> Cow<'j, str> {
        let Some(node) = self.node else {
            return "".into();
        };
        let bytes = node.range().len();
        let begins = || cut(cell(node), most);
        let short = match node.kind() {
            Kind::Object => format!("{{{} fields, {bytes} B}}", node.fields().count()),
            Kind::Array if is_list_of_scalars(node) => {
                format!("{} {} items, {bytes} B", begins(), node.items().count())
            }
            Kind::Array => format!("[{} items, {bytes} B]", node.items().count()),
            _ => format!("{} {bytes} B", begins()),
        };
        // Blanks are left out of a value that is shown.
        let whole = Some(node).filter(|_| bytes <= MAX_WHOLE).map(cell);
        whole
            .filter(|whole| whole.len() <= short.len().max(MIN_TEXT))
            .unwrap_or(short.into())
    }

    /// Returns true if nothing of its value is left out.
    fn is_whole(&self, most: usize) -> bool {
        let node = self.node.filter(|node| node.range().len() <= MAX_WHOLE);
        node.is_some_and(|node| self.says(most) == cell(node))
    }

    fn rendered(&self, most: usize) -> String {
        let indent = " ".repeat(self.depth.saturating_sub(1));
        format!("{indent}{}{}\n", self.label, self.says(most))
    }

    /// Lines of its fields or items, if some are left out; of items, at most `most`.
    fn inside(&self, most: usize) -> Vec<OutlineLine<'j>> {
        let is_open = |node: &Node<'_>| !is_list_of_scalars(*node) && !self.is_whole(MIN_TEXT);
        let Some(node) = self.node.filter(is_open) else {
            return Vec::new();
        };
        let depth = self.depth + 1;
        let fields = node.fields();
        let fields = fields.map(|(name, value)| (format!("{}: ", cell_of_text(name)), value));
        let items = node.items().enumerate();
        let items = items.map(|(at, value)| (format!("[{at}]: "), value));
        let inside = fields.chain(items).take(most);
        let inside = inside.map(|(label, value)| OutlineLine::new(depth, label, value));
        let mut lines: Vec<OutlineLine<'_>> = inside.collect();
        let all = node.items().count() + node.fields().count();
        if all > most {
            lines.push(OutlineLine {
                depth,
                label: format!("… {} more", all - most),
                node: None,
            });
        }
        lines
    }
}

/// Number of the scalars in a value, a list of them or a long map counting as one, and bytes of those that are long texts.
fn count_scalars(root: Node<'_>) -> (usize, usize) {
    let (mut open, mut scalars, mut bytes) = (vec![root], 0, 0);
    while let Some(node) = open.pop() {
        let inside = || node.fields().map(|(_, value)| value).chain(node.items());
        if is_list_of_scalars(node) || node.fields().count() > ITEMS[0] && inside().all(is_scalar) {
            let long = inside().map(|value| value.range().len());
            bytes += long.filter(|length| *length > LONG).sum::<usize>();
            scalars += 1;
            continue;
        }
        let length = node.range().len();
        if node.kind() == Kind::String && length > LONG {
            bytes += length;
        }
        scalars += usize::from(is_scalar(node));
        open.extend(inside());
    }
    (scalars, bytes)
}

fn is_scalar(node: Node<'_>) -> bool {
    !node.is_object() && !node.is_array()
}

fn is_list_of_scalars(node: Node<'_>) -> bool {
    node.is_array() && node.values() == node.items().count() + 1
}

/// The line of a document, and those of the values in it that fit `left` bytes: level by level, the smallest of a level
/// first.
fn opened(top: OutlineLine<'_>, mut left: usize) -> Vec<OutlineLine<'_>> {
    let mut lines = vec![top];
    for depth in 0..MAX_DEPTH {
        let of_level = |at: &usize| lines[*at].depth == depth;
        let mut closed: Vec<usize> = (0..lines.len()).filter(of_level).collect();
        closed.sort_by_key(|at| lines[*at].node.map_or(0, |node| node.range().len()));
        let mut opened = Vec::new();
        for at in closed {
            let is_list = lines[at].node.is_some_and(View::is_array);
            let tries = if is_list { &ITEMS[..] } else { &FIELDS[..] };
            let inside = tries.iter().map(|most| lines[at].inside(*most));
            let cost = |inside: &[OutlineLine<'_>]| -> usize {
                let lines = inside.iter();
                lines.map(|line| line.rendered(MIN_TEXT).len()).sum()
            };
            let mut fit = inside.filter(|inside| cost(inside) <= left);
            let inside = fit.next().filter(|inside| !inside.is_empty());
            if let Some(inside) = inside {
                left -= cost(&inside);
                opened.push((at, inside));
            }
        }
        opened.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        for (at, inside) in opened {
            lines.splice(at + 1..at + 1, inside);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{
        Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest,
    };
    use serde_json::{Value, json};

    use crate::preview::shapes::show;
    use crate::preview::{Preview, holds_only};

    fn comment() -> Value {
        json!({
            "url": "https://example.com/repos/ada/shop/pulls/112/comments/2738927704",
            "id": 2738927704u64,
            "draft": null,
            "user": {"login": "ada", "id": 12, "site": "https://example.com/".repeat(9), "plan": {"name": "free", "seats": (0..99).collect::<Vec<_>>()}},
            "labels": [{"name": "bug", "color": "d73a4a"}, {"name": "good first issue", "color": "7057ff"}],
            "files": (0..9).map(|n| json!({"path": format!("src/part_{n}.rs"), "lines": [n, n + 1], "kind": if n % 4 == 0 { "new" } else { "old" }})).collect::<Vec<_>>(),
            "body": "It rounds \"half\" up.\nAnd more of it. ".repeat(12),
        })
    }

    #[test]
    fn a_document_is_shown_as_an_outline() {
        let text = format!("Output:\n{:#}\n", comment());
        insta::assert_snapshot!(Preview::Mixed.show(&text, 800), @r#"
        Output:
        {7 fields, 3264 B}
        url: https://example.com/repos/ada/shop/pulls/112/comments/2738927704
        id: 2738927704
        draft: null
        user: {4 fields, 1479 B}
        labels: [2 items, 133 B]
         [0]: {"name":"bug","color":"d73a4a"}
         [1]: {"name":"good first issue","color":"7057ff"}
        files: [9 items, 1003 B]
         [0]: {"path":"src/part_0.rs","lines":[0,1],"kind":"new"}
         [1]: {"path":"src/part_1.rs","lines":[1,2],"kind":"old"}
         [2]: {"path":"src/part_2.rs","lines":[2,3],"kind":"old"}
         [3]: {"path":"src/part_3.rs","lines":[3,4],"kind":"old"}
         [4]: {"path":"src/part_4.rs","lines":[4,5],"kind":"new"}
         [5]: {"path":"src/part_5.rs","lines":[5,6],"kind":"old"}
         … 3 more
        body: "It rounds \"half\" up.\nAnd more of it. It rounds \"half\" … 482 B
        [… more …]
        "#);
        let times: serde_json::Map<_, _> = (0..90)
            .map(|n| (format!("1.{n}.0"), json!("2026-11-29")))
            .collect();
        let package = json!({"name": "pay", "latest": {"version": "2.0.0"}, "times": times, "licence": "MIT"});
        insta::assert_snapshot!(Preview::Mixed.show(&format!("{package:#}"), 200), @r#"
        {4 fields, 2608 B}
        name: pay
        latest: {"version":"2.0.0"}
        times: {90 fields, 2514 B}
        licence: MIT
        [… more …]
        "#);
        let small = show(&text, 200);
        assert!(small.is_none(), "{small:?}");
        let page = json!({"title": "Part 1", "text": "some words ".repeat(60)}).to_string();
        assert_eq!(show(&page, 300), None);
    }

    fn values() -> impl Strategy<Value = Value> {
        let scalar = prop_oneof![
            "[a-z \"\\\\\n…€]{0,90}".prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            Just(Value::Null),
            Just(json!({})),
        ];
        scalar.prop_recursive(4, 60, 9, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..9).prop_map(Value::from),
                proptest::collection::vec(("[a-z \n]{0,9}", inner), 0..9)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn budgets_are_kept_and_outlines_known_again(value in values(), budget in 0usize..900, is_pretty in any::<bool>()) {
            let text = if is_pretty { format!("{value:#}") } else { value.to_string() };
            let shown = Preview::Mixed.show(&text, budget);
            prop_assert!(shown.len() <= budget || shown == text);
            prop_assert!(holds_only(&shown, &text), "{shown}");
            if let Some(shown) = show(&text, budget) {
                prop_assert!(shown.len() <= budget);
                prop_assert_eq!(show(&text, shown.len()), Some(shown));
            }
        }
    }
}
