//! Compiles `src/rt` to one object file without the standard library, for programs in C and C++ to be
//! linked with.

use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The root of the object's crate: the modules are shared with this crate's tests.
const ROOT: &str = "\
#![no_std]
#[path = \"MODULES\"]
mod rt;
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    rt::panicked()
}
/// The format can also write files, for which it would need memory; nothing of that is left in the end.
struct Nothing;
unsafe impl core::alloc::GlobalAlloc for Nothing {
    unsafe fn alloc(&self, _: core::alloc::Layout) -> *mut u8 {
        core::ptr::null_mut()
    }
    unsafe fn dealloc(&self, _: *mut u8, _: core::alloc::Layout) {}
}
#[global_allocator]
static NOTHING: Nothing = Nothing;
";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=src/rt");
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(variable("OUT_DIR")?);
    let format = PathBuf::from(variable("DEP_SELVEDGE_IRS_FORMAT_ROOT")?);
    println!("cargo::rerun-if-changed={}", format.display());
    let library = out.join("libselvedge_irs_format.rlib");
    rustc("rlib", "selvedge_irs_format", &format, &library)?;

    let modules = PathBuf::from(variable("CARGO_MANIFEST_DIR")?).join("src/rt/mod.rs");
    let path = modules.to_str().ok_or("the path is not UTF-8")?;
    let root = out.join("enforce.rs");
    let escaped = path.escape_default().to_string();
    fs::write(&root, ROOT.replace("MODULES", &escaped))?;
    let archive = out.join("libenforce.a");
    rustc("staticlib", "enforce", &root, &archive)?;
    fs::write(out.join("enforce.o"), own_member(&archive)?)?;
    Ok(())
}

fn variable(name: &str) -> Result<OsString, String> {
    env::var_os(name).ok_or_else(|| format!("{name} is not set"))
}

/// Compiles a crate for programs in C to be linked with. Libraries are looked for beside the result.
fn rustc(kind: &str, name: &str, root: &Path, to: &Path) -> Result<(), Box<dyn Error>> {
    let mut command = Command::new(variable("RUSTC")?);
    command
        .args(["--edition", "2024", "--crate-name", name])
        .args(["--crate-type", kind, "--target"])
        .arg(variable("TARGET")?)
        .args(["-C", "opt-level=s", "-C", "panic=abort"])
        .args(["-C", "codegen-units=1", "-C", "relocation-model=pic"])
        .args(["-C", "debuginfo=0", "--cap-lints", "allow", "-o"])
        .arg(to)
        .arg(root);
    if let Some(directory) = to.parent() {
        command.arg("-L").arg(directory);
    }
    if kind == "staticlib" {
        command.args(["-C", "lto=fat", "--extern", "selvedge_irs_format"]);
    }
    match command.status()?.success() {
        true => Ok(()),
        false => Err(format!("{} does not compile", root.display()).into()),
    }
}

/// The member of the archive with our code in it, and with what it needs of `core`: the others are
/// the compiler's own helpers, which C programs have from elsewhere.
fn own_member(archive: &Path) -> Result<Vec<u8>, Box<dyn Error>> {
    const MAGIC: &[u8] = b"!<arch>\n";
    const HEADER: usize = 60;
    let bytes = fs::read(archive)?;
    let mut rest = bytes.strip_prefix(MAGIC).ok_or("not an archive")?;
    let mut found = Vec::new();
    while rest.len() > HEADER {
        let (header, contents) = rest.split_at(HEADER);
        let size: usize = std::str::from_utf8(&header[48..58])?.trim().parse()?;
        let member = contents.get(..size).ok_or("the archive is cut short")?;
        // The symbol `selvedge_thread` is defined in our code only.
        let name = b"\0selvedge_thread\0";
        if member.starts_with(b"\x7fELF") && member.windows(name.len()).any(|at| at == name) {
            found.push(member.to_owned());
        }
        rest = contents.get(size.next_multiple_of(2)..).unwrap_or_default();
    }
    match <[_; 1]>::try_from(found) {
        Ok([member]) => Ok(member),
        Err(found) => Err(format!("{} objects instead of one", found.len()).into()),
    }
}
