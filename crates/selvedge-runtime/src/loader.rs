//! Loading the shared object that a program was built into.

use std::error::Error;
use std::ffi::{CStr, CString, c_void};
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use object::elf;
use object::read::elf::{Dyn as _, ElfFile64, ProgramHeader as _};
use object::{
    LittleEndian, Object as _, ObjectSection as _, ObjectSymbol as _, SectionKind, SymbolKind,
};
use selvedge_core::Failure;

use crate::arena::{PAGE, round_up};
use crate::support::{EXPRESSION, STUBS, STUBS_END};

/// Why a program could not be loaded.
#[derive(Debug)]
pub enum LoadError {
    /// The file cannot be read, or memory cannot be had.
    Io(io::Error),
    /// The file is not a shared object for this machine.
    Format(String),
    /// The program has no `main`.
    NoMain,
    /// The program is built in a way that the runtime cannot run.
    Unsupported(String),
    /// The dynamic linker refused it.
    Link(String),
    /// A constructor of the program failed.
    Constructor(Failure),
    /// A constructor of the program does something that is not modelled.
    Refused(String),
    /// Another program is loaded in this process.
    Busy,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Io(error) => write!(f, "cannot load the program: {error}"),
            LoadError::Format(what) => write!(f, "not a program that can be loaded: {what}"),
            LoadError::NoMain => write!(f, "the program has no function `main`"),
            LoadError::Unsupported(what) => write!(f, "the program cannot be run: {what}"),
            LoadError::Link(what) => write!(f, "the program cannot be linked: {what}"),
            LoadError::Constructor(failure) => {
                write!(f, "the program fails before `main`: {}", failure.message)
            }
            LoadError::Refused(what) => write!(f, "not supported before `main`: {what}"),
            LoadError::Busy => write!(f, "another program is loaded in this process"),
        }
    }
}

impl Error for LoadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            LoadError::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for LoadError {
    fn from(error: io::Error) -> LoadError {
        LoadError::Io(error)
    }
}

/// The thread-local variables of the program.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ThreadLocals {
    /// Where the initial contents lie.
    pub(crate) start: usize,
    /// How many bytes of them there are; the rest is zero.
    pub(crate) initialised: usize,
    pub(crate) size: usize,
    pub(crate) alignment: usize,
}

/// A range of addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Range {
    /// Whether it contains `address`.
    #[inline(always)]
    pub(crate) fn contains(self, address: usize) -> bool {
        address.wrapping_sub(self.start) < self.end - self.start
    }

    /// Whether it contains all of the `size` bytes at `address`.
    #[inline(always)]
    pub(crate) fn contains_all(self, address: usize, size: usize) -> bool {
        let (offset, length) = (address.wrapping_sub(self.start), self.end - self.start);
        offset < length && size <= length - offset
    }
}

/// A function of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) name: String,
}

/// The name of what the shim has for it.
const TOLD: &[u8] = b"selvedge_told";

/// The contents of the file; addresses are relative to the load base until [`Image::place`] has made them
/// real.
#[derive(Clone, Debug, Default)]
pub(crate) struct Image {
    pub(crate) base: usize,
    pub(crate) whole: Range,
    pub(crate) writable: Vec<Range>,
    pub(crate) thread_locals: ThreadLocals,
    pub(crate) main: usize,
    /// The stubs through which the program enters the runtime.
    pub(crate) stubs: Range,
    /// Whether parts of the C++ library are linked in, which announce nothing.
    pub(crate) has_library: bool,
    /// The functions by address, which stays relative to the load base.
    pub(crate) functions: Vec<Function>,
    /// The bytes for what the program tells about itself.
    pub(crate) told: Range,
    /// Whether the program can change or read its floating-point environment.
    pub(crate) uses_float: bool,
    /// The functions that tell the values of expressions, by their numbers.
    pub(crate) expressions: Vec<usize>,
}

