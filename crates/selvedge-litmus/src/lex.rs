//! Words and signs.

use crate::parse::Error;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Word(String),
    Number(i64),
    Sign(&'static str),
}

const SIGNS: [&str; 33] = [
    "/\\", "\\/", "==", "!=", "<=", ">=", "&&", "||", "(", ")", "{", "}", "[", "]", ";", ",", ":",
    "=", "*", "&", "+", "-", "!", "<", ">", "^", "|", "~", "%", "/", ".", "?", "#",
];

/// A token and the line it stands on.
pub(crate) type Placed = (Token, usize);

pub(crate) fn tokens(text: &str) -> Result<Vec<Placed>, Error> {
    let mut tokens = Vec::new();
    let mut rest = text;
    // Lines are counted up to `counted`, which follows the beginning of `rest`.
    let (mut line, mut counted) = (1, 0);
    while let Some(first) = rest.chars().next() {
        let here = text.len() - rest.len();
        line += text[counted..here].matches('\n').count();
        counted = here;
        if first.is_whitespace() {
            rest = &rest[first.len_utf8()..];
        } else if rest.starts_with("(*") {
            rest = after(rest, "*)", line)?;
        } else if rest.starts_with("/*") {
            rest = after(rest, "*/", line)?;
        } else if rest.starts_with("//") {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
        } else if first == '"' {
            rest = after(&rest[1..], "\"", line)?;
        } else if first.is_ascii_digit() {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric());
            let (number, tail) = rest.split_at(end.unwrap_or(rest.len()));
            let value = match number.strip_prefix("0x") {
                Some(digits) => i64::from_str_radix(digits, 16),
                None => number.parse(),
            };
            let value = value.map_err(|_| Error::new(line, format!("`{number}` is no number")))?;
            tokens.push((Token::Number(value), line));
            rest = tail;
        } else if first.is_alphabetic() || first == '_' {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
            let (word, tail) = rest.split_at(end.unwrap_or(rest.len()));
            tokens.push((Token::Word(word.to_owned()), line));
            rest = tail;
        } else if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
            tokens.push((Token::Sign(sign), line));
            rest = &rest[sign.len()..];
        } else {
            return Err(Error::new(line, format!("`{first}` is not understood")));
        }
    }
    Ok(tokens)
}

/// The text after the next `end`.
fn after<'t>(text: &'t str, end: &str, line: usize) -> Result<&'t str, Error> {
    match text.find(end) {
        Some(at) => Ok(&text[at + end.len()..]),
        None => Err(Error::new(line, format!("`{end}` is missing"))),
    }
}
