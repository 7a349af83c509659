//! Rust programs: the linker that `cargo selvedge check` has rustc use.
//!
//! rustc hands over the crates of a program as bitcode, and the precompiled crates of its own
//! standard library, which carry theirs in a section. All of it goes into one archive, in the place
//! of an executable; [`crate::compile`] instruments it when the program is checked.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use object::read::archive::ArchiveFile;
use object::{File, Object as _, ObjectSection as _, ObjectSymbol as _};
use selvedge_runtime::support::{SHIM_RUST, SHIM_TEST};

use crate::input;
use crate::place;
use crate::problem::Problem;
use crate::scratch::Scratch;

/// The first bytes of archives and of bitcode.
pub(crate) const ARCHIVE: &[u8; 8] = b"!<arch>\n";
const BITCODE: &[u8; 4] = b"BC\xc0\xde";

/// The prefixes of names in an archive: the user's parts, the standard library's, and the parts that replace some of
/// its functions.
pub(crate) const USERS: &str = "user";
pub(crate) const SHIM: &str = "selvedge";
const STANDARD: &str = "std";

/// Libraries of the system that rustc names for every program.
const SYSTEM: [&str; 8] = ["gcc_s", "util", "rt", "pthread", "m", "dl", "c", "gcc_eh"];

/// Crates that cannot be checked: how their files begin, and why.
const REFUSED: [(&str, &str); 1] = [(
    "libparking_lot_core-",
    "parking_lot wakes threads through memory that may be gone already, which looks like a bug",
)];

/// The function that the `main` of a program with tests calls.
const TEST_MAIN: &str = "test::test_main_static";

/// The flags that the crates of a program are compiled with.
const FLAGS: [&str; 7] = [
    "-Cdebuginfo=2",
    "-Clinker-plugin-lto",
    // Thread-local variables are found through the runtime.
    "-Crelocation-model=static",
    "-Cforce-frame-pointers=yes",
    "-Cno-redzone=yes",
    "-Cjump-tables=no",
    "-Csymbol-mangling-version=v0",
];

/// Puts what rustc wants linked into an archive. Tells the flags for rustc if it is asked for nothing.
pub(crate) fn link(arguments: &[OsString]) -> Result<ExitCode, Problem> {
    if arguments.is_empty() {
        println!("{}", FLAGS.join(" "));
        return Ok(ExitCode::SUCCESS);
    }
    let asked = Asked::new(arguments)?;
    let mut parts = Parts::default();
    for path in &asked.inputs {
        parts.add(path)?;
    }
    check_version()?;
    if parts
        .symbols
        .iter()
        .any(|s| place::readable(s) == TEST_MAIN)
    {
        let shim = parts.shim(SHIM_TEST, "selvedge_tests")?;
        parts.members.insert(0, (SHIM, shim));
    }
    let shim = parts.shim(SHIM_RUST, "selvedge")?;
    parts.members.insert(0, (SHIM, shim));
    fs::write(&asked.output, archive(&parts.members)).map_err(|error| {
        Problem::request(format!("cannot write {}: {error}", asked.output.display()))
    })?;
    Ok(ExitCode::SUCCESS)
}

/// A call of the linker.
struct Asked {
    inputs: Vec<PathBuf>,
    output: PathBuf,
}

impl Asked {
    fn new(arguments: &[OsString]) -> Result<Asked, Problem> {
        let mut words = Vec::new();
        for argument in arguments {
            match argument.to_str().and_then(|word| word.strip_prefix('@')) {
                Some(file) => {
                    let text = input::read_text(Path::new(file))
                        .map_err(|error| Problem::request(format!("{file}: {error}")))?;
                    let listed = text.lines().map(|line| line.trim_matches('"'));
                    words.extend(listed.map(OsString::from));
                }
                None => words.push(argument.clone()),
            }
        }
        let mut asked = Asked {
            inputs: Vec::new(),
            output: PathBuf::new(),
        };
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let text = word.to_string_lossy();
            if text == "-o" {
                asked.output = words.next().unwrap_or_default().into();
            } else if let Some(library) = text.strip_prefix("-l") {
                if !SYSTEM.contains(&library) {
                    return Err(foreign(&format!("the library {library}")));
                }
            } else if text == "-L" || text == "-z" {
                words.next();
            } else if !text.starts_with('-') {
                asked.inputs.push(word.into());
            }
        }
        Ok(asked)
    }
}

