//! Checks that the syntax of a line is closed and known, and collects facts about it.

use super::cursor::{Cursor, Document};
use super::facts::Facts;
use super::kind::Shell;
use super::words::{Word, arithmetic, word};

/// A compound command that has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    If,
    Then,
    Else,
    Loop,
    Do,
    Case,
    Brace,
}

/// The place of the next word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A command must follow.
    Start,
    /// A command may follow, or the end of a list.
    MayStart,
    /// After assignments and redirections: the name of a command, or the end of it.
    Name,
    /// Arguments of a command.
    Arguments,
    /// After a compound command: redirections, or the end of it.
    Closed,
}

/// Examines a line. `None` unless all of it is certainly one list of commands, which means the same in
/// braces.
pub(super) fn examine(line: &str, shell: Shell) -> Option<Facts> {
    let has_shown_itself = line.contains('\0') || line.contains("BASH_EXECUTION_STRING");
    if has_shown_itself {
        return None;
    }
    let mut cursor = Cursor::new(line, shell, |cursor| commands(cursor, true));
    commands(&mut cursor, false)?;
    let facts = cursor.facts;
    // In braces, all lines are parsed before the first one runs.
    (!facts.changes_parsing || !line.contains('\n')).then_some(facts)
}

/// Reads a list of commands: up to `)` if it is `inside` parentheses, else all of the line.
fn commands(cursor: &mut Cursor<'_>, inside: bool) -> Option<()> {
    let mut list = List {
        open: Vec::new(),
        place: Place::Start,
    };
    loop {
        cursor.skip_blanks();
        let Some(byte) = cursor.peek() else {
            return (!inside && list.is_complete() && !cursor.expects_document()).then_some(());
        };
        match byte {
            b'#' => cursor.skip_comment(),
            b'\n' => {
                cursor.end_line()?;
                if list.place != Place::Start {
                    list.place = Place::MayStart;
                }
            }
            b')' => {
                cursor.next();
                return (inside && list.is_complete() && !cursor.expects_document()).then_some(());
            }
            b'(' => list.parenthesis(cursor)?,
            _ if redirection(cursor)? => {
                if matches!(list.place, Place::Start | Place::MayStart) {
                    list.place = Place::Name;
                }
            }
            b';' | b'&' | b'|' => list.operator(cursor)?,
            _ => {
                let word = word(cursor)?;
                list.word(cursor, &word)?;
            }
        }
    }
}

/// Reads a redirection, if one comes next. `None` if it is not complete.
fn redirection(cursor: &mut Cursor<'_>) -> Option<bool> {
    let is_posix = cursor.shell == Shell::Dash;
    if !is_posix && (cursor.is_next("<(") || cursor.is_next(">(")) {
        return Some(false);
    }
    if is_posix && (cursor.is_next("<<<") || cursor.is_next("&>")) {
        return None;
    }
    let is_document = !cursor.is_next("<<<") && cursor.take("<<");
    let without_tabs = is_document && cursor.take("-");
    let operators = ["<<<", "&>>", "&>", "<&", "<>", "<", ">>", ">&", ">|", ">"];
    if !is_document && !operators.iter().any(|operator| cursor.take(operator)) {
        return Some(false);
    }
    cursor.skip_blanks();
    let target = word(cursor)?;
    if is_document {
        let is_line = !target.is_expanded && !target.text.contains('\n');
        is_line.then_some(())?;
        cursor.expect_document(Document {
            delimiter: target.text,
            without_tabs,
            has_escapes: target.is_plain,
        });
    }
    Some(true)
}

/// A list of commands that is being read.
struct List {
    open: Vec<Open>,
    place: Place,
}

impl List {
    fn is_complete(&self) -> bool {
        self.open.is_empty() && self.place != Place::Start
    }

    fn may_start(&self) -> bool {
        matches!(self.place, Place::Start | Place::MayStart)
    }

    /// Reads an operator between commands.
    fn operator(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        if [";;&", ";;", ";&", ";|"].iter().any(|end| cursor.take(end)) {
            let is_case = self.open.last() == Some(&Open::Case) && self.place != Place::Start;
            return is_case.then(|| self.pattern(cursor))?;
        }
        if self.may_start() {
            return None;
        }
        if cursor.take("&&") || cursor.take("||") {
            self.place = Place::Start;
        } else if cursor.take("|") {
            if cursor.take("&") && cursor.shell == Shell::Dash {
                return None;
            }
            self.place = Place::Start;
        } else {
            cursor.next();
            self.place = Place::MayStart;
        }
        Some(())
    }

