//! Rust programs: from bitcode to instrumented assembly.
//!
//! `cargo selvedge check` has every crate of a program compiled to bitcode and puts that into one
//! archive, together with the bitcode that the compiler's own precompiled crates carry. So the
//! standard library is instrumented like the rest: its locks, channels and thread handles need no
//! model of their own, only the system calls that they end in. rustc's linker, which has the same
//! version of LLVM as rustc itself, runs ThreadSanitizer's pass over all of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::read::archive::ArchiveFile;

use super::{assembly, run};
use crate::problem::Problem;
use crate::{input, place, project};

/// The passes over the bitcode: they remove functions that are replaced or not needed, and
/// instrument every function, whatever it was compiled for.
const PASSES: &str = "elim-avail-extern,globaldce,forceattrs,tsan-module,function(tsan)";

/// Options of LLVM.
const OPTIONS: [&str; 6] = [
    "-force-attribute=sanitize_thread",
    // Every byte of a frame is allocated, and so cleared.
    "-force-attribute=noredzone",
    "-tsan-distinguish-volatile",
    "-tsan-instrument-read-before-write",
    "-no-stack-coloring",
    // Nothing is copied from one file to another: an executable's file has thread-local variables that
    // are addressed in another way.
    "-import-instr-limit=0",
];

/// The call behind the address of a thread-local variable.
const TLS_CALL: &str = "*__tls_get_addr@GOTPCREL(%rip)";

/// Functions without a result that return at once.
const EMPTY: [&str; 5] = [
    // Frees a thread's signal stack. There is none, but the list of them has a lock, which the ends
    // of all threads would have to be ordered by.
    "std::sys::pal::unix::stack_overflow::imp::drop_handler",
    // They pass time and count how often they did. Without that, a loop around them only waits.
    "<std::sync::mpmc::utils::Backoff>::spin_heavy",
    "<std::sync::mpmc::utils::Backoff>::spin_light",
    "<crossbeam_utils::backoff::Backoff>::spin",
    "<crossbeam_utils::backoff::Backoff>::snooze",
];

/// Functions that use the environment, with the name of what is called in their place. Nobody defines that, so
/// an execution that gets there is incomplete; a program that only contains them can be checked.
const REFUSED: [(&str, &str); 3] = [
    (
        "<std::sys::process::unix::common::Command>::spawn",
        "std_process_Command",
    ),
    (
        "<std::sys::process::unix::common::Command>::do_exec",
        "std_process_Command",
    ),
    ("std::env::vars_os", "std_env_vars"),
];

/// The assembly of the program in `archive`, one file for each of its parts that it needs.
pub(super) fn assemble(archive: &Path, scratch: &Path) -> Result<Vec<PathBuf>, Problem> {
    let failed = |error: &dyn std::fmt::Display| {
        Problem::internal(format!("cannot instrument {}: {error}", archive.display()))
    };
    let directory = scratch.join("rust");
    fs::create_dir(&directory).map_err(|error| failed(&error))?;
    let bytes = input::read(archive).map_err(|error| failed(&error))?;
    let parsed = ArchiveFile::parse(&*bytes).map_err(|error| failed(&error))?;
    let mut command = Command::new(linker()?);
    command.current_dir(&directory).args(["-flavor", "gnu"]);
    command.args(["-shared", "-o", "out", "--lto-emit-asm"]);
    command.args(["--undefined=main", "--version-script=exports"]);
    command.arg(format!("--lto-newpm-passes={PASSES}"));
    command.args(OPTIONS.iter().flat_map(|option| ["-mllvm", *option]));
    // The parts of the shim replace functions of the others.
    command.args(["-z", "muldefs"]);
    fs::write(directory.join("exports"), "{global: main; local: *;};")
        .map_err(|error| failed(&error))?;
    let mut replaced = false;
    for member in parsed.members() {
        let member = member.map_err(|error| failed(&error))?;
        let data = member.data(&*bytes).map_err(|error| failed(&error))?;
        let name = String::from_utf8_lossy(member.name()).into_owned();
        fs::write(directory.join(&name), data).map_err(|error| failed(&error))?;
        if !replaced && !name.starts_with(project::SHIM) {
            replaced = true;
            command.arg("--start-lib");
        }
        command.arg(name);
    }
    command.arg("--end-lib");
    let done = run(command)?;
    if !done.status.success() {
        return Err(Problem::request(format!(
            "{} cannot be instrumented by the Rust compiler that is installed",
            archive.display()
        ))
        .words(done.words)
        .help("build it again: cargo selvedge check"));
    }
    let entries = fs::read_dir(&directory).map_err(|error| failed(&error))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut written: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "s"))
        .collect();
    written.sort();
    Ok(written)
}

