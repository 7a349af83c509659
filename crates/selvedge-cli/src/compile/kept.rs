//! Keeps the compiler's output for a C++ file for the next start of a proof.
//!
//! The headers of the C++ library take a second to compile, and a proof that is killed and started again should go on
//! at once. Elsewhere a file has changed, as a rule, when it is compiled again. The preprocessor takes a fraction of
//! that. Its output is the key, together with the compiler and its flags, so nothing that has changed is overlooked: a
//! flag that names another file, or anything else that only the compiler proper reads, has the file compiled each time.

use std::fs;
use std::hash::{Hash as _, Hasher};
use std::path::Path;
use std::process::{Command, ExitStatus};

use sha2::{Digest as _, Sha256};

use super::compiler::Compiler;
use super::toolchain::read_assembly;
use super::{Done, cache, run};
use crate::problem::Problem;
use crate::worker::libraries::hexadecimal;

/// How the names of the files begin that are kept.
const NAME: &str = "assembly-";
/// How many of them are kept, those that were used last.
const MOST: usize = 32;
/// Words in a preprocessed file where the compiler reads another file.
const READS_MORE: [&str; 4] = ["pch_preprocess", "incbin", "#embed", "import"];
/// Parts of flags with which it does so.
const READING: [&str; 5] = ["profile", "module", "branch-prob", "pch", "@"];

/// Has the compiler write assembly to `to`, or writes what it wrote the last time. `command` compiles.
pub(super) fn compile(
    compiler: &Compiler,
    command: impl Fn() -> Command,
    to: &Path,
) -> Result<Done, Problem> {
    let key = key(compiler, command(), to)?;
    if let Some(kept) = key.as_deref().and_then(cache::read)
        && fs::write(to, kept).is_ok()
    {
        return Ok(Done {
            status: ExitStatus::default(),
            words: String::new(),
        });
    }
    let done = compile_anew(command(), to)?;
    // Warnings are to be seen each time. A file that was written meanwhile may be in the assembly, but not in the key.
    if let Some(key) = key
        && done.status.success()
        && done.words.is_empty()
        && self::key(compiler, command(), to)?.as_ref() == Some(&key)
        && let Ok(text) = read_assembly(to)
    {
        cache::write(&key, &text);
        cache::prune(NAME, MOST);
    }
    Ok(done)
}

/// Has the compiler write assembly to `to`.
pub(super) fn compile_anew(mut command: Command, to: &Path) -> Result<Done, Problem> {
    command.arg("-S").arg("-o").arg(to);
    run(command)
}

/// The name of the assembly that `command` writes. `None` if it depends on more than is looked at.
fn key(compiler: &Compiler, mut command: Command, to: &Path) -> Result<Option<String>, Problem> {
    let mut hash = Hash(Sha256::new());
    compiler.fingerprint(&mut hash);
    env!("CARGO_PKG_VERSION").hash(&mut hash);
    let directory = command.get_current_dir().map(Path::to_owned);
    let directory = directory.map_or_else(std::env::current_dir, Ok);
    let Ok(directory) = directory.and_then(|directory| directory.canonicalize()) else {
        return Ok(None);
    };
    directory.hash(&mut hash);
    for name in ["PWD", "GCC_EXEC_PREFIX", "COMPILER_PATH"] {
        std::env::var_os(name).hash(&mut hash);
    }
    let words = command.get_args().map(|word| word.to_string_lossy());
    // The last one is the file itself.
    let flags = words.len().saturating_sub(1);
    for word in words.take(flags) {
        word.hash(&mut hash);
        let value = word.split_once('=').map_or(&*word, |(_, value)| value);
        if directory.join(value).is_file() || READING.iter().any(|part| word.contains(part)) {
            return Ok(None);
        }
    }
    let preprocessed = to.with_extension("ii");
    command.arg("-E").arg("-o").arg(&preprocessed);
    if !run(command)?.status.success() {
        return Ok(None);
    }
    let Ok(bytes) = fs::read(&preprocessed) else {
        return Ok(None);
    };
    let text = String::from_utf8_lossy(&bytes);
    if READS_MORE.iter().any(|part| text.contains(part)) {
        return Ok(None);
    }
    bytes.hash(&mut hash);
    let digits = hexadecimal(&hash.0.finalize());
    Ok(Some(format!("{NAME}{digits}")))
}

/// The input of the hash, as one long text.
struct Hash(Sha256);

impl Hasher for Hash {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        unreachable!("the whole hash is used")
    }
}
