//! The signs by which a line tells of a failure or of an outcome.

use std::sync::LazyLock;

use regex::bytes::RegexSet;

/// A failure in words.
pub(crate) const FAILURE: u8 = 1;
/// Something about a place in a file, which the line begins with.
pub(crate) const PLACE: u8 = 2;
/// An exit code: a number after `exit code`, `returncode`, `finished with status` and the like.
pub(crate) const EXIT: u8 = 4;
/// A count of tests, errors or the like.
pub(crate) const COUNTS: u8 = 8;

/// In the order of their bits. One search for all takes as long as one for each.
#[expect(clippy::expect_used, reason = "patterns that do not change")]
static SIGNS: LazyLock<RegexSet> = LazyLock::new(|| {
    let all = [failure(), place(), exit(), counts()];
    RegexSet::new(all).expect("patterns")
});

/// Returns the signs in `line`.
pub(crate) fn signs(line: &str) -> u8 {
    // Most lines have none. Which ones there are, a slower search tells.
    if !SIGNS.is_match(line.as_bytes()) {
        return 0;
    }
    let found = SIGNS.matches(line.as_bytes());
    found.iter().fold(0, |all, sign| all | 1 << sign)
}

/// Returns true if `line` reports a failure in words.
pub(crate) fn is_failure(line: &str) -> bool {
    signs(line) & FAILURE != 0
}

/// The words of compilers, test runners, interpreters and loggers. Classes are ASCII's: those of Unicode would take some
/// hundred kilobytes each.
fn failure() -> String {
    [
        r"(?-u:\b)(?:FAIL(?:ED|URES?)?|ERROR|FATAL)(?-u:\b)",
        // "CRITICAL: " mostly begins an instruction.
        r"(?-u:\b)CRITICAL(?: |:[A-Za-z])",
        r"error(?:[:\[]| (?:TS|CS|C|LNK|MSB|NU|NETSDK)[0-9])",
        r"fatal ?:|Error:|Exception:|ERR! |assertion |panicked at|Traceback \(most",
        r"^(?:Exception in thread|panic: |[EF][0-9]{4} [0-9]{2}:|npm error |error [A-Z]|E: |Error from |An error occurred |curl: \([0-9]+\) |\*\* \([A-Z]|::error|WARNING: DATA RACE|CONFLICT \(| ! \[(?:remote )?rejected\]|Killed$)|^(?:[A-Za-z0-9_]+\.)*[A-Z][A-Za-z0-9_]*(?:Error|Exception)$| \([A-Z][A-Za-z0-9_]*(?:Error|Exception)\)$",
        r"^[ \t]*(?:(?:[✗✘✕✖×]|not ok) |[0-9]+:[0-9]+ +error )",
        r"(?i:\[(?:[a-z0-9_]+:)?(?:error|fatal|crit|critical|alert|emerg)\]|level=(?:error|fatal|critical|panic)|\x22(?:level|severity)\x22: ?\x22(?:error|fatal|critical|panic))",
        r"\*\*\* (?:\[|No rule)|Segmentation fault|Bus error|core dumped|[Pp]ermission denied|No such file|command not found|undefined reference|cannot find -l|build stopped",
        r"[Cc]onnection (?:refused|reset)|No space left on device|Cannot allocate memory|<failure[ >]| \[E\] |^Error in | ERR[\] ]|^ERRO\[|SEVERE: |PANIC: ",
        r"Out of memory: Kill|OOMKilled|CrashLoopBackOff|ImagePullBackOff|ORA-[0-9]{5}|stack smashing detected|ERR_PNPM_|teamcity\[testFailed",
        r"Failed (?:to start|with result) |returned a non-zero code|symbol\(s\) not found|syntax error near|unbound variable$|SIG(?:SEGV|ABRT|BUS|ILL|KILL)(?-u:\b)",
        r"(?-u:\b)[1-9][0-9]* (?:failed|failures?)(?-u:\b)|(?:failed|Failed|Failures|Errors)(?:=|: )[1-9]|TIMEOUT (?:\[|in )|^E  +assert |^  ● .* › ",
        r"Error response from|[Cc]ould not (?:resolve|find)|nable to resolve|verification failed|a nil value|Can't locate |Undefined (?:subroutine|control sequence|symbols)",
        r"ailed to resolve|Unresolved reference|double free|Illegal instruction|^Terminated$|UnhandledPromiseRejection|<error |at=error |build failed|build as failure",
        r"overflowed its stack|I/O error|[Mm]erge (?:conflict|failed)|no space left|probe failed|authentication required|SSL certificate problem|x509: |i/o timeout",
        r"deadline exceeded|[Tt]oo many open files|EADDRINUSE|[Aa]ddress already in use|[Qq]uota exceeded|[Rr]ate limit exceeded|Access is denied|cannot find the (?:file|path)",
        r"is not recognized as|: not found$|Unknown command",
        r"^(?:Failed to [a-z]|Unhandled [Ee]xception|Timed out |Command failed|(?:Compilation|Configure|Authentication|Tests?) failed|Segfault|Killed process |Stack trace:|Syntax error|Found [1-9][0-9]* errors?(?-u:\b)|HTTP/[0-9.]+ [45][0-9]{2}(?-u:\b))",
        r"Command failed with|exited with (?:code|status) [1-9]|exit status [1-9]|Access denied for|Assertion [`'‘].*failed",
        r"(?-u:\b)[1-9][0-9]* (?:tests? failed|errors? generated)|undefined symbol: |cannot open shared object|unresolved external symbol|BUG: (?:kernel|unable)",
        r"(?:^|[:(] ?|connect )(?:ETIMEDOUT|ECONNREFUSED|ENOTFOUND|401 Unauthorized|403 Forbidden)(?-u:\b)",
        // Of the C library, at the end of a line.
        r"(?:Operation not permitted|[Rr]ead-only file system|Device or resource busy|Invalid argument|Input/output error|Broken pipe|No route to host|[Nn]etwork is unreachable|Name or service not known)\.?$",
        // In the languages that programs are translated to most; the last two lines are of the C library and of shells.
        r"(?:Fehler|FEHLER|[Ee]rreur|ERREUR|[Ee]rrore|ERRORE|[Ee]rro|ERRO|[Оо]шибка|ОШИБКА|错误|錯誤|エラー|오류) ?[:：]|erreur [A-Z]+[0-9]",
        r"Verzeichnis nicht gefunden|Aucun fichier ou dossier|No existe el (?:fichero|archivo)|没有那个文件|ファイルやディレクトリはありません|Keine Berechtigung|Permission non accordée|Permiso denegado|拒绝访问|权限不够|許可がありません",
        r"(?:Kommando|Befehl) nicht gefunden|commande introuvable|orden no encontrada|未找到命令|コマンドが見つかりません|Speicherzugriffsfehler|Erreur de segmentation|Violación de segmento|段错误|セグメンテーション違反",
    ].join("|")
}

