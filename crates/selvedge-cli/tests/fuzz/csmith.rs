//! Programs that csmith makes print the same checksum natively and under Selvedge.

use std::process::Command;

use crate::common::{Sandbox, compilers};
use crate::tally::{self, End, Verdict};

/// Small programs with everything that csmith knows: volatiles, unions, bit fields, packed structures,
/// structures by value.
const OPTIONS: &[&str] = &[
    "--no-argc",
    "--concise",
    "--max-funcs",
    "4",
    "--max-block-depth",
    "3",
    "--max-expr-complexity",
    "5",
    "--max-array-dim",
    "2",
    "--max-array-len-per-dim",
    "5",
];

/// What becomes of csmith's header line: with `EXPECT`, the checksum is compared instead of printed.
const HEADER: &str = "#include \"csmith.h\"
#ifdef EXPECT
#include <assert.h>
#define platform_main_end(crc, flag) assert((crc) == EXPECT)
#endif
";

/// Where Debian's libcsmith-dev puts csmith.h.
const INCLUDE: &str = "-I/usr/include/csmith";

/// How a program is built and checked.
struct Setting {
    compiler: &'static str,
    level: &'static str,
    plain: &'static str,
}

impl Setting {
    /// Each seed has one; eight seeds in a row have them all.
    fn of(seed: u64) -> Setting {
        let compilers = compilers();
        let pick = |bit: u64| (seed >> bit) as usize;
        Setting {
            compiler: compilers[pick(0) % compilers.len()],
            level: ["-O0", "-O2"][pick(1) % 2],
            plain: ["race", "sc"][pick(2) % 2],
        }
    }
}

/// The program of this seed, or nothing if it takes csmith too long.
fn generate(sandbox: &Sandbox, seed: u64) -> Option<String> {
    let seed = seed.to_string();
    let mut csmith = Command::new("timeout");
    csmith.args(["10", "csmith", "--seed", &seed]).args(OPTIONS);
    // It leaves a file behind.
    let output = csmith.current_dir(sandbox.path("")).output();
    let text = String::from_utf8(output.expect("timeout runs").stdout).expect("C is text");
    let include = "#include \"csmith.h\"\n";
    text.contains("int main")
        .then(|| text.replacen(include, HEADER, 1))
}

/// The checksum that the program prints, or `None` if it takes more than a second.
fn native(sandbox: &Sandbox, setting: &Setting) -> Option<u32> {
    let mut build = Command::new(setting.compiler);
    build.args([setting.level, "-w", INCLUDE, "-o"]);
    build
        .arg(sandbox.path("native"))
        .arg(sandbox.path("program.c"));
    assert!(build.status().expect("the compiler runs").success());
    let mut run = Command::new("timeout");
    let output = run.arg("1").arg(sandbox.path("native")).output();
    let text = String::from_utf8(output.expect("timeout runs").stdout).expect("a line of text");
    let digits = text.trim().strip_prefix("checksum = ")?;
    Some(u32::from_str_radix(digits, 16).expect("a checksum"))
}

fn check(sandbox: &Sandbox, setting: &Setting, expect: u32) -> Verdict {
    let expect = format!("-DEXPECT={expect:#x}u");
    let arguments = [
        "verify program.c --format json --stack-size 8M --timeout 10 --watchdog 20",
        "--plain",
        setting.plain,
        "--cc",
        setting.compiler,
        "--",
        setting.level,
        "-w",
        INCLUDE,
        &expect,
    ];
    let arguments: Vec<&str> = arguments.iter().flat_map(|a| a.split(' ')).collect();
    Verdict::of(&sandbox.run(&arguments))
}

/// What the verdicts on a true and on a false assertion come to.
fn judge(held: Verdict, failed: impl FnOnce() -> Verdict) -> End {
    match held {
        Verdict::Verified => {}
        Verdict::Slow => return End::Slow("under Selvedge"),
        Verdict::Refused(why) => return End::Refused(why),
        Verdict::Bugs(bugs) => {
            let (kind, message) = &bugs[0];
            return End::Wrong(format!("{kind} where there is none: {message}"));
        }
    }
    match failed() {
        Verdict::Bugs(bugs) if bugs[0].0 == "assertion" => End::Identical,
        Verdict::Slow => End::Slow("under Selvedge"),
        other => End::Wrong(format!("a false assertion is not reported: {other:?}")),
    }
}

fn experiment(seed: u64) -> End {
    let sandbox = Sandbox::new();
    let Some(program) = generate(&sandbox, seed) else {
        return End::Slow("to generate");
    };
    sandbox.write("program.c", &program);
    let setting = Setting::of(seed);
    let Some(sum) = native(&sandbox, &setting) else {
        return End::Slow("natively");
    };
    let end = judge(check(&sandbox, &setting, sum), || {
        check(&sandbox, &setting, sum ^ 1)
    });
    if !matches!(end, End::Identical | End::Slow(_)) {
        let expect = format!("#ifndef EXPECT\n#define EXPECT {sum:#x}u\n#endif\n{program}");
        std::fs::write(kept(seed), expect).expect("the program is kept");
    }
    end
}

/// Where a program stays that something is wrong with.
fn kept(seed: u64) -> String {
    format!("{}/csmith-{seed}.c", env!("CARGO_TARGET_TMPDIR"))
}

fn reproduce(seed: u64) -> String {
    let setting = Setting::of(seed);
    format!(
        "SELVEDGE_CSMITH={seed}..{} cargo test -p selvedge-cli --test fuzz csmith -- --ignored\n    \
         selvedge verify {} --stack-size 8M --plain {} --cc {} -- {} -w {INCLUDE}",
        seed + 1,
        kept(seed),
        setting.plain,
        setting.compiler,
        setting.level,
    )
}

#[test]
#[ignore = "needs csmith and takes minutes"]
fn csmith_programs_have_the_checksums_that_they_have_natively() {
    let seeds = tally::seeds("SELVEDGE_CSMITH", 1..201);
    tally::run("csmith", seeds, experiment, reproduce);
}
