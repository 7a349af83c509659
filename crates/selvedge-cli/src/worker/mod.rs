//! The program under test runs in a process of its own, so that nothing it does can take the
//! command down: [`child`] is that process, [`supervise`] watches it, [`protocol`] is what they say
//! to each other, by the messages of [`wire`] and by [`counters`].

mod advise;
pub(crate) mod child;
mod confirm;
pub(crate) mod counters;
mod estimate;
mod explore;
mod follow;
mod helpers;
pub(crate) mod history;
mod journal;
pub(crate) mod libraries;
pub(crate) mod lines;
mod measure;
pub(crate) mod orders;
mod perform;
mod prefix;
pub(crate) mod process;
pub(crate) mod progress;
mod progress_line;
pub(crate) mod protocol;
mod prove;
pub(crate) mod slices;
pub(crate) mod supervise;
pub(crate) mod wire;

pub(crate) use confirm::confirm;
pub(crate) use follow::HOOK;
pub(crate) use perform::perform;
