//! Selvedge explores every outcome that the threads of random programs show natively, and it explores the same with
//! each compiler and each search.

mod descriptors;
mod generate;
mod mixed;

use std::collections::BTreeSet;
use std::process::Command;

use crate::common::{Sandbox, compilers};
use crate::tally::{self, End, Verdict};

/// How often each program runs natively.
const ROUNDS: u32 = 300;

const LEVELS: [&str; 2] = ["-O0", "-O2"];

/// The searches that must agree under sequential consistency.
const SEARCHES: [&str; 4] = [
    "--model sc --algorithm trust",
    "--model sc --algorithm source-dpor",
    "--model sc --algorithm csdr",
    "--model sc --algorithm trust --plain sc",
];

/// The searches that must agree on programs whose threads access bytes with different widths.
const MIXED: [&str; 6] = [
    "--model sc --algorithm csdr",
    "--model sc --algorithm trust",
    "--model sc --algorithm source-dpor",
    "--model sc --algorithm trust --plain sc",
    "--model sc --equivalence reads-from",
    "--model sc --algorithm optimal-dpor",
];

type Outcomes = BTreeSet<u8>;

/// The outcomes of the program when it runs by itself.
fn native(sandbox: &Sandbox, (compiler, level): (&str, &str)) -> Result<Outcomes, End> {
    let mut build = Command::new(compiler);
    let rounds = format!("-DROUNDS={ROUNDS}");
    build.args([level, "-w", "-pthread", "-DNATIVE", &rounds, "-o"]);
    build
        .arg(sandbox.path("native"))
        .arg(sandbox.path("program.c"));
    assert!(build.status().expect("the compiler runs").success());
    let mut run = Command::new("timeout");
    let output = run.arg("120").arg(sandbox.path("native")).output();
    let output = output.expect("timeout runs");
    if output.status.code() == Some(124) {
        return Err(End::Slow("natively"));
    }
    let text = String::from_utf8(output.stdout).expect("lines of text");
    assert!(
        output.status.success(),
        "the program fails natively: {text}"
    );
    let lines = text.lines().map(|line| line.parse().expect("an outcome"));
    Ok(lines.collect())
}

/// The outcomes that Selvedge finds.
fn explored(
    sandbox: &Sandbox,
    (compiler, level): (&str, &str),
    search: &str,
) -> Result<Outcomes, End> {
    let arguments =
        format!("verify program.c --format json --keep-going --no-advice --timeout 15 {search}");
    let mut arguments: Vec<&str> = arguments.split(' ').collect();
    arguments.extend(["--cc", compiler, "--", level, "-w"]);
    let context = format!("({search} with {compiler} {level})");
    let bugs = match Verdict::of(&sandbox.run(&arguments)) {
        Verdict::Bugs(bugs) => bugs,
        Verdict::Slow => return Err(End::Slow("under Selvedge")),
        Verdict::Refused(why) => return Err(End::Refused(format!("{why} {context}"))),
        Verdict::Verified => return Err(End::Wrong(format!("no outcome at all {context}"))),
    };
    let outcome = |(kind, message): &(String, String)| {
        let number = message.strip_prefix("assertion failed: outcome ");
        let wrong = || format!("{kind} where there is none: {message} {context}");
        let number = number.and_then(|number| number.parse().ok());
        number.ok_or_else(|| End::Wrong(wrong()))
    };
    bugs.iter().map(outcome).collect()
}

fn settings() -> impl Iterator<Item = (&'static str, &'static str)> + Clone {
    let compilers = compilers().into_iter();
    compilers.flat_map(|compiler| LEVELS.map(|level| (compiler, level)))
}

fn compare(sandbox: &Sandbox, seed: u64) -> Result<(), End> {
    let mut all = None;
    for setting in settings() {
        let found = explored(sandbox, setting, "--model rc11")?;
        let observed = native(sandbox, setting)?;
        if !observed.is_subset(&found) {
            return Err(lost(&observed, &found, setting));
        }
        let expected = all.get_or_insert_with(|| found.clone());
        if found != *expected {
            return Err(End::Wrong(format!(
                "compilers disagree: {expected:?} with the first, {found:?} with {setting:?}"
            )));
        }
    }
    let strong = agreed(sandbox, seed, &SEARCHES)?;
    match all.filter(|weak| !strong.is_subset(weak)) {
        Some(weak) => Err(End::Wrong(format!(
            "rc11 loses outcomes of sc: {weak:?} and {strong:?}"
        ))),
        None => Ok(()),
    }
}

