//! A process that is going to run a program gives up what that has no use for.

use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn files_of_the_caller_are_closed_and_limits_are_set() {
    let mut shell = Command::new("sh");
    let run = "exec \"$0\" --exact gives_up --ignored --nocapture 7>/dev/null 9</dev/null";
    shell
        .args(["-c", run])
        .arg(std::env::current_exe().unwrap());
    let output = shell.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("1 passed"), "{said}");
}

#[test]
#[ignore = "run by the test above, with two more files open"]
fn gives_up() {
    let open = |number: u32| Path::new(&format!("/proc/self/fd/{number}")).exists();
    assert!(open(7) && open(9));
    selvedge_confine::give_up(77);
    assert!(!open(7) && !open(9));
    assert!(open(1) && open(2));
    let limits = fs::read_to_string("/proc/self/limits").unwrap();
    let limit = |name: &str| {
        let line = limits.lines().find_map(|line| line.strip_prefix(name));
        let mut words = line.unwrap().split_whitespace().map(str::to_owned);
        (words.next().unwrap(), words.next().unwrap())
    };
    assert_eq!(limit("Max open files"), ("77".to_owned(), "77".to_owned()));
    assert_eq!(
        limit("Max core file size"),
        ("0".to_owned(), "0".to_owned())
    );
}
