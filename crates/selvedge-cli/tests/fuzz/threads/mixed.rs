//! Random C programs whose threads access the same bytes with different widths. All stores are
//! sequentially consistent atomics, so that processors keep to sequential consistency as well.

use selvedge_testkit::random::Random;

const DECLARED: &str = "
union mixed {
    _Atomic unsigned long whole; _Atomic unsigned half[2]; _Atomic unsigned short quarter[4];
    _Atomic unsigned char byte[8]; unsigned char plain[8];
};
static union mixed global;
struct start { union mixed *u; unsigned result; };";

/// The text of the program that `seed` stands for.
pub(super) fn program(seed: u64) -> String {
    let mut random = Random::new(seed);
    let mut text = super::generate::prelude() + DECLARED;
    let threads = 2 + random.below(2);
    // The first thread has some of the bytes for itself, except that it accesses all of them at once.
    let owner = random.once_in(2);
    for thread in 1..=threads {
        text += &format!(
            "\nstatic void *thread{thread}(void *argument) {{
    struct start *start = argument; union mixed *u = start->u; unsigned seen = 0;
    begin({thread}, {threads});"
        );
        for _ in 0..2 + random.below(4 - threads) {
            text += "\n    delay(); ";
            text += &match (owner, thread) {
                (true, 1) if random.once_in(2) => own(&mut random),
                (true, 1) => shared(&mut random, 8),
                (true, _) => shared(&mut random, 2),
                (false, _) => shared(&mut random, 4),
            };
        }
        text += "\n    start->result = seen;\n    return argument;\n}";
    }
    let place = ["&global", "&local", "malloc(sizeof *u)"][random.below(3) as usize];
    text += &format!(
        "\nAS_WRITTEN unsigned outcome(void) {{
    union mixed local; union mixed *u = {place}; unsigned seen = 0;
    struct start starts[{threads}]; pthread_t ids[{threads}];
    memset(u, {}, sizeof *u);",
        random.below(3)
    );
    for thread in 0..threads {
        text += &format!(
            "\n    starts[{thread}].u = u; pthread_create(&ids[{thread}], 0, thread{}, &starts[{thread}]);",
            thread + 1
        );
    }
    for thread in 0..threads {
        text += &format!("\n    pthread_join(ids[{thread}], 0); SEE(starts[{thread}].result);");
    }
    text += "\n    for (int n = 0; n < 8; n++) SEE(u->plain[n]);\n    return fold(seen);\n}\n";
    text
}

/// An atomic access to some of the first `bytes` bytes.
fn shared(random: &mut Random, bytes: u64) -> String {
    let (name, width, kind) = match random.below(if bytes == 8 { 4 } else { 3 }) {
        0 => ("byte", 1, "unsigned char"),
        1 => ("quarter", 2, "unsigned short"),
        2 if bytes >= 4 => ("half", 4, "unsigned"),
        2 => ("quarter", 2, "unsigned short"),
        _ => ("whole", 8, "unsigned long"),
    };
    let place = match width {
        8 => "u->whole".to_owned(),
        _ => format!("u->{name}[{}]", random.below(bytes / width)),
    };
    let k = [1, 0x101, 0x0102_0304, 0xff, 0x1_0000_0001_u64][random.below(5) as usize];
    match random.below(6) {
        0 | 1 => format!("{{ {kind} v = {place}; SEE(v); SEE(v >> 7); }}"),
        2 => format!("{place} = ({kind}){k};"),
        3 => format!("SEE(atomic_fetch_add(&{place}, ({kind}){k}));"),
        4 => format!("SEE(atomic_exchange(&{place}, ({kind}){k}));"),
        _ => format!(
            "{{ {kind} expected = ({kind}){k}; SEE(atomic_compare_exchange_strong(&{place}, &expected, 7)); SEE(expected); }}"
        ),
    }
}

/// A plain access to bytes that no other thread accesses.
fn own(random: &mut Random) -> String {
    let byte = 2 + random.below(6);
    match random.below(4) {
        0 => format!("SEE(u->plain[{byte}]);"),
        1 => format!("u->plain[{byte}] += 3;"),
        2 => "memset(&u->plain[2], 5, 3);".to_owned(),
        _ => "{ struct { char c[5]; } copy; memcpy(&copy, &u->plain[3], 5); SEE(copy.c[0]); SEE(copy.c[4]); }".to_owned(),
    }
}
