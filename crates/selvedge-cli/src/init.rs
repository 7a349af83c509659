//! `selvedge init`: a first harness for a C header or a Rust crate.

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
    let (path, text, next) = match subject.join("Cargo.toml").is_file() {
        true => {
            let path = subject.join("tests/selvedge.rs");
            let command = format!("cd {} && cargo selvedge test", human::quoted(subject));
            (path, RUST.to_owned(), command)
        }
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
        "wrote {}: fill in what each thread does, then\n\nnext: {next}\n",
        path.display()
    ));
    Ok(Status::Verified)
}

fn for_header(header: &Path) -> Result<(PathBuf, String, String), Problem> {
    let name = header.display();
    let text = input::read_text(header).map_err(|error| {
        Problem::request(format!("cannot read {name}: {error}"))
            .help("selvedge init takes a header, or the directory of a crate")
    })?;
    let stem = header.file_stem().unwrap_or_default().to_string_lossy();
    let file = header.file_name().unwrap_or_default().to_string_lossy();
    let path = header.with_file_name(format!("{stem}_schedules.c"));
    let source = header.with_extension("c");
    let mut command = format!("selvedge verify {}", human::quoted(&path));
    if source.is_file() {
        command += &format!(" {}", human::quoted(&source));
    }
    let functions: String = functions(&text)
        .iter()
        .map(|function| format!(" *   {function}\n"))
        .collect();
    let listed = match functions.is_empty() {
        true => String::new(),
        false => format!(" *\n * The header declares\n *\n{functions}"),
    };
    let harness = format!(
        "/*\n * Checks {file} under every schedule: {command}\n{listed} */\n\
         #include <assert.h>\n#include <pthread.h>\n\n#include \"{file}\"\n\n{BODY}"
    );
    Ok((path, harness, command))
}

/// The rest of a harness in C.
const BODY: &str = "\
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
";

/// A harness in Rust.
const RUST: &str = "\
//! Checks this crate under every schedule: cargo selvedge test
//!
//! The crate has to use `loom`'s types where this is compiled with `--cfg loom`, and its Cargo.toml
//! has to name the library: loom = { package = \"selvedge\", version = \"0.1\" }
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

/// The declarations of functions in a header, as far as they stand on one line.
fn functions(header: &str) -> Vec<String> {
    let declares = |line: &&str| {
        let plain = !line.starts_with(['#', '/', '*', ' ', '\t', '}', '{']);
        plain && line.ends_with(");") && line.contains('(') && !line.starts_with("typedef")
    };
    header
        .lines()
        .map(str::trim_end)
        .filter(declares)
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_found() {
        let header = "#define X(a) (a);\ntypedef void (*f)(int);\nint push(struct q *q, int v);\n  x();\n// f();\n";
        assert_eq!(functions(header), ["int push(struct q *q, int v);"]);
    }
}
