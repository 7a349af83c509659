//! `--explain`: a verdict in paragraphs, for readers who know threads but not model checking.

use crate::args::{self, Equivalence, Plain};
use crate::report::{Report, Verdict, facts, kind_name};

use super::page;

/// The meaning of the verdict.
pub(crate) fn verdict(report: &Report, verify: &args::Verify) -> String {
    let mut paragraphs = vec![match report.verdict {
        Verdict::Verified => verified(report, verify),
        Verdict::Incomplete => incomplete(report),
        Verdict::Bug => bug(report),
    }];
    if report.verdict != Verdict::Bug {
        paragraphs.push(assumptions(report, verify));
    }
    let mut text = String::from("\n");
    for paragraph in paragraphs {
        text += &paragraph;
        text.push('\n');
    }
    text
}

fn verified(report: &Report, verify: &args::Verify) -> String {
    if let Some(states) = &report.states {
        return format!(
            "A state is everything that the program's future depends on: the memory, and where each\n\
             thread stands. Selvedge visited all {} states that any schedule can lead to. None of\n\
             them violates what was asked about.\n",
            states.states
        );
    }
    let bound = match report.bound.filter(|_| !report.complete) {
        Some(bound) => format!(
            "\nOnly schedules with at most {bound} {}s were explored. Most bugs need few of them,\n\
             but a bug that needs more may still be there.\n",
            report.bounds
        ),
        None => String::new(),
    };
    let same = match verify.search.equivalence {
        Equivalence::Mazurkiewicz => {
            "Two schedules that lead each\n\
             read to the same write, and each location through the same writes in the same order, cannot\n\
             be told apart by the program, so one of them is enough: that is one execution."
        }
        Equivalence::ReadsFrom => {
            "Two schedules in which\n\
             each read gets its value from the same write cannot be told apart by the program, whatever\n\
             the order of the other writes, so one of them is enough: that is one execution."
        }
    };
    let races = match verify.machine.plain {
        Plain::Race => {
            "in none of them an assertion fails, a thread waits for ever, two threads race, or\n\
             memory is misused."
        }
        Plain::Sc => {
            "in none of them an assertion fails, a thread waits for ever, or memory is misused.\n\
             Data races were not looked for: with --plain sc, every plain access is a step of its own."
        }
    };
    format!(
        "Selvedge ran the program under every schedule that matters. {same} There are\n\
         {}, and {races}\n{bound}\n\
         The result is about this program with these inputs. It says nothing about more threads,\n\
         more operations, or data that the program did not choose.\n",
        report.executions
    )
}

fn incomplete(report: &Report) -> String {
    format!(
        "The search ended before every schedule was explored: {}.\n\
         What was explored does not fail, but that proves nothing about the rest.\n\n\
         A smaller program has far fewer schedules: fewer threads, fewer rounds of loops, smaller\n\
         data. --report FILE.html shows which lines the executions come from. --preemptions 2\n\
         explores the schedules in which most bugs are, and --iterative raises that bound step by\n\
         step. --algorithm csdr keeps states instead and checks programs that never end.\n",
        report.reason.as_deref().unwrap_or("for an unknown reason")
    )
}

fn bug(report: &Report) -> String {
    let Some(bug) = &report.bug else {
        return String::new();
    };
    let preempted = match bug.preemptions {
        0 => {
            "No thread\nhas to be interrupted for it: each runs until it ends or waits.".to_owned()
        }
        1 => "One thread\nhas to be interrupted for it, at the step marked P.".to_owned(),
        many => {
            format!("Threads\nhave to be interrupted {many} times for it, at the steps marked P.")
        }
    };
    format!(
        "The steps above are one schedule under which the program fails. It was run twice, and it\n\
         has as few switches between threads as this failure allows. {preempted}\n\
         Read the steps from top to bottom: `reads from` says which step wrote the value that a step\n\
         reads. Where a step reads an older value although a newer one was written, the memory model\n\
         allows that; processors and compilers do so too.\n\n\
         This kind of bug is called {}.\n\n{}\n",
        kind_name(bug.kind),
        page(bug.kind)
    )
}

fn assumptions(report: &Report, verify: &args::Verify) -> String {
    let mut text = String::from("What the verdict assumes:\n");
    for (name, what) in facts::assumptions(report, verify) {
        text += &format!("  - {name}: {what}\n");
    }
    for note in &report.notes {
        text += &format!("  - {note}\n");
    }
    text + "  - the compiler translates the program as it did for this check\n"
}
