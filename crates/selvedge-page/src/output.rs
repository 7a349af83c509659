//! Writing files that the user names.
//!
//! Nothing here waits for ever: a pipe that nobody reads is an error, as a full disk is.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// How long the reader of a pipe may take before it goes on reading.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often it is tried again.
const PAUSE: Duration = Duration::from_millis(10);

/// Writes `bytes` to the file `path`, in place of what it held.
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    write_within(path, bytes.as_ref(), PATIENCE)
}

fn write_within(path: &Path, mut bytes: &[u8], patience: Duration) -> io::Result<()> {
    let nobody = || io::Error::other("it is a pipe that nobody reads");
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        // A pipe without a reader would keep a blocking open waiting, a full one a blocking write.
        .custom_flags(libc::O_NONBLOCK)
        .open(path);
    let mut file = file.map_err(|error| match error.raw_os_error() {
        Some(libc::ENXIO) => nobody(),
        _ => error,
    })?;
    let mut since = Instant::now();
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => {
                bytes = &bytes[count..];
                since = Instant::now();
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
            Err(_) if since.elapsed() > patience => return Err(nobody()),
            Err(_) => thread::sleep(PAUSE),
        }
    }
    Ok(())
}

/// Makes sure that a new file may be put in the place of what is at `path`: that there is nothing yet, or a
/// regular file. A device would be gone.
pub fn replaceable(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => Err(io::Error::other("it is not a regular file")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_pipe_is_written_to_only_while_somebody_reads_it() {
        let directory =
            std::env::temp_dir().join(format!("selvedge-output-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let pipe = directory.join("pipe");
        assert!(
            Command::new("mkfifo")
                .arg(&pipe)
                .status()
                .unwrap()
                .success()
        );
        let nobody = "it is a pipe that nobody reads";
        let error = write(&pipe, "text").unwrap_err();
        assert_eq!(error.to_string(), nobody);
        // More than a pipe holds.
        let text = "0123456789".repeat(1 << 16);
        let reader = thread::spawn({
            let pipe = pipe.clone();
            move || fs::read_to_string(pipe).unwrap()
        });
        while let Err(error) = write(&pipe, &text) {
            assert_eq!(error.to_string(), nobody);
            thread::sleep(PAUSE);
        }
        assert_eq!(reader.join().unwrap(), text);
        // A reader that does not read.
        let lazy = OpenOptions::new()
            .read(true)
            .write(true)
            .open(&pipe)
            .unwrap();
        let error = write_within(&pipe, text.as_bytes(), Duration::from_millis(50)).unwrap_err();
        assert_eq!(error.to_string(), nobody);
        drop(lazy);
        assert!(replaceable(&pipe).is_err() && replaceable(Path::new("/dev/full")).is_err());
        let file = directory.join("file");
        replaceable(&file).unwrap();
        write(&file, "longer").unwrap();
        write(&file, "text").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "text");
        replaceable(&file).unwrap();
        let error = write(Path::new("/dev/full"), "text").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StorageFull);
        fs::remove_dir_all(&directory).unwrap();
    }
}
