//! `--format github`: workflow commands of GitHub Actions, which show up beside the source lines of a
//! pull request.

use super::request::{Asked, Failed};
use super::{Place, Report, Verdict, human};
use crate::output;

/// Prints an annotation for each bug, or one for the verdict.
pub(super) fn print(report: &Report, asked: &Asked<'_>) {
    output::print(&text(report, asked));
}

/// Prints an annotation about a request that ended without a result.
pub(super) fn print_failed(failed: &Failed<'_>) {
    let title = failed.problem.message();
    output::print(&command("error", &failed.home(), title, &failed.text()));
}

fn text(report: &Report, asked: &Asked<'_>) -> String {
    let mut text = String::new();
    for bug in report.all_bugs() {
        let place = asked.locate(&bug.place);
        let evidence = human::plain_evidence(bug);
        text += &command("error", &place, &human::heading(bug), &evidence);
        if let Some(other) = bug
            .other
            .as_ref()
            .filter(|other| other.place.file.is_some())
        {
            let title = format!("{} of T{}", other.what, other.thread);
            let what = format!("the other side of: {}", human::heading(bug));
            text += &command("notice", &other.place, &title, &what);
        }
    }
    let verdict = human::plain_verdict(report);
    let level = match report.verdict {
        Verdict::Bug => return text,
        Verdict::Verified => "notice",
        Verdict::Incomplete => "warning",
    };
    let title = format!("{}: {}", asked.program(), report.verdict);
    text + &command(level, &asked.home(), &title, &verdict)
}

/// One command. Whatever the program is called and says, it stays on its line.
fn command(level: &str, place: &Place, title: &str, message: &str) -> String {
    let file = property(place.file.as_deref().unwrap_or_default());
    let line = place.line.unwrap_or(1);
    let (title, message) = (property(title), data(message.trim_end()));
    format!("::{level} file={file},line={line},title={title}::{message}\n")
}

fn data(text: &str) -> String {
    let text = text.replace('%', "%25");
    text.replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_end_its_command() {
        let place = Place {
            file: Some("a,b:c.c".to_owned()),
            line: Some(7),
            function: None,
            library: None,
        };
        assert_eq!(
            command("error", &place, "x,y", "100%\n::stop-commands::t\r"),
            "::error file=a%2Cb%3Ac.c,line=7,title=x%2Cy::100%25%0A::stop-commands::t\n"
        );
    }
}
