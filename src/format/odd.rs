//! Helpers for the tests of all wire formats.

use serde_json::Value;

use super::Format;

/// The pieces that `format` shows of a message, one on each line.
pub(super) fn seen<F: Format>(format: &F, message: &F::Message) -> String {
    let mut out = String::new();
    format.visit(message, &mut |piece| out.push_str(&format!("{piece:?}\n")));
    out
}

/// Expects that malformed messages are shown with a role, and that replacing what they do not have,
/// result `slot` and the first call, leaves them alone.
pub(super) fn expect_untouched(format: &impl Format<Message = Value>, slot: usize, odd: &[Value]) {
    for odd in odd {
        assert!(seen(format, odd).starts_with("Role("), "{odd}");
        let mut changed = odd.clone();
        format.replace_result(&mut changed, slot, vec![]);
        format.replace_arguments(&mut changed, 0, "{}".into());
        assert_eq!(changed, *odd);
    }
}
