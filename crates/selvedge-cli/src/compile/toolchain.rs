//! Runs the compilers: from sources to objects, and from objects to the program.

use std::collections::BTreeSet;
use std::fs;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use object::File;
use selvedge_runtime::support::ENVIRONMENT_FLAGS;

use super::attributes::Attributes;
use super::compiler::{self, Compiler, Family, Language};
use super::support::Support;
use super::{
    Done, Object, Program, Recorded, Source, assembly, flags, foreign, frames, inline, kept, run,
    rust,
};
use crate::output;
use crate::problem::Problem;
use crate::scan;

/// The name of the directory of the modelled environment in debug information.
const SYSTEM_SOURCES: &str = "/usr/lib/selvedge";

/// A compiled file and what the compiler said meanwhile.
struct Compiled {
    object: Object,
    words: String,
}

/// The compilers a program needs: one for each language it is written in.
pub(super) struct Toolchain {
    directory: Option<PathBuf>,
    c: Option<Compiler>,
    cxx: Option<Compiler>,
    /// Whether basic blocks are marked.
    marks: bool,
    /// Whether weak compare-exchanges may fail for no reason.
    spurious_failures: bool,
    /// Whether what the compiler makes of C++ is kept for the next time.
    kept: bool,
}

impl Toolchain {
    /// Finds the compilers for `sources`.
    pub(super) fn find(program: &Program, sources: &[Source]) -> Result<Toolchain, Problem> {
        let find = |language| {
            let needed = sources
                .iter()
                .any(|source| linked_as(source.language) == language);
            let chosen = program.compiler.as_deref();
            let origin = match program.recorded.is_empty() {
                true => "--cc",
                false => "the build, or --cc,",
            };
            let find = || Compiler::find(language, chosen, origin);
            needed.then(find).transpose()
        };
        let directory = program.directory.clone();
        let (c, cxx) = (find(Language::C)?, find(Language::Cxx)?);
        let marks = program.marks;
        Ok(Toolchain {
            directory,
            c,
            cxx,
            marks,
            spurious_failures: program.spurious_failures,
            kept: program.kept,
        })
    }

    fn compiler(&self, language: Language) -> &Compiler {
        let compiler = match language {
            Language::C | Language::Rust => &self.c,
            Language::Cxx => &self.cxx,
        };
        compiler
            .as_ref()
            .expect("there is a compiler for every language in use")
    }

    /// A program is C++ as soon as a part of it is. Such a program is linked by the C++ compiler,
    /// which knows where its library is.
    fn language(&self) -> Language {
        match self.cxx {
            Some(_) => Language::Cxx,
            None => Language::C,
        }
    }

    /// The runtime's part of the program.
    pub(super) fn support(&self, scratch: &Path) -> Result<Support, Problem> {
        let language = self.language();
        Support::prepare(self.compiler(language), language, scratch)
    }

    /// A file of the modelled environment, and where it is compiled to. Places in it count as the
    /// system's.
    pub(super) fn environment(
        &self,
        file: &str,
        support: &Support,
        scratch: &Path,
    ) -> Result<(Source, PathBuf), Problem> {
        let into = scratch.join(file.replace('.', "-"));
        fs::create_dir(&into)
            .map_err(|error| Problem::internal(format!("{}: {error}", into.display())))?;
        let directory = support.directory().to_owned();
        let path = directory.join(file);
        let mut flags = ENVIRONMENT_FLAGS.map(str::to_owned).to_vec();
        flags.push(format!(
            "-ffile-prefix-map={}={SYSTEM_SOURCES}",
            directory.display()
        ));
        let source = Source {
            path,
            language: self.language(),
            compiled: None,
            recorded: Some(Recorded { directory, flags }),
            foreign: false,
        };
        Ok((source, into))
    }

