//! The functions of a query: jq's, without those that reach outside of it.

use std::cell::RefCell;
use std::rc::Rc;

use indexmap::IndexMap;
use jaq_core::load::parse::Def;
use jaq_core::native::{Fun, bome, run, unary, v};
use jaq_core::{Cv, DataT, ValT as _, load};
use regex::{Regex, RegexBuilder};

use super::bounds::step;
use super::value::{Characters, Error, ValR, Value};

/// The most bytes of a compiled pattern, and of a text that it searches, so that the time of one search is bounded.
const MAX_SEARCH: usize = 256 << 10;
/// The most groups of a pattern, the whole match included.
const MAX_GROUPS: usize = 64;
/// The number of patterns that are kept compiled.
const KEPT: usize = 32;

/// Names of the standard library that are left out: those that end the program, write to its log, or
/// read its environment and clock; those that divide by zero, which is an error here; and definitions that would hide
/// our functions.
const LEFT_OUT: &str = "debug debug_empty delpaths env halt halt_error infinite localtime nan now stderr \
                        stderr_empty strflocaltime isnan";

/// Definitions that jq has and the standard library does not.
const DEFINITIONS: &str = r#"
def tonumber: if isnumber then . else (fromjson | if isnumber then . else error("this is no number") end) end;
def toboolean: if isboolean then . else (fromjson | if isboolean then . else error("this is no boolean") end) end;
def toarray: if isarray then . else [.] end;
def transpose: [range([.[] | length] | max) as $i | [.[][$i]]];
def in(xs): . as $x | xs | has($x);
def inside(xs): . as $x | xs | contains($x);
def index($i): indices($i)[0];
def rindex($i): indices($i)[-1];
def leaf_paths: paths(scalars);
def IN(s): any(s == .; .);
def IN(src; s): any(src == s; .);
def INDEX(stream; f): reduce stream as $row ({}; .[$row | f | tostring] |= $row);
def INDEX(f): INDEX(.[]; f);
def ascii: [.] | implode;
def del(f): delpaths([path(f)]);
def join($by): reduce .[] as $x (null; if . == null then "" else . + $by end + ($x | if . == null then "" elif isboolean or isnumber then tostring else . end)) // "";
def ltrimstr($x): if isstring and ($x | isstring) and startswith($x) then .[$x | length:] else . end;
def rtrimstr($x): if isstring and ($x | isstring) and endswith($x) then .[:length - ($x | length)] else . end;
def _cells(spelled): if isarray then map(if isarray or isobject then error("a cell of a row can't be an \(type)") elif isstring then spelled else . end) else error("a row must be an array, and this is: \(type)") end;
def _replaced($old; $new): split($old) | join($new);
def @json: tojson;
def @csv: _cells("\"" + _replaced("\""; "\"\"") + "\"") | join(",");
def @tsv: _cells(_replaced("\\"; "\\\\") | _replaced("\t"; "\\t") | _replaced("\n"; "\\n") | _replaced("\r"; "\\r")) | join("\t");
"#;

pub(super) fn definitions() -> impl Iterator<Item = Def<&'static str>> {
    let standard = jaq_core::defs().chain(jaq_std::defs());
    let standard = standard.filter(|def| !is_left_out(def.name));
    standard.chain(load::parse(DEFINITIONS, |parser| parser.defs()).unwrap_or_default())
}

fn is_left_out(name: &str) -> bool {
    LEFT_OUT
        .split_ascii_whitespace()
        .any(|left_out| left_out == name)
}

