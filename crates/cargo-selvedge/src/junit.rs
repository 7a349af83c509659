//! Results as JUnit XML, which continuous integration understands.

use std::fmt::Write as _;

use crate::run::Result;

/// Writes all results.
pub(crate) fn render(results: &[Result]) -> String {
    let failures = results.iter().filter(|result| result.failed()).count();
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(
        text,
        "<testsuite name=\"selvedge\" tests=\"{}\" failures=\"{failures}\">",
        results.len()
    );
    for result in results {
        let _ = write!(
            text,
            "  <testcase classname=\"{}\" name=\"{}\" time=\"{:.3}\"",
            escape(&result.suite),
            escape(&result.name),
            result.time.as_secs_f64()
        );
        text.push_str(">\n");
        if let Some(counts) = &result.counts {
            let partial = match result.partial {
                true => "<property name=\"explored\" value=\"partially\"/>",
                false => "",
            };
            let _ = writeln!(
                text,
                "    <properties><property name=\"executions\" value=\"{}\"/><property name=\"blocked\" value=\"{}\"/>{partial}</properties>",
                counts.executions, counts.blocked
            );
        }
        if let Some(failure) = &result.failure {
            let message = failure.lines().find(|line| !line.trim().is_empty());
            let _ = writeln!(
                text,
                "    <failure message=\"{}\">{}</failure>",
                escape(message.unwrap_or_default()),
                escape(failure)
            );
        }
        text.push_str("  </testcase>\n");
    }
    text.push_str("</testsuite>\n");
    text
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // XML has no way to write them.
            letter if letter.is_control() && !matches!(letter, '\n' | '\t') => {}
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::run::Counts;

    #[test]
    fn a_failure_is_written_with_its_message() {
        let result = Result {
            suite: "queue::loom".to_owned(),
            name: "spsc".to_owned(),
            failure: Some("left < right\nmore".to_owned()),
            counts: Some(Counts {
                executions: 12,
                blocked: 3,
            }),
            token: None,
            partial: false,
            unprotected: false,
            time: Duration::from_millis(1500),
        };
        let expected = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<testsuite name=\"selvedge\" tests=\"1\" failures=\"1\">
  <testcase classname=\"queue::loom\" name=\"spsc\" time=\"1.500\">
    <properties><property name=\"executions\" value=\"12\"/><property name=\"blocked\" value=\"3\"/></properties>
    <failure message=\"left &lt; right\">left &lt; right
more</failure>
  </testcase>
</testsuite>
";
        assert_eq!(render(&[result]), expected);
    }
}
