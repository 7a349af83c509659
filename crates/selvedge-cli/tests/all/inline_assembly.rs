//! Inline assembly with a known meaning does what the processor does, as operations of the model.

use crate::common::{Sandbox, compilers};

/// An instruction, memory and register afterwards, and the carry and zero flags where they are
/// defined.
type Line = (
    &'static str,
    &'static str,
    &'static str,
    Option<bool>,
    Option<bool>,
);

/// Each line: an instruction with `%0` for memory and `%1` for a register, then what memory and the
/// register hold afterwards if they held 6 and 3 before and `rax` was 6, and the flags that `setc` and
/// `setz` tell.
const INSTRUCTIONS: [Line; 26] = [
    ("lock; addT %1, %0", "9", "3", Some(false), Some(false)),
    ("lock; addT $-6, %0", "0", "3", Some(true), Some(true)),
    ("lock; subT %1, %0", "3", "3", Some(false), Some(false)),
    ("lock subT $7, %0", "-1", "3", Some(true), Some(false)),
    ("lock; andT %1, %0", "2", "3", Some(false), Some(false)),
    ("lock; orT %1, %0", "7", "3", Some(false), Some(false)),
    ("lock; xorT %1, %0", "5", "3", Some(false), Some(false)),
    ("lock; xorT $6, %0", "0", "3", Some(false), Some(true)),
    ("lock; incT %0", "7", "3", None, Some(false)),
    ("lock; decT %0", "5", "3", None, Some(false)),
    ("lock; notT %0", "-7", "3", None, None),
    ("lock; xaddT %1, %0", "9", "6", Some(false), Some(false)),
    ("lock; cmpxchgT %1, %0", "3", "3", None, Some(true)),
    ("xchgT %1, %0", "3", "6", None, None),
    ("movT %1, %0", "3", "3", None, None),
    ("movT $5, %0", "5", "3", None, None),
    ("movT %0, %1", "6", "6", None, None),
    ("addT %0, %1", "6", "9", Some(false), Some(false)),
    ("addT %1, %0", "9", "3", Some(false), Some(false)),
    ("cmpT %1, %0", "6", "3", Some(false), Some(false)),
    ("cmpT $6, %0", "6", "3", Some(false), Some(true)),
    ("testT %1, %0", "6", "3", Some(false), Some(false)),
    ("incT %0", "7", "3", None, Some(false)),
    ("mfence", "6", "3", None, None),
    ("lock; addq $0, (%%rsp)", "6", "3", None, None),
    ("lock; decT %0; decT %1", "5", "2", None, Some(false)),
];

/// Instructions on bits, which there are none of for bytes.
const BITS: [(&str, &str, bool); 3] = [
    ("lock; btsT $0, %0", "7", false),
    ("lock; btrT $1, %0", "4", true),
    ("lock; btcT $2, %0", "2", true),
];

