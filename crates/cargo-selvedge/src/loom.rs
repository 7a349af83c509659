//! A crate named loom that is Selvedge, in the place of the one that the tests depend on.
//!
//! Cargo replaces a dependency by a patch, which may come from its command line, so no file of the
//! crate under test changes. The replacement has the version that cargo has chosen.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The library, where this program was built.
const LIBRARY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../selvedge");

/// The arguments for cargo, which hold as long as the lock file is as it was before.
#[derive(Debug)]
pub(crate) struct Replacement {
    /// Arguments for cargo.
    pub(crate) arguments: Vec<String>,
    /// Where cargo builds.
    pub(crate) target: PathBuf,
    lock: PathBuf,
    /// The former lock file; `None` if there was none.
    before: Option<Vec<u8>>,
}

/// Makes replacements for all versions of loom that the workspace depends on.
pub(crate) fn replace(cargo: &[String]) -> Result<Replacement, String> {
    let root = locate(cargo)?;
    let lock = root.join("Cargo.lock");
    let mut replacement = Replacement {
        arguments: Vec::new(),
        target: PathBuf::new(),
        before: fs::read(&lock).ok(),
        lock,
    };
    let metadata = metadata(cargo)?;
    let target = metadata["target_directory"].as_str().unwrap_or("target");
    replacement.target = Path::new(target).join("selvedge");
    for version in versions(&metadata) {
        let directory = replacement.target.join("loom").join(&version);
        write(&directory, &version)
            .map_err(|e| format!("cannot write {}: {e}", directory.display()))?;
        let key = format!("patch.crates-io.loom_{}", version.replace(['.', '+'], "_"));
        let settings = [
            format!("{key}.package=\"loom\""),
            format!("{key}.path={directory:?}"),
        ];
        for setting in settings {
            replacement
                .arguments
                .extend(["--config".to_owned(), setting]);
        }
    }
    if !replacement.arguments.is_empty() {
        // The search takes most of the time, and is always worth the optimization.
        for package in ["selvedge", "selvedge-core", "selvedge-fiber"] {
            for (name, value) in SETTINGS {
                let setting = format!("profile.dev.package.{package}.{name}={value}");
                replacement
                    .arguments
                    .extend(["--config".to_owned(), setting]);
            }
        }
    }
    Ok(replacement)
}

impl Drop for Replacement {
    fn drop(&mut self) {
        let _ = match &self.before {
            Some(before) if fs::read(&self.lock).ok().as_ref() == Some(before) => Ok(()),
            Some(before) => fs::write(&self.lock, before),
            None => fs::remove_file(&self.lock),
        };
    }
}

/// How the search is built, whatever the user's profile says. An incremental build consists of many small units, and
/// functions are inlined within a unit only.
const SETTINGS: [(&str, &str); 5] = [
    ("opt-level", "3"),
    ("incremental", "false"),
    ("codegen-units", "4"),
    ("debug-assertions", "false"),
    ("overflow-checks", "false"),
];

/// Cargo, as it was called.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// The output of cargo on standard output.
fn output(command: &mut Command) -> Result<String, String> {
    let output = command
        .stderr(std::process::Stdio::inherit())
        .output()
        .map_err(|e| format!("cargo cannot be run: {e}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err("cargo cannot read the manifest".to_owned()),
    }
}

/// The arguments of cargo that choose a manifest.
fn manifest(cargo: &[String]) -> Vec<&String> {
    let mut chosen = Vec::new();
    let mut rest = cargo.iter();
    while let Some(argument) = rest.next() {
        if argument == "--manifest-path" {
            chosen.push(argument);
            chosen.extend(rest.next());
        } else if argument.starts_with("--manifest-path=") {
            chosen.push(argument);
        }
    }
    chosen
}

/// The directory of the workspace.
fn locate(arguments: &[String]) -> Result<PathBuf, String> {
    let mut command = cargo();
    command.args(["locate-project", "--workspace", "--message-format=plain"]);
    let found = output(command.args(manifest(arguments)))?;
    let parent = Path::new(found.trim()).parent().map(Path::to_owned);
    parent.ok_or_else(|| "cargo found no manifest".to_owned())
}

pub(crate) fn metadata(arguments: &[String]) -> Result<Value, String> {
    let mut command = cargo();
    // With all features, since loom may be a dependency that one of them turns on.
    command.args(["metadata", "--format-version=1", "--all-features"]);
    let text = output(command.args(manifest(arguments)))?;
    serde_json::from_str(&text).map_err(|e| format!("cargo metadata is not understood: {e}"))
}

/// The versions of loom in cargo's metadata.
fn versions(metadata: &Value) -> Vec<String> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    packages
        .filter(|package| package["name"] == "loom" && !package["source"].is_null())
        .filter_map(|package| package["version"].as_str().map(str::to_owned))
        .collect()
}

