//! From a prefix file to a plan.

use selvedge_irs_format::{Input, View};

use super::arena::space;
use super::composed::{self, Sizes, Why};
use super::image;
use super::plan::Plan;

/// Why there is no plan.
pub(super) const NO_MEMORY: Why = "no memory for the prefix";

/// The plan of main before its input is known.
pub(super) fn beginning(view: View<'_>) -> Result<&'static Plan, Why> {
    let words = space(Sizes::of_beginning(view).words(), 0);
    composed::beginning(view, image::executable(), words)?;
    plan(words)
}

/// The prefix for one input.
pub(super) fn whole(view: View<'_>, input: Input<'_>) -> Result<&'static Plan, Why> {
    let words = space(Sizes::of(view, input).words(), 0);
    composed::whole(view, input, image::executable(), words)?;
    plan(words)
}

/// The plan that is composed in these words.
pub(super) fn plan(words: &'static [u32]) -> Result<&'static Plan, Why> {
    let plan = Plan::new(words).ok_or(NO_MEMORY)?;
    space(1, plan).first().ok_or(NO_MEMORY)
}