impl Image {
    /// Reads the headers of the shared object at `path`.
    pub(crate) fn read(path: &Path) -> Result<Image, LoadError> {
        let data = fs::read(path)?;
        let format = |e: object::Error| LoadError::Format(e.to_string());
        let file = ElfFile64::<LittleEndian>::parse(&*data).map_err(format)?;
        let endian = LittleEndian;
        let header = file.elf_header();
        if header.e_machine.get(endian) != elf::EM_X86_64
            || header.e_type.get(endian) != elf::ET_DYN
        {
            return Err(LoadError::Format(
                "not a shared object for x86-64".to_owned(),
            ));
        }
        let mut image = Image {
            whole: Range {
                start: usize::MAX,
                end: 0,
            },
            ..Image::default()
        };
        let mut read_only_later = Range::default();
        for segment in file.elf_program_headers() {
            let start = segment.p_vaddr(endian) as usize;
            let range = Range {
                start,
                end: start + segment.p_memsz(endian) as usize,
            };
            match segment.p_type(endian) {
                elf::PT_LOAD => {
                    image.whole.start = image.whole.start.min(start & !(PAGE - 1));
                    image.whole.end = image.whole.end.max(round_up(range.end, PAGE));
                    if segment.p_flags(endian).contains(elf::PF_W) {
                        image.writable.push(range);
                    }
                }
                elf::PT_GNU_RELRO => {
                    read_only_later = Range {
                        start,
                        end: round_up(range.end, PAGE),
                    };
                }
                elf::PT_TLS => {
                    image.thread_locals = ThreadLocals {
                        start,
                        initialised: segment.p_filesz(endian) as usize,
                        size: segment.p_memsz(endian) as usize,
                        alignment: segment.p_align(endian) as usize,
                    };
                }
                _ => {}
            }
            if let Some(entries) = segment.dynamic(endian, &*data).map_err(format)? {
                let flags = entries.iter().filter(|d| d.tag(endian) == elf::DT_FLAGS);
                if flags
                    .into_iter()
                    .any(|d| d.d_val(endian) & elf::DF_STATIC_TLS.0 != 0)
                {
                    let what = "thread-local variables of the static model (initial-exec)";
                    return Err(LoadError::Unsupported(what.to_owned()));
                }
            }
        }
        for range in &mut image.writable {
            if read_only_later.contains(range.start) {
                range.start = read_only_later.end.min(range.end);
            }
        }
        image.writable.retain(|range| range.start < range.end);
        let mut symbols = file.symbols().chain(file.dynamic_symbols());
        let main = symbols.find(|s| s.is_definition() && s.name_bytes() == Ok(b"main"));
        image.main = main.ok_or(LoadError::NoMain)?.address() as usize;
        image.functions = functions(&file);
        image.has_library = image
            .functions
            .iter()
            .any(|function| function.name == "__cxa_throw" || function.name == "_ZSt9terminatev");
        image.uses_float = uses_float(&file, &image.functions);
        let told = file.symbols().find(|s| s.name_bytes() == Ok(TOLD));
        image.told = told.map_or(Range::default(), |told| Range {
            start: told.address() as usize,
            end: (told.address() + told.size()) as usize,
        });
        let begin = |name: &str| {
            let mut functions = image.functions.iter();
            let function = functions.find(|function| function.name == name);
            function.map_or(0, |function| function.start)
        };
        let expressions = (0..).map(|n| begin(&format!("{EXPRESSION}{n}")));
        image.expressions = expressions.take_while(|&start| start != 0).collect();
        image.stubs = Range {
            start: begin(STUBS),
            end: begin(STUBS_END),
        };
        Ok(image)
    }

    /// Whether `address` is part of the program that the program cannot write.
    pub(crate) fn is_constant(&self, address: usize) -> bool {
        self.whole.contains(address) && !self.writable.iter().any(|range| range.contains(address))
    }

    /// A place in the code relative to the load base; zero for places outside.
    #[inline(always)]
    pub(crate) fn relative(&self, site: usize) -> u32 {
        u32::try_from(site.wrapping_sub(self.base)).unwrap_or(0)
    }

