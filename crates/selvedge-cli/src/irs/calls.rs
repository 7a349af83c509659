//! Finds the calls of the enforcement library in an executable.

use std::collections::{BTreeMap, HashMap};

use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Mnemonic, OpKind};
use object::elf;
use object::read::elf::{ElfFile64, ProgramHeader as _};
use object::{
    Endianness, Object as _, ObjectSection as _, ObjectSymbol as _, RelocationTarget, SectionKind,
    SymbolKind,
};
use selvedge_enforce::Function;

/// An access as a callback announces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access {
    pub(super) writes: bool,
    pub(super) volatile: bool,
    /// Both at once.
    pub(super) compound: bool,
    bytes: u32,
}

impl Access {
    /// How the library is told.
    pub(super) fn how(self) -> u32 {
        self.bytes | u32::from(self.writes) << 8 | u32::from(self.volatile) << 9
    }
}

/// The purpose of a function of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Callee {
    /// Announces a plain or volatile access.
    Access(Access),
    /// Announces or makes accesses to ranges of bytes.
    Range,
    /// Copies or fills memory; a function of the C library that is let alone unless it must not be.
    Memory,
    /// Does something that others can see.
    Operation,
    /// Tells where a function begins.
    Entry,
    /// Tells where a function ends.
    Exit,
    /// Makes an object ready to be used.
    Init,
    /// Nothing of interest.
    Other,
}

impl Callee {
    /// The purpose of the function `name` of a program.
    pub(super) fn of(name: &str) -> Callee {
        let name = name.strip_prefix("__wrap_").unwrap_or(name);
        if let Some(rest) = name.strip_prefix("__tsan_") {
            return match rest {
                "func_entry" => Callee::Entry,
                "func_exit" => Callee::Exit,
                "read_range" | "write_range" | "memcpy" | "memmove" | "memset" => Callee::Range,
                "vptr_read" => access("read8"),
                "vptr_update" => access("write8"),
                _ if rest.starts_with("atomic_") => Callee::Other,
                _ if rest.starts_with("atomic") => Callee::Operation,
                _ => access(rest),
            };
        }
        let begins = |prefix: &&str| name.starts_with(*prefix);
        match name {
            "memcpy" | "memmove" | "memset" => Callee::Memory,
            "pthread_create" | "pthread_join" | "thrd_create" | "thrd_join" => Callee::Operation,
            "pthread_once" | "call_once" => Callee::Operation,
            _ if name.contains("attr_") => Callee::Other,
            _ if name.ends_with("_init") && OPERATIONS.iter().any(begins) => Callee::Init,
            _ if OPERATIONS.iter().any(begins) => Callee::Operation,
            _ => Callee::Other,
        }
    }
}

const OPERATIONS: [&str; 9] = [
    "pthread_mutex_",
    "pthread_rwlock_",
    "pthread_spin_",
    "pthread_cond_",
    "pthread_barrier_",
    "sem_",
    "mtx_",
    "cnd_",
    "__cxa_guard_",
];

fn access(name: &str) -> Callee {
    let name = name.strip_prefix("unaligned_").unwrap_or(name);
    let (volatile, name) = match name.strip_prefix("volatile_") {
        Some(rest) => (true, rest),
        None => (false, name),
    };
    let (writes, compound, bytes) = if let Some(bytes) = name.strip_prefix("read_write") {
        (true, true, bytes)
    } else if let Some(bytes) = name.strip_prefix("read") {
        (false, false, bytes)
    } else if let Some(bytes) = name.strip_prefix("write") {
        (true, false, bytes)
    } else {
        return Callee::Other;
    };
    match bytes.parse() {
        Ok(bytes) => Callee::Access(Access {
            writes,
            volatile,
            compound,
            bytes,
        }),
        Err(_) => Callee::Other,
    }
}

/// A call of the library.
#[derive(Clone, Debug)]
pub(super) struct Call {
    /// The function it is in, as a number in [`Executable::functions`].
    pub(super) function: usize,
    /// The address that it returns to.
    pub(super) site: u32,
    /// Where the instruction is in the file.
    pub(super) at: usize,
    /// The function that is called, without the linker's detour.
    pub(super) callee: String,
}

/// An executable that was linked with the library.
#[derive(Debug)]
pub(super) struct Executable {
    /// The user's functions, by address.
    pub(super) functions: Vec<Function>,
    /// Their calls of the library.
    pub(super) calls: Vec<Call>,
    symbols: HashMap<String, u64>,
    /// Address, place in the file and size of everything that is loaded.
    segments: Vec<(u64, u64, u64)>,
}