fn lost(observed: &Outcomes, found: &Outcomes, setting: (&str, &str)) -> End {
    End::Wrong(format!(
        "lost outcomes: {observed:?} natively, {found:?} explored with {setting:?}"
    ))
}

/// The outcomes on which several searches agree.
fn agreed(sandbox: &Sandbox, seed: u64, searches: &[&str]) -> Result<Outcomes, End> {
    let mut all = None;
    let settings = settings().cycle().skip(seed as usize % 4);
    for (search, setting) in searches.iter().zip(settings) {
        let found = explored(sandbox, setting, search)?;
        let expected = all.get_or_insert_with(|| found.clone());
        if found != *expected {
            return Err(End::Wrong(format!(
                "searches disagree: {expected:?} with the first, {found:?} with {search}, {setting:?}"
            )));
        }
    }
    Ok(all.unwrap_or_default())
}

fn compare_mixed(sandbox: &Sandbox, seed: u64) -> Result<(), End> {
    let found = agreed(sandbox, seed, &MIXED)?;
    for setting in settings().skip(seed as usize % 4).take(1) {
        let observed = native(sandbox, setting)?;
        if !observed.is_subset(&found) {
            return Err(lost(&observed, &found, setting));
        }
    }
    Ok(())
}

/// The searches that must agree on programs with descriptors.
const WITH_DESCRIPTORS: [&str; 2] = [
    "--model sc --algorithm trust",
    "--model sc --equivalence reads-from",
];

fn compare_descriptors(sandbox: &Sandbox, seed: u64) -> Result<(), End> {
    let found = agreed(sandbox, seed, &WITH_DESCRIPTORS)?;
    for setting in settings().filter(|(_, level)| *level == "-O0") {
        let weak = explored(sandbox, setting, "--model rc11")?;
        if weak != found {
            return Err(End::Wrong(format!(
                "models disagree: {found:?} under sc, {weak:?} under rc11 with {setting:?}"
            )));
        }
        let observed = native(sandbox, setting)?;
        if !observed.is_subset(&found) {
            return Err(lost(&observed, &found, setting));
        }
    }
    Ok(())
}

fn experiment(seed: u64, program: &str, compare: impl Fn(&Sandbox, u64) -> Result<(), End>) -> End {
    let sandbox = Sandbox::with("program.c", program);
    let end = compare(&sandbox, seed).err().unwrap_or(End::Identical);
    if !matches!(end, End::Identical | End::Slow(_)) {
        std::fs::write(kept(seed), program).expect("the program is kept");
    }
    end
}

/// Where a program stays that something is wrong with.
fn kept(seed: u64) -> String {
    format!("{}/threads-{seed}.c", env!("CARGO_TARGET_TMPDIR"))
}

fn reproduce(variable: &str, seed: u64) -> String {
    format!(
        "{variable}={seed}..{} cargo test -p selvedge-cli --test fuzz threads -- --ignored\n    \
         selvedge verify {} --keep-going --no-advice",
        seed + 1,
        kept(seed),
    )
}

#[test]
#[ignore = "takes minutes"]
fn what_threads_observe_natively_is_explored() {
    let variable = "SELVEDGE_THREADS";
    let try_seed = |seed| experiment(seed, &generate::program(seed), compare);
    let seeds = tally::seeds(variable, 1..37);
    tally::run("threads", seeds, try_seed, |seed| reproduce(variable, seed));
}

#[test]
#[ignore = "takes minutes"]
fn accesses_of_different_widths_agree_under_all_searches() {
    let variable = "SELVEDGE_MIXED";
    let try_seed = |seed| experiment(seed, &mixed::program(seed), compare_mixed);
    let seeds = tally::seeds(variable, 1..25);
    tally::run("mixed", seeds, try_seed, |seed| reproduce(variable, seed));
}

#[test]
#[ignore = "takes minutes"]
fn what_threads_observe_of_descriptors_is_explored() {
    let variable = "SELVEDGE_DESCRIPTORS";
    let try_seed = |seed| experiment(seed, &descriptors::program(seed), compare_descriptors);
    let seeds = tally::seeds(variable, 1..13);
    tally::run("descriptors", seeds, try_seed, |seed| {
        reproduce(variable, seed)
    });
}