/// The parts of a program.
#[derive(Default)]
struct Parts {
    /// Bitcode, and what its name begins with.
    members: Vec<(&'static str, Vec<u8>)>,
    /// The symbols of the standard library.
    symbols: Vec<String>,
}

impl Parts {
    fn add(&mut self, path: &Path) -> Result<(), Problem> {
        let failed = |error: &dyn std::fmt::Display| {
            Problem::request(format!("{}: {error}", path.display()))
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if let Some((_, why)) = REFUSED.iter().find(|(start, _)| name.starts_with(start)) {
            return Err(
                Problem::request(format!("the program cannot be checked: {why}"))
                    .help("use the locks of the standard library"),
            );
        }
        let bytes = input::read(path).map_err(|error| failed(&error))?;
        if !bytes.starts_with(ARCHIVE) {
            return self.member(&name, &name, &bytes);
        }
        // Its functions are also in the C compiler's library, or not needed.
        if name.starts_with("libcompiler_builtins-") {
            return Ok(());
        }
        let archive = ArchiveFile::parse(&*bytes).map_err(|error| failed(&error))?;
        for member in archive.members() {
            let member = member.map_err(|error| failed(&error))?;
            let data = member.data(&*bytes).map_err(|error| failed(&error))?;
            let file = String::from_utf8_lossy(member.name()).into_owned();
            if !file.starts_with("lib.rmeta") {
                self.member(&name, &file, data)?;
            }
        }
        Ok(())
    }

    /// Adds a file of the crate `name`.
    fn member(&mut self, name: &str, file: &str, data: &[u8]) -> Result<(), Problem> {
        if data.starts_with(BITCODE) {
            self.members.push((USERS, data.to_vec()));
            return Ok(());
        }
        let object = File::parse(data).map_err(|_| foreign(&format!("{file} of {name}")))?;
        let section = object.section_by_name(".llvmbc");
        let bitcode = section.and_then(|section| section.data().ok());
        match bitcode {
            Some(bitcode) if bitcode.starts_with(BITCODE) => {
                self.members.push((STANDARD, bitcode.to_vec()));
                let symbols = object.symbols().filter(|symbol| symbol.is_definition());
                let names = symbols.filter_map(|symbol| symbol.name().ok());
                self.symbols.extend(names.map(str::to_owned));
                Ok(())
            }
            // rustc lists there what is exported.
            _ if file == "symbols.o" => Ok(()),
            _ => Err(foreign(&format!("{file} of {name}"))),
        }
    }

    /// The bitcode of what replaces functions of the standard library.
    fn shim(&self, source: &str, name: &str) -> Result<Vec<u8>, Problem> {
        let mut pieces = source.split("_name = \"");
        let mut text = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let (path, rest) = piece.split_once('"').unwrap_or_default();
            let symbol = self.symbols.iter().find(|s| place::readable(s) == path);
            let symbol = symbol.ok_or_else(|| unknown_library(path))?;
            text += &format!("_name = \"{symbol}\"{rest}");
        }
        let failed = |error: std::io::Error| Problem::internal(format!("the shim: {error}"));
        let scratch = Scratch::new().map_err(failed)?;
        let (source, object) = (
            scratch.path().join("shim.rs"),
            scratch.path().join("shim.o"),
        );
        fs::write(&source, text).map_err(failed)?;
        let output = Command::new(rustc())
            .args(["--edition=2024", "--crate-type=lib", "--crate-name", name])
            .args(["-Copt-level=1", "-Ccodegen-units=1", "-Cpanic=unwind"])
            .args(FLAGS)
            .arg(format!(
                "--remap-path-prefix={}=selvedge",
                scratch.path().display()
            ))
            // The types of the test harness are not stable.
            .env("RUSTC_BOOTSTRAP", "1")
            .arg("--emit=obj")
            .arg("-o")
            .args([&object, &source])
            .output()
            .map_err(failed)?;
        if !output.status.success() {
            return Err(Problem::request("rustc cannot compile Selvedge's own part")
                .words(String::from_utf8_lossy(&output.stderr).into_owned())
                .help(format!(
                    "use Rust 1.{}, for which it is written",
                    KNOWN.start()
                )));
        }
        fs::read(&object).map_err(failed)
    }
}

/// The versions of Rust, behind the `1.`, whose locks the replacements are known to fit.
const KNOWN: std::ops::RangeInclusive<u32> = 95..=97;

fn check_version() -> Result<(), Problem> {
    let output = Command::new(rustc()).arg("--version").output();
    let version = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let version = version.unwrap_or_default();
    match minor(&version) {
        Some(minor) if KNOWN.contains(&minor) => Ok(()),
        _ => Err(Problem::request(format!(
            "the standard library of {} is not known",
            version.trim()
        ))
        .note("some of its functions have to be replaced, and others rely on what they do")
        .help(format!("use Rust 1.{} to 1.{}", KNOWN.start(), KNOWN.end()))),
    }
}

/// The second number of a version of rustc.
fn minor(version: &str) -> Option<u32> {
    let rest = version.strip_prefix("rustc 1.")?;
    rest.split('.').next()?.parse().ok()
}

/// The user's compiler.
pub(crate) fn rustc() -> OsString {
    std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())
}

