//! Inline assembly in the assembly that the compiler wrote.
//!
//! Both compilers mark inline assembly. The assembler drops the marks, so each marked block gets a
//! label on either side, and a section that no linker keeps records the addresses of the labels.
//! [`crate::scan`] decodes the instructions in between; this file handles what only the assembler
//! understands.

/// The section that tells where inline assembly is: two addresses for each block.
pub(crate) const SECTION: &str = ".selvedge.asm";

/// The marks that begin and end a block: the first pair is common to all compilers, the second is clang's for
/// assembly outside of functions.
const MARKS: [(&str, &str); 2] = [
    ("#APP", "#NO_APP"),
    (
        "# Start of file scope inline assembly",
        "# End of file scope inline assembly",
    ),
];

/// Instructions of builtins that compilers announce nothing of.
const BARE: [&str; 5] = ["mfence", "lfence", "sfence", "rdtsc", "rdtscp"];

/// Instructions that change or tell the floating-point environment. (Builtins compile to none of them, except
/// where the environment is as before afterwards.)
const FLOAT: [&str; 15] = [
    "fclex", "finit", "fldcw", "fldenv", "fnclex", "fninit", "fnsave", "fnstcw", "fnstenv",
    "fnstsw", "frstor", "fsave", "fstcw", "fstenv", "fstsw",
];

/// Directives that bring in neither code nor data: bytes in place are decoded like instructions,
/// and how far a symbol is seen does not matter.
const HARMLESS: [&str; 29] = [
    ".align",
    ".att_syntax",
    ".balign",
    ".byte",
    ".file",
    ".global",
    ".globl",
    ".hidden",
    ".ident",
    ".int",
    ".intel_syntax",
    ".internal",
    ".loc",
    ".local",
    ".long",
    ".p2align",
    ".protected",
    ".quad",
    ".short",
    ".size",
    ".text",
    ".type",
    ".value",
    ".weak",
    ".word",
    ".2byte",
    ".4byte",
    ".8byte",
    ".nop",
];

/// The assembly of a compiler, with the places of inline assembly marked.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Marked {
    /// The assembly to assemble.
    pub(super) text: String,
    /// The blocks of inline assembly, in the order of [`SECTION`].
    pub(super) blocks: Vec<Inline>,
}

/// A block of inline assembly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inline {
    /// The part of it that cannot be followed.
    pub(crate) opaque: Option<String>,
    /// Whether it is in a function, and is only reached from the code before it.
    pub(crate) in_function: bool,
}

/// Marks the blocks of inline assembly in `text`.
pub(super) fn mark(text: &str) -> Marked {
    let mut marked = String::with_capacity(text.len() + 256);
    let mut blocks: Vec<Inline> = Vec::new();
    let mut open: Option<(&str, Block)> = None;
    let (mut in_function, mut float) = (false, false);
    for line in text.lines() {
        let trimmed = line.trim();
        let begins = || MARKS.iter().find(|(begin, _)| *begin == trimmed);
        match &mut open {
            None => {
                match trimmed {
                    ".cfi_startproc" => in_function = true,
                    ".cfi_endproc" => in_function = false,
                    _ => {}
                }
                if in_function && BARE.contains(&without_comment(trimmed).trim()) {
                    // A builtin's instruction, which is treated like assembly.
                    label(&mut marked, "begin", blocks.len());
                    line_to(&mut marked, line);
                    label(&mut marked, "end", blocks.len());
                    blocks.push(Inline {
                        opaque: None,
                        in_function,
                    });
                    continue;
                }
                if let Some((_, end)) = begins() {
                    label(&mut marked, "begin", blocks.len());
                    open = Some((end, Block::default()));
                }
                line_to(&mut marked, line);
            }
            Some((end, _)) if *end == trimmed => {
                line_to(&mut marked, line);
                label(&mut marked, "end", blocks.len());
                if let Some((_, block)) = open.take() {
                    float |= block.float;
                    blocks.push(Inline {
                        opaque: block.opaque,
                        in_function,
                    });
                }
            }
            Some((_, block)) => {
                block.line(line);
                line_to(&mut marked, line);
            }
        }
    }
    if let Some((_, block)) = open {
        label(&mut marked, "end", blocks.len());
        float |= block.float;
        blocks.push(Inline {
            opaque: block.opaque,
            in_function: false,
        });
    }
    if float {
        let section = selvedge_runtime::FLOAT_SECTION;
        line_to(&mut marked, &format!("\t.section {section},\"\",@progbits"));
        line_to(&mut marked, "\t.byte 1");
    }
    if !blocks.is_empty() {
        line_to(
            &mut marked,
            &format!("\t.section {SECTION},\"e\",@progbits"),
        );
    }
    for n in 0..blocks.len() {
        line_to(
            &mut marked,
            &format!("\t.quad .Lselvedge_begin_{n}, .Lselvedge_end_{n}"),
        );
    }
    Marked {
        text: marked,
        blocks,
    }
}