/// Writes the crate.
fn write(directory: &Path, version: &str) -> std::io::Result<()> {
    let library = fs::canonicalize(LIBRARY)?;
    // loom's features. What they add is always there.
    let manifest = format!(
        "[package]\nname = \"loom\"\nversion = \"{version}\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [features]\ndefault = []\nfutures = []\ncheckpoint = []\nserde = []\nserde_json = []\n\n\
         [dependencies]\nselvedge = {{ path = {library:?} }}\n"
    );
    fs::create_dir_all(directory.join("src"))?;
    write_if_new(&directory.join("Cargo.toml"), &manifest)?;
    let text = "//! Selvedge by the name of loom.\n\npub use selvedge::*;\n";
    write_if_new(&directory.join("src/lib.rs"), text)
}

/// Leaves a file alone that is as it should be, so that cargo does not build it again.
pub(crate) fn write_if_new(path: &Path, text: &str) -> std::io::Result<()> {
    match fs::read_to_string(path) {
        Ok(before) if before == text => Ok(()),
        _ => fs::write(path, text),
    }
}

/// How cargo is told to add to the compiler's flags that the user has set.
pub(crate) enum Flags {
    /// A variable, which is set already.
    Variable(&'static str, String),
    /// An argument, which is merged with configuration files.
    Argument(String),
}

/// Adds flags where the user has set some, since cargo takes them from one place only.
pub(crate) fn flags(added: &[&str]) -> Flags {
    if let Ok(before) = std::env::var("CARGO_ENCODED_RUSTFLAGS") {
        let text = format!("{before}\x1f{}", added.join("\x1f"));
        return Flags::Variable("CARGO_ENCODED_RUSTFLAGS", text);
    }
    if let Ok(before) = std::env::var("RUSTFLAGS") {
        return Flags::Variable("RUSTFLAGS", format!("{before} {}", added.join(" ")));
    }
    let mut command = cargo();
    command.args([
        "-Zunstable-options",
        "config",
        "get",
        "--format=json",
        "target",
    ]);
    // A stable cargo tells its configuration only if it is asked like this.
    let config = command.env("RUSTC_BOOTSTRAP", "1").output();
    let by_target = config.is_ok_and(|config| {
        config.status.success() && String::from_utf8_lossy(&config.stdout).contains("rustflags")
    });
    Flags::Argument(match by_target {
        true => format!("target.'cfg(all())'.rustflags={added:?}"),
        false => format!("build.rustflags={added:?}"),
    })
}

impl Flags {
    /// Passes them to `command`, which is cargo.
    pub(crate) fn give(self, command: &mut Command) {
        match self {
            Flags::Variable(name, value) => command.env(name, value),
            Flags::Argument(config) => command.args(["--config", &config]),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_versions_from_a_registry_are_replaced() {
        let text = r#"{"packages":[{"name":"loom","version":"0.5.6","source":"registry+x"},{"name":"loom","version":"0.7.2","source":null},{"name":"other","version":"1.0.0","source":"registry+x"}]}"#;
        let metadata = serde_json::from_str(text).unwrap();
        assert_eq!(versions(&metadata), ["0.5.6"]);
    }

    #[test]
    fn the_lock_file_is_put_back() {
        let directory = std::env::temp_dir().join(format!("selvedge-lock-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let lock = directory.join("Cargo.lock");
        for before in [Some(b"before".to_vec()), None] {
            let replacement = Replacement {
                arguments: Vec::new(),
                target: PathBuf::new(),
                lock: lock.clone(),
                before: before.clone(),
            };
            fs::write(&lock, "after").unwrap();
            drop(replacement);
            assert_eq!(fs::read(&lock).ok(), before);
        }
        fs::remove_dir_all(directory).unwrap();
    }
}
