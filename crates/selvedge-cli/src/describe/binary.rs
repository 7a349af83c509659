//! The program's file: symbols, source lines, variables.

use std::cell::OnceCell;
use std::fs;
use std::path::Path;
use std::rc::Rc;

use addr2line::Context;
use gimli::{Dwarf, EndianRcSlice, LittleEndian, SectionId};
use object::{File, Object as _, ObjectSection as _, ObjectSymbol as _, SectionKind, SymbolKind};

use super::scalars::scalars;
use super::short;
use super::variables::Variables;
use crate::args::Shown;
use crate::place;
use crate::report::Place;

pub(super) type Slice = EndianRcSlice<LittleEndian>;

/// A function or a variable of the symbol table.
#[derive(Clone, Debug)]
struct Symbol {
    start: u64,
    size: u64,
    name: String,
    code: bool,
}

/// The symbols and debug information of the program's file. All addresses are those of the file.
pub(crate) struct Binary {
    pub(super) shown: Shown,
    symbols: Vec<Symbol>,
    sections: Vec<(&'static str, Rc<[u8]>)>,
    /// The code, by where it begins.
    code: Vec<(u64, Vec<u8>)>,
    /// The functions that run before `main`.
    constructors: Vec<u64>,
    context: OnceCell<Option<Context<Slice>>>,
    variables: OnceCell<Variables>,
}

impl Binary {
    /// Reads the file. Nothing is missing that the reports could not do without, so a file that
    /// cannot be read is like one without symbols.
    pub(crate) fn read(path: &Path, shown: Shown) -> Binary {
        let bytes = fs::read(path).unwrap_or_default();
        let (mut symbols, mut sections, mut code) = (Vec::new(), Vec::new(), Vec::new());
        let mut constructors = Vec::new();
        if let Ok(file) = File::parse(&*bytes) {
            constructors = read_constructors(&file);
            symbols = read_symbols(&file);
            for section in file.sections().filter(|s| s.kind() == SectionKind::Text) {
                code.extend(
                    section
                        .data()
                        .map(|data| (section.address(), data.to_vec())),
                );
            }
            for id in SECTIONS {
                let section = file.section_by_name(id.name());
                if let Some(data) = section.and_then(|s| s.uncompressed_data().ok()) {
                    sections.push((id.name(), Rc::from(&*data)));
                }
            }
        }
        let (context, variables) = (OnceCell::new(), OnceCell::new());
        Binary {
            shown,
            symbols,
            sections,
            code,
            constructors,
            context,
            variables,
        }
    }

    fn dwarf(&self) -> Option<Dwarf<Slice>> {
        let load = |id: SectionId| -> Result<Slice, gimli::Error> {
            let found = self.sections.iter().find(|(name, _)| *name == id.name());
            let bytes = found.map_or_else(|| Rc::from([]), |(_, bytes)| Rc::clone(bytes));
            Ok(EndianRcSlice::new(bytes, LittleEndian))
        };
        Dwarf::load(load).ok()
    }

    fn context(&self) -> Option<&Context<Slice>> {
        let read = || Context::from_dwarf(self.dwarf()?).ok();
        self.context.get_or_init(read).as_ref()
    }

    /// A name of the program as reports write it.
    fn written(&self, symbol: &str) -> String {
        let name = place::readable(symbol);
        // Functions without a symbol of their own have the name that the source has.
        let cxx = symbol.starts_with("_Z") || symbol.contains('<');
        match cxx && !self.shown.full_names {
            true => short::function(&name),
            false => name,
        }
    }

    /// The symbols of the functions called `name`, which is a symbol or a name of C++ without
    /// parameters.
    pub(crate) fn functions_named(&self, name: &str) -> Vec<String> {
        let is_meant = |symbol: &&Symbol| {
            let readable = place::readable(&symbol.name);
            let bare = readable
                .split_once('(')
                .map_or(&*readable, |(bare, _)| bare);
            symbol.code && (symbol.name == name || bare == name)
        };
        let meant = self.symbols.iter().filter(is_meant);
        meant.map(|symbol| symbol.name.clone()).collect()
    }

