//! Compiles source files to a shared object that the runtime can load.

pub(crate) mod announce;
mod archives;
pub(crate) mod assembly;
mod attributes;
mod cache;
mod cancellation;
pub(crate) mod checks;
mod compiler;
mod complete;
mod expressions;
mod fingerprint;
pub(crate) mod flags;
pub(crate) mod foreign;
mod frames;
mod fresh;
pub(crate) mod inline;
mod kept;
mod rust;
mod source;
mod support;
mod toolchain;
pub(crate) mod traps;

use std::collections::BTreeSet;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use selvedge_runtime::support::{CANCEL, CANCELLATION, needs_environment};
use serde::{Deserialize, Serialize};

use self::attributes::Attributes;
use self::cancellation::Cancellation;
pub(crate) use self::compiler::Language;
pub(crate) use self::source::plainly;
use self::source::{Source, prebuilt};
use self::support::Support;
use self::toolchain::Toolchain;
use crate::interrupt;
use crate::paths;
use crate::problem::Problem;
use crate::scan::{self, Finding, Trap};
use crate::scratch::Scratch;

/// A program as the user names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Program {
    /// The directory that everything is relative to; the current one if there is none.
    #[serde(with = "paths")]
    pub(crate) directory: Option<PathBuf>,
    /// Its source files.
    #[serde(with = "paths")]
    pub(crate) files: Vec<PathBuf>,
    /// The user's flags for the compiler.
    pub(crate) flags: Vec<String>,
    /// How the first files are compiled, if a build system says so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) recorded: Vec<Recorded>,
    /// The compiler the user asked for.
    pub(crate) compiler: Option<String>,
    /// Expressions over its variables that a formula asks about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) expressions: Vec<String>,
    /// Whether basic blocks are marked, so that rounds of loops can be counted.
    #[serde(default)]
    pub(crate) marks: bool,
    /// Whether weak compare-exchanges may fail for no reason.
    #[serde(default)]
    pub(crate) spurious_failures: bool,
    /// Whether what it uses of the system is modelled.
    #[serde(default)]
    pub(crate) environment: bool,
    /// Whether what the compiler makes of C++ is kept for the next time.
    #[serde(default)]
    pub(crate) kept: bool,
    /// Whether code that cannot be checked is refused although it may never run.
    #[serde(default)]
    pub(crate) strict: bool,
}

/// How a build system compiles a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Recorded {
    /// The directory that the compiler is started in.
    #[serde(with = "paths")]
    pub(crate) directory: PathBuf,
    /// Its flags.
    pub(crate) flags: Vec<String>,
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

/// A program whose files are compiled. They are gone when this value is.
pub(crate) struct Compiled {
    directory: Scratch,
    toolchain: Toolchain,
    support: Support,
    /// The compiled files, in the order in which they are linked.
    pub(crate) objects: Vec<Object>,
    cancellation: Cancellation,
    /// The trap that ends an execution that reaches it.
    pub(crate) unsupported: Vec<Finding>,
}

/// A program ready to be loaded. Its files are gone when this value is.
pub(crate) struct Build {
    /// The objects it was linked from.
    pub(crate) compiled: Compiled,
    /// The shared object.
    pub(crate) library: PathBuf,
}

/// A shared object that workers can load, wherever it comes from.
#[derive(Clone, Debug)]
pub(crate) struct Image {
    /// The shared object.
    pub(crate) library: PathBuf,
    /// A directory for files that live as long as it does.
    pub(crate) scratch: PathBuf,
}

impl Build {
    /// The shared object that workers load.
    pub(crate) fn image(&self) -> Image {
        Image {
            library: self.library.clone(),
            scratch: self.compiled.scratch().to_owned(),
        }
    }

    /// The compiled files.
    pub(crate) fn objects(&self) -> &[Object] {
        &self.compiled.objects
    }
}

/// Compiles, inspects and links `program`.
pub(crate) fn build(program: &Program) -> Result<Build, Problem> {
    let mut compiled = compile(program)?;
    let library = compiled.scratch().join("program.so");
    compiled.link(&library, &[])?;
    let needed = scan::library(&library, &compiled.objects)?;
    admit(program, &needed.findings)?;
    if !needed.stubs.is_empty() {
        let stubs = compiled.stubs(&needed.stubs)?;
        compiled.link(&library, &[stubs])?;
    }
    compiled.unsupported.extend(needed.findings);
    Ok(Build { compiled, library })
}

/// Refuses the program if there is something in `findings` that its execution cannot be stopped at,
/// or anything at all where that is asked for.
fn admit(program: &Program, findings: &[Finding]) -> Result<(), Problem> {
    let refused = |finding: &&Finding| program.strict || finding.trap == Trap::Nothing;
    scan::refuse(findings.iter().filter(refused))
}

/// All that cannot be checked in `program`.
pub(crate) fn unsupported(program: &Program) -> Result<Vec<Finding>, Problem> {
    let compiled = prepare(program)?;
    let library = compiled.scratch().join("program.so");
    compiled.link(&library, &[])?;
    let scanned = scan::objects(&compiled.objects, !program.recorded.is_empty())?.into_iter();
    let mut found: Vec<Finding> = scanned.flat_map(|scanned| scanned.findings).collect();
    found.extend(scan::library(&library, &compiled.objects)?.findings);
    Ok(found)
}

