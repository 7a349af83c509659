//! Reasons why a check cannot reach a verdict, as values: a cause and a next step.

use std::fmt;
use std::process::ExitCode;

use crate::output;
use anstyle::{AnsiColor, Style};

/// How the command ends. The numbers are part of its contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// No execution fails.
    Verified = 0,
    /// At least one does.
    Bug = 1,
    /// The request was wrong: usage, no such file, a program that does not compile or that cannot
    /// be checked.
    Request = 2,
    /// A limit was reached before the search ended.
    Incomplete = 3,
    /// A fault of Selvedge itself, or of the machine it runs on.
    Internal = 4,
}

impl Status {
    /// How the command ends when it has tried to write a file that it was asked for. A file that is missing does not
    /// change that a bug was found, but nor is everything in order then.
    pub(crate) fn with_file(self, written: Result<(), Problem>) -> Status {
        let Err(problem) = written else { return self };
        problem.print();
        match self {
            Status::Verified => problem.status,
            Status::Bug | Status::Request | Status::Incomplete | Status::Internal => self,
        }
    }
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> ExitCode {
        ExitCode::from(status as u8)
    }
}

/// Why there is no verdict.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    /// How the command ends because of it.
    pub(crate) status: Status,
    /// The output of another program, such as a compiler, shown unchanged before anything else.
    words: String,
    message: String,
    notes: Vec<String>,
    help: Vec<String>,
}

impl Problem {
    /// A request that cannot be served.
    pub(crate) fn request(message: impl Into<String>) -> Problem {
        Problem::new(Status::Request, message.into())
    }

    /// A fault of Selvedge or of the machine it runs on.
    pub(crate) fn internal(message: impl Into<String>) -> Problem {
        Problem::new(Status::Internal, message.into())
    }

    /// The user stopped the command before there was anything to tell.
    pub(crate) fn interrupted(message: impl Into<String>) -> Problem {
        Problem::new(Status::Incomplete, message.into())
    }

    fn new(status: Status, message: String) -> Problem {
        let (words, notes, help) = Default::default();
        Problem {
            status,
            words,
            message,
            notes,
            help,
        }
    }

    /// The problem in one line.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Adds a line of detail.
    pub(crate) fn note(mut self, note: impl Into<String>) -> Problem {
        self.notes.push(note.into());
        self
    }

    /// Adds what the user can do about it.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Problem {
        self.help.push(help.into());
        self
    }

    /// Adds the output of another program, shown unchanged and first.
    pub(crate) fn words(mut self, words: impl Into<String>) -> Problem {
        self.words = words.into();
        self
    }

    /// Shows it on standard error, in colour where that is a terminal.
    pub(crate) fn print(&self) {
        output::complain(&self.to_string());
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.words.is_empty() {
            writeln!(f, "{}", self.words.trim_end())?;
        }
        labelled(f, "error", AnsiColor::Red, &self.message)?;
        for note in &self.notes {
            labelled(f, "note", AnsiColor::Blue, note)?;
        }
        for help in &self.help {
            labelled(f, "help", AnsiColor::Green, help)?;
        }
        Ok(())
    }
}

/// A warning on standard error that does not change how the command ends.
pub(crate) fn warn(message: &str) {
    complain("warning", AnsiColor::Yellow, message);
}

/// Something good to know, on standard error.
pub(crate) fn note(message: &str) {
    complain("note", AnsiColor::Blue, message);
}

fn complain(label: &str, colour: AnsiColor, message: &str) {
    struct Labelled<'a>(&'a str, AnsiColor, &'a str);
    impl fmt::Display for Labelled<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            labelled(f, self.0, self.1, self.2)
        }
    }
    output::complain(&Labelled(label, colour, message).to_string());
}

fn labelled(f: &mut fmt::Formatter<'_>, label: &str, colour: AnsiColor, text: &str) -> fmt::Result {
    let style = Style::new().bold().fg_color(Some(colour.into()));
    let indented = text.replace('\n', &format!("\n{:1$}", "", label.len() + 2));
    writeln!(f, "{style}{label}{style:#}: {indented}")
}