fn place() -> String {
    r"^\s*[^\s:()]*[^\s:()/.]\.\w+(?::[0-9]+:[0-9]+: \S|:[0-9]+: \w+ ?[:：]|\([0-9]+(?:,[0-9]+)?\) ?: \S)".to_owned()
}

/// A number after a code or a status and a verb up to two words before it, or after the id of what is running: it has
/// not ended.
fn exit() -> String {
    let code = "(?:exit|return|finish|terminat|complet)(?:[a-z]*[^a-z]){0,2}[a-z]*(?:code|status)";
    let id = "running(?:[^a-z][a-z]*){0,2}[^a-z_]id";
    format!(r#"(?i-u)(?:^|[^a-z])(?:{code}|{id})[:=>"']* ?-?[0-9]"#)
}

/// A number and something that test runs, compilers or package managers count: `12 tests`, `12 new tests`,
/// `failed: 3`.
fn counts() -> String {
    let counted = "(?:(?:assertion|error|example|issue|package|problem|spec|suite|test|warning)s?|fail(?:ed|ing|ures?)?|ignored|pass(?:ed|es|ing)?|skip(?:ped)?|vulnerabilit(?:y|ies))";
    format!(
        r"(?i-u)(?:^|[^a-z0-9.])[0-9]+ (?:[a-z]* )?{counted}(?:[^a-z]|$)|(?:^|[^a-z]){counted}[:=]? +[0-9]"
    )
}

/// A line without its digits.
pub(super) fn without_digits(text: &str) -> String {
    text.replace(|sign: char| sign.is_ascii_digit(), "")
}
