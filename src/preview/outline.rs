//! A JSON document as an outline: what its fields hold, and the sizes of what is left out.
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

use crate::json::{Kind, Node, View};
use crate::preview::rows::{MORE, cell, cell_of_text, cut};

/// The amount that is shown, the most that fits: maximum length in bytes of a text, or of a list of scalars, that is shown whole,
/// and of the beginning of a longer one; maximum numbers of fields of an object, and of items of a list; and values in values
/// that are looked into.
const LADDER: [(usize, usize, usize, usize); 12] = [
    (3_840, usize::MAX, 60, 8),
    (960, 100, 60, 8),
    (480, 60, 20, 8),
    (240, 60, 20, 8),
    (120, 60, 20, 8),
    (60, 60, 20, 8),
    (60, 60, 6, 8),
    (60, 60, 6, 3),
    (60, 60, 6, 2),
    (60, 60, 2, 2),
    (60, 60, 2, 1),
    (60, 12, 2, 1),
];
/// Maximum length in bytes of an object or a list that is shown in one line.
const MAX_INLINE: usize = 60;
/// A value of more bytes, blanks between its own values included, is not shown in one line.
const MAX_WHOLE: usize = 16 * 1024;
/// Minimum length in bytes of a long text.
const LONG: usize = 120;
/// An object of scalars with more fields is a map.
const MAP: usize = 60;
/// One in so many of the scalars must be shown.
const SHOWN: usize = 4;

/// Returns an outline of the JSON below `root` in at most `budget` bytes. Where most of it is long texts, or little
/// fits, the names in it tell more.
pub(crate) fn show(root: Node<'_>, before: &str, budget: usize) -> Option<String> {
    let (scalars, bytes) = count_scalars(root);
    if bytes * 2 > root.range().len() {
        return None;
    }
    let room = budget.checked_sub(before.len() + MORE.len())?;
    let outline = LADDER
        .into_iter()
        .find_map(|(text, fields, items, depth)| {
            let mut outline = Outline {
                text,
                fields,
                items,
                depth,
                room,
                lines: String::new(),
                told: 0,
            };
            outline.add(0, "", root)?;
            Some(outline)
        })?;
    let is_enough = outline.told * SHOWN >= scalars;
    is_enough.then(|| format!("{before}{}{MORE}", outline.lines))
}

struct Outline {
    text: usize,
    fields: usize,
    items: usize,
    depth: usize,
    /// Maximum length of the lines in bytes.
    room: usize,
    lines: String,
    /// Number of scalars that are shown whole.
    told: usize,
}

impl Outline {
    /// Adds the line of a value, and those of what it holds; `None` if there is no room for them.
    fn add(&mut self, depth: usize, label: &str, node: Node<'_>) -> Option<()> {
        let (bytes, is_object) = (node.range().len(), node.is_object());
        let is_open = is_object || node.is_array() && !is_list_of_scalars(node);
        let most = if is_open { MAX_INLINE } else { self.text };
        let count = node.fields().count() + node.items().count();
        let short = match node.kind() {
            Kind::Object => format!("{{{count} fields, {bytes} B}}"),
            Kind::Array if is_open => format!("[{count} items, {bytes} B]"),
            Kind::Array => format!("{} {count} items, {bytes} B", cut(cell(node), most)),
            _ => format!("{} {bytes} B", cut(cell(node), most)),
        };
        let whole = Some(node).filter(|_| bytes <= MAX_WHOLE).map(cell);
        if let Some(whole) = whole.filter(|whole| whole.len() <= most.max(short.len())) {
            self.told += count_scalars(node).0;
            return self.line(depth, label, &whole);
        }
        self.line(depth, label, &short)?;
        if !is_open || depth >= self.depth {
            return Some(());
        }
        let fields = node.fields().take(self.fields);
        for (name, value) in fields {
            self.add(depth + 1, &format!("{}: ", cell_of_text(name)), value)?;
        }
        for (at, value) in node.items().enumerate().take(self.items) {
            self.add(depth + 1, &format!("[{at}]: "), value)?;
        }
        let most = if is_object { self.fields } else { self.items };
        match count.saturating_sub(most) {
            0 => Some(()),
            more => self.line(depth + 1, "", &format!("… {more} more")),
        }
    }

    fn line(&mut self, depth: usize, label: &str, says: &str) -> Option<()> {
        let indent = " ".repeat(depth.saturating_sub(1));
        self.lines += &format!("{indent}{label}{says}\n");
        (self.lines.len() <= self.room).then_some(())
    }
}

/// Number of the scalars in a value, a list of them or a long map counting as one, and bytes of those that are long texts.
fn count_scalars(root: Node<'_>) -> (usize, usize) {
    let (mut open, mut scalars, mut bytes) = (vec![root], 0, 0);
    while let Some(node) = open.pop() {
        let inside = || node.fields().map(|(_, value)| value).chain(node.items());
        if is_list_of_scalars(node) || node.fields().count() > MAP && inside().all(is_scalar) {
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
         login: ada
         id: 12
         site: https://example.com/https://example.com/https://example.com/… 182 B
         plan: {2 fields, 1231 B}
        labels: [2 items, 133 B]
         [0]: {"name":"bug","color":"d73a4a"}
         [1]: {"name":"good first issue","color":"7057ff"}
        files: [9 items, 1003 B]
         [0]: {"path":"src/part_0.rs","lines":[0,1],"kind":"new"}
         [1]: {"path":"src/part_1.rs","lines":[1,2],"kind":"old"}
         … 7 more
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
