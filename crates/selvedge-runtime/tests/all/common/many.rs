//! Many random programs in one file: main runs the one that the explorer chooses, so they are compiled at
//! once.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use selvedge_core::graph::{Graph, Kind};
use selvedge_core::model::Model;
use selvedge_core::trust::{self, Bug, Ending, Observer};
use selvedge_core::{ThreadId, Value};
use selvedge_runtime::Settings;

use super::Program;

/// The C code of several programs.
pub struct ManyPrograms {
    text: String,
    count: u32,
}

impl ManyPrograms {
    /// No program yet, after `head`.
    pub fn new(head: &str) -> ManyPrograms {
        ManyPrograms {
            text: head.to_owned(),
            count: 0,
        }
    }

    /// Adds a program whose threads have these functions.
    pub fn add(&mut self, threads: &[String]) {
        let (number, all) = (self.count, threads.len());
        let text = &mut self.text;
        for (me, body) in threads.iter().enumerate() {
            let _ = writeln!(
                text,
                "static void *p{number}t{me}(void *p) {{ {body} return 0; }}"
            );
        }
        let _ = writeln!(text, "static void p{number}(void) {{ pthread_t t[{all}];");
        for me in 0..all {
            let _ = writeln!(text, "pthread_create(t + {me}, 0, p{number}t{me}, 0);");
        }
        // No loop, which bounds on loops would cut.
        for me in 0..all {
            let _ = writeln!(text, "pthread_join(t[{me}], 0);");
        }
        text.push_str("}\n");
        self.count += 1;
    }

    /// Adds main, which does `end` after the program that was chosen.
    pub fn finish(self, end: &str) -> String {
        let (mut text, all) = (self.text, self.count);
        let _ = writeln!(text, "int main(void) {{ switch (selvedge_choose({all})) {{");
        for number in 0..all {
            let _ = writeln!(text, "case {number}: p{number}(); break;");
        }
        let _ = writeln!(text, "}}\n{end}\nreturn 0; }}");
        text
    }
}

/// The results of each program.
#[derive(Default)]
pub struct ByProgram {
    pub executions: BTreeMap<u32, u64>,
    /// The values that main reads and writes.
    pub finals: BTreeMap<u32, BTreeSet<Vec<Value>>>,
    /// The programs with an execution that does not end.
    pub stuck: BTreeSet<u32>,
}

fn choice(graph: &Graph) -> u32 {
    graph.event(graph.thread(ThreadId::MAIN)[0]).choice
}

impl<M> Observer<M> for ByProgram {
    fn complete(&mut self, graph: &Graph) {
        let main = graph.thread(ThreadId::MAIN).iter();
        let accessed = main.filter_map(|&slot| {
            let event = graph.event(slot);
            match event.kind {
                Kind::Read => Some(event.read),
                Kind::Write => Some(event.wrote),
                _ => None,
            }
        });
        let accessed = accessed.collect();
        *self.executions.entry(choice(graph)).or_default() += 1;
        self.finals
            .entry(choice(graph))
            .or_default()
            .insert(accessed);
    }

    fn stuck(&mut self, graph: &Graph) {
        self.stuck.insert(choice(graph));
    }
}

/// Searches all of `program`.
pub fn explore<C: Model>(program: &Program, settings: Settings) -> (ByProgram, Vec<Bug>) {
    let mut machine = program.load(settings);
    let mut all = ByProgram::default();
    let settings = trust::Settings {
        keep_going: true,
        preemptions: None,
    };
    let report = trust::search::<C, _>(&mut machine, settings, &mut all);
    assert_eq!(report.ending, Ending::Complete);
    (all, report.bugs)
}
