//! Functions of the runtime for the modelled environment (`environment/*.c`, compiled with the program): guards that
//! threads wait for, and files of the system as the search found them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::c_int;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::ptr::with_exposed_provenance_mut;
use std::sync::LazyLock;

use selvedge_core::MemoryOrder::Acquire;
use selvedge_core::objects::ObjectFunction;

use super::object::Object;
use super::{output, process, program, strings};
use crate::current;

entry_points![
    selvedge_lock_when(3),
    selvedge_unlock_with(2),
    selvedge_look(1),
    selvedge_file_size(1),
    selvedge_file_read(3),
    selvedge_directory(2),
    selvedge_variables(0),
    selvedge_output(3),
    selvedge_raise(1),
];

fn guard(address: usize) -> Object {
    Object::new(address, 8, "guard")
}

extern "C" fn selvedge_lock_when(address: usize, bits: u32, room: u32) -> u64 {
    let function = ObjectFunction::LockWhen { bits, room };
    guard(address).step(function, Acquire).read as u64
}

extern "C" fn selvedge_unlock_with(address: usize, state: u64) {
    guard(address).store(state.into());
}

extern "C" fn selvedge_look(address: usize) -> u64 {
    guard(address).load() as u64
}

/// A file as it was when it was first asked for, or the number of an error.
type Contents = Result<Vec<u8>, c_int>;

struct Files(RefCell<HashMap<String, Contents>>);

// SAFETY: only the thread that runs the program's fibers comes here.
unsafe impl Sync for Files {}

/// All executions see the same contents of a file, so they are kept from one to the next.
static FILES: LazyLock<Files> = LazyLock::new(|| Files(RefCell::new(HashMap::new())));

/// Forgets all files: another program is loaded.
pub(crate) fn forget_files() {
    FILES.0.borrow_mut().clear();
}

/// Looks at the file called `path`; the empty path is the standard input.
fn with_file<R>(path: usize, f: impl FnOnce(&Contents) -> R) -> R {
    let path = program::text(path);
    let mut files = FILES.0.borrow_mut();
    let contents = files.entry(path).or_insert_with_key(|path| {
        let file = match path.is_empty() {
            true => current::standard_input().ok_or(libc::ENOENT)?,
            false => path.into(),
        };
        read(&file).map_err(|error| error.raw_os_error().unwrap_or(libc::EIO))
    });
    f(contents)
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let kind = fs::metadata(path)?.file_type();
    match (kind.is_dir(), kind.is_file()) {
        (true, _) => Err(io::Error::from_raw_os_error(libc::EISDIR)),
        (_, true) => fs::read(path),
        _ => Err(io::Error::from_raw_os_error(libc::EACCES)),
    }
}

extern "C" fn selvedge_file_size(path: usize) -> i64 {
    strings::read_view(path, current::site());
    current::impure();
    with_file(path, |contents| match contents {
        Ok(bytes) => bytes.len() as i64,
        Err(number) => -i64::from(*number),
    })
}

extern "C" fn selvedge_file_read(path: usize, into: usize, size: usize) {
    if size == 0 {
        return;
    }
    current::touch(into, size, true, current::site());
    current::writes(into, size);
    with_file(path, |contents| {
        let bytes = contents.as_deref().unwrap_or_default();
        let size = size.min(bytes.len());
        // SAFETY: the range was checked, and only this thread runs.
        unsafe {
            with_exposed_provenance_mut::<u8>(into).copy_from_nonoverlapping(bytes.as_ptr(), size);
        }
    });
}

extern "C" fn selvedge_variables() -> usize {
    current::variables()
}

extern "C" fn selvedge_directory(into: usize, size: usize) -> c_int {
    let site = current::site();
    static DIRECTORY: LazyLock<PathBuf> =
        LazyLock::new(|| std::env::current_dir().unwrap_or_default());
    let bytes = DIRECTORY.as_os_str().as_bytes();
    if bytes.len() >= size {
        return 0;
    }
    current::touch(into, bytes.len() + 1, true, site);
    current::writes(into, bytes.len() + 1);
    let to = with_exposed_provenance_mut::<u8>(into);
    // SAFETY: the range was checked, and only this thread runs.
    unsafe {
        to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        to.add(bytes.len()).write(0);
    }
    1
}

extern "C" fn selvedge_output(descriptor: c_int, bytes: usize, size: usize) {
    let site = current::site();
    current::touch(bytes, size, false, site);
    output::emit(descriptor, bytes, size, site);
}

/// The default action of the signal.
extern "C" fn selvedge_raise(signal: c_int) -> c_int {
    process::deliver(signal, current::site())
}
