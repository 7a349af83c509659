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
    assert(true);
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
    assert(1);
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
        // TODO: what must hold whatever the schedule.
        assert_eq!(shared.load(Ordering::Relaxed), 2);
    });
}
";

/// The declarations of functions in a header, as far as they stand on one line. Those of C++ may be members.
fn functions(header: &str, cxx: bool) -> Vec<String> {
    let words = ["typedef", "using", "return", "if", "for", "while", "friend"];
    let declares = |line: &&str| {
        let first = line.split(|c: char| !c.is_alphanumeric()).next();
        let plain = !line.starts_with(['#', '/', '*', '}', '{'])
            && !words.contains(&first.unwrap_or_default());
        let ends = match cxx {
            true => [");", "const;", "default;", "}"]
                .iter()
                .any(|end| line.ends_with(end)),
            false => line.ends_with(");"),
        };
        plain && ends && line.contains('(')
    };
    let lines = header.lines().map(str::trim_end);
    let outermost = |line: &&str| cxx || !line.starts_with([' ', '\t']);
    let lines = lines.filter(outermost).map(str::trim_start);
    lines.filter(declares).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_found() {
        let header = "#define X(a) (a);\ntypedef void (*f)(int);\nint push(struct q *q, int v);\n  x();\n// f();\n";
        assert_eq!(functions(header, false), ["int push(struct q *q, int v);"]);
        let header = "class Q {\n  Q() = default;\n  int get() const { return n; }\n  int n;\n};\n";
        let members = ["Q() = default;", "int get() const { return n; }"];
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