    /// Compiles every source, several at a time, and shows the compiler's words in the order of
    /// the sources.
    pub(super) fn compile(
        &self,
        sources: &[Source],
        flags: &[&str],
        support: &Support,
        directory: &Path,
    ) -> Result<Vec<Object>, Problem> {
        let next = AtomicUsize::new(0);
        let results: Vec<Mutex<Option<Result<Compiled, Problem>>>> =
            sources.iter().map(|_| Mutex::new(None)).collect();
        let work = || {
            while let Some(index) = Some(next.fetch_add(1, Ordering::Relaxed))
                && let Some(source) = sources.get(index)
            {
                let stem = directory.join(index.to_string());
                let done = self.compile_one(source, flags, support, &stem);
                *results[index].lock().expect("no holder panics") = Some(done);
            }
        };
        let workers = thread::available_parallelism()
            .map_or(1, usize::from)
            .min(sources.len());
        thread::scope(|scope| {
            for _ in 1..workers {
                scope.spawn(work);
            }
            work();
        });
        let mut objects = Vec::with_capacity(sources.len());
        for result in results {
            let compiled = result
                .into_inner()
                .expect("no holder panics")
                .expect("all were compiled")?;
            output::pass_on(&compiled.words);
            objects.push(compiled.object);
        }
        Ok(objects)
    }

    /// Compiles one source to assembly, marks what is inline assembly in it, and assembles that.
    fn compile_one(
        &self,
        source: &Source,
        flags: &[&str],
        support: &Support,
        stem: &Path,
    ) -> Result<Compiled, Problem> {
        let (text, path) = (stem.with_extension("s"), stem.with_extension("o"));
        let (written, words) = match &source.compiled {
            _ if source.foreign => {
                self.take_apart(source, &text, &path)?;
                (text.clone(), String::new())
            }
            Some(assembly) if source.language == Language::Rust => {
                (assembly.clone(), String::new())
            }
            _ => {
                let command = || self.command(source, flags, support);
                let done = match self.kept && source.language == Language::Cxx {
                    true => kept::compile(self.compiler(Language::Cxx), command, &text)?,
                    false => kept::compile_anew(command(), &text)?,
                };
                if !done.status.success() {
                    return Err(self.does_not_compile(source, done));
                }
                (text.clone(), done.words)
            }
        };
        let marked = read_assembly(&written).map(|text| match source.language {
            Language::Rust => assembly::mark(&rust::understood(&written, &text)),
            Language::C | Language::Cxx => assembly::mark(&text),
        });
        let written = marked.and_then(|marked| {
            fs::write(&text, frames::clear(&marked.text))?;
            Ok(marked.blocks)
        });
        let assembly =
            written.map_err(|error| Problem::internal(format!("{}: {error}", text.display())))?;
        let assembled = self.assemble(source.language, &text, &path)?;
        if !assembled.status.success() {
            return Err(self.does_not_compile(source, assembled));
        }
        self.rewrite_inline(source, &assembly, (&text, &path))?;
        let rust = source.language == Language::Rust;
        let clang = match source.foreign {
            true => fs::read(self.located(source)).is_ok_and(|bytes| foreign::is_of_llvm(&bytes)),
            false => rust || self.compiler(source.language).family == Family::Clang,
        };
        let attributes = || match rust {
            true => Attributes::of_all(),
            false => {
                let command = self.command(source, flags, support);
                Attributes::new(command, stem.with_extension("ll"))
            }
        };
        let object = Object {
            source: source.path.clone(),
            language: source.language,
            path,
            text,
            assembly,
            leaves_loads: clang,
            attributes: (clang && !source.foreign).then(attributes),
        };
        Ok(Compiled { object, words })
    }

    /// Where a source is.
    fn located(&self, source: &Source) -> PathBuf {
        if let Some(member) = source.compiled.as_ref().filter(|_| source.foreign) {
            return member.clone();
        }
        let recorded = source.recorded.as_ref().map(|recorded| &recorded.directory);
        match recorded.or(self.directory.as_ref()) {
            Some(directory) => directory.join(&source.path),
            None => source.path.clone(),
        }
    }

