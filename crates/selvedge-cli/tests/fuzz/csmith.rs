//! Programs that csmith makes print the same checksum natively and under Selvedge.

use std::process::Command;

use crate::checksum::Setting;
use crate::common::Sandbox;
use crate::tally::{self, End};

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

/// The replacement of csmith's header line: with `EXPECT`, the checksum is compared instead of printed.
const HEADER: &str = "#include \"csmith.h\"
#ifdef EXPECT
#define platform_main_end(crc, flag) COMPARE(crc)
#endif
";

/// Where Debian's libcsmith-dev puts csmith.h.
const HEADERS: &str = "/usr/include/csmith";

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

/// How many settings each program is tried in, of [`Setting::COUNT`].
fn settings() -> u64 {
    let count = std::env::var("SELVEDGE_SETTINGS").map_or(2, |text| {
        text.parse().expect("SELVEDGE_SETTINGS is a number")
    });
    assert!((1..=Setting::COUNT).contains(&count), "1 to 8 settings");
    count
}

/// The seed and the setting of a run: the settings of a program begin with two that differ in everything.
fn part(run: u64) -> (u64, Setting) {
    const DIFFERENCES: [u64; Setting::COUNT as usize] = [0, 7, 1, 6, 2, 5, 3, 4];
    let (seed, nth) = (run / settings(), run % settings());
    let number = (seed % Setting::COUNT) ^ DIFFERENCES[nth as usize];
    (seed, Setting::of(number, HEADERS))
}

fn experiment(run: u64) -> End {
    let (seed, setting) = part(run);
    let sandbox = Sandbox::new();
    let Some(program) = generate(&sandbox, seed) else {
        return End::Slow("to generate");
    };
    sandbox.write("program.c", &program);
    setting.compare(&sandbox, &kept(run))
}

/// Where a program stays that something is wrong with.
fn kept(run: u64) -> String {
    format!("{}/csmith-{run}.c", env!("CARGO_TARGET_TMPDIR"))
}

fn reproduce(run: u64) -> String {
    let (seed, setting) = part(run);
    let arguments = setting.arguments(&kept(run));
    format!(
        "SELVEDGE_CSMITH={seed}..{} cargo test -p selvedge-cli --test fuzz csmith -- --ignored\n    \
         selvedge {}",
        seed + 1,
        arguments.join(" "),
    )
}

#[test]
#[ignore = "needs csmith and takes minutes"]
fn csmith_programs_have_the_checksums_that_they_have_natively() {
    let seeds = tally::seeds("SELVEDGE_CSMITH", 1..201);
    let runs = seeds.start * settings()..seeds.end * settings();
    tally::run("csmith", runs, experiment, reproduce);
}
