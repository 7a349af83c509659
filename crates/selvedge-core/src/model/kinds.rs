//! The memory models by name, and the one place that leads from a name to a type.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The rules for allowed outcomes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryModel {
    /// Sequential consistency: the written orders are ignored.
    Sc,
    /// Total store order, as on x86.
    Tso,
    /// Release-acquire: every access is a release or an acquire.
    Ra,
    /// The memory model of C++20 and Rust, in its repaired form.
    #[default]
    Rc11,
}

impl MemoryModel {
    /// All of them, the strongest first.
    pub const ALL: [MemoryModel; 4] = [
        MemoryModel::Sc,
        MemoryModel::Tso,
        MemoryModel::Ra,
        MemoryModel::Rc11,
    ];

    /// Its name, as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            MemoryModel::Sc => "sc",
            MemoryModel::Tso => "tso",
            MemoryModel::Ra => "ra",
            MemoryModel::Rc11 => "rc11",
        }
    }
}

impl fmt::Display for MemoryModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for MemoryModel {
    type Err = String;

    fn from_str(name: &str) -> Result<MemoryModel, String> {
        let mut all = MemoryModel::ALL.into_iter();
        all.find(|model| model.name() == name)
            .ok_or_else(|| format!("there is no memory model `{name}`, only sc, tso, ra and rc11"))
    }
}

/// Evaluates an expression in which the type `$C` is the [`Model`](crate::model::Model) that a [`MemoryModel`] names.
#[macro_export]
macro_rules! with_model {
    ($model:expr, $C:ident => $body:expr) => {
        match $model {
            $crate::model::MemoryModel::Sc => {
                type $C = $crate::model::SequentialConsistency;
                $body
            }
            $crate::model::MemoryModel::Tso => {
                type $C = $crate::model::TotalStoreOrder;
                $body
            }
            $crate::model::MemoryModel::Ra => {
                type $C = $crate::model::ReleaseAcquire;
                $body
            }
            $crate::model::MemoryModel::Rc11 => {
                type $C = $crate::model::Rc11;
                $body
            }
        }
    };
}