    /// Writes an object that another compiler has instrumented as assembly to `text`, which has to be the same
    /// program once it is assembled to `path`.
    fn take_apart(&self, source: &Source, text: &Path, path: &Path) -> Result<(), Problem> {
        let from = self.located(source);
        let refuse = |why: String| {
            Problem::request(format!("cannot check {}: {why}", source.path.display()))
                .note("an instrumented object of another compiler has to be taken apart, to add checks behind its stores")
                .help("name its source files instead: selvedge verify FILE…")
        };
        let failed = |error| Problem::internal(format!("{}: {error}", path.display()));
        let bytes = fs::read(&from).map_err(failed)?;
        let bare = |bytes: &[u8]| foreign::assembly(bytes, &foreign::Lines::default());
        let meant = bare(&bytes).map_err(refuse)?;
        let written = foreign::assembly(&bytes, &foreign::Lines::of(&from)).map_err(refuse)?;
        fs::write(text, written).map_err(failed)?;
        let assembled = self.assemble(source.language, text, path)?;
        if !assembled.status.success() {
            return Err(
                refuse("what it does cannot be written as assembly".to_owned())
                    .words(assembled.words),
            );
        }
        let again = bare(&fs::read(path).map_err(failed)?).map_err(refuse)?;
        match again == meant {
            true => Ok(()),
            false => Err(refuse(
                "what it does cannot be written as assembly".to_owned(),
            )),
        }
    }

    /// Rewrites inline assembly with a known meaning in an assembled file.
    fn rewrite_inline(
        &self,
        source: &Source,
        blocks: &[assembly::Inline],
        (text, path): (&Path, &Path),
    ) -> Result<(), Problem> {
        if blocks.is_empty() {
            return Ok(());
        }
        let failed = |error| Problem::internal(format!("{}: {error}", path.display()));
        let bytes = fs::read(path).map_err(failed)?;
        let Ok(file) = File::parse(&*bytes) else {
            return Ok(());
        };
        let places = scan::blocks(&file, assembly::SECTION);
        let code = places.into_iter().zip(blocks).map(|(place, inline)| {
            let known = inline.in_function && inline.opaque.is_none();
            place
                .filter(|_| known)
                .and_then(|place| scan::instructions_of(&file, place))
        });
        let code: Vec<_> = code.collect();
        let written = read_assembly(text).map_err(failed)?;
        let Some(rewritten) = inline::rewrite(&written, &code) else {
            return Ok(());
        };
        fs::write(text, rewritten).map_err(failed)?;
        let assembled = self.assemble(source.language, text, path)?;
        if !assembled.status.success() {
            // As it was: the scan refuses it.
            fs::write(text, written).map_err(failed)?;
            self.assemble(source.language, text, path)?;
        }
        Ok(())
    }

    /// Assembles `text`, which is written to a file first.
    pub(super) fn assemble_text(&self, text: &str, from: &Path, to: &Path) -> Result<(), Problem> {
        fs::write(from, text)
            .map_err(|error| Problem::internal(format!("{}: {error}", from.display())))?;
        let done = self.assemble(self.language(), from, to)?;
        match done.status.success() {
            true => Ok(()),
            false => Err(Problem::internal("cannot assemble stubs").words(done.words)),
        }
    }

    /// Assembles what the compiler wrote. The GNU assembler is several times faster at that than
    /// clang is, but may be too old for it.
    pub(super) fn assemble(
        &self,
        language: Language,
        text: &Path,
        to: &Path,
    ) -> Result<Done, Problem> {
        let compiler = self.compiler(language);
        if compiler.family == Family::Clang
            && let Some(assembler) = compiler::assembler()
        {
            let mut command = Command::new(assembler);
            command.arg("--64").arg("-o").arg(to).arg(text);
            let done = run(command)?;
            if done.status.success() {
                return Ok(done);
            }
        }
        let mut command = compiler.command();
        command.arg("-c").arg("-o").arg(to).arg(text);
        run(command)
    }

    /// Compiles one source; what is to be written, and where, is left to be added.
    fn command(&self, source: &Source, flags: &[&str], support: &Support) -> Command {
        let compiler = self.compiler(source.language);
        let mut command = compiler.command();
        let recorded = source.recorded.as_ref();
        let directory = recorded.map(|recorded| &recorded.directory);
        if let Some(directory) = directory.or(self.directory.as_ref()) {
            command.current_dir(directory);
        }
        if std::io::stderr().is_terminal() {
            command.arg("-fdiagnostics-color=always");
        }
        command.args(flags::DEFAULTS);
        match recorded {
            Some(recorded) => command.args(&recorded.flags),
            None => command.args(flags),
        };
        command.args(flags::required(compiler, source.language));
        command.args(flags::marks(compiler).filter(|_| self.marks));
        command.args(flags::weak_exchanges(compiler, self.spurious_failures));
        command.arg("-I").arg(support.include());
        if source.language == Language::Cxx {
            command.arg("-isystem").arg(support.cxx_include());
        }
        // A file named like a flag, or like a file of flags, is still a file.
        let path = source.compiled.as_ref().unwrap_or(&source.path);
        let path = match path.to_string_lossy().starts_with(['-', '@']) {
            true => Path::new(".").join(path),
            false => path.clone(),
        };
        command.arg(path);
        command
    }

