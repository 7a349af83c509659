//! Runs the commands that the documentation shows and compares what they print.
//!
//! In a block marked `console`, `$ selvedge …` and `$ sed …` are commands, `? N` is the exit status (0 if absent),
//! and the rest what is printed: a line `...` stands for any number of lines, `[..]` for any text.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

struct Example {
    line: String,
    status: i32,
    output: Vec<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn examples(text: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| inside) {
            examples.push(Example {
                line: command.to_owned(),
                status: 0,
                output: Vec::new(),
            });
        } else if let Some(example) = examples.last_mut().filter(|_| inside) {
            match line.strip_prefix("? ") {
                Some(status) => example.status = status.parse().expect("an exit status"),
                None => example.output.push(line.to_owned()),
            }
        }
    }
    examples
}

/// The words of a command. What stands between single quotes is one word.
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (n, part) in command.split('\'').enumerate() {
        match n % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}

fn line_matches(pattern: &str, line: &str) -> bool {
    let mut parts = pattern.split("[..]");
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else {
        return false;
    };
    let mut last = None;
    for part in parts {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
        last = Some(part);
    }
    rest.is_empty() || last == Some("")
}

fn lines_match(pattern: &[String], lines: &[&str]) -> bool {
    match (pattern.split_first(), lines.split_first()) {
        (None, None) => true,
        (None, Some(_)) => false,
        (Some((first, rest)), _) if first == "..." => {
            (0..=lines.len()).any(|skipped| lines_match(rest, &lines[skipped..]))
        }
        (Some(_), None) => false,
        (Some((first, rest)), Some((line, lines))) => {
            line_matches(first, line) && lines_match(rest, lines)
        }
    }
}

fn check(page: &Path) -> usize {
    let text = fs::read_to_string(page).expect("the page can be read");
    let examples = examples(&text);
    for example in &examples {
        let shown = &example.line;
        let mut command = match shown.strip_prefix("selvedge ") {
            Some(arguments) => {
                let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge"));
                command.args(words(arguments));
                command
            }
            None => {
                assert!(shown.starts_with("sed "), "{}: {shown}", page.display());
                let mut shell = Command::new("sh");
                shell.args(["-c", shown]);
                shell
            }
        };
        let output = command.current_dir(root()).output();
        let output = output.expect("the command runs");
        let printed = String::from_utf8_lossy(&output.stdout);
        let lines: Vec<&str> = printed.lines().collect();
        assert_eq!(
            output.status.code(),
            Some(example.status),
            "{shown}\n{printed}"
        );
        assert!(
            lines_match(&example.output, &lines),
            "{}: `{shown}` printed\n{printed}\ninstead of\n{}",
            page.display(),
            example.output.join("\n")
        );
    }
    examples.len()
}

#[test]
fn the_documentation_shows_what_the_commands_print() {
    let mut commands = check(&root().join("README.md"));
    for entry in fs::read_dir(root().join("docs")).expect("there is documentation") {
        let page = entry.expect("a page").path();
        if page.extension().is_some_and(|extension| extension == "md") {
            commands += check(&page);
        }
    }
    assert!(commands >= 4, "only {commands} commands were found");
}

/// The pages of the book.
fn pages() -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join("docs")).expect("there is documentation");
    let paths = entries.map(|entry| entry.expect("a page").path());
    paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect()
}

/// The targets of links in a page, each with its anchor if it has one, without those that lead out of the
/// repository.
fn links(text: &str) -> Vec<(String, Option<String>)> {
    let starts = text.match_indices("](").map(|(at, _)| at + 2);
    let targets = starts.filter_map(|start| {
        let target = text[start..].split_once(')')?.0.trim();
        let local = !target.is_empty() && !target.contains("://") && !target.contains(' ');
        let (page, anchor) = match target.split_once('#') {
            Some((page, anchor)) => (page, Some(anchor.to_owned())),
            None => (target, None),
        };
        local.then(|| (page.to_owned(), anchor))
    });
    targets.collect()
}

/// The anchors of a page: its headings in small letters, with dashes for spaces and without punctuation,
/// as mdBook and GitHub write them.
fn anchors(text: &str) -> Vec<String> {
    let mut code = false;
    let mut anchors = Vec::new();
    for line in text.lines() {
        code ^= line.starts_with("```");
        let heading = line.trim_start_matches('#');
        if code || heading == line || !heading.starts_with(' ') {
            continue;
        }
        let kept = heading.trim().chars().filter_map(|c| match c {
            ' ' => Some('-'),
            c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
            _ => None,
        });
        anchors.push(kept.collect::<String>().to_lowercase());
    }
    anchors
}

#[test]
fn anchors_are_made_of_headings() {
    let text = "# A B\n```\n# no heading\n```\n### `--x`, C's\n#tag\n";
    assert_eq!(anchors(text), ["a-b", "--x-cs"]);
}

#[test]
fn links_between_pages_lead_somewhere() {
    let root_pages = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
    ];
    let root_pages = root_pages.map(|name| root().join(name));
    for page in pages().into_iter().chain(root_pages) {
        let text = fs::read_to_string(&page).expect("the page can be read");
        for (link, anchor) in links(&text) {
            let target = match &*link {
                "" => page.clone(),
                link => page.parent().expect("a directory").join(link),
            };
            assert!(target.exists(), "{}: {link} is not there", page.display());
            // Pages of the book that GitHub shows as well.
            let book = root().join("docs").canonicalize().expect("the book");
            let leaves = page.starts_with(root().join("docs"))
                && !target.canonicalize().expect("a file").starts_with(book);
            assert!(!leaves, "{}: {link} leads out of the book", page.display());
            if let Some(anchor) = anchor {
                let text = fs::read_to_string(&target).expect("a page");
                let found = anchors(&text).contains(&anchor);
                assert!(found, "{}: {link}#{anchor} is no heading", page.display());
            }
        }
    }
}

