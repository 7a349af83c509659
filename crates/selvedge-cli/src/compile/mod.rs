//! From source files to a shared object that the runtime can load.

pub(crate) mod assembly;
mod cache;
mod compiler;
mod flags;
mod support;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{IsTerminal, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use self::compiler::{Compiler, Family, Language};
use self::support::Support;
use crate::interrupt;
use crate::output;
use crate::problem::Problem;
use crate::scan;

/// A program as the user names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Program {
    /// The directory that everything is relative to; the current one if there is none.
    pub(crate) directory: Option<PathBuf>,
    /// Its source files.
    pub(crate) files: Vec<PathBuf>,
    /// The user's flags for the compiler.
    pub(crate) flags: Vec<String>,
    /// The compiler the user asked for.
    pub(crate) compiler: Option<String>,
}

impl Program {
    /// Where `file` is, seen from the current directory.
    pub(crate) fn path(&self, file: &Path) -> PathBuf {
        match &self.directory {
            Some(directory) => directory.join(file),
            None => file.to_owned(),
        }
    }
}

/// A program ready to be loaded. Its files are gone when this value is.
#[derive(Debug)]
pub(crate) struct Build {
    directory: TempDir,
    /// The shared object.
    pub(crate) library: PathBuf,
}

impl Build {
    /// A place for files that live as long as the build.
    pub(crate) fn scratch(&self) -> &Path {
        self.directory.path()
    }
}

/// Compiles, inspects and links `program`.
pub(crate) fn build(program: &Program) -> Result<Build, Problem> {
    let flags = flags::accepted(&program.flags)?;
    let mut sources = Vec::with_capacity(program.files.len());
    for path in &program.files {
        sources.push(Source::open(program, path)?);
    }
    let toolchain = Toolchain::find(program, &sources)?;
    let directory = tempfile::Builder::new()
        .prefix("selvedge-")
        .tempdir()
        .map_err(|error| {
            Problem::internal(format!("cannot create a temporary directory: {error}"))
                .help("set TMPDIR to a directory that can be written")
        })?;
    let support = toolchain.support(directory.path())?;
    let objects = toolchain.compile(&sources, &flags, &support, directory.path())?;
    scan::objects(&objects)?;
    let library = directory.path().join("program.so");
    toolchain.link(&objects, &support, &library)?;
    scan::library(&library, &objects)?;
    Ok(Build { directory, library })
}

/// A compiled file of the user's.
#[derive(Debug)]
pub(crate) struct Object {
    /// The source file as the user named it.
    pub(crate) source: PathBuf,
    /// The compiled file.
    pub(crate) path: PathBuf,
    /// For each block of inline assembly, what in it cannot be followed; see [`assembly`].
    pub(crate) assembly: Vec<Option<String>>,
}

/// A compiled file and what the compiler said meanwhile.
struct Compiled {
    object: Object,
    words: String,
}

#[derive(Debug)]
struct Source {
    path: PathBuf,
    language: Language,
}

impl Source {
    /// Makes sure that `path` can be compiled at all; compilers' words for these cases are poor.
    fn open(program: &Program, path: &Path) -> Result<Source, Problem> {
        let name = path.display();
        let language = match path.extension().and_then(|e| e.to_str()) {
            Some("c" | "i") => Some(Language::C),
            Some("cc" | "cpp" | "cxx" | "c++" | "cp" | "C" | "CPP" | "ii") => Some(Language::Cxx),
            _ => None,
        };
        let metadata = fs::metadata(program.path(path)).map_err(|error| {
            let problem = Problem::request(format!("{name}: {}", plainly(&error)));
            if path.to_string_lossy().starts_with('-') {
                problem.help("flags for the compiler come after two dashes: FILE… -- FLAGS…")
            } else {
                problem
            }
        })?;
        if metadata.is_dir() {
            return Err(Problem::request(format!("{name} is a directory"))
                .help("name the source files of one program"));
        }
        let Some(language) = language else {
            return Err(match path.extension().and_then(|e| e.to_str()) {
                Some("o" | "a" | "so" | "lo") => prebuilt(&path.to_string_lossy()),
                Some("s" | "S") => Problem::request(format!("{name} is assembly")).note(
                    "assembly carries no instrumentation: Selvedge would not see what it does",
                ),
                _ => Problem::request(format!("{name} is not a C or C++ file"))
                    .help("C files are named .c, C++ files .cc, .cpp, .cxx or .C"),
            });
        };
        let mut first = [0];
        match File::open(program.path(path)).and_then(|mut file| file.read(&mut first)) {
            Ok(0) => Err(Problem::request(format!("{name} is empty"))
                .help("a program needs a main function")),
            Ok(_) => Ok(Source {
                path: path.to_owned(),
                language,
            }),
            Err(error) => Err(Problem::request(format!("{name}: {}", plainly(&error)))),
        }
    }
}

