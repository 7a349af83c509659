//! A schedule as a line of text that can be pasted into a test.
//!
//! The memory model, then one word for each step: the thread; `<n` if it reads from step *n*, `<i`
//! if it reads the initial value; `=n` if it took alternative *n*; and `@t:n` for each other thread
//! *t* of which it newly knows *n* events. At the end, `arc:` and a place for each reference count
//! that takes part, a word for each kind of [`SpuriousEvents`] that may happen, and `late:t:n` if what
//! thread *t* does after *n* events comes last (see [`Late`]).

use selvedge_core::Op;
use selvedge_core::witness::{Origin, Step};

use crate::model::MemoryModel;
use crate::options::SpuriousEvents;

/// A schedule to be repeated.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) model: MemoryModel,
    pub(crate) steps: Vec<TokenStep>,
    pub(crate) counted: Vec<String>,
    pub(crate) spurious: SpuriousEvents,
    pub(crate) late: Option<Late>,
}

/// A thread whose last stretch comes after all steps.
///
/// The actions of a thread after its last event have no place in the order of the steps. If the
/// thread uses freed memory there, the free must have come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Late {
    pub(crate) thread: u32,
    /// How many events it has performed before.
    pub(crate) events: u32,
}

/// One step of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TokenStep {
    pub(crate) thread: u32,
    pub(crate) origin: Option<Origin>,
    pub(crate) choice: u32,
    /// Of which other threads more events are known than before.
    pub(crate) known: Vec<(u32, u32)>,
}

/// Writes a schedule.
pub(crate) fn write(
    model: MemoryModel,
    steps: &[Step],
    counted: &[String],
    spurious: SpuriousEvents,
    late: Option<Late>,
) -> String {
    let mut text = model.name().to_owned();
    let mut clocks: Vec<Vec<u32>> = Vec::new();
    for step in steps {
        let thread = step.thread.index();
        text.push_str(&format!(" {thread}"));
        match step.origin {
            Some(Origin::Initial) => text.push_str("<i"),
            Some(Origin::Step(n)) => text.push_str(&format!("<{n}")),
            None => {}
        }
        let choice = match step.op {
            Op::Choose { .. } => step.read.unwrap_or(0) as u32,
            _ => step.choice,
        };
        if choice != 0 {
            text.push_str(&format!("={choice}"));
        }
        if clocks.len() <= thread {
            clocks.resize(thread + 1, Vec::new());
        }
        let before = &mut clocks[thread];
        before.resize(before.len().max(step.clock.len()), 0);
        for (other, &events) in step.clock.iter().enumerate() {
            if other != thread && events != before[other] {
                text.push_str(&format!("@{other}:{events}"));
            }
        }
        before[..step.clock.len()].copy_from_slice(&step.clock);
        if let Op::Create { child } = step.op {
            let clock = step.clock.clone();
            let child = child.index();
            if clocks.len() <= child {
                clocks.resize(child + 1, Vec::new());
            }
            clocks[child] = clock;
        }
    }
    for place in counted {
        text.push_str(&format!(" arc:{place}"));
    }
    text.push_str(&spurious.to_string());
    if let Some(Late { thread, events }) = late {
        text.push_str(&format!(" late:{thread}:{events}"));
    }
    text
}

/// Reads what [`write`] wrote.
pub(crate) fn read(text: &str) -> Result<Token, String> {
    let mut words = text.split_whitespace();
    let model = words.next().unwrap_or_default();
    let mut token = Token {
        model: model.parse()?,
        ..Token::default()
    };
    for word in words {
        if token.spurious.read(word) {
            continue;
        }
        if let Some(late) = word.strip_prefix("late:").and_then(read_late) {
            token.late = Some(late);
            continue;
        }
        match word.strip_prefix("arc:") {
            Some(place) => token.counted.push(place.to_owned()),
            None => token.steps.push(step(word).ok_or_else(|| {
                format!("`{word}` is no step of a schedule: was all of the line pasted?")
            })?),
        }
    }
    Ok(token)
}

fn read_late(word: &str) -> Option<Late> {
    let (thread, events) = word.split_once(':')?;
    Some(Late {
        thread: thread.parse().ok()?,
        events: events.parse().ok()?,
    })
}

fn step(word: &str) -> Option<TokenStep> {
    let mut step = TokenStep::default();
    let mut parts = word.split('@');
    let first = parts.next()?;
    let (first, choice) = first.split_once('=').unwrap_or((first, "0"));
    step.choice = choice.parse().ok()?;
    let (thread, origin) = first.split_once('<').unwrap_or((first, ""));
    step.thread = thread.parse().ok()?;
    step.origin = match origin {
        "" => None,
        "i" => Some(Origin::Initial),
        n => Some(Origin::Step(n.parse().ok()?)),
    };
    for part in parts {
        let (thread, events) = part.split_once(':')?;
        step.known
            .push((thread.parse().ok()?, events.parse().ok()?));
    }
    Some(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_read_as_it_was_written() {
        let token =
            read("tso 0 1<i@0:3 0<1=2@1:1@2:7 arc:src/lib.rs:3:9 wakeups timeouts:3").unwrap();
        assert_eq!(token.model, MemoryModel::Tso);
        assert_eq!(token.counted, ["src/lib.rs:3:9"]);
        let spurious = SpuriousEvents {
            wakeups: true,
            timeouts: 3,
            ..SpuriousEvents::default()
        };
        assert_eq!(token.spurious, spurious);
        assert_eq!(spurious.to_string(), " wakeups timeouts:3");
        let last = TokenStep {
            thread: 0,
            origin: Some(Origin::Step(1)),
            choice: 2,
            known: vec![(1, 1), (2, 7)],
        };
        assert_eq!(token.steps[2], last);
        assert!(read("rc11 0 x").is_err());
        assert!(read("alpha 0").is_err());
    }
}
