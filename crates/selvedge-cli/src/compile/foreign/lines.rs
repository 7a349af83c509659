//! Where the instructions of an object come from in its source.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

/// The source lines of instructions, by section and address.
#[derive(Default)]
pub(in crate::compile) struct Lines {
    pub(super) known: HashMap<(String, u64), (String, u32)>,
}

impl Lines {
    /// The lines in the debug information of the object at `path`, as objdump reads it.
    pub(in crate::compile) fn of(path: &Path) -> Lines {
        let mut command = Command::new("objdump");
        let command = command.args(["-d", "-l", "--no-show-raw-insn"]).arg(path);
        let output = command.env("LC_ALL", "C").output();
        let text = output.map(|output| output.stdout).unwrap_or_default();
        Lines::parse(&String::from_utf8_lossy(&text))
    }

    fn parse(text: &str) -> Lines {
        let mut known = HashMap::new();
        let mut section = String::new();
        let mut at: Option<(String, u32)> = None;
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("Disassembly of section ") {
                section = name.trim_end_matches(':').to_owned();
                at = None;
            } else if line.starts_with('/') {
                let place = line.split(" (discriminator").next().unwrap_or(line);
                let place = place.rsplit_once(':');
                at = place.and_then(|(file, line)| Some((file.to_owned(), line.parse().ok()?)));
            } else if let Some((address, _)) = line.split_once(":\t")
                && let Ok(address) = u64::from_str_radix(address.trim(), 16)
                && let Some(at) = &at
            {
                known.insert((section.clone(), address), at.clone());
            }
        }
        Lines { known }
    }
}