/// The linker that comes with rustc.
fn linker() -> Result<PathBuf, Problem> {
    let rustc = project::rustc();
    let output = Command::new(&rustc)
        .args(["--print", "target-libdir"])
        .output();
    let output = output.map_err(|error| {
        Problem::request(format!("cannot run {}: {error}", rustc.to_string_lossy()))
            .help("$RUSTC names the compiler")
    })?;
    let libraries = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    let linker = libraries.with_file_name("bin").join("rust-lld");
    match linker.is_file() {
        true => Ok(linker),
        false => Err(Problem::request(format!(
            "{} has no rust-lld, which instruments Rust programs",
            rustc.to_string_lossy()
        ))
        .help("use a toolchain of rustup: $RUSTC names the compiler")),
    }
}

/// The assembly that LLVM wrote to `file`, in a form that the GNU assembler understands. Lines of the standard library
/// are left out: reports name the user's.
pub(super) fn understood(file: &Path, text: &str) -> String {
    let part = file.to_string_lossy();
    let standard = !part.contains(&format!(".lto.{}.", project::USERS));
    let mut understood = String::with_capacity(text.len());
    let (mut debugging, mut refused) = (false, false);
    for line in text.lines() {
        let code = line.trim_start();
        if code.starts_with(".section") || code == ".text" {
            debugging = standard && code.contains(".debug_");
        }
        let about_symbol = code.starts_with(".hidden") || code.starts_with(".weak");
        let line_info = code.starts_with(".loc\t") || code.starts_with(".file");
        let dropped = (debugging && !about_symbol) || (standard && line_info);
        if dropped || code.starts_with(".addrsig") {
            continue;
        }
        let label = code.split_once(':').map_or("", |(label, _)| label);
        match code.starts_with(".file") {
            // It takes directory and name as one string only.
            true => assembly::line_to(&mut understood, &line.replace("\" \"", "/")),
            // The linker would make it a direct call and leave a prefix that shortens its address.
            _ if code.ends_with(TLS_CALL) => {
                assembly::line_to(&mut understood, "\tcallq\t__tls_get_addr@PLT");
            }
            // Never reached, but it would be looked at.
            _ if refused && code.contains("environ@") => {
                assembly::line_to(&mut understood, &line.replace("environ@", "main@"));
            }
            false => assembly::line_to(&mut understood, line),
        }
        if label.starts_with("_R") {
            let name = place::readable(label);
            let instead = REFUSED.iter().find(|(known, _)| *known == name);
            refused = instead.is_some();
            if let Some((_, instead)) = instead {
                assembly::line_to(&mut understood, &format!("\tjmp\t{instead}@PLT"));
            }
            if EMPTY.contains(&&*name) {
                assembly::line_to(&mut understood, "\tretq");
            }
        }
    }
    understood
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_standard_library_are_left_out() {
        let text = "\t.file\t1 \"/a\" \"b.rs\"\nf:\n\t.loc\t1 2 0\n\tret\n\
                    \t.section\t.debug_str,\"MS\"\n\t.asciz \"f\"\n\t.text\n\t.addrsig\n";
        let user = understood(Path::new("out.lto.user.1.s"), text);
        assert_eq!(
            user,
            "\t.file\t1 \"/a/b.rs\"\nf:\n\t.loc\t1 2 0\n\tret\n\
             \t.section\t.debug_str,\"MS\"\n\t.asciz \"f\"\n\t.text\n"
        );
        let standard = understood(Path::new("out.lto.std.1.s"), text);
        assert_eq!(standard, "f:\n\tret\n\t.text\n");
    }

    #[test]
    fn what_uses_the_environment_is_refused_where_it_is_called() {
        let name = "_RNvNtCsjrHSEGnQ3l9_3std3env7vars_os";
        let text = format!("{name}: # @x\n\tmovq\tenviron@GOTPCREL(%rip), %rax\n");
        let expected =
            format!("{name}: # @x\n\tjmp\tstd_env_vars@PLT\n\tmovq\tmain@GOTPCREL(%rip), %rax\n");
        assert_eq!(understood(Path::new("out.lto.std.1.s"), &text), expected);
    }

    #[test]
    fn backing_off_does_nothing() {
        let name = "_RNvMs1_NtNtNtCsjrHSEGnQ3l9_3std4sync4mpmc5utilsNtB5_7Backoff10spin_heavy";
        let text = format!("{name}: # @x\n\tpause\n");
        let expected = text.replace("\tpause", "\tretq\n\tpause");
        assert_eq!(understood(Path::new("out.lto.user.1.s"), &text), expected);
    }
}
