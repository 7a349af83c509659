//! A program that looks at its arguments and at what it is started with.

fn main() {
    assert_eq!(std::env::args().count(), 1);
    assert_eq!(std::env::var("PATH"), Err(std::env::VarError::NotPresent));
    if std::env::args().count() == 2 {
        std::process::Command::new("true").status().unwrap();
        std::env::vars().for_each(drop);
    }
}
