//! A page that leads to the pages of several checks.

use std::fmt::Write as _;

use crate::{STYLE, Verdict, markup};

/// A check in an [`index`].
#[derive(Debug)]
pub struct Row {
    /// The name of the check.
    pub name: String,
    /// The result.
    pub verdict: Verdict,
    /// The result in a few words.
    pub sentence: String,
    /// The pages about it, relative to the index.
    pub pages: Vec<String>,
}

/// The page with this title that lists `rows`, bugs first.
pub fn index(title: &str, summary: &str, rows: &[Row]) -> String {
    let title = markup(title);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title} – Selvedge</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <header><div class=\"top\"><h1>{title}</h1></div><p class=\"sentence\">{}</p></header>\n\
         <main><section class=\"card\"><table class=\"index\">\n",
        markup(summary)
    );
    let mut rows: Vec<&Row> = rows.iter().collect();
    rows.sort_by_key(|row| match row.verdict {
        Verdict::Bug => 0,
        Verdict::Incomplete => 1,
        Verdict::Verified => 2,
    });
    for row in rows {
        let name = markup(&row.name);
        let name = match row.pages.split_first() {
            None => name,
            Some((first, others)) => {
                let mut links = format!("<a href=\"{}\">{name}</a>", address(first));
                for (n, other) in (2..).zip(others) {
                    let _ = write!(links, " <a href=\"{}\">({n})</a>", address(other));
                }
                links
            }
        };
        let _ = writeln!(
            page,
            "<tr><td><span class=\"verdict {verdict}\">{verdict}</span></td><td>{name}</td><td>{}</td></tr>",
            markup(&row.sentence),
            verdict = row.verdict,
        );
    }
    page.push_str("</table></section></main>\n</body>\n</html>\n");
    page
}

/// The name of a file as a relative address: letters, digits and what no part of an address means.
fn address(file: &str) -> String {
    let mut address = String::from("./");
    for byte in file.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
                address.push(char::from(byte));
            }
            _ => {
                let _ = write!(address, "%{byte:02X}");
            }
        }
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bugs_come_first_and_names_are_no_markup() {
        let row = |name: &str, verdict, pages: &[&str]| Row {
            name: name.to_owned(),
            verdict,
            sentence: "3 executions".to_owned(),
            pages: pages.iter().map(|&page| page.to_owned()).collect(),
        };
        let rows = [
            row("fine", Verdict::Verified, &["fine.html", "fine-2.html"]),
            row("<b>", Verdict::Bug, &["a b.html"]),
            row("none", Verdict::Incomplete, &[]),
        ];
        let page = index("tests", "all", &rows);
        let (start, end) = (page.find("<tr>").unwrap(), page.find("</table>").unwrap());
        let expected = "<tr><td><span class=\"verdict bug\">bug</span></td>\
                        <td><a href=\"./a%20b.html\">&lt;b&gt;</a></td><td>3 executions</td></tr>\n\
                        <tr><td><span class=\"verdict incomplete\">incomplete</span></td>\
                        <td>none</td><td>3 executions</td></tr>\n\
                        <tr><td><span class=\"verdict verified\">verified</span></td>\
                        <td><a href=\"./fine.html\">fine</a> <a href=\"./fine-2.html\">(2)</a></td>\
                        <td>3 executions</td></tr>\n";
        assert_eq!(&page[start..end], expected);
    }
}