/// Compiles and inspects `program`.
pub(crate) fn compile(program: &Program) -> Result<Compiled, Problem> {
    let mut compiled = prepare(program)?;
    let scanned = scan::objects(&compiled.objects, !program.recorded.is_empty())?;
    let found = scanned.iter().flat_map(|scanned| &scanned.findings);
    compiled.unsupported = found.cloned().collect();
    admit(program, &compiled.unsupported)?;
    for (object, scanned) in compiled.objects.iter().zip(scanned) {
        let more = compiled.toolchain.complete(object, scanned)?;
        admit(program, &more)?;
        compiled.unsupported.extend(more);
    }
    Ok(compiled)
}

/// Compiles the files of `program`.
fn prepare(program: &Program) -> Result<Compiled, Problem> {
    let flags = flags::accepted(&program.flags)?;
    expressions::check(program)?;
    let mut sources = Vec::with_capacity(program.files.len());
    for (number, path) in program.files.iter().enumerate() {
        let recorded = program.recorded.get(number);
        let mut source = Source::open(program, path, recorded.is_some())?;
        if let Some(recorded) = recorded {
            flags::accepted(&recorded.flags)?;
            source.recorded = Some(recorded.clone());
        }
        sources.push(source);
    }
    let toolchain = Toolchain::find(program, &sources)?;
    let directory = Scratch::new().map_err(|error| {
        Problem::internal(format!("cannot create a temporary directory: {error}"))
            .help("set TMPDIR to a directory that can be written")
    })?;
    if !program.expressions.is_empty() {
        sources[0].wrap(program, directory.path())?;
    }
    let sources = expand(program, sources, directory.path())?;
    let (archives, sources): (Vec<Source>, Vec<Source>) =
        sources.into_iter().partition(Source::is_archive);
    let support = toolchain.support(directory.path())?;
    let mut objects = toolchain.compile(&sources, &flags, &support, directory.path())?;
    let members = archives::members(program, &archives, &objects, directory.path())?;
    if !members.is_empty() {
        let into = directory.path().join(archives::MEMBERS);
        objects.extend(toolchain.compile(&members, &flags, &support, &into)?);
    }
    let undefined = match program.environment {
        true => scan::undefined(&objects)?,
        false => BTreeSet::new(),
    };
    let add = |file: &str, objects: &mut Vec<Object>| -> Result<(), Problem> {
        let (source, into) = toolchain.environment(file, &support, directory.path())?;
        objects.extend(toolchain.compile(&[source], &[], &support, &into)?);
        Ok(())
    };
    let has_environment = undefined.iter().any(|name| needs_environment(name));
    let mut cancellation = Cancellation::default();
    if undefined.contains(CANCEL) {
        let scratch = directory.path();
        cancellation =
            Cancellation::prepare(&objects, &undefined, has_environment, &toolchain, scratch)?;
        add(CANCELLATION.0, &mut objects)?;
    }
    if has_environment {
        add(support::ENVIRONMENT, &mut objects)?;
    }
    Ok(Compiled {
        directory,
        toolchain,
        support,
        objects,
        cancellation,
        unsupported: Vec::new(),
    })
}

/// The sources, with the parts of a Rust program in its place.
fn expand(program: &Program, sources: Vec<Source>, scratch: &Path) -> Result<Vec<Source>, Problem> {
    let mut all = Vec::with_capacity(sources.len());
    for source in sources {
        if source.language != Language::Rust {
            all.push(source);
            continue;
        }
        let parts = rust::assemble(&program.path(&source.path), scratch)?;
        all.extend(parts.into_iter().map(|part| Source {
            path: source.path.clone(),
            language: Language::Rust,
            compiled: Some(part),
            recorded: None,
            foreign: false,
        }));
    }
    Ok(all)
}

impl Compiled {
    /// A place for files that live as long as this value.
    pub(crate) fn scratch(&self) -> &Path {
        self.directory.path()
    }

    /// The identity of the program.
    pub(crate) fn fingerprint(&self) -> Result<[u8; 16], Problem> {
        fingerprint::of(&self.objects)
    }

    /// Links the program and `parts` for the runtime.
    fn link(&self, library: &Path, parts: &[PathBuf]) -> Result<(), Problem> {
        let parts: Vec<PathBuf> = parts
            .iter()
            .chain(&self.cancellation.stubs)
            .cloned()
            .collect();
        let wrapped = &self.cancellation.wrapped;
        self.toolchain
            .link(&self.objects, &self.support, &parts, wrapped, library)
    }

    /// An object with stubs for functions without a definition.
    fn stubs(&self, names: &[String]) -> Result<PathBuf, Problem> {
        let (text, path) = (
            self.scratch().join("stubs.s"),
            self.scratch().join("stubs.o"),
        );
        self.toolchain.assemble_text(
            &selvedge_runtime::symbols::refusing_stubs(names),
            &text,
            &path,
        )?;
        Ok(path)
    }

    /// Links an ordinary executable of the program and of `parts`, which are objects or assembly.
    pub(crate) fn executable(
        &self,
        parts: &[PathBuf],
        flags: &[String],
        to: &Path,
    ) -> Result<(), Problem> {
        self.toolchain.executable(&self.objects, parts, flags, to)
    }
}

/// A compiled file of the user's.
#[derive(Debug)]
pub(crate) struct Object {
    /// The source file as the user named it.
    pub(crate) source: PathBuf,
    /// Its language.
    language: Language,
    /// The compiled file, and the assembly that it was assembled from.
    pub(crate) path: PathBuf,
    text: PathBuf,
    /// The blocks of inline assembly; see [`assembly`].
    pub(crate) assembly: Vec<assembly::Inline>,
    /// Whether atomic loads stay in the code beside their callbacks.
    pub(crate) leaves_loads: bool,
    /// The functions that are instrumented, if the compiler can tell.
    pub(crate) attributes: Option<Attributes>,
}

/// The result of a compiler's run.
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
