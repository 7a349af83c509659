//! The small parts of that assembly: names, directives, debug information, and what an instruction must keep to.

use std::collections::HashMap;
use std::fmt::Write as _;

use iced_x86::{ConstantOffsets, Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use object::elf;
use object::{
    ObjectSection as _, ObjectSymbol as _, Section, SectionFlags, SectionKind, Symbol, SymbolFlags,
};

/// A section of code, decoded.
pub(super) struct Decoded {
    pub(super) instructions: Vec<(Instruction, ConstantOffsets)>,
    /// The instruction at each address; the end counts as one.
    pub(super) numbers: HashMap<u64, usize>,
}

pub(super) const THREAD_LOCAL: &str =
    "it has thread-local variables, which are known from source only";

/// Whether a symbol is a label of the compiler's, which assemblers do not keep.
pub(super) fn is_label(symbol: &Symbol<'_, '_>) -> bool {
    symbol.is_local() && symbol.name().unwrap_or_default().starts_with(".L")
}

/// Whether a function is found by calling another one.
pub(super) fn is_indirect(symbol: &Symbol<'_, '_>) -> bool {
    const KIND: u8 = 10;
    matches!(symbol.flags(), SymbolFlags::Elf { st_info, .. } if st_info.0 & 15 == KIND)
}

/// Whether a function begins with a frame pointer.
pub(super) fn has_frame(code: &[(Instruction, ConstantOffsets)]) -> bool {
    let mut code = code.iter().map(|(instruction, _)| instruction);
    let mut code = code.by_ref().filter(|i| i.mnemonic() != Mnemonic::Endbr64);
    let pushes =
        |i: &Instruction| i.mnemonic() == Mnemonic::Push && i.op0_register() == Register::RBP;
    let sets = |i: &Instruction| {
        let registers = (i.op0_register(), i.op1_register());
        i.mnemonic() == Mnemonic::Mov && registers == (Register::RBP, Register::RSP)
    };
    code.next().is_some_and(pushes) && code.next().is_some_and(sets)
}

/// Whether an instruction keeps to the rules that our own compilers are given; `flags::required` says why. The
/// error names the flag.
pub(super) fn suits(
    instruction: &Instruction,
    callback: bool,
    framed: bool,
) -> Result<(), &'static str> {
    /// The largest piece that is taken from the stack at once if each page is touched.
    const PAGE: u64 = 4096;
    let base = instruction.memory_base();
    let below = (instruction.memory_displacement64() as i64) < 0;
    let is_large = || {
        instruction.mnemonic() == Mnemonic::Sub
            && instruction.op0_register() == Register::RSP
            && instruction.op1_kind() != OpKind::Register
            && instruction.immediate(1) > PAGE
    };
    match instruction.mnemonic() {
        Mnemonic::Jmp if callback => {
            Err("leaves its function with a jump (-fno-optimize-sibling-calls)")
        }
        _ if callback && !framed => {
            Err("is in a function without a frame pointer (-fno-omit-frame-pointer)")
        }
        _ if base == Register::RSP && below => Err("uses the red zone (-mno-red-zone)"),
        _ if is_large() => Err("allocates much of the stack at once (-fstack-clash-protection)"),
        _ => Ok(()),
    }
}

/// Ends the last one of the functions in the section with this number.
pub(super) fn ends_at(section: usize, functions: &[String]) -> String {
    let last = functions.len().saturating_sub(1);
    format!(".Lx{section}_{last}:\n\t.cfi_endproc\n")
}

pub(super) fn refused(section: &str, address: u64, why: &str) -> String {
    format!("the instruction at {section}+{address:#x} {why}")
}

pub(super) fn flags(section: &Section<'_, '_>) -> u64 {
    match section.flags() {
        SectionFlags::Elf { sh_flags, .. } => sh_flags.0,
        _ => 0,
    }
}

pub(super) fn is_code(section: &Section<'_, '_>) -> bool {
    flags(section) & elf::SHF_EXECINSTR.0 != 0
}

