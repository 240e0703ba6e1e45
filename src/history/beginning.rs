//! A name for a conversation that has none, made of its beginning.

use crate::fingerprint::FieldPrint;
use crate::format::{Conversation, PartRef};
use crate::rounds::{Item, ItemContent, read};

/// Random characters from which a call's id is taken for one that no other conversation has.
const MIN_RANDOM: usize = 12;

/// Returns true if the id of a call of `tool` is random. Ids such as `call_0`, `functions.bash:0` and
/// `bash-1763950000000` are those of other conversations too, and can be guessed. Random are words that
/// mix digits with letters, or small letters with capital ones.
fn is_random(id: &str, tool: &str) -> bool {
    let own = if tool.is_empty() {
        id.to_owned()
    } else {
        id.replacen(tool, "", 1)
    };
    let words = own.split(|char: char| !char.is_ascii_alphanumeric());
    let mixed = words.filter(|word| {
        let has = |is: fn(&u8) -> bool| u8::from(word.as_bytes().iter().any(is));
        let kinds = [
            u8::is_ascii_digit as fn(&u8) -> bool,
            u8::is_ascii_lowercase,
            u8::is_ascii_uppercase,
        ];
        kinds.into_iter().map(has).sum::<u8>() > 1
    });
    mixed.map(str::len).sum::<usize>() >= MIN_RANDOM
}

/// The name of a conversation, as any process gives it; `None` before the first call and result.
///
/// It is made of the first call: id, tool and arguments. Whatever comes before, such as system
/// messages, reminders and marks, may change between requests, and there is nothing to decide before
/// the first result. Only if the call's id may be that of other conversations too do the user's texts
/// before it count. A history that has lost its calls is named by its first result and that result's
/// texts, since an id alone may be seen in a location. Who does not know `secret` can't compute it.
pub(crate) fn beginning(secret: &[u8], conversation: &dyn Conversation) -> Option<String> {
    let items = read(conversation, 0).items;
    let is_text = |item: &Item<'_>| matches!(item.content, ItemContent::Text(_));
    let before = items.iter().take_while(|item| is_text(item)).count();
    let first = items.get(before)?;
    let kind = match first.content {
        ItemContent::Call(_) => b'c',
        ItemContent::Result { .. } | ItemContent::Text(_) => b'r',
    };
    let mut print = FieldPrint::new(kind, first.call_id.as_bytes());
    print.add(b'n', first.tool.as_bytes());
    if let ItemContent::Call(call) = first.content {
        print.add(b'a', call.arguments.text().as_bytes());
    }
    add_texts(&mut print, first);
    if !is_random(first.call_id, first.tool) {
        let (mut said, mut bytes) = (FieldPrint::new(b'u', b""), 0);
        for item in &items[..before] {
            bytes += add_texts(&mut said, item);
        }
        print.add_print(b's', bytes, said.finish());
    }
    print.add(b'k', secret);
    Some(format!("c-{:032x}", print.finish()))
}

/// Adds the texts of a result, or a user's text. Returns their number of bytes.
fn add_texts(print: &mut FieldPrint, item: &Item<'_>) -> u64 {
    let mut bytes = 0;
    for part in item.content.parts() {
        if let PartRef::Text(text) = part {
            print.add(b't', text.as_bytes());
            bytes += text.len() as u64;
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_others_have_too_are_not_random() {
        for (id, tool) in [
            ("call_Vm8Xq2LkT0aR", "grep"),
            ("call_vwTmQpBzLxRkNdHsYcJfGaEo", "grep"),
            ("toolu_01A09q90qw90lq917835lq9", "Read"),
            ("toolu_vrtx_01Gzq7WfAbCdEfGhJkLm", "Read"),
            ("call_550e8400-e29b-41d4-a716-446655440000", ""),
            ("chatcmpl-tool-0f9a7c11d5b84ab2b9a0c4c0a1d2e3f4", "bash"),
            ("read_file-1763950000000-a1b2c3d4e5f67", "read_file"),
        ] {
            assert!(is_random(id, tool), "{id}");
        }
        for (id, tool) in [
            ("", ""),
            ("call_0", "grep"),
            ("call_00000000000000000001", "grep"),
            ("functions.bash:0", "bash"),
            ("functions.getWeatherNow2:11", "getWeatherNow2"),
            (
                "functions.mcp__github__list_issues:3",
                "mcp__github__list_issues",
            ),
            ("run_shell_command-1763950000000", "run_shell_command"),
            ("tool_call_number_twelve", "grep"),
            ("call_1_of_round_2", "grep"),
        ] {
            assert!(!is_random(id, tool), "{id}");
        }
    }
}
