//! The HTML reports of tests, and the page that leads to them.

use std::fs;
use std::path::{Path, PathBuf};

use selvedge_page::{Row, Verdict};

use crate::run::{Counts, Result};

/// The file for the report of a test. Letters that a shell would take for something else are left out.
pub(crate) fn file(directory: &Path, suite: &str, name: &str) -> PathBuf {
    let plain = |letter: char| match letter {
        letter if letter.is_alphanumeric() || letter == '_' || letter == '-' => letter,
        _ => '.',
    };
    let name = format!("{suite}::{name}").replace("::", ".");
    directory.join(format!(
        "{}.html",
        name.chars().map(plain).collect::<String>()
    ))
}

/// The pages of a test that has that file: one for each of its models.
fn pages(file: &Path) -> Vec<PathBuf> {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let numbered = (2..).map(|n| file.with_file_name(format!("{stem}-{n}.html")));
    let files = std::iter::once(file.to_owned()).chain(numbered);
    files.take_while(|file| file.exists()).collect()
}

/// Removes what an earlier run left.
pub(crate) fn clear(file: &Path) {
    for page in pages(file) {
        let _ = fs::remove_file(page);
    }
}

/// Writes the page that leads to the others.
pub(crate) fn write_index(
    directory: &Path,
    results: &[Result],
    summary: &str,
) -> std::io::Result<PathBuf> {
    // A test without a model has nothing to tell.
    let told = results
        .iter()
        .filter(|result| result.failed() || result.counts.is_some());
    let rows: Vec<Row> = told.map(|result| row(directory, result)).collect();
    let index = directory.join("index.html");
    fs::write(
        &index,
        selvedge_page::index("cargo selvedge test", summary, &rows),
    )?;
    Ok(index)
}

fn row(directory: &Path, result: &Result) -> Row {
    let pages = pages(&file(directory, &result.suite, &result.name));
    let name = |page: &PathBuf| Some(page.file_name()?.to_string_lossy().into_owned());
    let incomplete = [
        "this model was not explored completely",
        "the model could not be explored",
    ];
    let verdict = match &result.failure {
        Some(why) if incomplete.iter().any(|start| why.contains(start)) => Verdict::Incomplete,
        Some(_) => Verdict::Bug,
        None if result.partial => Verdict::Incomplete,
        None => Verdict::Verified,
    };
    let Counts {
        executions,
        blocked,
    } = result.counts.unwrap_or_default();
    Row {
        name: format!("{} {}", result.suite, result.name),
        verdict,
        sentence: format!(
            "{executions} executions, {blocked} blocked, {:.2} s",
            result.time.as_secs_f64()
        ),
        pages: pages.iter().filter_map(name).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_index_leads_to_the_pages_of_each_test() {
        let directory = std::env::temp_dir().join(format!("selvedge-pages-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let result = |name: &str, failure: Option<&str>, counts| Result {
            suite: "queue::loom".to_owned(),
            name: name.to_owned(),
            failure: failure.map(str::to_owned),
            counts,
            token: None,
            partial: false,
            unprotected: false,
            time: Duration::from_secs(1),
        };
        let counts = Some(Counts {
            executions: 3,
            blocked: 1,
        });
        let results = [
            result("a::b", None, counts),
            result("c", Some("an update was lost"), counts),
            result(
                "d",
                Some("this model was not explored completely: …"),
                counts,
            ),
            result("without_model", None, None),
        ];
        for page in [
            "queue.loom.a.b.html",
            "queue.loom.a.b-2.html",
            "queue.loom.c.html",
        ] {
            fs::write(directory.join(page), "").unwrap();
        }
        let index = write_index(&directory, &results, "2 passed").unwrap();
        let text = fs::read_to_string(index).unwrap();
        let verdicts: Vec<&str> = text
            .split("class=\"verdict ")
            .skip(1)
            .map(|part| &part[..3])
            .collect();
        assert_eq!(verdicts, ["bug", "inc", "ver"]);
        assert!(
            text.contains("<a href=\"./queue.loom.a.b-2.html\">(2)</a>"),
            "{text}"
        );
        assert!(text.contains("3 executions, 1 blocked, 1.00 s"), "{text}");
        assert!(!text.contains("without_model"));
        clear(&file(&directory, "queue::loom", "a::b"));
        assert!(!directory.join("queue.loom.a.b-2.html").exists());
        fs::remove_dir_all(directory).unwrap();
    }
}
