//! Paths in JSON. They need not be text: those that are not are written as their bytes.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// For `#[serde(with = "paths")]`.
pub(crate) fn serialize<P: Paths, S: Serializer>(paths: &P, to: S) -> Result<S::Ok, S::Error> {
    paths.written().serialize(to)
}

/// For `#[serde(with = "paths")]`.
pub(crate) fn deserialize<'de, P: Paths, D: Deserializer<'de>>(from: D) -> Result<P, D::Error> {
    P::Written::deserialize(from).map(P::read)
}

/// A path, or several.
pub(crate) trait Paths {
    /// The form in the file.
    type Written: Serialize + for<'de> Deserialize<'de>;
    fn written(&self) -> Self::Written;
    fn read(written: Self::Written) -> Self;
}

/// A path as it is written.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Written {
    Text(String),
    Bytes(Vec<u8>),
}

impl Paths for PathBuf {
    type Written = Written;

    fn written(&self) -> Written {
        match self.to_str() {
            Some(text) => Written::Text(text.to_owned()),
            None => Written::Bytes(self.as_os_str().as_bytes().to_owned()),
        }
    }

    fn read(written: Written) -> PathBuf {
        match written {
            Written::Text(text) => text.into(),
            Written::Bytes(bytes) => OsString::from_vec(bytes).into(),
        }
    }
}

impl<P: Paths> Paths for Option<P> {
    type Written = Option<P::Written>;

    fn written(&self) -> Self::Written {
        self.as_ref().map(P::written)
    }

    fn read(written: Self::Written) -> Self {
        written.map(P::read)
    }
}

impl<P: Paths> Paths for Vec<P> {
    type Written = Vec<P::Written>;

    fn written(&self) -> Self::Written {
        self.iter().map(P::written).collect()
    }

    fn read(written: Self::Written) -> Self {
        written.into_iter().map(P::read).collect()
    }
}