/// A program that checks every instruction at every size.
fn program() -> String {
    let mut text = String::from("#include <assert.h>\nstatic char bytes[16];\n");
    let mut calls = String::new();
    let mut add = |n: usize,
                   size: (&str, &str),
                   (code, memory, register): (&str, &str, &str),
                   flags: [Option<bool>; 2]| {
        let (suffix, kind) = size;
        let code = code.replace('T', suffix);
        let name = format!("check_{n}_{suffix}");
        text += &format!(
            "static {kind} memory_{n}_{suffix};
static void {name}(void) {{
    {kind} value = 3; unsigned char carry, zero; long a = 6;
    memory_{n}_{suffix} = 6;
    __asm__ volatile(\"{code}; setc %2; setz %3\" : \"+m\"(memory_{n}_{suffix}), \"+r\"(value), \"=q\"(carry), \"=q\"(zero), \"+a\"(a) :: \"memory\", \"cc\");
    assert(memory_{n}_{suffix} == ({kind})({memory}));
    assert(value == ({kind})({register}));
"
        );
        for (flag, name) in flags.iter().zip(["carry", "zero"]) {
            if let Some(flag) = flag {
                text += &format!("    assert({name} == {});\n", u8::from(*flag));
            }
        }
        text += "}\n";
        calls += &format!("    {name}();\n");
    };
    let sizes = [
        ("b", "signed char"),
        ("w", "short"),
        ("l", "int"),
        ("q", "long"),
    ];
    for size in sizes {
        for (n, &(code, memory, register, carry, zero)) in INSTRUCTIONS.iter().enumerate() {
            add(n, size, (code, memory, register), [carry, zero]);
        }
    }
    for size in &sizes[1..] {
        for (n, &(code, memory, carry)) in BITS.iter().enumerate() {
            add(100 + n, *size, (code, memory, "3"), [Some(carry), None]);
        }
    }
    text + "int main(void) {\n" + &calls + "    return bytes[0];\n}\n"
}

/// A program that checks instructions on bits whose number is in a register, at every size, in each register
/// that is special, before and behind the operand and with any number in the rest of the register.
fn bits_in_registers() -> String {
    let mut text = String::from(
        "#include <assert.h>
#include <string.h>
static const int bits[] = {-1, 0, 1, 5, 14, 15, 16, 17, 31, 32, 33, 47, 63, 64, 65, 130, -16, -17, -32, -33, -64, -65, -127};
",
    );
    let mut calls = String::new();
    for (size, modifier, kind) in [("w", "w", "short"), ("l", "k", "int"), ("q", "q", "long")] {
        for (name, operator) in [("bts", "|= one"), ("btr", "&= ~one"), ("btc", "^= one")] {
            for register in ["a", "b", "c", "d", "r"] {
                let check = format!("{name}_{size}_{register}");
                text += &format!(
                    "static void {check}(unsigned long high) {{
    enum {{ WIDTH = 8 * sizeof(unsigned {kind}), WORDS = 256 / WIDTH }};
    for (unsigned n = 0; n < sizeof bits / sizeof *bits; n++) {{
        unsigned {kind} words[2 * WORDS], expected[2 * WORDS], one = 1;
        memset(words, 0x5a, sizeof words);
        memset(expected, 0x5a, sizeof words);
        unsigned bit = 256 + bits[n];
        unsigned char carry, zero, old;
        unsigned long number = WIDTH == 64 ? (unsigned long)bits[n]
            : high << (WIDTH % 64) | ((unsigned long)bits[n] & ((1UL << (WIDTH % 64)) - 1)), before = number;
        __asm__ volatile(\"cmp %3, %3; lock; {name}{size} %{modifier}3, %0; setc %1; setz %2\"
            : \"+m\"(words[WORDS]), \"=m\"(carry), \"=m\"(zero), \"+{register}\"(number) :: \"memory\", \"cc\");
        one <<= bit % WIDTH;
        old = (expected[bit / WIDTH] & one) != 0;
        expected[bit / WIDTH] {operator};
        assert(!memcmp(words, expected, sizeof words) && carry == old && zero && number == before);
        __asm__ volatile(\"lock; {name}{size} %{modifier}2, %1\"
            : \"=@ccc\"(carry), \"+m\"(words[WORDS]) : \"{register}\"(number) : \"memory\");
        assert(carry == ((expected[bit / WIDTH] & one) != 0));
    }}
}}
"
                );
                calls += &format!("    {check}(0);\n    {check}(0x123456789);\n");
            }
        }
    }
    text + "int main(void) {\n" + &calls + "    return 0;\n}\n"
}

#[test]
fn registers_memory_and_flags_are_those_of_the_processor() {
    for text in [program(), bits_in_registers()] {
        let sandbox = Sandbox::with("program.c", &text);
        for compiler in compilers() {
            for level in ["-O0", "-O2"] {
                let arguments = [
                    "verify",
                    "program.c",
                    "--strict",
                    "--cc",
                    compiler,
                    "--",
                    level,
                ];
                let outcome = sandbox.run(&arguments);
                assert_eq!(outcome.status, Some(0), "{compiler} {level}: {outcome:?}");
            }
        }
    }
}

#[test]
fn the_programs_themselves_are_right() {
    for (compiler, text) in compilers()
        .into_iter()
        .flat_map(|compiler| [(compiler, program()), (compiler, bits_in_registers())])
    {
        let sandbox = Sandbox::with("program.c", &text);
        let native = sandbox.path("native");
        let mut command = std::process::Command::new(compiler);
        command
            .arg(sandbox.path("program.c"))
            .arg("-o")
            .arg(&native);
        assert!(command.status().unwrap().success());
        assert!(
            std::process::Command::new(&native)
                .status()
                .unwrap()
                .success()
        );
    }
}

fn store_buffering(fence: &str) -> String {
    format!(
        "#include <assert.h>
#include <pthread.h>
static int x, y, a, b;
static int load(int *p) {{ int v; __asm__ volatile(\"movl %1, %0\" : \"=r\"(v) : \"m\"(*p) : \"memory\"); return v; }}
static void store(int *p) {{ __asm__ volatile(\"movl $1, %0\" : \"=m\"(*p) :: \"memory\"); }}
static void *left(void *u) {{ store(&x); {fence} a = load(&y); return u; }}
static void *right(void *u) {{ store(&y); {fence} b = load(&x); return u; }}
int main(void) {{
    pthread_t s, t;
    pthread_create(&s, 0, left, 0);
    pthread_create(&t, 0, right, 0);
    pthread_join(s, 0);
    pthread_join(t, 0);
    assert(a == 1 || b == 1);
    return 0;
}}
"
    )
}

#[test]
fn fences_order_stores_and_loads_of_assembly() {
    for compiler in compilers() {
        for (fence, model, status) in [
            ("", "sc", 0),
            ("", "tso", 1),
            ("", "rc11", 1),
            ("__asm__ volatile(\"mfence\" ::: \"memory\");", "tso", 0),
            ("__asm__ volatile(\"mfence\" ::: \"memory\");", "rc11", 0),
            (
                "__asm__ volatile(\"lock; addl $0, (%%rsp)\" ::: \"memory\", \"cc\");",
                "tso",
                0,
            ),
            (
                "__asm__ volatile(\"lock; orq $0, -8(%%rsp)\" ::: \"memory\", \"cc\");",
                "rc11",
                0,
            ),
            ("__builtin_ia32_mfence();", "tso", 0),
            ("__asm__ volatile(\"sfence\" ::: \"memory\");", "tso", 1),
            ("__asm__ volatile(\"lfence\" ::: \"memory\");", "tso", 1),
        ] {
            let sandbox = Sandbox::with("program.c", &store_buffering(fence));
            let arguments = [
                "verify",
                "program.c",
                "--strict",
                "--cc",
                compiler,
                "--model",
                model,
            ];
            let outcome = sandbox.run(&arguments);
            assert_eq!(
                outcome.status,
                Some(status),
                "{compiler} {model} {fence}: {outcome:?}"
            );
        }
    }
}

#[test]
fn a_lock_of_assembly_excludes_and_its_waiting_is_recognised() {
    let program = |release: &str| {
        format!(
            "#include <assert.h>
#include <pthread.h>
static int lock; static int count;
static void *work(void *u) {{
    int taken;
    do {{
        taken = 1;
        __asm__ volatile(\"xchgl %0, %1\" : \"+r\"(taken), \"+m\"(lock) :: \"memory\");
        if (taken) __asm__ volatile(\"rep; nop\" ::: \"memory\");
    }} while (taken);
    count++;
    {release}
    return u;
}}
int main(void) {{
    pthread_t t;
    pthread_create(&t, 0, work, 0);
    work(0);
    pthread_join(t, 0);
    assert(count == 2);
    return 0;
}}
"
        )
    };
    let right = "__asm__ volatile(\"movl $0, %0\" : \"=m\"(lock) :: \"memory\");";
    for compiler in compilers() {
        for (release, status) in [(right, 0), ("", 1)] {
            for level in ["-O0", "-O2"] {
                let sandbox = Sandbox::with("program.c", &program(release));
                let arguments = [
                    "verify",
                    "program.c",
                    "--cc",
                    compiler,
                    "--model",
                    "tso",
                    "--",
                    level,
                ];
                let outcome = sandbox.run(&arguments);
                assert_eq!(
                    outcome.status,
                    Some(status),
                    "{compiler} {level}: {outcome:?}"
                );
            }
        }
    }
}

#[test]
fn the_cycle_counter_is_virtual_time() {
    let text = "#include <assert.h>
int main(void) {
    unsigned low, high, processor;
    __asm__ volatile(\"rdtsc\" : \"=a\"(low), \"=d\"(high));
    unsigned long first = (unsigned long)high << 32 | low;
    __asm__ volatile(\"rdtscp\" : \"=a\"(low), \"=d\"(high), \"=c\"(processor));
    unsigned long second = (unsigned long)high << 32 | low;
    assert(first < second && second < __builtin_ia32_rdtsc() && processor == 0);
    return 0;
}
";
    for compiler in compilers() {
        let sandbox = Sandbox::with("program.c", text);
        sandbox
            .run(&["verify", "program.c", "--strict", "--cc", compiler])
            .ends_with(0);
    }
}

#[test]
fn a_double_word_is_exchanged_at_once() {
    let text = "#include <assert.h>
#include <pthread.h>
static struct { unsigned long value, tag; } __attribute__((aligned(16))) pair;
static int exchange(unsigned long value, unsigned long tag) {
    unsigned char done;
    __asm__ volatile(\"lock cmpxchg16b %0; setz %1\" : \"+m\"(pair), \"=q\"(done), \"+a\"(value), \"+d\"(tag)
        : \"b\"(value + 1), \"c\"(tag + 1) : \"memory\", \"cc\");
    return done;
}
static int done[2];
static void *work(void *u) { done[1] = exchange(0, 0); return u; }
int main(void) {
    pthread_t t;
    pthread_create(&t, 0, work, 0);
    done[0] = exchange(0, 0);
    pthread_join(t, 0);
    assert(done[0] + done[1] == 1);
    return 0;
}
";
    for compiler in compilers() {
        let sandbox = Sandbox::with("program.c", text);
        let outcome = sandbox.run(&["verify", "program.c", "--strict", "--cc", compiler]);
        outcome.ends_with(0).prints("2 executions");
    }
}
