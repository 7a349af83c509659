//! Release-acquire with one execution per reads-from class: the paper's Tables 2 to 6.

use std::time::Instant;

use crate::Extent;
use crate::check::{Check, Checked};
use crate::table::Table;
use crate::tracer_cost;

/// A row: what the paper calls it, our program and its size, and what the paper has for TRACER.
struct Row {
    name: &'static str,
    program: &'static str,
    size: (&'static str, u32),
    /// How often a loop's condition is evaluated at most; 0 where nothing is cut.
    rounds: u32,
    executions: u64,
    seconds: f64,
    /// Only with `--full`.
    long: bool,
    /// Why there are not as many executions as in the paper.
    why: &'static str,
}

const fn row(
    name: &'static str,
    program: &'static str,
    size: u32,
    rounds: u32,
    (executions, seconds): (u64, f64),
) -> Row {
    let size = ("N", size);
    let (long, why) = (false, "");
    Row {
        name,
        program,
        size,
        rounds,
        executions,
        seconds,
        long,
        why,
    }
}

/// Says why a row differs from the paper's.
const fn but(row: Row, why: &'static str) -> Row {
    Row { why, ..row }
}

/// An own program of the same name: why there are not as many executions.
const OWN: &str = "another program: the paper prints neither its source nor where its fences are";
const FEWER: &str = "as many as the execution graphs fall into; why the paper has three fewer was not traced (docs/reads-from.md)";
const READERS: &str = "another program: no mix of readers and writers that was tried has both figures (docs/reads-from.md)";

const fn long(row: Row) -> Row {
    Row { long: true, ..row }
}

const fn sized(row: Row, by: &'static str) -> Row {
    let size = (by, row.size.1);
    Row { size, ..row }
}

const STANDARD: &[Row] = &[
    row("Indexer(13)", "indexer_mutex.c", 13, 0, (64, 0.04)),
    row("Indexer(14)", "indexer_mutex.c", 14, 0, (512, 0.38)),
    row("Indexer(15)", "indexer_mutex.c", 15, 0, (4096, 2.98)),
    row("Indexer(16)", "indexer_mutex.c", 16, 0, (32_768, 25.78)),
    sized(
        row("Filesystem(16)", "filesystem.c", 16, 0, (8, 0.01)),
        "THREADS",
    ),
    sized(
        row("Filesystem(19)", "filesystem.c", 19, 0, (64, 0.03)),
        "THREADS",
    ),
    sized(
        row("Filesystem(22)", "filesystem.c", 22, 0, (512, 0.33)),
        "THREADS",
    ),
    sized(
        row("Filesystem(25)", "filesystem.c", 25, 0, (4096, 3.12)),
        "THREADS",
    ),
];

const COMPETITION: &[Row] = &[
    row(
        "Pthread_demo",
        "critical_sections.c",
        10,
        0,
        (184_756, 18.0),
    ),
    long(row("Gcd", "gcd.c", 8, 0, (1_162_333, 168.0))),
    row("Fibonacci", "fibonacci.c", 5, 0, (525_630, 57.95)),
    but(
        long(row(
            "Szymanski *",
            "szymanski_rounds.c",
            3,
            2,
            (12_209_410, 894.0),
        )),
        OWN,
    ),
    but(
        long(row("Dekker *", "dekker_rounds.c", 2, 5, (3_121_870, 292.0))),
        OWN,
    ),
    but(
        long(row(
            "Lamport *",
            "lamport_rounds.c",
            2,
            3,
            (3_372_868, 418.0),
        )),
        OWN,
    ),
    row("Sigma(5)", "sigma_index.c", 5, 0, (120, 0.01)),
    long(row(
        "Peterson",
        "peterson_rounds.c",
        3,
        2,
        (1_897_228, 195.0),
    )),
    long(row(
        "Stack_true",
        "critical_sections.c",
        12,
        0,
        (2_704_156, 612.0),
    )),
    long(row("Queue_ok", "queue_ok.c", 5, 0, (362_880, 772.0))),
];

const SYNTHETIC: &[Row] = &[
    sized(
        row(
            "N_writers_a_reader(7)",
            "writers_a_reader.c",
            7,
            0,
            (8, 0.0),
        ),
        "WRITERS",
    ),
    sized(
        row(
            "N_writers_a_reader(8)",
            "writers_a_reader.c",
            8,
            0,
            (9, 0.0),
        ),
        "WRITERS",
    ),
    sized(
        row(
            "N_writers_a_reader(9)",
            "writers_a_reader.c",
            9,
            0,
            (10, 0.0),
        ),
        "WRITERS",
    ),
    sized(
        row(
            "N_writers_a_reader(10)",
            "writers_a_reader.c",
            10,
            0,
            (11, 0.0),
        ),
        "WRITERS",
    ),
    row("Redundant_co(5)", "redundant_co.c", 5, 0, (91, 0.01)),
    row("Redundant_co(10)", "redundant_co.c", 10, 0, (331, 0.02)),
    row("Redundant_co(15)", "redundant_co.c", 15, 0, (721, 0.06)),
    row("Redundant_co(20)", "redundant_co.c", 20, 0, (1261, 0.14)),
];

const PARAMETERS: &[Row] = &[
    row("Sigma(6)", "sigma_index.c", 6, 0, (720, 0.04)),
    row("Sigma(7)", "sigma_index.c", 7, 0, (5040, 0.4)),
    row("Sigma(8)", "sigma_index.c", 8, 0, (40_320, 3.28)),
    row("Sigma(9)", "sigma_index.c", 9, 0, (362_880, 33.59)),
    row("Control_flow(6)", "control_flow.c", 6, 0, (77, 0.01)),
    row("Control_flow(8)", "control_flow.c", 8, 0, (273, 0.03)),
    row("Control_flow(10)", "control_flow.c", 10, 0, (1045, 0.16)),
    row("Control_flow(12)", "control_flow.c", 12, 0, (4121, 0.79)),
    but(
        row(
            "Exponential_bug(6)",
            "exponential_bug.c",
            6,
            0,
            (15_601, 0.96),
        ),
        FEWER,
    ),
    but(
        row(
            "Exponential_bug(7)",
            "exponential_bug.c",
            7,
            0,
            (22_841, 1.46),
        ),
        FEWER,
    ),
    but(
        row(
            "Exponential_bug(8)",
            "exponential_bug.c",
            8,
            0,
            (32_313, 2.23),
        ),
        FEWER,
    ),
    but(
        row(
            "Exponential_bug(9)",
            "exponential_bug.c",
            9,
            0,
            (44_428, 3.22),
        ),
        FEWER,
    ),
];

const STRUCTURES: &[Row] = &[
    but(
        row("Linux_lock(2) *", "linux_lock.c", 2, 6, (21, 0.01)),
        READERS,
    ),
    but(
        row("Linux_lock(3) *", "linux_lock.c", 3, 6, (412_814, 33.21)),
        READERS,
    ),
    row("Ticket_mutex_c11(3)", "ticket_mutex.c", 3, 10, (4026, 0.25)),
    but(
        long(row(
            "Correia_Ramalhete(3) *",
            "correia_ramalhete.c",
            3,
            2,
            (5355, 0.92),
        )),
        OWN,
    ),
];

/// Prints the paper's tables, and then what the searches and the models cost.
pub(crate) fn print(extent: Extent) {
    let limits = &Limits::new(extent);
    compare("Table 2: standard benchmarks", STANDARD, limits, &[]);
    compare(
        "Table 3: programs of SV-COMP",
        COMPETITION,
        limits,
        &[
            "* another program: the paper prints neither the source nor where its fences are. Ours have an update of one variable after",
            "  each store that a load follows, and 3 entries of 2 rounds (Szymanski), 2 of 5 (Dekker), 2 of 3 (Lamport). Peterson, made in",
            "  the same way (3 entries of 2 rounds), has the paper's number. Without one of its fences Dekker has 2778397.",
            "Rows that take minutes come with --full only.",
        ],
    );
    compare("Table 4: synthetic programs", SYNTHETIC, limits, &[]);
    compare(
        "Table 5: parameterised programs",
        PARAMETERS,
        limits,
        &[
            "Exponential_bug: three more than the paper has for each N. For N = 6 there are 1203446 graphs, as many as it has",
            "for RCMC, and they fall into 15604 classes (docs/reads-from.md).",
        ],
    );
    compare(
        "Table 6: concurrent data structures",
        STRUCTURES,
        limits,
        &[
            "* another program: the paper does not print which threads it has. Ours write once each. Two threads with the same",
            "  code have an even number of classes, so the threads of Linux_lock(2), which has 21, differ in something.",
            "  Brute force counts 18 for ours as well. Correia_Ramalhete: the lock that is handed over, two rounds of each loop.",
        ],
    );
    tracer_cost::print(extent);
}

fn check(row: &Row, options: &str, timeout: u64) -> Result<Checked, String> {
    let (by, size) = row.size;
    let check = Check::of(row.program)
        .with(options)
        .with(&format!("--timeout {timeout}"))
        .define(by, size);
    match row.rounds {
        0 => check.run(),
        rounds => check.define("ROUNDS", rounds).run(),
    }
}

pub(crate) const READS_FROM: &str = "--model ra --equivalence reads-from";
pub(crate) const GRAPHS: &str = "--model ra";

/// One of the paper's tables.
fn compare(title: &str, rows: &[Row], limits: &Limits, remarks: &[&str]) {
    let heading = [
        "program",
        "executions",
        "paper's",
        "seconds",
        "paper's",
        "graphs",
        "seconds",
    ];
    let table = Table::new(title, &heading);
    for row in rows.iter().filter(|row| limits.full || !row.long) {
        let cells = |checked: &Result<Checked, String>| match checked {
            Ok(checked) => [checked.executions(), checked.seconds()],
            Err(error) => [
                error.lines().next().unwrap_or("?").to_owned(),
                String::new(),
            ],
        };
        let timeout = limits.of(limits.classes);
        let checked = check(row, READS_FROM, timeout);
        let [executions, seconds] = cells(&checked);
        let [all, graph_seconds] = cells(&check(row, GRAPHS, limits.of(limits.graphs)));
        table.row(&[
            row.name.to_owned(),
            executions,
            row.executions.to_string(),
            seconds,
            format!("{:.2}", row.seconds),
            all,
            graph_seconds,
        ]);
        if let Ok(checked) = checked {
            explain(&table, row, &checked, timeout);
        }
    }
    let about = "executions: one for each reads-from class; graphs: one for each (po, rf, co), under a short time limit";
    table.end(&[&[about], remarks].concat());
}

/// Says why a row does not have the paper's number, and how many executions a second there were where it did not end.
fn explain(table: &Table, row: &Row, checked: &Checked, timeout: u64) {
    if checked.stopped() {
        let rate = |executions: u64, seconds: f64| (executions as f64 / seconds.max(0.01)) as u64;
        table.remark(&format!(
            "not ended in {timeout} s: {} executions a second, the paper has {}",
            rate(checked.executions, checked.time.as_secs_f64()),
            rate(row.executions, row.seconds)
        ));
    }
    if checked.executions != row.executions && !row.why.is_empty() {
        table.remark(row.why);
    }
}

/// How long a row may take, in seconds, so that all of them together end.
struct Limits {
    full: bool,
    classes: u64,
    graphs: u64,
    started: Instant,
    all: u64,
}

impl Limits {
    fn new(extent: Extent) -> Limits {
        let (classes, graphs, all) = match extent.full {
            true => (240, 20, 1800),
            false => (60, 5, 300),
        };
        Limits {
            full: extent.full,
            classes,
            graphs,
            started: Instant::now(),
            all,
        }
    }

    /// As much of `seconds` as is left for all rows, but time enough for a short one.
    fn of(&self, seconds: u64) -> u64 {
        let left = self.all.saturating_sub(self.started.elapsed().as_secs());
        seconds.min(left).max(2)
    }
}