    /// Reads `(…)` or `((…))`.
    fn parenthesis(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        if !self.may_start() {
            return None;
        }
        if cursor.take("((") {
            if cursor.shell == Shell::Dash {
                return None;
            }
            arithmetic(cursor)?;
        } else {
            cursor.next();
            cursor.substitution()?;
        }
        self.place = Place::Closed;
        Some(())
    }

    /// Takes a word at the place where it stands.
    fn word(&mut self, cursor: &mut Cursor<'_>, word: &Word) -> Option<()> {
        let is_descriptor = word.is_plain
            && word.text.bytes().all(|byte| byte.is_ascii_digit())
            && (cursor.is_next("<") || cursor.is_next(">"));
        if is_descriptor {
            return Some(());
        }
        match self.place {
            Place::Start | Place::MayStart if word.is_plain => match self.reserved(cursor, word)? {
                true => Some(()),
                false => self.command(cursor, word),
            },
            Place::Start | Place::MayStart | Place::Name => self.command(cursor, word),
            Place::Arguments => {
                let is_brace = word.is_plain && matches!(word.text.as_str(), "{" | "}");
                let is_end = cursor.is_next("(") || (is_brace && cursor.shell == Shell::Zsh);
                (!is_end).then_some(())
            }
            Place::Closed => {
                let is_reserved = word.is_plain && self.reserved(cursor, word)?;
                is_reserved.then_some(())
            }
        }
    }

    /// Takes the first word of a command.
    fn command(&mut self, cursor: &mut Cursor<'_>, word: &Word) -> Option<()> {
        let text = word.text.as_str();
        if is_assignment(text) {
            self.place = Place::Name;
            return match cursor.is_next("(") {
                true if text.ends_with('=') => array(cursor),
                is_next => (!is_next).then_some(()),
            };
        }
        if cursor.is_next("(") {
            // `name()`, and a command.
            let is_function = self.may_start() && word.is_plain;
            cursor.next();
            cursor.skip_blanks();
            let is_function = is_function && cursor.take(")");
            cursor.skip_lines()?;
            self.place = Place::Start;
            return is_function.then_some(());
        }
        cursor.facts.add(text, cursor.shell)?;
        if matches!(text, "set" | "setopt") && shows_commands(cursor) {
            return None;
        }
        self.place = match text {
            "command" | "builtin" | "noglob" | "nocorrect" | "-" => Place::Name,
            "-p" if self.place == Place::Name => Place::Name,
            _ => Place::Arguments,
        };
        if word.is_plain && text == "[[" && cursor.shell != Shell::Dash {
            self.place = Place::Closed;
            return condition(cursor);
        }
        Some(())
    }

    /// Takes a reserved word. Returns false if it is not one.
    fn reserved(&mut self, cursor: &mut Cursor<'_>, word: &Word) -> Option<bool> {
        let top = self.open.last().copied();
        let may_end = self.place != Place::Start;
        let (opens, closes, place) = match word.text.as_str() {
            "if" => (Some(Open::If), None, Place::Start),
            "while" | "until" => (Some(Open::Loop), None, Place::Start),
            "{" => (Some(Open::Brace), None, Place::Start),
            "then" => (Some(Open::Then), Some([Open::If; 2]), Place::Start),
            "elif" => (Some(Open::If), Some([Open::Then; 2]), Place::Start),
            "else" => (Some(Open::Else), Some([Open::Then; 2]), Place::Start),
            "fi" => (None, Some([Open::Then, Open::Else]), Place::Closed),
            "do" => (Some(Open::Do), Some([Open::Loop; 2]), Place::Start),
            "done" => (None, Some([Open::Do; 2]), Place::Closed),
            "esac" => (None, Some([Open::Case; 2]), Place::Closed),
            "}" => (None, Some([Open::Brace; 2]), Place::Closed),
            "!" | "time" if self.place != Place::Closed => (None, None, Place::Start),
            "for" | "select" if self.place != Place::Closed => {
                self.open.push(Open::Loop);
                return self.head_of_loop(cursor).map(|()| true);
            }
            "case" if self.place != Place::Closed => {
                self.open.push(Open::Case);
                return self.head_of_case(cursor).map(|()| true);
            }
            "function" if self.place != Place::Closed => {
                cursor.skip_blanks();
                self::word(cursor)?;
                cursor.skip_blanks();
                if cursor.take("(") && !cursor.take(")") {
                    return None;
                }
                cursor.skip_lines()?;
                self.place = Place::Start;
                return (cursor.shell != Shell::Dash).then_some(true);
            }
            "in" | "function" | "for" | "select" | "case" | "!" | "time" => return None,
            _ => return Some(false),
        };
        match closes {
            Some(closed) => {
                top.filter(|top| may_end && closed.contains(top))?;
                self.open.pop();
            }
            None if self.place == Place::Closed => return None,
            None => {}
        }
        self.open.extend(opens);
        self.place = place;
        Some(true)
    }