impl Executable {
    /// Reads the file; the user's functions are those with one of these `names`, which are sorted.
    pub(super) fn read(bytes: &[u8], names: &[String]) -> Option<Executable> {
        let file = ElfFile64::<Endianness>::parse(bytes).ok()?;
        let endian = file.endian();
        let segments = file.elf_program_headers().iter();
        let segments = segments
            .filter(|segment| segment.p_type(endian) == elf::PT_LOAD)
            .map(|segment| {
                (
                    segment.p_vaddr(endian),
                    segment.p_offset(endian),
                    segment.p_filesz(endian),
                )
            })
            .collect();
        let mut functions = Vec::new();
        let mut symbols = HashMap::new();
        for symbol in file.symbols().filter(|symbol| symbol.is_definition()) {
            let Ok(name) = symbol.name() else { continue };
            symbols.insert(name.to_owned(), symbol.address());
            let known = names.binary_search_by(|known| known.as_str().cmp(name));
            if symbol.kind() == SymbolKind::Text && known.is_ok() {
                functions.push(Function {
                    name: name.to_owned(),
                    occurrence: 0,
                    start: symbol.address().try_into().ok()?,
                    size: symbol.size().try_into().ok()?,
                });
            }
        }
        functions.sort_by(|one, two| (one.start, &one.name).cmp(&(two.start, &two.name)));
        let mut seen: HashMap<String, u32> = HashMap::new();
        for function in &mut functions {
            let count = seen.entry(function.name.clone()).or_default();
            function.occurrence = *count;
            *count += 1;
        }
        let mut executable = Executable {
            functions,
            calls: Vec::new(),
            symbols,
            segments,
        };
        executable.find_calls(bytes, &file)?;
        Some(executable)
    }

    fn find_calls(&mut self, bytes: &[u8], file: &ElfFile64<'_, Endianness>) -> Option<()> {
        let mut targets: BTreeMap<u64, String> = BTreeMap::new();
        for (name, &address) in &self.symbols {
            if Callee::of(name) != Callee::Other {
                targets.insert(address, name.clone());
            }
        }
        targets.extend(linkage(file));
        let mut calls = Vec::new();
        let mut end = 0;
        for (number, function) in self.functions.iter().enumerate() {
            // Several names for one function.
            if function.start < end {
                continue;
            }
            end = function.start + function.size;
            let start = self.place(function.start.into())?;
            let code = bytes.get(start..start + function.size as usize)?;
            let mut decoder =
                Decoder::with_ip(64, code, function.start.into(), DecoderOptions::NONE);
            let mut instruction = Instruction::default();
            while decoder.can_decode() {
                decoder.decode_out(&mut instruction);
                if instruction.code() != Code::Call_rel32_64 || instruction.len() != 5 {
                    continue;
                }
                let Some(target) = targets.get(&instruction.near_branch_target()) else {
                    continue;
                };
                calls.push(Call {
                    function: number,
                    site: instruction.next_ip() as u32,
                    at: start + (instruction.ip() - u64::from(function.start)) as usize,
                    callee: target.strip_prefix("__wrap_").unwrap_or(target).to_owned(),
                });
            }
        }
        self.calls = calls;
        Some(())
    }

    /// The address of a symbol.
    pub(super) fn symbol(&self, name: &str) -> Option<u64> {
        self.symbols.get(name).copied()
    }

    /// Where an address is in the file.
    pub(super) fn place(&self, address: u64) -> Option<usize> {
        let inside =
            |&&(start, _, size): &&(u64, u64, u64)| (start..start + size).contains(&address);
        let (start, offset, _) = self.segments.iter().find(inside)?;
        Some((address - start + offset) as usize)
    }
}

/// The jumps to functions of shared libraries: their addresses and where they lead.
fn linkage(file: &ElfFile64<'_, Endianness>) -> BTreeMap<u64, String> {
    let mut slots = HashMap::new();
    for (slot, relocation) in file.dynamic_relocations().into_iter().flatten() {
        let RelocationTarget::Symbol(index) = relocation.target() else {
            continue;
        };
        let table = file.dynamic_symbol_table();
        let symbol = table.and_then(|table| {
            use object::ObjectSymbolTable as _;
            table.symbol_by_index(index).ok()
        });
        let name = symbol.and_then(|symbol| symbol.name().ok());
        if let Some(name) = name.filter(|name| Callee::of(name) == Callee::Memory) {
            slots.insert(slot, name.to_owned());
        }
    }
    let mut jumps = BTreeMap::new();
    for section in file
        .sections()
        .filter(|section| section.kind() == SectionKind::Text)
    {
        let named = section.name().is_ok_and(|name| name.starts_with(".plt"));
        let Ok(code) = section.data() else { continue };
        if !named {
            continue;
        }
        let decoder = Decoder::with_ip(64, code, section.address(), DecoderOptions::NONE);
        for instruction in decoder {
            let memory = instruction.op_count() == 1 && instruction.op0_kind() == OpKind::Memory;
            if instruction.mnemonic() != Mnemonic::Jmp || !memory {
                continue;
            }
            if let Some(name) = slots.get(&instruction.memory_displacement64()) {
                // Entries are aligned to sixteen bytes, or eight, and may begin with a landing mark.
                jumps.insert(instruction.ip() & !7, name.clone());
                jumps.insert(instruction.ip() & !15, name.clone());
            }
        }
    }
    jumps
}
