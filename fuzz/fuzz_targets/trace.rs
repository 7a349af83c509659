#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| selvedge_cli::fuzz::trace(bytes));
