//! `selvedge irs build`: from source files to an executable that keeps to a prefix.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use object::{File, Object as _, ObjectSymbol as _};
use selvedge_enforce::{Chosen, Policy};
use selvedge_irs_format::View;

use super::calls::{Callee, Executable};
use super::{inputs, pairs, patch, thunks, tune};
use crate::args::IrsBuild;
use crate::compile::{self, Compiled};
use crate::input;
use crate::output;
use crate::problem::{Problem, Status};

/// The prefix of functions of the library that stand in for others, and the flag that tells the
/// linker.
const WRAPPER: &str = "__wrap_";
const WRAP: &str = "-Wl,--wrap=";

/// Builds what is asked for.
pub(crate) fn run(request: &IrsBuild) -> Result<Status, Problem> {
    let compiled = compile::compile(&request.sources.program()?)?;
    let path = request
        .prefix
        .clone()
        .unwrap_or_else(|| beside(&request.output));
    let mut prefix = read(&path)?;
    if request.tune {
        let fastest = tune::fastest(request, &compiled, &prefix.bytes)?;
        replace(&path, &fastest)?;
        prefix = read(&path)?;
    }
    let policy = request.on_divergence.into();
    executable(&compiled, &prefix, policy, &request.output)?;
    Ok(Status::Verified)
}

/// Puts a file in the place of another one, at once.
fn replace(path: &Path, bytes: &[u8]) -> Result<(), Problem> {
    let failed = |error: std::io::Error| Problem::request(format!("{}: {error}", path.display()));
    let directory = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let mut file =
        tempfile::NamedTempFile::new_in(directory.unwrap_or(Path::new("."))).map_err(failed)?;
    file.write_all(bytes).map_err(failed)?;
    file.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}

/// The prefix file that an executable looks for.
pub(crate) fn beside(executable: &Path) -> PathBuf {
    let mut name = executable.as_os_str().to_owned();
    name.push(".irs");
    name.into()
}

/// Reads a prefix file, and notes which one it is.
pub(super) fn read(path: &Path) -> Result<Chosen, Problem> {
    let problem = |why: &dyn std::fmt::Display| {
        Problem::request(format!("{}: {why}", path.display()))
            .help("write one: selvedge irs verify FILE… -o PROGRAM.irs")
    };
    let mut file = input::open(path).map_err(|error| problem(&error))?;
    let about = file.metadata().map_err(|error| problem(&error))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)
        .map_err(|error| problem(&error))?;
    View::new(&bytes).map_err(|damage| problem(&damage))?;
    let modified = [about.mtime(), about.mtime_nsec()].map(i64::cast_unsigned);
    let identity = [about.dev(), about.ino(), modified[0], modified[1]];
    Ok(Chosen { bytes, identity })
}

/// Links what was compiled with the enforcement library, and takes out the callbacks that `prefix`
/// has no use for.
pub(crate) fn executable(
    compiled: &Compiled,
    chosen: &Chosen,
    policy: Policy,
    to: &Path,
) -> Result<(), Problem> {
    let prefix = View::new(&chosen.bytes).map_err(|damage| Problem::request(damage.to_string()))?;
    let fingerprint = compiled.fingerprint()?;
    if prefix.fingerprint() != fingerprint {
        return Err(Problem::request("the prefix file is for another program")
            .note("the files or the flags have changed since")
            .help("write it anew: selvedge irs verify FILE… -o PROGRAM.irs"));
    }
    let mut uses = Uses::of(compiled)?;
    uses.add_functions(prefix);
    uses.room += Chosen::room(&chosen.bytes);
    inputs::check(&uses.undefined)?;
    let linked = uses.link(compiled)?;
    let failed =
        |error: std::io::Error| Problem::internal(format!("{}: {error}", linked.display()));
    let mut bytes = fs::read(&linked).map_err(failed)?;
    let executable = Executable::read(&bytes, &uses.functions)
        .ok_or_else(|| Problem::internal("the linker made an executable that cannot be read"))?;
    patch::apply(&mut bytes, &executable, Some(chosen), (fingerprint, policy))?;
    fs::write(&linked, &bytes).map_err(failed)?;
    let unwritten = |error| Problem::request(format!("{}: {error}", to.display()));
    output::replaceable(to).map_err(unwritten)?;
    // A copy has the right permissions; a running program keeps the file that it was started from.
    let _ = fs::remove_file(to);
    fs::copy(&linked, to).map_err(unwritten)?;
    Ok(())
}

/// Functions by which a program has something done when a thread ends, after its function has returned.
const AT_END: [&str; 4] = [
    "pthread_key_create",
    "tss_create",
    "__cxa_thread_atexit",
    "__cxa_thread_atexit_impl",
];

/// The names that the user's objects define and need.
pub(super) struct Uses {
    pub(super) functions: Vec<String>,
    undefined: Vec<String>,
    /// The space that the notes may need.
    room: usize,
}

