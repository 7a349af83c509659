//! Assembly: what it may do, and what it is refused for.

use super::{each, refused, refused_with};
use crate::common::compilers;

#[test]
fn bare_atomic_instructions_without_a_known_meaning() {
    let text = "static int counter;
static void turn(void) {
    __asm__ volatile(\"lock; negl %0\" : \"+m\"(counter));
}
int main(void) { turn(); return 0; }
";
    refused(text, "3: `turn` has the bare atomic instruction `lock neg`");
}

#[test]
fn maxima_that_clang_expands_in_place() {
    let text = "static int most;
int main(void) {
    return __atomic_fetch_max(&most, 3, 5);
}
";
    if compilers().contains(&"clang") {
        refused_with(
            "clang",
            text,
            "3: `main` has the bare atomic instruction `lock cmpxchg`",
        );
    }
}

#[test]
fn random_numbers_in_assembly() {
    let text = "int main(void) {
    long number;
    __asm__ volatile(\"rdrand %0\" : \"=r\"(number));
    return number == 0;
}
";
    refused(
        text,
        "3: `main` has `rdrand`, which gives another result in every run",
    );
}

#[test]
fn a_pause_and_an_empty_assembly_are_fine() {
    let text = "int main(void) {
    __asm__ volatile(\"pause\");
    __asm__ volatile(\"\" ::: \"memory\");
    return 0;
}
";
    each(text, &[], |_, outcome| {
        outcome.ends_with(0);
    });
}

#[test]
fn assembly_that_touches_memory() {
    let text = "static int shared;
__attribute__((noinline)) static void set(void) {
    __asm__ volatile(\"pushq $1; popq %0\" : \"=m\"(shared));
}
int main(void) { set(); return 0; }
";
    refused(text, "3: `set` touches memory in inline assembly (`push`)");
}

#[test]
fn assembly_among_announced_accesses() {
    let with = |assembly: &str| {
        format!(
            "static int shared, other;
static inline void set(int value) {{
    other = value;
    {assembly}
    other = shared;
}}
int main(void) {{ set(1); return 0; }}
"
        )
    };
    let touches = |name| format!("4: `set` touches memory in inline assembly (`{name}`)");
    for (assembly, name) in [
        (
            "__asm__ volatile(\".byte 0xc7, 0x00, 1, 0, 0, 0\" :: \"a\"(&shared) : \"memory\");",
            "mov",
        ),
        (
            "int *to = &shared; __asm__ volatile(\"stosl\" : \"+D\"(to) : \"a\"(1) : \"memory\");",
            "stosd",
        ),
        (
            "__asm__ volatile(\"push %%rax\\n\\tpop %%rax\" ::: \"memory\");",
            "push",
        ),
        ("__asm__ volatile(\"call abort\" ::: \"memory\");", "call"),
    ] {
        refused(&with(assembly), &touches(name));
    }
    for (assembly, reason) in [
        (
            "__asm__ volatile(\"nop\\n\\t.pushsection .rodata\\n\\t.popsection\" :: \"a\"(&shared));",
            "4: `set` uses the assembler's `.",
        ),
        (
            "__asm__ volatile(\"movq %0, %%rsp\" :: \"a\"(&shared) : \"memory\");",
            "4: `set` moves the stack in inline assembly (`mov`)",
        ),
        (
            "__asm__ volatile(\"jmp *%0\" :: \"a\"(&shared) : \"memory\");",
            "4: `set` leaves for an unknown place in inline assembly (`jmp`)",
        ),
    ] {
        refused(&with(assembly), reason);
    }
}

#[test]
fn assembly_that_never_comes_back_to_c() {
    let text = "static int shared;
__attribute__((naked)) void set(void) {
    __asm__(\"movl $1, shared(%rip)\\n\\tret\");
}
int main(void) { set(); return shared; }
";
    refused(text, "3: `set` touches memory in inline assembly (`");
    let text = "int shared;
__asm__(\".globl set\\nset: movl $1, shared(%rip)\\n\\tret\");
void set(void);
int main(void) { set(); return shared; }
";
    // Gcc leaves it in the section of the variable before it.
    refused(text, " `set` ");
    let text = "__asm__(\".text\\n.globl set\\nset: movl $1, shared(%rip)\\n\\tret\");
extern int shared;
int shared;
void set(void);
int main(void) { set(); return shared; }
";
    refused(text, " `set` touches memory in inline assembly (`mov`)");
    let text = "__asm__(\".data\\nshared: .long 0\");
int main(void) { return 0; }
";
    refused(text, " uses the assembler's `.data` in inline assembly");
}

#[test]
fn assembly_on_registers_is_fine() {
    let text = "#include <assert.h>
        __asm__(\".globl main\");
        static int shared;
        int main(void) {
            int bits = 0x50, first, sum = 1;
            __asm__(\"bsfl %1, %0\" : \"=r\"(first) : \"r\"(bits));
            __asm__ volatile(\"1: addl %1, %0\\n\\tcmpl $5, %0\\n\\tjb 1b\" : \"+r\"(sum) : \"r\"(first));
            __asm__ volatile(\"rep; nop\" ::: \"memory\");
            shared = sum;
            assert(first == 4 && shared == 5);
            return 0;
        }";
    each(text, &[], |compiler, outcome| {
        assert_eq!(outcome.status, Some(0), "{compiler}: {outcome:?}");
    });
}