/// Adds a line to `text`.
pub(super) fn line_to(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

/// A line without what follows a `#` in it.
pub(super) fn without_comment(line: &str) -> &str {
    line.split('#').next().unwrap_or(line)
}

fn label(text: &mut String, what: &str, n: usize) {
    line_to(text, &format!(".Lselvedge_{what}_{n}:"));
}

/// One block of inline assembly while it is read.
#[derive(Default)]
struct Block {
    /// Inside of a comment that began on an earlier line.
    commented: bool,
    /// The first thing that cannot be followed.
    opaque: Option<String>,
    /// It may change or tell the floating-point environment.
    float: bool,
}

impl Block {
    fn line(&mut self, line: &str) {
        let code = self.without_comments(line);
        for statement in code.split(';') {
            self.float |= is_about_float(statement);
            if self.opaque.is_none() {
                self.opaque = opaque(statement);
            }
        }
    }

    fn without_comments(&mut self, line: &str) -> String {
        let mut code = String::new();
        let mut rest = line;
        loop {
            if self.commented {
                let Some(end) = rest.find("*/") else {
                    return code;
                };
                self.commented = false;
                rest = &rest[end + 2..];
            }
            let hash = rest.find('#').unwrap_or(rest.len());
            match rest.find("/*") {
                Some(start) if start < hash => {
                    code.push_str(&rest[..start]);
                    code.push(' ');
                    self.commented = true;
                    rest = &rest[start + 2..];
                }
                _ => {
                    code.push_str(&rest[..hash]);
                    return code;
                }
            }
        }
    }
}

/// Whether a statement has an instruction of [`FLOAT`], or data, which may be one.
fn is_about_float(statement: &str) -> bool {
    let data = [
        ".byte", ".word", ".short", ".value", ".long", ".int", ".quad", ".2byte", ".4byte",
        ".8byte",
    ];
    let mut words = statement.split(|c: char| c.is_whitespace() || c == ':');
    words.any(|word| {
        let word = word.to_lowercase();
        let known =
            |name: &&str| word == *name || word.strip_suffix(['w', 'l', 's']) == Some(*name);
        FLOAT.iter().any(known) || data.contains(&word.as_str())
    })
}

/// The part of an assembler's statement that is neither a label nor an instruction.
fn opaque(statement: &str) -> Option<String> {
    let mut rest = statement.trim();
    while let Some((name, after)) = rest.split_once(':')
        && !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_alphanumeric() || "._$@".contains(c))
    {
        rest = after.trim();
    }
    let word = rest.split_whitespace().next()?.to_lowercase();
    let harmless = HARMLESS.contains(&word.as_str()) || word.starts_with(".cfi_");
    if word.starts_with('.') && !harmless {
        return Some(format!("the assembler's `{word}`"));
    }
    if rest.contains('=') {
        return Some(format!("the assembler's definition `{rest}`"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_without_inline_assembly_stays_as_it_is() {
        let text = "f:\n\tmovl\t$1, x(%rip)\n\tret\n";
        let expected = Marked {
            text: text.to_owned(),
            blocks: Vec::new(),
        };
        assert_eq!(mark(text), expected);
    }

    #[test]
    fn assembly_about_the_floating_point_environment_is_told() {
        let told = |code: &str| {
            let marked = mark(&format!("f:\n#APP\n\t{code}\n#NO_APP\n\tret\n"));
            marked
                .text
                .contains("\t.section .selvedge.float,\"\",@progbits\n")
        };
        for code in [
            "fldcw 8(%rbp)",
            "nop; 1: FNINIT",
            "fldenvl (%rax)",
            ".byte 0xdb, 0xe3",
        ] {
            assert!(told(code), "{code}");
        }
        for code in ["fld1", "nop # fldcw 8(%rbp)", "pause"] {
            assert!(!told(code), "{code}");
        }
        assert!(!mark("\tfldcw 8(%rbp)\n").text.contains("float"));
    }

    #[test]
    fn each_block_gets_labels_and_an_entry() {
        let text = "f:\n#APP\n# 1 \"a.c\" 1\n\tpause\n#NO_APP\n\tret\n\t#APP\n\t#NO_APP\n";
        let marked = mark(text);
        assert_eq!(marked.blocks, [Inline::default(), Inline::default()]);
        assert_eq!(
            marked.text,
            "f:\n.Lselvedge_begin_0:\n#APP\n# 1 \"a.c\" 1\n\tpause\n#NO_APP\n.Lselvedge_end_0:\n\tret\n\
             .Lselvedge_begin_1:\n\t#APP\n\t#NO_APP\n.Lselvedge_end_1:\n\
             \t.section .selvedge.asm,\"e\",@progbits\n\
             \t.quad .Lselvedge_begin_0, .Lselvedge_end_0\n\
             \t.quad .Lselvedge_begin_1, .Lselvedge_end_1\n"
        );
    }

    #[test]
    fn a_block_between_the_directives_of_a_function_is_inside_of_it() {
        let text = "f:\n\t.cfi_startproc\n#APP\n#NO_APP\n\t.cfi_endproc\n#APP\n#NO_APP\n";
        let inside = mark(text)
            .blocks
            .iter()
            .map(|block| block.in_function)
            .collect::<Vec<_>>();
        assert_eq!(inside, [true, false]);
    }

    #[test]
    fn assembly_outside_of_functions_is_a_block_too() {
        let text = "\t# Start of file scope inline assembly\n\t.symver f,f@V1\n\
                    \t# End of file scope inline assembly\n";
        let symver = Inline {
            opaque: Some("the assembler's `.symver`".to_owned()),
            in_function: false,
        };
        assert_eq!(mark(text).blocks, [symver]);
    }

    #[test]
    fn instructions_labels_and_comments_are_fine_and_other_directives_are_not() {
        for fine in [
            "",
            "pause",
            "1: rep; nop",
            "jmp 1b # .macro",
            ".byte 0x0f, 0x0b",
            ".L_x: .p2align 4",
            "movl %eax, %ebx /* .macro */",
        ] {
            let blocks = mark(&format!("#APP\n{fine}\n#NO_APP\n")).blocks;
            assert_eq!(blocks, [Inline::default()]);
        }
        for (text, what) in [
            (".pushsection .text.x", ".pushsection"),
            ("nop; .macro m", ".macro"),
            ("1: .incbin \"f\"", ".incbin"),
            ("/* a\nb */ .DATA", ".data"),
            ("a = b", "a = b"),
        ] {
            let block = mark(&format!("#APP\n{text}\n#NO_APP\n")).blocks;
            assert!(
                block[0].opaque.as_ref().unwrap().contains(what),
                "{text}: {block:?}"
            );
        }
    }
}
