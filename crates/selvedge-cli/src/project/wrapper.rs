//! `selvedge cc` and `selvedge c++`: the user's compiler, which also notes what it did.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use super::command::{self, CommandLine};
use super::{Unit, digest, notes};
use crate::compile::{Language, foreign};
use crate::problem::Problem;
use crate::scratch::Scratch;

/// Compiles or links as the compiler for `language` does.
pub(crate) fn run(language: Language, arguments: &[OsString]) -> Result<ExitCode, Problem> {
    let (variable, default) = match language {
        Language::C | Language::Rust => ("SELVEDGE_CC", "cc"),
        Language::Cxx => ("SELVEDGE_CXX", "c++"),
    };
    let compiler = std::env::var(variable).unwrap_or_else(|_| default.to_owned());
    let words: Option<Vec<String>> = arguments
        .iter()
        .map(|word| word.to_str().map(str::to_owned))
        .collect();
    let Some(words) = words else {
        return Err(Problem::request(
            "selvedge cc takes arguments in UTF-8 only",
        ));
    };
    let words = command::expand(words)?;
    let wrapper = Wrapper { compiler, words };
    let line = command::parse(&wrapper.words);
    let status = match (line.sources.is_empty(), line.compiles_only) {
        _ if line.writes_text => wrapper.call(&wrapper.words)?,
        (true, true) => wrapper.call(&wrapper.words)?,
        (false, true) => wrapper.compile(&line)?,
        (_, false) => wrapper.compile_and_link(&line)?,
    };
    Ok(ExitCode::from(status))
}

struct Wrapper {
    compiler: String,
    /// Its arguments.
    words: Vec<String>,
}

impl Wrapper {
    /// Runs the compiler; its exit status.
    fn call(&self, words: &[String]) -> Result<u8, Problem> {
        let name = &self.compiler;
        let status = Command::new(name).args(words).status().map_err(|error| {
            Problem::request(format!("cannot run {name}: {error}"))
                .help("SELVEDGE_CC and SELVEDGE_CXX name the compilers")
        })?;
        // As shells tell that a signal ended it.
        let code = status.code().unwrap_or(128);
        Ok(u8::try_from(code).unwrap_or(1))
    }

    /// Compiles as asked, and notes it in each object. Objects for optimization while linking would lose their notes
    /// there, so they become ordinary ones.
    fn compile(&self, line: &CommandLine) -> Result<u8, Problem> {
        let words = self.words.iter().filter(|word| !word.starts_with("-flto"));
        let words: Vec<String> = words.cloned().collect();
        let status = self.call(&words)?;
        if status == 0 {
            for &source in &line.sources {
                let source = Path::new(&self.words[source]);
                let object = line.output.clone().unwrap_or_else(|| {
                    let name = source.file_name().unwrap_or_default();
                    Path::new(name).with_extension("o")
                });
                // Tests of what a compiler can do write to /dev/null.
                if object.is_file() {
                    self.note(line, source, &object)?;
                }
            }
        }
        Ok(status)
    }

    /// Compiles each source to an object of its own, and links these in the place of the sources.
    fn compile_and_link(&self, line: &CommandLine) -> Result<u8, Problem> {
        let scratch = scratch()?;
        let mut words = self.words.clone();
        for (number, &source) in line.sources.iter().enumerate() {
            let object = scratch.path().join(format!("{number}.o"));
            let name = object.display().to_string();
            let mut compile = line.flags.clone();
            compile.extend(["-c", &self.words[source], "-o", &name].map(str::to_owned));
            let status = self.call(&compile)?;
            if status != 0 {
                return Ok(status);
            }
            self.note(line, Path::new(&self.words[source]), &object)?;
            words[source] = name;
        }
        let foreign = self.note_foreign(&mut words, scratch.path())?;
        words.extend(foreign.then(|| "-fsanitize=thread".to_owned()));
        self.call(&words)
    }

    /// Puts copies in the place of objects and archives that other compilers have instrumented, with a note that
    /// they are their own source. Tells whether there are any: they need ThreadSanitizer's library.
    fn note_foreign(&self, words: &mut [String], scratch: &Path) -> Result<bool, Problem> {
        let mut found = false;
        let archives = command::libraries(words);
        for (number, word) in words.iter_mut().enumerate() {
            let path = match archives.get(&number) {
                Some(archive) => archive.clone(),
                None => PathBuf::from(&*word),
            };
            if word.starts_with('-') && !archives.contains_key(&number) || !foreign::is(&path) {
                continue;
            }
            let failed = |error| Problem::request(format!("{}: {error}", path.display()));
            let bytes = std::fs::read(&path).map_err(failed)?;
            let copy = match foreign::members(&path, &bytes) {
                None if is_noted(&path, &bytes) => continue,
                None => {
                    let copy = scratch.join(format!("foreign-{number}.o"));
                    std::fs::write(&copy, &bytes).map_err(failed)?;
                    self.note(&CommandLine::default(), &path, &copy)?;
                    copy
                }
                Some(members) => match self.note_members(&path, &members, number, scratch)? {
                    Some(copy) => copy,
                    None => continue,
                },
            };
            *word = copy.display().to_string();
            found = true;
        }
        Ok(found)
    }

    /// A copy of an archive, with a note in each member that another compiler has instrumented. `None` if there are
    /// none of these.
    fn note_members(
        &self,
        path: &Path,
        members: &[foreign::Member],
        number: usize,
        scratch: &Path,
    ) -> Result<Option<PathBuf>, Problem> {
        let failed = |error| Problem::request(format!("{}: {error}", path.display()));
        let copy = scratch.join(format!("foreign-{number}.a"));
        let mut command = Command::new("ar");
        command.arg("qcs").arg(&copy);
        let mut found = false;
        for (n, member) in members.iter().enumerate() {
            let object = scratch.join(format!("foreign-{number}-{n}.o"));
            std::fs::write(&object, &member.bytes).map_err(failed)?;
            if foreign::is_instrumented(&member.bytes) && !is_noted(path, &member.bytes) {
                self.note(&CommandLine::default(), path, &object)?;
                found = true;
            }
            command.arg(object);
        }
        if !found {
            return Ok(None);
        }
        match command.status().map_err(failed)?.success() {
            true => Ok(Some(copy)),
            false => Err(Problem::request(format!(
                "ar cannot copy {}",
                path.display()
            ))),
        }
    }

    fn note(&self, line: &CommandLine, source: &Path, object: &Path) -> Result<(), Problem> {
        let directory = std::env::current_dir().map_err(|error| {
            Problem::internal(format!("the current directory is gone: {error}"))
        })?;
        let unit = Unit {
            directory,
            file: PathBuf::from(source),
            flags: line.flags.clone(),
            compiler: self.compiler.clone(),
            digest: digest(source),
        };
        notes::add(object, &unit, scratch()?.path())
    }
}

/// Whether an object with these bytes tells what it was compiled from.
fn is_noted(path: &Path, bytes: &[u8]) -> bool {
    notes::read(path, bytes).is_ok_and(|units| !units.is_empty())
}

fn scratch() -> Result<Scratch, Problem> {
    Scratch::new().map_err(|error| {
        Problem::internal(format!("cannot create a temporary directory: {error}"))
            .help("set TMPDIR to a directory that can be written")
    })
}