    /// Where the instruction at `address` comes from, innermost inlined function first.
    pub(crate) fn frames(&self, address: u64) -> Vec<Place> {
        let context = self.context();
        let mut places = Vec::new();
        if let Some(context) = context
            && let Ok(mut frames) = context.find_frames(address).skip_all_loads()
        {
            while let Ok(Some(frame)) = frames.next() {
                let location = frame.location.as_ref();
                let name = frame.function.as_ref().and_then(|f| f.raw_name().ok());
                places.push(Place {
                    file: location
                        .and_then(|l| l.file)
                        .map(|f| place::shorten(Path::new(f))),
                    line: location.and_then(|l| l.line),
                    function: name.map(|name| self.written(&name)),
                    library: None,
                });
            }
        }
        places.retain(|place| *place != Place::default());
        if places.is_empty() {
            let function = self
                .symbol(address, true)
                .map(|symbol| self.written(&symbol.name));
            places.push(Place {
                function,
                ..Place::default()
            });
        }
        places
    }

    /// The instructions that lines of the program's own source begin with.
    pub(crate) fn lines(&self) -> Vec<(u64, Place)> {
        let Some(context) = self.context() else {
            return Vec::new();
        };
        let mut lines = Vec::new();
        for (start, code) in &self.code {
            let rows = context.find_location_range(*start, start + code.len() as u64);
            for (address, _, location) in rows.into_iter().flatten() {
                let function = self.symbol(address, true);
                let place = Place {
                    file: location.file.map(|file| place::shorten(Path::new(file))),
                    line: location.line.filter(|&line| line > 0),
                    function: function.map(|symbol| self.written(&symbol.name)),
                    library: None,
                };
                if place.is_users() {
                    lines.push((address, place));
                }
            }
        }
        lines
    }

    /// Whether code of the program runs before `main`, besides what compilers and the shim add there.
    pub(crate) fn has_constructors(&self) -> bool {
        const ADDED: [&str; 4] = [
            "_sub_I_00099_0",
            "frame_dummy",
            "hand_over_destructors",
            "tsan.module_ctor",
        ];
        let users = |symbol: &Symbol| {
            let end = symbol.start + symbol.size;
            let rows = self
                .context()
                .map(|context| context.find_location_range(symbol.start, end));
            let mut files = rows.into_iter().flatten().flatten().map(|row| row.2.file);
            files.any(|file| file.is_some_and(|file| !place::is_system(file)))
        };
        let mut first = self.constructors.iter().map(|&at| self.symbol(at, true));
        first.any(|symbol| {
            symbol.is_none_or(|symbol| !ADDED.contains(&&*symbol.name) && users(symbol))
        })
    }

    /// Whether `address` is where a call of the program's own code to something that is not
    /// returns to.
    pub(super) fn returns_from_library(&self, address: u64) -> bool {
        let users = |address| Place::nearest(self.frames(address)).is_users();
        let callee = self.callee(address);
        callee.is_some_and(|callee| users(address - 1) && !users(callee))
    }

    /// Whether a direct call of the function that `inside` lies in returns to `address`.
    pub(super) fn returns_from(&self, inside: u64, address: u64) -> bool {
        let function = self.symbol(inside, true).map(|symbol| symbol.start);
        function.is_some() && function == self.callee(address)
    }

    /// The target of the direct call that returns to `address`.
    fn callee(&self, address: u64) -> Option<u64> {
        const CALL: u8 = 0xe8;
        let inside = |(start, bytes): &&(u64, Vec<u8>)| {
            (start + 5..=start + bytes.len() as u64).contains(&address)
        };
        let (start, bytes) = self.code.iter().find(inside)?;
        let end = (address - start) as usize;
        let [CALL, a, b, c, d] = bytes[end - 5..end] else {
            return None;
        };
        Some(address.wrapping_add_signed(i32::from_le_bytes([a, b, c, d]).into()))
    }

