//! `selvedge init`: a first harness for a header of C or C++, or for a Rust crate.

use std::fs;
use std::path::{Path, PathBuf};

use crate::args;
use crate::input;
use crate::output;
use crate::problem::{Problem, Status};
use crate::report::human;

/// Writes a harness and tells what to run.
pub(crate) fn run(init: &args::Init) -> Result<Status, Problem> {
    let subject = &init.subject;
    let Harness { path, text, next } = match subject.join("Cargo.toml").is_file() {
        true => for_crate(subject),
        false => for_header(subject)?,
    };
    if path.exists() {
        let name = path.display();
        return Err(Problem::request(format!("{name} exists already"))
            .help("move it away, or edit it by hand"));
    }
    let failed = |error| Problem::request(format!("cannot write {}: {error}", path.display()));
    if let Some(directory) = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
    {
        fs::create_dir_all(directory).map_err(failed)?;
    }
    fs::write(&path, text).map_err(failed)?;
    output::print(&format!(
        "wrote {}: fill in what each thread does\n\n{next}\n",
        path.display()
    ));
    Ok(Status::Verified)
}

/// A harness that is to be written.
struct Harness {
    path: PathBuf,
    text: String,
    /// The next step for the user.
    next: String,
}

fn for_crate(directory: &Path) -> Harness {
    let manifest = directory.join("Cargo.toml");
    let has_loom = input::read_text(&manifest).is_ok_and(|text| text.contains("loom"));
    let dependency = match has_loom {
        true => String::new(),
        false => format!(
            "add to {} (cargo selvedge builds Selvedge in the place of loom):\n\n\
             [target.'cfg(loom)'.dev-dependencies]\nloom = \"0.7\"\n\n",
            manifest.display()
        ),
    };
    let change = match directory == Path::new(".") {
        true => String::new(),
        false => format!("cd {} && ", human::quoted(directory)),
    };
    Harness {
        path: directory.join("tests/selvedge.rs"),
        text: RUST.to_owned(),
        next: format!("{dependency}next: {change}cargo selvedge test"),
    }
}

/// Whether a header is written in C++.
fn is_cxx(header: &Path, text: &str) -> bool {
    let extension = header.extension().and_then(|extension| extension.to_str());
    let begins = |line: &str| {
        let words = ["class ", "namespace ", "template ", "template<", "using "];
        words.iter().any(|word| line.trim_start().starts_with(word))
    };
    matches!(extension, Some("hpp" | "hh" | "hxx" | "h++" | "H"))
        || text.lines().any(begins) && !text.contains("__cplusplus")
}

fn for_header(header: &Path) -> Result<Harness, Problem> {
    let name = header.display();
    let text = input::read_text(header).map_err(|error| {
        Problem::request(format!("cannot read {name}: {error}"))
            .help("selvedge init takes a header, or the directory of a crate")
    })?;
    let stem = header.file_stem().unwrap_or_default().to_string_lossy();
    let file = header.file_name().unwrap_or_default().to_string_lossy();
    let cxx = is_cxx(header, &text);
    let (ending, sources, start) = match cxx {
        true => ("cpp", &["cpp", "cc", "cxx"][..], CXX),
        false => ("c", &["c"][..], C),
    };
    let path = header.with_file_name(format!("{stem}_schedules.{ending}"));
    let mut command = format!("selvedge verify {}", human::quoted(&path));
    let mut sources = sources.iter().map(|ending| header.with_extension(ending));
    if let Some(source) = sources.find(|source| source.is_file()) {
        command += &format!(" {}", human::quoted(&source));
    }
    let functions: String = functions(&text, cxx)
        .iter()
        .map(|function| format!(" *   {function}\n"))
        .collect();
    let listed = match functions.is_empty() {
        true => String::new(),
        false => format!(" *\n * The header declares\n *\n{functions}"),
    };
    let (includes, body) = start;
    let text = format!(
        "/*\n * Checks {file} under every schedule: {command}\n{listed} */\n\
         {includes}\n#include \"{file}\"\n\n{body}"
    );
    Ok(Harness {
        path,
        text,
        next: format!("next: {command}"),
    })
}

