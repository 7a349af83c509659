//! Expressions of the program's own language, as functions that the runtime can call.
//!
//! A file that includes the user's one and adds a function for each expression is compiled in its
//! place, so that static variables, types and macros mean in an expression what they mean at the
//! end of the file.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use selvedge_runtime::support::EXPRESSION;

use super::compiler::Language;
use super::{Program, Source};
use crate::problem::Problem;

/// Functions that may be called in an expression because they only read.
const HARMLESS: [&str; 6] = [
    "sizeof",
    "_Alignof",
    "alignof",
    "atomic_load",
    "atomic_load_explicit",
    "load",
];

/// Makes sure that the expressions of `program` can be turned into functions.
pub(super) fn check(program: &Program) -> Result<(), Problem> {
    if program.expressions.is_empty() {
        return Ok(());
    }
    if program.files.len() > 1 {
        return Err(
            Problem::request("expressions in a formula go with programs of one file only")
                .help("name the proposition in the program: selvedge_prop(\"name\", x == 1)"),
        );
    }
    for expression in &program.expressions {
        if let Some(what) = effect(expression) {
            return Err(Problem::request(format!(
                "the expression {{{expression}}} {what}: it may only look at the program"
            ))
            .help("name the proposition in the program: selvedge_prop(\"name\", x == 1)"));
        }
    }
    Ok(())
}

/// The text that is compiled in place of `source`.
pub(super) fn wrapper(program: &Program, source: &Source) -> String {
    let path = program.path(&source.path);
    let path: PathBuf = std::path::absolute(&path).unwrap_or(path);
    let mut text = format!("#include {}\n", quoted(&path));
    let linkage = match source.language {
        Language::C | Language::Rust => "",
        Language::Cxx => "extern \"C\" ",
    };
    for (n, expression) in program.expressions.iter().enumerate() {
        // One line each, and the compiler's words name the option.
        let expression = expression.replace(['\n', '\r'], " ");
        let _ = write!(
            text,
            "{linkage}int {EXPRESSION}{n}(void);\n#line 1 \"--ltl\"\n\
             int {EXPRESSION}{n}(void) {{ return ({expression}) ? 1 : 0; }}\n"
        );
    }
    text
}

fn quoted(path: &Path) -> String {
    let path = path.to_string_lossy().replace('\\', "\\\\");
    format!("\"{}\"", path.replace('"', "\\\""))
}

/// The side effect of the expression, if its text shows one.
fn effect(expression: &str) -> Option<String> {
    let tokens = tokens(expression);
    for (n, token) in tokens.iter().enumerate() {
        match token.as_str() {
            "++" | "--" => return Some("changes something".to_owned()),
            "=" | "+=" | "-=" | "*=" | "/=" | "%=" | "&=" | "|=" | "^=" | "<<=" | ">>=" => {
                return Some("assigns".to_owned());
            }
            ";" | "{" | "}" | "#" => return Some("is no expression".to_owned()),
            "asm" | "__asm__" => return Some("contains assembly".to_owned()),
            name if is_name(name)
                && tokens.get(n + 1).is_some_and(|next| next == "(")
                && !HARMLESS.contains(&name) =>
            {
                return Some(format!("calls {name}"));
            }
            _ => {}
        }
    }
    None
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// Names and numbers, operators as long as possible, literals as one token each.
fn tokens(text: &str) -> Vec<String> {
    const LONG: [&str; 17] = [
        "<<=", ">>=", "==", "<=", ">=", "!=", "&&", "||", "->", "++", "--", "+=", "-=", "*=", "/=",
        "%=", "::",
    ];
    const ASSIGNING: [&str; 3] = ["&=", "|=", "^="];
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if first == '"' || first == '\'' {
            literal(rest, first)
        } else if first.is_ascii_alphanumeric() || first == '_' {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            end.unwrap_or(rest.len())
        } else {
            let long = LONG
                .iter()
                .chain(&ASSIGNING)
                .find(|op| rest.starts_with(**op));
            long.map_or(first.len_utf8(), |op| op.len())
        };
        tokens.push(rest[..length].to_owned());
        rest = rest[length..].trim_start();
    }
    tokens
}

fn literal(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_may_look_but_not_touch() {
        for fine in [
            "x == 1",
            "a[i] <= b && !(c >= d) || e != f",
            "p->next && *(int *)q",
            "atomic_load(&x) && sizeof(int) == 4",
            "c == '=' || s[0] == '\\''",
            "x.load() && N::y",
            "(x << 2) >> 1 & 1",
        ] {
            assert_eq!(effect(fine), None, "{fine}");
        }
        for (wrong, part) in [
            ("x = 1", "assigns"),
            ("x += 1", "assigns"),
            ("x <<= 1", "assigns"),
            ("x |= 1", "assigns"),
            ("x++ == 1", "changes"),
            ("--x", "changes"),
            ("next(x)", "calls next"),
            ("1; x", "no expression"),
        ] {
            assert!(effect(wrong).unwrap().contains(part), "{wrong}");
        }
    }
}