    fn variables(&self) -> &Variables {
        self.variables.get_or_init(|| match self.dwarf() {
            Some(dwarf) => Variables::read(&dwarf),
            None => Variables::default(),
        })
    }

    /// The thread-local variable at `offset` of a thread's block.
    pub(super) fn thread_local(&self, offset: u64, width: u64) -> Option<super::variables::Found> {
        self.variables().find_thread_local(offset, width)
    }

    /// The places and widths of the scalars in global variables.
    pub(super) fn scalars(&self) -> Vec<(u64, u8)> {
        scalars(self.variables())
    }

    /// The variable at `address`: its name in the debug information, else in the symbol table.
    pub(super) fn variable(&self, address: u64, width: u64) -> Option<super::variables::Found> {
        if let Some(found) = self.variables().find(address, width) {
            return Some(found);
        }
        let symbol = self.symbol(address, false)?;
        let name = match address - symbol.start {
            0 => self.written(&symbol.name),
            offset => format!("{} +{offset}", self.written(&symbol.name)),
        };
        Some(super::variables::Found {
            name,
            encoding: Default::default(),
        })
    }

    /// The symbol of the function that the call before `address` is in, which of the functions of
    /// that name it is, and how far into it the call returns.
    pub(crate) fn call_site(&self, address: u64) -> Option<(&str, u32, u32)> {
        let symbol = self.symbol(address.checked_sub(1)?, true)?;
        let mut earlier: Vec<u64> = self
            .symbols
            .iter()
            .filter(|other| other.code && other.name == symbol.name && other.start < symbol.start)
            .map(|other| other.start)
            .collect();
        earlier.dedup();
        let offset = u32::try_from(address - symbol.start).ok()?;
        Some((&symbol.name, earlier.len() as u32, offset))
    }

    /// The function that starts at `address`.
    pub(super) fn function(&self, address: u64) -> Option<String> {
        let symbol = self
            .symbol(address, true)
            .filter(|symbol| symbol.start == address)?;
        Some(self.written(&symbol.name))
    }

    fn symbol(&self, address: u64, code: bool) -> Option<&Symbol> {
        let after = self
            .symbols
            .partition_point(|symbol| symbol.start <= address);
        let candidates = self.symbols[..after].iter().rev().take(16);
        let mut covering = candidates
            .filter(|symbol| symbol.code == code && address < symbol.start + symbol.size.max(1));
        covering.next()
    }
}

const SECTIONS: [SectionId; 12] = [
    SectionId::DebugAbbrev,
    SectionId::DebugAddr,
    SectionId::DebugAranges,
    SectionId::DebugInfo,
    SectionId::DebugLine,
    SectionId::DebugLineStr,
    SectionId::DebugLoc,
    SectionId::DebugLocLists,
    SectionId::DebugRanges,
    SectionId::DebugRngLists,
    SectionId::DebugStr,
    SectionId::DebugStrOffsets,
];

/// The functions in `.init_array`, which the dynamic linker fills in.
fn read_constructors(file: &File<'_>) -> Vec<u64> {
    let Some(section) = file.section_by_name(".init_array") else {
        return Vec::new();
    };
    let slots = section.address()..section.address() + section.size();
    let filled = file.dynamic_relocations().into_iter().flatten();
    let filled = filled.filter(|(slot, _)| slots.contains(slot));
    filled
        .map(|(_, relocation)| relocation.addend() as u64)
        .collect()
}

fn read_symbols(file: &File<'_>) -> Vec<Symbol> {
    let mut symbols: Vec<Symbol> = file
        .symbols()
        .filter(|s| s.is_definition() && matches!(s.kind(), SymbolKind::Text | SymbolKind::Data))
        .filter_map(|s| {
            let (name, code) = (s.name().ok()?.to_owned(), s.kind() == SymbolKind::Text);
            Some(Symbol {
                start: s.address(),
                size: s.size(),
                name,
                code,
            })
        })
        .collect();
    symbols.sort_by_key(|symbol| (symbol.start, symbol.size));
    symbols
}
