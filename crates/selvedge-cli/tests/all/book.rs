//! Contents of the documentation besides commands: snippets for CI systems, and a section for each algorithm.

use std::process::Command;

use yaml_rust2::YamlLoader;

use crate::common::Sandbox;

const CI: &str = include_str!("../../../../docs/ci.md");

/// The blocks of code in this language, without the indentation that they have in common.
fn blocks(language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    let blocks = CI.split(&fence).skip(1);
    let blocks = blocks.map(|rest| rest.split("```").next().expect("its end"));
    blocks
        .map(|block| {
            let indents = block.lines().filter(|line| !line.trim().is_empty());
            let indents = indents.map(|line| line.len() - line.trim_start().len());
            let least = indents.min().unwrap_or(0);
            let lines = block
                .lines()
                .map(|line| line.get(least..).unwrap_or_default());
            lines.collect::<Vec<_>>().join("\n")
        })
        .collect()
}

#[test]
fn the_snippets_for_ci_systems_are_yaml_and_run_commands_that_exist() {
    let blocks = blocks("yaml");
    assert_eq!(blocks.len(), 4);
    let help = Sandbox::new().run(&["verify", "--help"]);
    let mut checks = 0;
    for block in blocks {
        let documents = YamlLoader::load_from_str(&block);
        let documents = documents.unwrap_or_else(|error| panic!("{error}: {block}"));
        assert_eq!(documents.len(), 1, "{block}");
        for command in block.split("selvedge verify ").skip(1) {
            checks += 1;
            let command = command.lines().next().expect("a line");
            for word in command.split(' ').filter(|word| word.starts_with("--")) {
                assert!(help.ends_with(0).stdout.contains(word), "{word}: {block}");
            }
        }
    }
    assert_eq!(checks, 4);
}

#[test]
fn the_snippet_for_ctest_runs_a_check() {
    if Command::new("ctest").arg("--version").output().is_err() {
        eprintln!("skipped: ctest is not installed");
        return;
    }
    let blocks = blocks("cmake");
    let [snippet] = &blocks[..] else {
        panic!("one snippet");
    };
    let sandbox = Sandbox::with(
        "CMakeLists.txt",
        &format!(
            "cmake_minimum_required(VERSION 3.10)\nproject(queue NONE)\nenable_testing()\n{snippet}"
        ),
    );
    for directory in ["test", "include", "build"] {
        std::fs::create_dir(sandbox.path(directory)).expect("a directory");
    }
    sandbox.write("include/expected.h", "#define EXPECTED 2\n");
    let program = "\
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <expected.h>
static atomic_int x;
static void *f(void *u) { x++; return u; }
int main(void) {
  pthread_t t;
  pthread_create(&t, 0, f, 0);
  x++;
  pthread_join(t, 0);
  assert(x == EXPECTED);
}
";
    sandbox.write("test/queue.c", program);
    let selvedge = std::path::Path::new(env!("CARGO_BIN_EXE_selvedge"));
    let directories = [selvedge.parent().expect("a directory").to_owned()];
    let others = std::env::var_os("PATH").unwrap_or_default();
    let all = directories
        .into_iter()
        .chain(std::env::split_paths(&others));
    let path = std::env::join_paths(all).expect("a search path");
    let run = |program: &str, arguments: &[&str]| {
        let output = Command::new(program)
            .args(arguments)
            .current_dir(sandbox.path("build"))
            .env("PATH", &path)
            .env("TMPDIR", sandbox.path("tmp"))
            .output()
            .expect("CMake's programs run");
        (
            output.status.success(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    };
    let (configured, text) = run("cmake", &[".."]);
    assert!(configured, "{text}");
    let (passed, text) = run("ctest", &["--output-on-failure"]);
    assert!(
        passed && text.contains("queue-schedules") && text.contains("Passed"),
        "{text}"
    );

    sandbox.write("include/expected.h", "#define EXPECTED 3\n");
    let (passed, text) = run("ctest", &["--output-on-failure"]);
    assert!(
        !passed && text.contains("assertion failed: x == "),
        "{text}"
    );
}

/// The page that explains an algorithm, and how its section begins.
#[test]
fn every_algorithm_has_its_section_in_the_theory() {
    let states = include_str!("../../../../docs/states.md");
    let interleaving = include_str!("../../../../docs/interleaving.md");
    let help = Sandbox::new().run(&["verify", "--algorithm", "nonesuch", "x.c"]);
    let listed = help.ends_with(2).stderr.clone();
    let (_, names) = listed.split_once("[possible values: ").expect("the names");
    let names: Vec<&str> = names
        .split(']')
        .next()
        .expect("their end")
        .split(", ")
        .collect();
    assert!(names.len() >= 18, "{names:?}");
    for name in names {
        let name = name.trim();
        let explained = match name {
            "trust" => include_str!("../../../../docs/graph-search.md").contains("TruSt"),
            "tracer" => include_str!("../../../../docs/reads-from.md").contains("TRACER"),
            _ => [states, interleaving].iter().any(|page| {
                let mut headings = page.lines().filter(|line| line.starts_with("### "));
                headings.any(|heading| heading.contains(&format!("`{name}`")))
            }),
        };
        assert!(explained, "{name}");
    }
}
