//! One small program for each thing in C that compilers make of memory accesses what is hard to see,
//! each in every setting.

use std::fs;

use crate::checksum::Setting;
use crate::common::Sandbox;
use crate::tally::{self, End};

/// Where the programs are.
const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fuzz/constructs");

/// The names of the programs.
fn names() -> Vec<String> {
    let entries = fs::read_dir(DIRECTORY).expect("a directory");
    let name = |entry: fs::DirEntry| entry.file_name().into_string().expect("a name");
    let all = entries.map(|entry| name(entry.expect("an entry")));
    let mut all: Vec<String> = all.filter(|name| name.ends_with(".c")).collect();
    all.sort_unstable();
    all
}

#[test]
#[ignore = "takes a minute"]
fn constructs_have_the_values_that_they_have_natively() {
    let names = names();
    let count = names.len() as u64 * Setting::COUNT;
    let name = |number: u64| &names[(number / Setting::COUNT) as usize];
    let kept = |number| format!("{}/{}", env!("CARGO_TARGET_TMPDIR"), name(number));
    let experiment = |number| -> End {
        let text = fs::read_to_string(format!("{DIRECTORY}/{}", name(number)));
        let sandbox = Sandbox::with("program.c", &text.expect("a program"));
        Setting::of(number, DIRECTORY).compare(&sandbox, &kept(number))
    };
    let reproduce = |number| {
        let arguments = Setting::of(number, DIRECTORY).arguments(&kept(number));
        format!("selvedge {}", arguments.join(" "))
    };
    let all = tally::seeds("SELVEDGE_CONSTRUCTS", 0..count);
    tally::run("constructs", all, experiment, reproduce);
}