/// The includes and the rest of a harness in C++.
const CXX: (&str, &str) = (
    "#include <cassert>\n#include <thread>\n",
    "\
// Two or three threads with one or two operations each have few schedules and find most bugs.
int main()
{
    // TODO: what is shared
    std::thread first([&] {
        // TODO: one operation
    });
    std::thread second([&] {
        // TODO: an operation that may conflict with it
    });
    first.join();
    second.join();
    // TODO: assert what must hold whatever the schedule
    assert(!\"nothing is checked yet\");
}
",
);

/// The same in C.
const C: (&str, &str) = (
    "#include <assert.h>\n#include <pthread.h>\n",
    "\
/* Shared by the threads. Keep it small: two or three threads with one or two operations each have
 * few schedules and find most bugs. */

static void *first(void *unused)
{
    /* TODO: one operation */
    return unused;
}

static void *second(void *unused)
{
    /* TODO: an operation that may conflict with it */
    return unused;
}

int main(void)
{
    pthread_t one, two;
    /* TODO: initialise what is shared */
    pthread_create(&one, NULL, first, NULL);
    pthread_create(&two, NULL, second, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    /* TODO: assert what must hold whatever the schedule */
    assert(!\"nothing is checked yet\");
    return 0;
}
",
);

/// A harness in Rust.
const RUST: &str = "\
//! Checks this crate under every schedule: cargo selvedge test
//!
//! The crate has to use the types of `loom` where it is compiled with `--cfg loom`.
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

#[test]
fn two_threads() {
    loom::model(|| {
        // TODO: what is shared. Two or three threads with one or two operations each have few
        // schedules and find most bugs.
        let shared = Arc::new(AtomicUsize::new(0));
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.fetch_add(1, Ordering::Relaxed))
        };
        shared.fetch_add(1, Ordering::Relaxed);
        other.join().unwrap();
        let _sum = shared.load(Ordering::Relaxed);
        todo!(\"assert what must hold whatever the schedule\");
    });
}
";

/// The declarations of functions in a header, also of those that are defined there. Those of C++ may be members.
fn functions(header: &str, cxx: bool) -> Vec<String> {
    let text = without_comments(header);
    let mut found = Vec::new();
    let mut head = String::new();
    // Braces that are open around a body, in which nothing is declared.
    let mut inside = 0;
    for c in text.chars() {
        match c {
            '{' if inside > 0 => inside += 1,
            '}' if inside > 0 => inside -= 1,
            _ if inside > 0 => {}
            '{' => {
                if !contains_declarations(&head, cxx) {
                    found.extend(declaration(&head, cxx));
                    inside = 1;
                }
                head.clear();
            }
            '}' => head.clear(),
            ';' => {
                found.extend(declaration(&head, cxx));
                head.clear();
            }
            c => head.push(c),
        }
    }
    found
}

/// Without comments and the lines of the preprocessor.
fn without_comments(header: &str) -> String {
    let joined = header.replace("\\\n", " ");
    let (mut text, mut rest) = (String::new(), joined.as_str());
    while let Some((before, after)) = rest.split_once("/*") {
        text.push_str(before);
        rest = after.split_once("*/").map_or("", |(_, after)| after);
    }
    text.push_str(rest);
    let lines = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default());
    let lines = lines.filter(|line| !line.trim_start().starts_with('#'));
    lines.collect::<Vec<_>>().join("\n")
}

/// Whether braces behind `head` have further declarations between them.
fn contains_declarations(head: &str, cxx: bool) -> bool {
    let head = head.trim_start();
    let containers = ["namespace", "class ", "struct ", "union ", "template"];
    head.starts_with("extern \"C\"") && !head.contains('(')
        || cxx && !head.contains('(') && containers.iter().any(|word| head.contains(word))
}

/// The declaration of a function in one line, if it is one.
fn declaration(head: &str, cxx: bool) -> Option<String> {
    let words: Vec<&str> = head.split_whitespace().collect();
    let mut line = words.join(" ");
    for label in ["public:", "protected:", "private:"] {
        if let Some(rest) = line.strip_prefix(label) {
            line = rest.trim_start().to_owned();
        }
    }
    let (before, _) = line.split_once('(')?;
    let first = before.split(|c: char| !c.is_alphanumeric()).next();
    let other = [
        "typedef",
        "using",
        "friend",
        "static_assert",
        "_Static_assert",
    ];
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || cxx && "~>=".contains(c);
    let named = before.trim_end().ends_with(is_name);
    // A type and a name; constructors have no type.
    let typed = cxx
        || before
            .split([' ', '*'])
            .filter(|word| !word.is_empty())
            .count()
            > 1;
    let plain = !other.contains(&first.unwrap_or_default()) && !before.contains(" = ");
    (named && typed && plain).then(|| format!("{line};"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_found() {
        let header = "#define X(a) \\\n  f(a);\ntypedef void (*f)(int);\nint push(struct q *q,\n         int v);\n  x();\n// f();\n\
                      struct q { int (*f)(int); };\nint (*callback)(int);\n/* int no(int); */\n\
                      static inline int pop(struct q *q)\n{\n  if (q) { g(q); }\n  return 0;\n}\n\
                      extern \"C\" {\nvoid last(void);\n}\n";
        let expected = [
            "int push(struct q *q, int v);",
            "static inline int pop(struct q *q);",
            "void last(void);",
        ];
        assert_eq!(functions(header, false), expected);
        let header = "class Q {\n  Q() = default;\n  int get() const { return n; }\n  int n;\n};\n";
        let members = ["Q() = default;", "int get() const;"];
        assert_eq!(functions(header, true), members);
    }

    #[test]
    fn headers_of_cxx_are_recognised() {
        let is = |name: &str, text: &str| is_cxx(Path::new(name), text);
        assert!(
            is("q.hpp", "") && is("q.h", "namespace q {\n") && is("q.h", "  template <class T>\n")
        );
        assert!(!is("q.h", "int push(int);\n"));
        assert!(!is("q.h", "#ifdef __cplusplus\nnamespace q {\n#endif\n"));
    }
}