#[test]
fn the_summary_of_the_book_has_every_page_once() {
    let directory = root().join("docs");
    let summary = fs::read_to_string(directory.join("SUMMARY.md")).expect("a summary");
    let mut listed: Vec<PathBuf> = links(&summary)
        .iter()
        .map(|(page, _)| directory.join(page))
        .collect();
    let mut pages = pages();
    pages.retain(|page| !page.ends_with("SUMMARY.md"));
    pages.sort();
    listed.sort();
    assert_eq!(listed, pages);
}

/// All files below `directory`.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a directory of sources");
    let paths = entries.map(|entry| entry.expect("a file").path());
    let below = |path: PathBuf| match path.is_dir() {
        true => files(&path),
        false => vec![path],
    };
    paths.flat_map(below).collect()
}

#[test]
fn the_code_map_names_files_that_exist() {
    let sources = files(&root().join("crates"));
    let map = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("there is a map");
    let named = map.split('`').skip(1).step_by(2);
    let named = named.filter(|name| name.ends_with(".rs") && !name.contains(' '));
    let mut checked = 0;
    for name in named {
        let exists = sources.iter().any(|path| path.ends_with(name));
        assert!(exists, "{name} is not there");
        checked += 1;
    }
    assert!(checked > 100, "only {checked} files are named");
}

/// Files of some length are in the map, by their names or by a directory that they are in.
#[test]
fn the_code_map_has_every_large_file() {
    let map = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("there is a map");
    let named: Vec<&str> = map.split('`').skip(1).step_by(2).collect();
    let mut missing = Vec::new();
    let crates = fs::read_dir(root().join("crates")).expect("there are crates");
    for sources in crates.map(|entry| entry.expect("a crate").path().join("src")) {
        for file in files(&sources) {
            let text = fs::read_to_string(&file).unwrap_or_default();
            let path = file.strip_prefix(&sources).expect("a source");
            let is_root = ["main.rs", "lib.rs", "mod.rs"].map(|name| file.ends_with(name));
            let is_source = file.extension().is_some_and(|end| end == "rs");
            if !is_source || is_root.contains(&true) || text.lines().count() < 100 {
                continue;
            }
            let in_map = named.iter().any(|name| match name.strip_suffix('/') {
                Some(directory) => path.starts_with(directory.trim_start_matches("src/")),
                None => name.ends_with(".rs") && file.ends_with(name),
            });
            if !in_map {
                missing.push(file.display().to_string());
            }
        }
    }
    assert!(missing.is_empty(), "not in the code map: {missing:#?}");
}

/// The words that name no subject, with which no comment may begin a line.
const NO_SUBJECT: [&str; 7] = [
    "What ",
    "Which ",
    "Those ",
    "So many ",
    "So often ",
    "So deep ",
    "That ",
];

#[test]
fn comments_name_their_subject() {
    let mut vague = Vec::new();
    let sources = files(&root().join("crates")).into_iter();
    for file in sources.filter(|file| file.extension().is_some_and(|end| end == "rs")) {
        let text = fs::read_to_string(&file).expect("a source");
        for (number, line) in text.lines().enumerate() {
            let comment = line.trim_start().strip_prefix("//");
            let comment = comment.map(|comment| comment.trim_start_matches(['/', '!']));
            let words = comment.and_then(|comment| comment.strip_prefix(' '));
            if words.is_some_and(|words| NO_SUBJECT.iter().any(|begins| words.starts_with(begins)))
            {
                vague.push(format!("{}:{}: {line}", file.display(), number + 1));
            }
        }
    }
    assert!(vague.is_empty(), "{vague:#?}");
}

/// A published package has no file of another one. Links are fine: packages contain the files that they lead to.
#[test]
fn packages_include_only_their_own_files() {
    let crates = fs::read_dir(root().join("crates")).expect("there are crates");
    let mut included = 0;
    for package in crates.map(|entry| entry.expect("a crate").path()) {
        for file in files(&package.join("src")) {
            let text = fs::read_to_string(&file).unwrap_or_default();
            let quoted = |after: &str| after.split('"').nth(1).map(str::to_owned);
            for path in text.split("include_str!(").skip(1).filter_map(quoted) {
                let outside = Path::new(&path)
                    .components()
                    .filter(|part| part.as_os_str() == "..");
                let depth = file.strip_prefix(&package).expect("a source").components();
                assert!(
                    outside.count() < depth.count(),
                    "{} includes {path}",
                    file.display()
                );
                included += 1;
            }
        }
    }
    assert!(included > 10, "only {included} files are included");
}

#[test]
fn quotes_keep_words_together() {
    let words = words("selvedge verify a.c --ltl 'G (p -> F q)' --fair");
    let expected = [
        "selvedge",
        "verify",
        "a.c",
        "--ltl",
        "G (p -> F q)",
        "--fair",
    ];
    assert_eq!(words, expected);
}

#[test]
fn patterns_tell_lines_apart() {
    assert!(line_matches("a[..]c", "abbc"));
    assert!(line_matches("a[..]", "abbc"));
    assert!(!line_matches("a[..]c", "abbd"));
    let pattern = ["x", "...", "y"].map(str::to_owned);
    assert!(lines_match(&pattern, &["x", "1", "2", "y"]));
    assert!(!lines_match(&pattern, &["x", "1", "2"]));
}
