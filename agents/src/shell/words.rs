//! Words of a line: quotes, expansions and substitutions.

use super::cursor::Cursor;
use super::kind::Shell;

/// A word of a line.
#[derive(Debug, Default)]
pub(super) struct Word {
    /// The word without its quotes; expansions are left out.
    pub(super) text: String,
    /// The word has no quotes and no expansions, so it may be a reserved word.
    pub(super) is_plain: bool,
    /// The word has an expansion.
    pub(super) is_expanded: bool,
}

/// Reads a word. `None` if it does not end, or if it is empty.
pub(super) fn word(cursor: &mut Cursor<'_>) -> Option<Word> {
    let mut bytes = Vec::new();
    let (mut is_plain, mut is_expanded, mut is_empty) = (true, false, true);
    while let Some(byte) = cursor.peek() {
        match byte {
            b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b')' => break,
            b'<' | b'>' if !is_empty || !is_substitution(cursor) => break,
            // The meaning of a parenthesis inside a word depends on the shell and its options.
            b'(' => break,
            b'\\' => {
                cursor.next();
                is_plain = false;
                // At the end, it would hide the line feed that follows.
                match cursor.next()? {
                    b'\n' => {}
                    escaped => bytes.push(escaped),
                }
            }
            b'\'' => {
                cursor.next();
                is_plain = false;
                loop {
                    match cursor.next()? {
                        b'\'' => break,
                        quoted => bytes.push(quoted),
                    }
                }
            }
            b'"' => {
                cursor.next();
                is_plain = false;
                is_expanded |= double_quoted(cursor, &mut bytes)?;
            }
            b'$' | b'`' | b'<' | b'>' => {
                is_plain = false;
                is_expanded = true;
                expansion(cursor)?;
            }
            _ => bytes.push(cursor.next()?),
        }
        is_empty = false;
    }
    (!is_empty).then(|| Word {
        text: String::from_utf8_lossy(&bytes).into_owned(),
        is_plain,
        is_expanded,
    })
}

fn is_substitution(cursor: &Cursor<'_>) -> bool {
    cursor.shell != Shell::Dash && (cursor.is_next("<(") || cursor.is_next(">("))
}

/// Reads up to the end of a text in double quotes. Returns true if it has an expansion.
fn double_quoted(cursor: &mut Cursor<'_>, bytes: &mut Vec<u8>) -> Option<bool> {
    let mut is_expanded = false;
    loop {
        match cursor.peek()? {
            b'"' => {
                cursor.next();
                return Some(is_expanded);
            }
            b'\\' => {
                cursor.next();
                bytes.push(cursor.next()?);
            }
            b'$' if cursor.is_next("$'") || cursor.is_next("$\"") => {
                cursor.next();
            }
            b'$' | b'`' => {
                is_expanded = true;
                expansion(cursor)?;
            }
            _ => bytes.push(cursor.next()?),
        }
    }
}

/// Passes over what begins with `$`, a backtick, `<(` or `>(`.
fn expansion(cursor: &mut Cursor<'_>) -> Option<()> {
    if cursor.take("$((") {
        return arithmetic(cursor);
    }
    if cursor.take("$(") || cursor.take("<(") || cursor.take(">(") {
        return cursor.substitution();
    }
    if cursor.take("${") {
        return cursor.nested(parameter);
    }
    if cursor.is_next("$[") || (cursor.is_next("$'") && cursor.shell == Shell::Dash) {
        return None;
    }
    if cursor.take("$'") {
        loop {
            match cursor.next()? {
                b'\'' => return Some(()),
                b'\\' => _ = cursor.next()?,
                _ => {}
            }
        }
    }
    if cursor.take("`") {
        loop {
            match cursor.next()? {
                b'`' => return Some(()),
                b'\\' => _ = cursor.next()?,
                _ => {}
            }
        }
    }
    // A name follows, or nothing that matters.
    cursor.next().map(|_| ())
}

/// Passes over the rest of `${…}`.
fn parameter(cursor: &mut Cursor<'_>) -> Option<()> {
    loop {
        match cursor.peek()? {
            b'}' => {
                cursor.next();
                return Some(());
            }
            b'\\' => {
                cursor.next();
                cursor.next()?;
            }
            b'"' => {
                cursor.next();
                double_quoted(cursor, &mut Vec::new())?;
            }
            // Their meaning depends on the quotes around all of it.
            b'\'' | b'`' | b'\n' | b'{' => return None,
            b'$' if cursor.is_next("$'") || cursor.is_next("$\"") => return None,
            b'$' => expansion(cursor)?,
            _ => _ = cursor.next(),
        }
    }
}

/// Passes over the rest of `((…))`. `None` if it could be something else.
pub(super) fn arithmetic(cursor: &mut Cursor<'_>) -> Option<()> {
    let mut open = 0_usize;
    loop {
        match cursor.next()? {
            b'(' => open += 1,
            b')' if open > 0 => open -= 1,
            b')' => return cursor.take(")").then_some(()),
            b'\'' | b'"' | b'`' | b'\n' | b'\\' | b'#' => return None,
            b'$' if cursor.is_next("{") => return None,
            _ => {}
        }
    }
}