    /// Reads the name and the words of a `for`.
    fn head_of_loop(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        cursor.skip_blanks();
        self.place = Place::Closed;
        if cursor.take("((") {
            return (cursor.shell != Shell::Dash).then(|| arithmetic(cursor))?;
        }
        word(cursor).filter(|name| name.is_plain)?;
        cursor.skip_blanks();
        if cursor.take("in ") || cursor.is_next("in\n") || cursor.is_next("in;") {
            self.place = Place::Arguments;
        }
        Some(())
    }

    /// Reads the word of a `case`, and its first pattern.
    fn head_of_case(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        cursor.skip_blanks();
        word(cursor)?;
        cursor.skip_lines()?;
        let is_in = word(cursor)?;
        (is_in.is_plain && is_in.text == "in").then_some(())?;
        self.pattern(cursor)
    }

    /// Reads the patterns before the commands of a `case`, or its end.
    fn pattern(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        cursor.skip_lines()?;
        let has_open = cursor.take("(");
        loop {
            cursor.skip_blanks();
            let word = word(cursor)?;
            if !has_open && word.is_plain && word.text == "esac" {
                self.open.pop();
                self.place = Place::Closed;
                return Some(());
            }
            cursor.skip_blanks();
            if cursor.take(")") {
                self.place = Place::MayStart;
                return Some(());
            }
            cursor.take("|").then_some(())?;
        }
    }
}

/// Returns true if the arguments of `set` that follow make the shell show what it reads, or, where
/// that would show our part too, what it runs.
fn shows_commands(cursor: &Cursor<'_>) -> bool {
    let is_zsh = cursor.shell == Shell::Zsh;
    let arguments = cursor.rest().split(['\n', ';', '&', '|']).next();
    let mut arguments = arguments.unwrap_or_default().split_whitespace();
    arguments.any(|argument| {
        let letters = argument.strip_prefix('-').unwrap_or_default();
        let is_long = argument == "verbose" || (is_zsh && argument == "xtrace");
        is_long || letters.contains('v') || (is_zsh && letters.contains('x'))
    })
}

fn is_assignment(text: &str) -> bool {
    let Some((name, _)) = text.split_once('=') else {
        return false;
    };
    let name = name.strip_suffix('+').unwrap_or(name);
    let name = name.split('[').next().unwrap_or(name);
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !name.is_empty() && name.bytes().all(is_name) && !name.as_bytes()[0].is_ascii_digit()
}

/// Reads the elements of an array.
fn array(cursor: &mut Cursor<'_>) -> Option<()> {
    if cursor.shell == Shell::Dash || cursor.expects_document() {
        return None;
    }
    cursor.next();
    loop {
        cursor.skip_lines()?;
        if cursor.take(")") {
            return Some(());
        }
        word(cursor)?;
    }
}

/// Reads up to `]]`.
fn condition(cursor: &mut Cursor<'_>) -> Option<()> {
    loop {
        cursor.skip_blanks();
        if cursor.is_next("\n") {
            return None;
        }
        if ["&&", "||", "<", ">", "(", ")", "|"]
            .iter()
            .any(|operator| cursor.take(operator))
        {
            continue;
        }
        let word = word(cursor)?;
        if word.is_plain && word.text == "]]" {
            return Some(());
        }
    }
}
