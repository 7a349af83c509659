//! The runtime's own part of a program: compiled once per compiler and kept.

use std::fmt::Write as _;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};

use selvedge_runtime::support as runtime;

use super::cache;
use super::compiler::{Compiler, Language};
use crate::problem::Problem;

const BUILTINS: &str = include_str!("selvedge-builtins.h");
const WEAK: &str = include_str!("selvedge-weak.h");

/// The sources that are compiled: name, language for the compiler, and whether C programs do
/// without it.
const SOURCES: [(&str, &str, bool); 3] = [
    ("stub.s", "assembler", false),
    ("shim.c", "c", false),
    ("shim.cc", "c++", true),
];

/// Where the headers are that come before the compiler's own in C++.
const CXX_INCLUDE: &str = "cxx";

/// The file that the modelled environment is compiled from.
pub(super) const ENVIRONMENT: &str = "environment.c";

/// Where the support files are.
#[derive(Clone, Debug)]
pub(super) struct Support {
    directory: PathBuf,
    language: Language,
}

impl Support {
    /// Finds them in the cache, or compiles them there, or into `scratch` if there is no cache.
    pub(super) fn prepare(
        compiler: &Compiler,
        language: Language,
        scratch: &Path,
    ) -> Result<Support, Problem> {
        let key = key(compiler, language);
        if let Some(directory) = cache::find(&key) {
            return Ok(Support {
                directory,
                language,
            });
        }
        if let Some(prepared) = cache::prepare()
            && fill(compiler, language, prepared.path()).is_ok()
            && let Some(directory) = cache::persist(prepared, &key)
        {
            return Ok(Support {
                directory,
                language,
            });
        }
        let directory = scratch.join("support");
        fs::create_dir(&directory)
            .map_err(|error| Problem::internal(format!("{}: {error}", directory.display())))?;
        fill(compiler, language, &directory)?;
        Ok(Support {
            directory,
            language,
        })
    }

    /// The directory with `selvedge.h`.
    pub(super) fn include(&self) -> PathBuf {
        self.directory.join("include")
    }

    /// The directory with headers that come before the compiler's own in C++.
    pub(super) fn cxx_include(&self) -> PathBuf {
        self.directory.join(CXX_INCLUDE)
    }

    /// The directory with the sources of [`ENVIRONMENT`] and of cancellation.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The object files to link with every program.
    pub(super) fn objects(&self) -> impl Iterator<Item = PathBuf> {
        sources(self.language).map(|(source, _)| self.directory.join(object(source)))
    }
}

fn sources(language: Language) -> impl Iterator<Item = (&'static str, &'static str)> {
    let needed = move |&(_, _, cxx_only): &(_, _, bool)| !cxx_only || language == Language::Cxx;
    SOURCES
        .into_iter()
        .filter(needed)
        .map(|(source, language, _)| (source, language))
}

fn object(source: &str) -> String {
    format!("{source}.o")
}

fn key(compiler: &Compiler, language: Language) -> String {
    let mut hasher = DefaultHasher::new();
    compiler.fingerprint(&mut hasher);
    (language, runtime::stub_assembly()).hash(&mut hasher);
    (runtime::SHIM, runtime::SHIM_CXX, runtime::SHIM_FLAGS).hash(&mut hasher);
    (runtime::HEADER, BUILTINS, WEAK, runtime::CXX_HEADERS).hash(&mut hasher);
    (runtime::ENVIRONMENT, runtime::CANCELLATION).hash(&mut hasher);
    format!("support-{:016x}", hasher.finish())
}

fn fill(compiler: &Compiler, language: Language, directory: &Path) -> Result<(), Problem> {
    let include = directory.join("include");
    let failed = |path: &Path, error: io::Error| {
        Problem::internal(format!("cannot write {}: {error}", path.display()))
    };
    let bits = directory.join(CXX_INCLUDE).join("bits");
    for directory in [&include, &bits] {
        fs::create_dir_all(directory).map_err(|error| failed(directory, error))?;
    }
    let stub = runtime::stub_assembly();
    for (name, text) in [
        ("include/selvedge.h", runtime::HEADER),
        ("include/selvedge-builtins.h", BUILTINS),
        ("include/selvedge-weak.h", WEAK),
        ("stub.s", &stub),
        ("shim.c", runtime::SHIM),
        ("shim.cc", runtime::SHIM_CXX),
    ] {
        let path = directory.join(name);
        fs::write(&path, text).map_err(|error| failed(&path, error))?;
    }
    for (name, text) in runtime::CXX_HEADERS {
        let path = directory.join(CXX_INCLUDE).join(name);
        fs::write(&path, text).map_err(|error| failed(&path, error))?;
    }
    let mut environment = String::new();
    for (name, text) in runtime::ENVIRONMENT {
        let path = directory.join(name);
        fs::write(&path, text).map_err(|error| failed(&path, error))?;
        let _ = writeln!(environment, "#include \"{name}\"");
    }
    let (cancellation, text) = runtime::CANCELLATION;
    for (name, text) in [(ENVIRONMENT, &*environment), (cancellation, text)] {
        let path = directory.join(name);
        fs::write(&path, text).map_err(|error| failed(&path, error))?;
    }
    for (source, language) in sources(language) {
        let mut command = compiler.command();
        command.args(runtime::SHIM_FLAGS).arg("-I").arg(&include);
        command.args(["-c", "-x", language, "-o"]);
        command
            .arg(directory.join(object(source)))
            .arg(directory.join(source));
        let done = super::run(command)?;
        if !done.status.success() {
            let what = format!("{} cannot compile Selvedge's own {source}", compiler.name());
            return Err(Problem::internal(what).words(done.words));
        }
    }
    Ok(())
}