/// The directives that begin a section.
pub(super) fn head(section: &Section<'_, '_>) -> Result<String, String> {
    let name = section.name().unwrap_or_default();
    let flags = flags(section);
    let has = |flag: elf::SectionFlags| flags & flag.0 != 0;
    if has(elf::SHF_TLS) {
        return Err(THREAD_LOCAL.to_owned());
    }
    if has(elf::SHF_GROUP) {
        return Err(format!(
            "its section {name} may be defined in several objects, as functions of templates are"
        ));
    }
    if name.starts_with(".gcc_except_table") {
        return Err("it handles exceptions or panics (-C panic=abort)".to_owned());
    }
    let mut letters = String::from("a");
    letters.extend(has(elf::SHF_WRITE).then_some('w'));
    letters.extend(has(elf::SHF_EXECINSTR).then_some('x'));
    let kind = match section.kind() {
        SectionKind::UninitializedData => "nobits",
        _ if name.starts_with(".init_array") => "init_array",
        _ if name.starts_with(".fini_array") => "fini_array",
        _ => "progbits",
    };
    let align = section.align().max(1);
    Ok(format!(
        "\t.section {},\"{letters}\",@{kind}\n\t.balign {align}",
        quoted(name)
    ))
}

pub(super) fn decode(section: &Section<'_, '_>) -> Result<Decoded, String> {
    let bytes = section.data();
    let bytes = bytes.map_err(|_| "its code cannot be read".to_owned())?;
    let mut decoder = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE);
    let mut instructions = Vec::new();
    let mut numbers = HashMap::new();
    while decoder.can_decode() {
        let instruction = decoder.decode();
        numbers.insert(instruction.ip(), instructions.len());
        let offsets = decoder.get_constant_offsets(&instruction);
        instructions.push((instruction, offsets));
    }
    numbers.insert(bytes.len() as u64, instructions.len());
    Ok(Decoded {
        instructions,
        numbers,
    })
}

pub(super) fn name_of(symbol: &Symbol<'_, '_>) -> Result<String, String> {
    let name = symbol.name().unwrap_or_default();
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.$".contains(c);
    match !name.is_empty() && name.chars().all(plain) && !name.starts_with(".L") {
        true => Ok(name.to_owned()),
        false => Err(format!("its symbol {name:?} cannot be written")),
    }
}

pub(super) fn with(name: &str, addend: i64) -> String {
    match addend {
        0 => name.to_owned(),
        _ => format!("{name}{addend:+}"),
    }
}

pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Debug information that says no more than where lines and functions are, for each section of code.
pub(super) fn describe(text: &mut String, sections: &[(usize, Vec<String>)]) {
    for (number, functions) in sections {
        let _ = write!(
            text,
            "\t.section .debug_info,\"\",@progbits\n\
             \t.long .Li{number}_end - .Li{number}\n.Li{number}:\n\
             \t.short 4\n\t.long .Labbrev\n\t.byte 8\n\
             \t.uleb128 1\n\t.long .Lline\n\t.quad .Ld{number}\n\t.quad .Le{number} - .Ld{number}\n"
        );
        for (n, name) in functions.iter().enumerate() {
            let _ = write!(
                text,
                "\t.uleb128 2\n\t.asciz \"{name}\"\n\t.quad {name}\n\t.quad .Lx{number}_{n} - {name}\n"
            );
        }
        let _ = write!(text, "\t.byte 0\n.Li{number}_end:\n");
    }
    // A unit with the offset of its lines, its beginning and its size; and a function with its name, its
    // beginning and its size.
    text.push_str(
        "\t.section .debug_abbrev,\"\",@progbits\n.Labbrev:\n\
         \t.uleb128 1\n\t.uleb128 17\n\t.byte 1\n\
         \t.uleb128 16\n\t.uleb128 23\n\t.uleb128 17\n\t.uleb128 1\n\t.uleb128 18\n\t.uleb128 7\n\
         \t.byte 0\n\t.byte 0\n\
         \t.uleb128 2\n\t.uleb128 46\n\t.byte 0\n\
         \t.uleb128 3\n\t.uleb128 8\n\t.uleb128 17\n\t.uleb128 1\n\t.uleb128 18\n\t.uleb128 7\n\
         \t.byte 0\n\t.byte 0\n\t.byte 0\n\
         \t.section .debug_line,\"\",@progbits\n.Lline:\n",
    );
}