impl Uses {
    pub(super) fn of(compiled: &Compiled) -> Result<Uses, Problem> {
        let (mut functions, mut undefined) = (Vec::new(), Vec::new());
        let (mut definitions, mut calls) = (0, 0);
        for object in &compiled.objects {
            let failed = || Problem::internal(format!("{}: not an object", object.path.display()));
            let bytes = fs::read(&object.path).map_err(|_| failed())?;
            let file = File::parse(&*bytes).map_err(|_| failed())?;
            for symbol in file.symbols() {
                let Ok(name) = symbol.name() else { continue };
                if symbol.is_undefined() {
                    undefined.push(name.to_owned());
                } else if symbol.kind() == object::SymbolKind::Text {
                    functions.push(name.to_owned());
                    definitions += 1;
                }
            }
            // A call takes five bytes at least.
            calls += bytes.len() / 5;
        }
        for list in [&mut functions, &mut undefined] {
            list.sort_unstable();
            list.dedup();
        }
        let room = selvedge_enforce::Notes::room(definitions, calls);
        Ok(Uses {
            functions,
            undefined,
            room,
        })
    }

    /// Makes sure that `irs build` will accept the program.
    pub(super) fn check(&self, compiled: &Compiled) -> Result<(), Problem> {
        inputs::check(&self.undefined)?;
        self.link(compiled).map(drop)
    }

    /// Links what was compiled with the enforcement library.
    fn link(&self, compiled: &Compiled) -> Result<PathBuf, Problem> {
        let written = |name: &str, bytes: &[u8]| {
            let path = compiled.scratch().join(name);
            fs::write(&path, bytes)
                .map_err(|error| Problem::internal(format!("{}: {error}", path.display())))?;
            Ok::<_, Problem>(path)
        };
        let library = written("enforce.o", selvedge_enforce::OBJECT)?;
        let notes = thunks::assembly(&self.undefined, self.room);
        let notes = written("notes.s", notes.as_bytes())?;
        let linked = compiled.scratch().join("program");
        // The notes end with memory that is hardly ever used up: it comes last.
        compiled.executable(&[library, notes], &wraps()?, &linked)?;
        Ok(linked)
    }

    /// Whether a thread of the program ends when its function returns.
    pub(super) fn ends_with_functions(&self) -> bool {
        let mut needed = self.undefined.iter();
        !needed.any(|name| AT_END.contains(&name.as_str()))
    }

    /// The places where a running program cannot tell events from other calls: accesses that are announced in
    /// another order than they are made, and initialisations, which are events only where something was before.
    /// `library` is the program as the verifier loads it.
    pub(super) fn untracked(&self, library: &Path) -> Result<Vec<u32>, Problem> {
        let failed = || Problem::internal(format!("{} cannot be read", library.display()));
        let bytes = fs::read(library).map_err(|_| failed())?;
        let executable = Executable::read(&bytes, &self.functions).ok_or_else(failed)?;
        let mut untracked = pairs::find(&bytes, &executable).together;
        let calls = executable.calls.iter();
        let inits = calls.filter(|call| Callee::of(&call.callee) == Callee::Init);
        untracked.extend(inits.map(|call| call.site));
        Ok(untracked)
    }

    /// Functions of C++'s library call others on the user's behalf.
    fn add_functions(&mut self, prefix: View<'_>) {
        let named = prefix.sites().map(|site| site.function);
        for name in named.filter(|name| !name.is_empty()) {
            if let Err(at) = self
                .functions
                .binary_search_by(|known| known.as_str().cmp(name))
            {
                self.functions.insert(at, name.to_owned());
                // The parts that a compiler splits off have names of their own.
                self.room += selvedge_enforce::Notes::room(2, 128);
            }
        }
    }
}

/// The linker's flags that redirect calls to the library.
fn wraps() -> Result<Vec<String>, Problem> {
    let failed = |_| Problem::internal("the enforcement library cannot be read");
    let library = File::parse(selvedge_enforce::OBJECT).map_err(failed)?;
    let names = library.symbols().filter(|symbol| symbol.is_definition());
    let names = names.filter_map(|symbol| symbol.name().ok()?.strip_prefix(WRAPPER));
    Ok(names.map(|name| format!("{WRAP}{name}")).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_library_has_every_callback_and_every_operation_of_the_verifier() {
        let library = File::parse(selvedge_enforce::OBJECT).unwrap();
        let symbols = library.symbols().filter(|symbol| symbol.is_definition());
        let defined: HashSet<String> = symbols
            .filter_map(|symbol| symbol.name().ok().map(str::to_owned))
            .collect();
        let stubs = selvedge_runtime::support::stub_assembly();
        // The stubs behind this label are refused by the verifier.
        let (stubs, _) = stubs.split_once("selvedge_stubs_end:").unwrap();
        let names = stubs
            .lines()
            .filter_map(|line| line.strip_prefix("\t.weak "));
        let mut checked = 0;
        for name in names {
            let known = |name: &str| {
                defined.contains(name) || defined.contains(&format!("{WRAPPER}{name}"))
            };
            if name.starts_with("__tsan_") || Callee::of(name) == Callee::Operation {
                assert!(known(name), "{name}");
                checked += 1;
            }
        }
        assert!(checked > 150, "{checked}");
    }

    #[test]
    fn what_the_library_needs_is_in_every_c_library() {
        let library = File::parse(selvedge_enforce::OBJECT).unwrap();
        let needed = library.symbols().filter(|symbol| symbol.is_undefined());
        for symbol in needed {
            let name = symbol.name().unwrap();
            assert!(
                !name.contains("core") && !name.starts_with("_ZN") && !name.starts_with("_R"),
                "{name}"
            );
        }
    }
}