pub(super) fn functions<D: for<'a> DataT<V<'a> = Value>>() -> impl Iterator<Item = Fun<D>> {
    let standard = jaq_core::funs().chain(jaq_std::funs());
    let standard = standard.filter(|(name, ..)| !is_left_out(name));
    let ours: [(&'static str, _, jaq_core::RunPtr<D>); 13] = [
        ("nan", v(0), |_| bome(Ok(Value::from(f64::NAN)))),
        ("infinite", v(0), |_| bome(Ok(Value::from(f64::INFINITY)))),
        ("isnan", v(0), |cv| bome(Ok(cv.1.is_nan().into()))),
        ("tojson", v(0), |cv| bome(Ok(cv.1.to_json()))),
        ("fromjson", v(0), |cv| bome(cv.1.parse_json())),
        ("length", v(0), |cv| bome(cv.1.length())),
        ("has", v(1), |cv| unary(cv, |value, key| value.has(&key))),
        ("contains", v(1), |cv| {
            unary(cv, |value, part| Ok(value.contains(&part).into()))
        }),
        ("delpaths", v(1), |cv| {
            unary(cv, |value, paths| value.without(&paths))
        }),
        ("indices", v(1), |cv| {
            unary(cv, |value, part| value.indices(&part))
        }),
        ("matches", v(2), |cv| bome(search(cv, false, true))),
        ("split_matches", v(2), |cv| bome(search(cv, true, true))),
        ("split_", v(2), |cv| bome(search(cv, true, false))),
    ];
    // Of two with the same name, the first is called.
    ours.into_iter().map(run::<D>).chain(standard)
}

/// Lists what a pattern finds: what lies between the matches, the matches, or both in turn.
fn search<D: for<'a> DataT<V<'a> = Value>>(
    mut cv: Cv<'_, D>,
    between: bool,
    matches: bool,
) -> ValR {
    let (flags, pattern) = (cv.0.pop_var(), cv.0.pop_var());
    let text = cv.1.as_text()?;
    let flags = flags.as_text()?;
    let regex = compiled(pattern.as_text()?, flags)?;
    if text.len() > MAX_SEARCH {
        return Err(Error::str(format!(
            "a text of over {} KiB can't be searched in a query: pass `pattern` instead",
            MAX_SEARCH >> 10
        )));
    }
    let (is_global, skips_empty) = (flags.contains('g'), flags.contains('n'));
    let (mut found, mut last, mut characters) = (Vec::new(), 0, Characters::default());
    for captures in regex.captures_iter(text) {
        step();
        let whole = captures.get_match();
        if skips_empty && whole.is_empty() {
            continue;
        }
        if between {
            found.push(Value::text(&text[last..whole.start()]));
            last = whole.end();
        }
        if matches {
            let groups = captures.iter().zip(regex.capture_names());
            let groups = groups.filter_map(|(group, name)| Some((group?, name)));
            let groups = groups.map(|(group, name)| {
                let fields = [
                    ("offset", characters.before(text, group.start()).into()),
                    ("length", group.as_str().chars().count().into()),
                    ("string", Value::text(group.as_str())),
                ];
                let name = name.map(|name| ("name", Value::text(name)));
                let fields = fields.into_iter().chain(name);
                Value::from_map(fields.map(|(name, value)| (Value::text(name), value)))
            });
            found.push(groups.collect::<ValR>()?);
        }
        if !is_global {
            break;
        }
    }
    if between {
        found.push(Value::text(&text[last..]));
    }
    Ok(found.into_iter().collect())
}

fn compiled(pattern: &str, flags: &str) -> Result<Rc<Regex>, Error> {
    type Compiled = IndexMap<(String, String), Rc<Regex>>;
    thread_local! {
        static COMPILED: RefCell<Compiled> = RefCell::default();
    }
    COMPILED.with_borrow_mut(|known| {
        let key = (pattern.to_owned(), flags.to_owned());
        if let Some(regex) = known.get(&key) {
            return Ok(Rc::clone(regex));
        }
        if let Some(flag) = flags.chars().find(|flag| !"gnixslmp".contains(*flag)) {
            return Err(Error::str(format!(
                "{flag} is no flag of a pattern: there are g, n, i, x, s, l, m and p"
            )));
        }
        let regex = RegexBuilder::new(pattern)
            .size_limit(MAX_SEARCH)
            .case_insensitive(flags.contains('i'))
            .ignore_whitespace(flags.contains('x'))
            .multi_line(flags.contains(['m', 'p']))
            .dot_matches_new_line(flags.contains(['s', 'p']))
            .swap_greed(flags.contains('l'))
            .build();
        let regex = regex.map_err(Error::str)?;
        // Each search may hold a place for each group in each state.
        if regex.captures_len() > MAX_GROUPS {
            return Err(Error::str(format!(
                "a pattern may have {} groups",
                MAX_GROUPS - 1
            )));
        }
        if known.len() >= KEPT {
            known.clear();
        }
        let regex = Rc::new(regex);
        known.insert(key, Rc::clone(&regex));
        Ok(regex)
    })
}