/// The compilers a program needs: one for each language it is written in.
struct Toolchain {
    directory: Option<PathBuf>,
    c: Option<Compiler>,
    cxx: Option<Compiler>,
}

impl Toolchain {
    fn find(program: &Program, sources: &[Source]) -> Result<Toolchain, Problem> {
        let find = |language| {
            let needed = sources.iter().any(|source| source.language == language);
            let chosen = program.compiler.as_deref();
            needed.then(|| Compiler::find(language, chosen)).transpose()
        };
        let directory = program.directory.clone();
        let (c, cxx) = (find(Language::C)?, find(Language::Cxx)?);
        Ok(Toolchain { directory, c, cxx })
    }

    fn compiler(&self, language: Language) -> &Compiler {
        let compiler = match language {
            Language::C => &self.c,
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

    fn support(&self, scratch: &Path) -> Result<Support, Problem> {
        let language = self.language();
        Support::prepare(self.compiler(language), language, scratch)
    }

    /// Compiles every source, several at a time, and shows the compiler's words in the order of
    /// the sources.
    fn compile(
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
        let done = run(self.command(source, flags, support, &text))?;
        if !done.status.success() {
            return Err(self.does_not_compile(source, done));
        }
        let marked = fs::read_to_string(&text).map(|text| assembly::mark(&text));
        let written = marked.and_then(|marked| {
            fs::write(&text, marked.text)?;
            Ok(marked.blocks)
        });
        let assembly =
            written.map_err(|error| Problem::internal(format!("{}: {error}", text.display())))?;
        let assembled = self.assemble(source.language, &text, &path)?;
        if !assembled.status.success() {
            return Err(self.does_not_compile(source, assembled));
        }
        let object = Object {
            source: source.path.clone(),
            path,
            assembly,
        };
        Ok(Compiled {
            object,
            words: done.words,
        })
    }

    /// Assembles what the compiler wrote. The GNU assembler is several times faster at that than
    /// clang is, but may be too old for it.
    fn assemble(&self, language: Language, text: &Path, to: &Path) -> Result<Done, Problem> {
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

    fn command(&self, source: &Source, flags: &[&str], support: &Support, to: &Path) -> Command {
        let compiler = self.compiler(source.language);
        let mut command = compiler.command();
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        if std::io::stderr().is_terminal() {
            command.arg("-fdiagnostics-color=always");
        }
        command.args(flags::DEFAULTS).args(flags);
        command.args(flags::required(compiler, source.language));
        command.arg("-I").arg(support.include());
        // A file named like a flag is still a file.
        let path = match source.path.to_string_lossy().starts_with('-') {
            true => Path::new(".").join(&source.path),
            false => source.path.clone(),
        };
        command.arg("-S").arg("-o").arg(to).arg(path);
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

    fn link(&self, objects: &[Object], support: &Support, library: &Path) -> Result<(), Problem> {
        let mut command = self.compiler(self.language()).command();
        command.arg("-shared").arg("-o").arg(library);
        command
            .args(objects.iter().map(|object| &object.path))
            .args(support.objects());
        command.args(flags::LINK);
        command.args(selvedge_runtime::support::LINK_FLAGS);
        let done = run(command)?;
        if done.status.success() {
            return Ok(());
        }
        Err(does_not_link(done.words))
    }
}

/// What became of a compiler's run.
struct Done {
    status: ExitStatus,
    /// Everything it said.
    words: String,
}

/// Runs a compiler to its end, or to the user's interruption.
fn run(mut command: Command) -> Result<Done, Problem> {
    let name = command.get_program().to_string_lossy().into_owned();
    let failed = |error| Problem::internal(format!("cannot run {name}: {error}"));
    // Its own process group, so that an interruption reaches the processes it starts as well.
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0);
    let child = command.spawn().map_err(failed)?;
    let guarded = interrupt::Guarded::new(child.id());
    let output = child.wait_with_output().map_err(failed)?;
    drop(guarded);
    if interrupt::requests() > 0 {
        return Err(Problem::interrupted(
            "interrupted while the program was compiled",
        ));
    }
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    Ok(Done {
        status: output.status,
        words,
    })
}

/// What is wrong with a program whose parts do not fit together, in the linker's words and then in
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

/// Compiled code that was not compiled here.
fn prebuilt(name: &str) -> Problem {
    Problem::request(format!("{name} is compiled code and cannot be checked"))
        .note("it carries no instrumentation: Selvedge would not see what it does")
        .help("name its source files instead")
}

/// The system's words for an error, without the number.
fn plainly(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "no such file".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}
