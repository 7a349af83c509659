//! Tells the crates that depend on this one where its source is: the enforcement library is
//! compiled with it, apart from everything else.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=src");
    if let Ok(directory) = env::var("CARGO_MANIFEST_DIR") {
        println!("cargo::metadata=root={directory}/src/lib.rs");
    }
}
