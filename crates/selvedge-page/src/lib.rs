//! The HTML report: one file with style, script and data in it, which loads nothing from anywhere.
//!
//! The data are JSON in an element that browsers do not interpret; the script builds the page from
//! them with text nodes only. Nothing that the program under test is called or says can become
//! markup: in the JSON, the characters that could end the element are escaped, and a content security
//! policy forbids everything that is not in the file.
//!
//! This crate also defines the data of the page, above all a bug with its schedule: for the command, whose JSON has the
//! same shape, and for the library for Rust programs.
#![forbid(unsafe_code)]

mod advice;
mod bug;
mod describe;
mod estimate;
mod explained;
mod index;
pub mod input;
mod origins;
pub mod output;
mod page;
mod place;
mod unordered;

pub use advice::{Advice, Means, Remedy};
pub use bug::{
    Block, Bug, Change, Datum, Party, ReadsFrom, Stack, Step, Verdict, Wait, heading, kind_name,
    numbered, thread_name, title, what,
};
pub use describe::{Describer, Names, last_step_before, schedule};
pub use estimate::{done, estimated};
pub use explained::{Language, explained, kinds};
pub use index::{Row, index};
pub use origins::{Origin, Origins, Sites};
pub use page::{BugPage, Page, RunFacts};
pub use place::{Place, is_language, is_system};
pub use unordered::unordered;

use std::fmt::Write as _;

use serde::Serialize;

const STYLE: &str = include_str!("../assets/page.css");

/// The script, in the order in which its files use each other.
const SCRIPT: [&str; 7] = [
    include_str!("../assets/dom.js"),
    include_str!("../assets/execution.js"),
    include_str!("../assets/schedule.js"),
    include_str!("../assets/graph.js"),
    include_str!("../assets/summary.js"),
    include_str!("../assets/search.js"),
    include_str!("../assets/page.js"),
];

/// The page with this title for `data`. `docs/report.md` says what the data are.
pub fn html(title: &str, data: &impl Serialize) -> serde_json::Result<String> {
    let data = serde_json::to_string(data)?;
    let mut page = String::with_capacity(data.len() + 100_000);
    page.push_str(concat!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; ",
        "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n",
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
    ));
    let _ = write!(page, "<title>{}</title>\n<style>\n", markup(title));
    page.push_str(STYLE);
    page.push_str(
        "</style>\n</head>\n<body>\n<noscript>This report needs JavaScript.</noscript>\n",
    );
    page.push_str("<script type=\"application/json\" id=\"data\">");
    page.push_str(&contained(&data));
    page.push_str("</script>\n<script>\n'use strict';\n(() => {\n");
    for part in SCRIPT {
        page.push_str(part);
    }
    page.push_str("})();\n</script>\n</body>\n</html>\n");
    Ok(page)
}

/// Text as HTML.
fn markup(text: &str) -> String {
    let mut markup = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => markup.push_str("&lt;"),
            '>' => markup.push_str("&gt;"),
            '&' => markup.push_str("&amp;"),
            '"' => markup.push_str("&quot;"),
            c => markup.push(c),
        }
    }
    markup
}

/// The same JSON without characters that mean something in HTML. They occur in strings only.
fn contained(json: &str) -> String {
    let mut contained = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(contained, "\\u{:04x}", u32::from(c));
            }
            c => contained.push(c),
        }
    }
    contained
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_cannot_become_markup() {
        let hostile = "</script><script>alert(1)</script><!--&\u{2028}";
        let page = html(hostile, &hostile).unwrap();
        assert!(!page.contains("<script>alert"));
        let start = page.find("id=\"data\">").unwrap() + 10;
        let end = start + page[start..].find("</script>").unwrap();
        let back: String = serde_json::from_str(&page[start..end]).unwrap();
        assert_eq!(back, hostile);
    }

    #[test]
    fn the_page_is_small() {
        assert!(html("", &()).unwrap().len() < 100_000);
    }
}