    fn does_not_compile(&self, source: &Source, done: Done) -> Problem {
        let compiler = self.compiler(source.language);
        let problem = Problem::request(format!("{} does not compile", source.path.display()));
        let problem = match compiler.family {
            Family::Gcc if compiler.version < 11 => problem.note("gcc 11 or later is needed"),
            Family::Clang if compiler.version < 14 => problem.note("clang 14 or later is needed"),
            _ => problem,
        };
        match done.status.code() {
            Some(_) => problem.words(done.words),
            None => problem
                .words(done.words)
                .note(format!("{}: {}", compiler.name(), done.status)),
        }
    }

    /// Links the program.
    pub(super) fn link(
        &self,
        objects: &[Object],
        support: &Support,
        parts: &[PathBuf],
        wrapped: &[&str],
        library: &Path,
    ) -> Result<(), Problem> {
        let mut command = self.compiler(self.language()).command();
        command.args(wrapped.iter().map(|name| format!("-Wl,--wrap={name}")));
        command.arg("-shared").arg("-o").arg(library);
        command
            .args(objects.iter().map(|object| &object.path))
            .args(parts)
            .args(support.objects());
        command.args(selvedge_runtime::support::LINK_FLAGS);
        linked(run(command)?)
    }

    /// Links the program and `parts` into an executable.
    pub(super) fn executable(
        &self,
        objects: &[Object],
        parts: &[PathBuf],
        flags: &[String],
        to: &Path,
    ) -> Result<(), Problem> {
        let mut command = self.compiler(self.language()).command();
        command.arg("-o").arg(to);
        command
            .args(objects.iter().map(|object| &object.path))
            .args(parts)
            .args(flags::EXECUTABLE)
            .args(flags);
        linked(run(command)?)
    }
}

/// The language whose compiler assembles and links what is written in `language`.
fn linked_as(language: Language) -> Language {
    match language {
        Language::C | Language::Rust => Language::C,
        Language::Cxx => Language::Cxx,
    }
}

/// The assembly that a compiler wrote. clang's comments contain constants as they are, which need not be text.
pub(super) fn read_assembly(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    for line in fs::read(path)?.split(|&byte| byte == b'\n') {
        let line = match std::str::from_utf8(line) {
            Ok(line) => line,
            Err(_) => {
                let code = line.split(|&byte| byte == b'#').next().unwrap_or_default();
                std::str::from_utf8(code).map_err(std::io::Error::other)?
            }
        };
        assembly::line_to(&mut text, line);
    }
    Ok(text)
}

fn linked(done: Done) -> Result<(), Problem> {
    match done.status.success() {
        true => Ok(()),
        false => Err(does_not_link(done.words)),
    }
}

/// The problem of a program whose parts do not fit together, in the linker's words and then in
/// short: linkers call the files by the names that the compiler gave them.
fn does_not_link(words: String) -> Problem {
    let named = |before: &str| {
        let names = words.split(before).skip(1).filter_map(|rest| {
            let rest = rest.trim_start_matches(['`', '\'', '‘']);
            let end = rest.find(['\'', '’', '\n', ';'])?;
            Some(rest[..end].to_owned())
        });
        names.collect::<BTreeSet<String>>()
    };
    let mut problem = Problem::request("the program does not link");
    for name in named("undefined reference to ")
        .into_iter()
        .chain(named("undefined symbol: "))
    {
        problem = problem.note(format!("{name} is defined in none of the files"));
    }
    for name in named("multiple definition of ")
        .into_iter()
        .chain(named("duplicate symbol: "))
    {
        problem = problem.note(format!("{name} is defined more than once"));
    }
    problem.words(words)
}