    /// Turns relative addresses into real ones.
    pub(crate) fn place(&mut self, base: usize) {
        self.base = base;
        self.main += base;
        self.thread_locals.start += base;
        for function in &mut self.expressions {
            *function += base;
        }
        for range in
            self.writable
                .iter_mut()
                .chain([&mut self.whole, &mut self.stubs, &mut self.told])
        {
            range.start += base;
            range.end += base;
        }
    }
}

/// The section that a program has if its inline assembly may change or tell the x87 control word or flags. Compilers
/// themselves only change the control word for one conversion at a time.
pub const FLOAT_SECTION: &str = ".selvedge.float";

/// Whether code refers to functions of `<fenv.h>`, has what looks like an instruction that loads
/// or stores MXCSR, or inline assembly for the x87 control word.
fn uses_float(file: &ElfFile64<'_, LittleEndian>, functions: &[Function]) -> bool {
    let refers = file.dynamic_symbols().any(|symbol| {
        let name = symbol.name().unwrap_or_default();
        symbol.is_undefined() && (name.starts_with("fe") && !name.starts_with("feof"))
    });
    // The shim has one for compilers that make floating-point atomics of it.
    let own = functions
        .iter()
        .find(|function| function.name == "__atomic_feraiseexcept");
    let own = own.map_or(0..0, |function| function.start..function.end);
    refers
        || file.section_by_name(FLOAT_SECTION).is_some()
        || file.sections().any(|section| {
            let text = section.kind() == SectionKind::Text;
            let bytes = section.data().unwrap_or_default();
            let start = section.address() as usize;
            text && bytes.windows(3).enumerate().any(|(at, bytes)| {
                let operand = bytes[2];
                let accesses = operand >> 6 != 3 && matches!(operand >> 3 & 7, 2 | 3);
                bytes[..2] == [0x0f, 0xae] && accesses && !own.contains(&(start + at))
            })
        })
}

/// The functions that the symbol table of `file` knows, callbacks included.
fn functions(file: &ElfFile64<'_, LittleEndian>) -> Vec<Function> {
    let symbols = file.symbols().filter(|symbol| symbol.is_definition());
    let code = symbols.filter(|symbol| {
        let name = symbol.name().unwrap_or_default();
        symbol.kind() == SymbolKind::Text || name.starts_with("__tsan_")
    });
    let mut functions: Vec<Function> = code
        .map(|symbol| Function {
            start: symbol.address() as usize,
            end: (symbol.address() + symbol.size()) as usize,
            name: symbol.name().unwrap_or_default().to_owned(),
        })
        .collect();
    functions.sort_unstable_by_key(|function| (function.start, function.end));
    functions
}

/// Loads the shared object at `path`, which runs its constructors, and returns its load base.
pub(crate) fn open(path: &Path) -> Result<usize, LoadError> {
    let name = CString::new(path.as_os_str().as_bytes())
        .map_err(|_| LoadError::Format("a file name with a null byte".to_owned()))?;
    // SAFETY: a valid string; what the constructors do is checked by the runtime.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() {
        // SAFETY: after a failed `dlopen` this is a string that lives until the next call.
        let message = unsafe { CStr::from_ptr(libc::dlerror()) };
        return Err(LoadError::Link(message.to_string_lossy().into_owned()));
    }
    Ok(load_base(handle))
}

/// The load base of the object that contains `address`.
pub(crate) fn base_of(address: usize) -> usize {
    // SAFETY: a plain C structure for which zero is a valid value; `dladdr` takes any address.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        libc::dladdr(crate::arena::pointer(address), &raw mut info);
        info.dli_fbase.addr()
    }
}

/// The start of glibc's `struct link_map`, which is public.
#[repr(C)]
struct LinkMap {
    base: usize,
}

fn load_base(handle: *mut c_void) -> usize {
    let mut map: *const LinkMap = std::ptr::null();
    // SAFETY: `handle` came from `dlopen`, and this request stores one pointer.
    unsafe {
        libc::dlinfo(handle, libc::RTLD_DI_LINKMAP, (&raw mut map).cast());
        (*map).base
    }
}
