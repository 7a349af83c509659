//! Excerpts of the source around a place.

use std::path::Path;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use super::Place;
use crate::input;

/// A message about a place.
pub(super) struct Remark<'a> {
    /// The word before the message.
    pub(super) label: &'a str,
    /// The message.
    pub(super) message: String,
    /// The place.
    pub(super) place: &'a Place,
    /// The text under the line.
    pub(super) here: String,
}

/// Shows the remarks, each with the lines around its place where the source can be read.
pub(super) fn render(remarks: &[Remark<'_>]) -> String {
    let excerpts: Vec<Option<Excerpt>> = remarks
        .iter()
        .map(|remark| Excerpt::read(remark.place))
        .collect();
    let messages: Vec<String> = remarks
        .iter()
        .zip(&excerpts)
        .map(|(remark, excerpt)| match (excerpt, &remark.place.file) {
            (None, Some(_)) => format!("{} ({})", remark.message, remark.place),
            _ => remark.message.clone(),
        })
        .collect();
    let groups: Vec<Group<'_>> = remarks
        .iter()
        .zip(&excerpts)
        .zip(&messages)
        .enumerate()
        .map(|(n, ((remark, excerpt), message))| {
            let level = if n == 0 { Level::ERROR } else { Level::NOTE };
            let level = level.with_name(remark.label);
            let title = match n {
                0 => level.primary_title(message),
                _ => level.secondary_title(message),
            };
            let group = Group::with_title(title);
            match excerpt {
                Some(excerpt) => group.element(excerpt.snippet(&remark.here)),
                None => group,
            }
        })
        .collect();
    Renderer::styled().render(&groups)
}

/// A few lines of a file.
struct Excerpt {
    path: String,
    text: String,
    first: usize,
    /// The part of `text` that is meant.
    span: std::ops::Range<usize>,
}

impl Excerpt {
    fn read(place: &Place) -> Option<Excerpt> {
        let path = place.file.clone()?;
        let line = (place.line? as usize).checked_sub(1)?;
        // The first line of the file to show, not further back than one.
        let first = line.saturating_sub(1);
        let source = String::from_utf8_lossy(&input::read(Path::new(&path)).ok()?).into_owned();
        let lines: Vec<&str> = source.lines().skip(first).take(line - first + 2).collect();
        let meant = *lines.get(line - first)?;
        let before: usize = lines[..line - first]
            .iter()
            .map(|line| line.len() + 1)
            .sum();
        let indent = meant.len() - meant.trim_start().len();
        let span = before + indent..before + meant.trim_end().len().max(indent);
        Some(Excerpt {
            path,
            text: lines.join("\n"),
            first: first + 1,
            span,
        })
    }

    fn snippet<'a>(&'a self, here: &'a str) -> Snippet<'a, annotate_snippets::Annotation<'a>> {
        let annotation = AnnotationKind::Primary.span(self.span.clone()).label(here);
        Snippet::source(&self.text)
            .line_start(self.first)
            .path(&self.path)
            .fold(false)
            .annotation(annotation)
    }
}