fn foreign(what: &str) -> Problem {
    Problem::request(format!("{what} is compiled code and cannot be checked"))
        .note("only Rust code is instrumented: Selvedge would not see what it does")
}

fn unknown_library(path: &str) -> Problem {
    Problem::request(format!(
        "the standard library of this compiler has no `{path}`, which has to be replaced"
    ))
    .help("use Rust 1.95, for which the replacements are written")
}

/// An archive of `members`.
fn archive(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = ARCHIVE.to_vec();
    for (number, (name, data)) in members.iter().enumerate() {
        let header = format!(
            "{:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n",
            format!("{name}.{number}.bc/"),
            0,
            0,
            0,
            644,
            data.len()
        );
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend_from_slice(data);
        if data.len() % 2 == 1 {
            bytes.push(b'\n');
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_told_by_its_second_number() {
        assert_eq!(minor("rustc 1.95.0 (59807616e 2026-04-14)\n"), Some(95));
        assert_eq!(
            minor("rustc 1.97.0-nightly (e50aa6fba 2026-05-19)"),
            Some(97)
        );
        assert_eq!(minor("rustc 2.0.0"), None);
        assert_eq!(minor(""), None);
    }

    #[test]
    fn an_archive_has_its_members_in_order() {
        let members = [(USERS, b"BC\xc0\xde1".to_vec()), (STANDARD, b"2".to_vec())];
        let bytes = archive(&members);
        let parsed = ArchiveFile::parse(&*bytes).unwrap();
        let found = parsed.members().map(|member| {
            let member = member.unwrap();
            let name = String::from_utf8_lossy(member.name()).into_owned();
            (name, member.data(&*bytes).unwrap().to_vec())
        });
        let found: Vec<_> = found.collect();
        let expected = [
            ("user.0.bc".to_owned(), b"BC\xc0\xde1".to_vec()),
            ("std.1.bc".to_owned(), b"2".to_vec()),
        ];
        assert_eq!(found, expected);
    }
}
