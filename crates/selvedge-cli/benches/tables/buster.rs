//! Preemption bounds: which bound finds which bug, what a bound leaves of the executions, and what the check
//! of the bound costs.

use crate::Extent;
use crate::check::{Check, Checked};
use crate::table::Table;

/// A program, the macros that set its size, and the row of the document that it is like.
type Row = (
    &'static str,
    &'static [(&'static str, u64)],
    &'static str,
    &'static [&'static str],
);

/// Prints the paper's tables.
pub(crate) fn print(extent: Extent) {
    let seconds = if extent.full { 60 } else { 5 };
    buggy(
        "Table 1: at which bound bugs show (executions until then, an x if it was found)",
        "--model sc --plain sc",
        TABLE_1,
        seconds,
    );
    buggy(
        "Table 2: clients of a queue and a stack, the first operation of one thread without its compare-exchange",
        "--model sc",
        TABLE_2,
        seconds,
    );
    safe(seconds);
    overhead(extent);
    every_bound();
}

const TABLE_1: &[Row] = &[
    (
        "account_lost_update.c",
        &[],
        "account-bad",
        &["3", "3 x", "3 x", "3 x"],
    ),
    (
        "bluetooth.c",
        &[],
        "bluetooth-driver-bad",
        &["1", "3 x", "7 x", "8 x"],
    ),
    (
        "philosophers.c",
        &[],
        "din-phil-sat",
        &["0 x", "0 x", "0 x", "0 x"],
    ),
    ("lazy.c", &[], "lazy01-bad", &["0 x", "0 x", "0 x", "0 x"]),
    (
        "stack_mutex_buggy.c",
        &[],
        "stack-bad",
        &["11", "10 x", "10 x", "10 x"],
    ),
    (
        "token_ring.c",
        &[],
        "token-ring-bad",
        &["12 x", "12 x", "12 x", "12 x"],
    ),
    (
        "wrong_lock.c",
        &[("OTHERS", 3)],
        "wronglock-bad",
        &["5914", "2 x", "2 x", "2 x"],
    ),
    (
        "sigma_buggy.c",
        &[],
        "sigma-unsafe",
        &["0 x", "0 x", "0 x", "0 x"],
    ),
    (
        "triangular_false.c",
        &[("ROUNDS", 5)],
        "triangular-2-unsafe",
        &["6", "66", "368", "9069 x"],
    ),
    (
        "reorder.c",
        &[("SETTERS", 3)],
        "reorder-2",
        &["417", "6 x", "2 x", "2 x"],
    ),
    (
        "reorder.c",
        &[("SETTERS", 6)],
        "reorder-20-bad",
        &[">", ">", ">", "10 x"],
    ),
    ("twostage.c", &[], "twostage-100-bad", &[">", ">", ">", ">"]),
];

const TABLE_2: &[Row] = &[
    (
        "queue_client.c",
        &[("BUG", 1), ("OPERATIONS", 5)],
        "ms-queue-bug(6)",
        &["84 x", "1366 x", "9906 x", ">"],
    ),
    (
        "queue_client.c",
        &[("BUG", 1), ("OPERATIONS", 6)],
        "ms-queue-bug(7)",
        &["103 x", "1936 x", ">", ">"],
    ),
    (
        "queue_client.c",
        &[("BUG", 1), ("THREADS", 3), ("OPERATIONS", 3)],
        "ms-queue-bug(8)",
        &["124 x", "2636 x", ">", ">"],
    ),
    (
        "stack_client.c",
        &[("BUG", 1), ("OPERATIONS", 5)],
        "bstack(7)",
        &["2", "19 x", "83 x", ">"],
    ),
    (
        "stack_client.c",
        &[("BUG", 1), ("OPERATIONS", 6)],
        "bstack(8)",
        &["2", "22 x", "111 x", ">"],
    ),
    (
        "stack_client.c",
        &[("BUG", 1), ("THREADS", 3), ("OPERATIONS", 4)],
        "stack-oe-bug(7)",
        &["122", "3435", "1638 x", ">"],
    ),
];

/// Bugs with bounds 0, 1 and 2 and without one.
fn buggy(title: &str, options: &str, rows: &[Row], seconds: u32) {
    let heading = [
        "program",
        "k=0",
        "s",
        "k=1",
        "s",
        "k=2",
        "s",
        "no bound",
        "s",
        "the document's",
    ];
    let table = Table::new(title, &heading);
    for &(program, sizes, theirs, figures) in rows {
        let mut cells = vec![named(program, sizes)];
        for bound in [Some(0), Some(1), Some(2), None] {
            let (executions, time) = cell(&run(program, sizes, options, bound, seconds));
            cells.extend([executions, time]);
        }
        cells.push(format!("{theirs}: {}", figures.join(", ")));
        table.row(&cells);
    }
    table.end(&[
        "x: the bug was found; >: the time limit came first.",
        "A bug that is met beyond the bound, on the way, is reported too, where the document's tool was told not to.",
        "The programs are like those of the document in kind, not in size.",
    ]);
}

/// Table 3: how many executions are within small bounds.
fn safe(seconds: u32) {
    let rows: &[Row] = &[
        (
            "spin_client.c",
            &[("ROUNDS", 7)],
            "ttas-lock2(7)",
            &["2", "14", "86", "266", "3432"],
        ),
        (
            "spin_client.c",
            &[("ROUNDS", 8)],
            "ttas-lock2(8)",
            &["2", "16", "114", "408", "12870"],
        ),
        (
            "spin_client.c",
            &[("THREADS", 3), ("ROUNDS", 4)],
            "ttas-lock3(4)",
            &["21", "195", "1041", "3525", "34650"],
        ),
        (
            "locked_stack.c",
            &[("OPERATIONS", 8)],
            "bstack2(8)",
            &["2", "16", "114", "408", "12870"],
        ),
        (
            "locked_stack.c",
            &[("OPERATIONS", 9)],
            "bstack2(9)",
            &["2", "18", "146", "594", "48620"],
        ),
    ];
    let heading = [
        "program",
        "k=0",
        "k=1",
        "k=2",
        "k=3",
        "no bound",
        "beyond k=3",
        "s (k=3)",
        "s",
        "the document's",
    ];
    let table = Table::new("Table 3: executions within the bound", &heading);
    for &(program, sizes, theirs, figures) in rows {
        let mut cells = vec![named(program, sizes)];
        let mut times = Vec::new();
        for bound in [Some(0), Some(1), Some(2), Some(3), None] {
            let checked = run(program, sizes, "--model sc", bound, seconds);
            let (executions, time) = cell(&checked);
            cells.push(executions);
            if bound.is_none_or(|bound| bound == 3) {
                times.push(time);
            }
            if bound == Some(3) {
                let beyond = checked.map_or(0, |checked| checked.over_bound);
                times.insert(0, beyond.to_string());
            }
        }
        cells.extend(times);
        cells.push(format!("{theirs}: {}", figures.join(", ")));
        table.row(&cells);
    }
    table.end(&[
        "Three threads without a preemption can only come in 3! = 6 orders: the document's larger numbers probably count what slack adds.",
    ]);
}

/// Table 4: time with a bound that leaves nothing out, over time without one.
fn overhead(extent: Extent) {
    let table = Table::new(
        "Table 4: overhead of the check of the bound, where nothing is pruned",
        &[
            "program",
            "executions",
            "b",
            "k=b",
            "k=b+1",
            "k=b+2",
            "s",
            "the document's",
        ],
    );
    let mut rows: Vec<Row> = vec![
        (
            "treiber_ops.c",
            &[("WRITERS", 5)],
            "treiber(6,0)",
            &["0", "10%", "6%", "4%"],
        ),
        (
            "treiber_ops.c",
            &[("WRITERS", 3), ("READERS", 2)],
            "treiber(3,2)",
            &["1", "6%", "5%", "5%"],
        ),
        (
            "treiber_ops.c",
            &[("WRITERS", 3), ("READERS", 3)],
            "treiber(3,3)",
            &["1", "7%", "6%", "5%"],
        ),
        (
            "spin_client.c",
            &[("THREADS", 7), ("ROUNDS", 1)],
            "ttas-lock(7)",
            &["0", "38%", "25%", "16%"],
        ),
        (
            "spin_client.c",
            &[("THREADS", 8), ("ROUNDS", 1)],
            "ttas-lock(7)",
            &["0", "38%", "25%", "16%"],
        ),
    ];
    if extent.full {
        rows.push((
            "treiber_ops.c",
            &[("WRITERS", 4), ("READERS", 2)],
            "treiber(4,2)",
            &["1", "9%", "7%", "5%"],
        ));
    }
    for (program, sizes, theirs, figures) in rows {
        let fastest = |bound| fastest(program, sizes, bound);
        let Some(unbounded) = fastest(None) else {
            continue;
        };
        let all =
            |checked: &Checked| checked.executions + checked.over_bound == unbounded.executions;
        let least = (0..6).find(|&bound| {
            run(program, sizes, "--model sc", Some(bound), 60).is_ok_and(|checked| all(&checked))
        });
        let Some(least) = least else {
            table.row(&[
                named(program, sizes),
                unbounded.executions(),
                "more than 5".to_owned(),
            ]);
            continue;
        };
        let mut cells = vec![
            named(program, sizes),
            unbounded.executions(),
            least.to_string(),
        ];
        for bound in least..=least + 2 {
            let cell = fastest(Some(bound)).map(|checked| {
                let more = checked.time.as_secs_f64() / unbounded.time.as_secs_f64() - 1.0;
                format!("{:.0}%", 100.0 * more)
            });
            cells.push(cell.unwrap_or_else(|| "?".to_owned()));
        }
        cells.push(unbounded.seconds());
        cells.push(format!("{theirs}: {}", figures.join(", ")));
        table.row(&cells);
    }
    table.end(&["b: the least bound with which every execution is visited."]);
}

/// The quickest of three runs.
fn fastest(program: &str, sizes: &[(&str, u64)], bound: Option<u32>) -> Option<Checked> {
    let runs = (0..3).filter_map(|_| run(program, sizes, "--model sc", bound, 60).ok());
    runs.min_by_key(|checked| checked.time)
}

/// A program on which the published implementation was seen to take a hundred times longer with a bound.
fn every_bound() {
    let table = Table::new(
        "Four threads, five to nine accesses each: time with a bound over time without one",
        &["bound", "executions", "beyond", "s", "ratio"],
    );
    let mut unbounded = f64::NAN;
    for bound in [None].into_iter().chain((0..10).map(Some)) {
        let Some(checked) = fastest("four_threads.c", &[], bound) else {
            continue;
        };
        let seconds = checked.time.as_secs_f64();
        if bound.is_none() {
            unbounded = seconds;
        }
        table.row(&[
            bound.map_or("none".to_owned(), |bound| bound.to_string()),
            checked.executions(),
            checked.over_bound.to_string(),
            checked.seconds(),
            format!("{:.2}", seconds / unbounded),
        ]);
    }
    table.end(&[]);
}

fn run(
    program: &str,
    sizes: &[(&str, u64)],
    options: &str,
    bound: Option<u32>,
    seconds: u32,
) -> Result<Checked, String> {
    let mut check = Check::of(program)
        .with(options)
        .with(&format!("--timeout {seconds}"));
    if let Some(bound) = bound {
        check = check.with(&format!("--preemptions {bound}"));
    }
    for (name, size) in sizes {
        check = check.define(name, size);
    }
    check.run()
}

/// Executions and seconds.
fn cell(checked: &Result<Checked, String>) -> (String, String) {
    match checked {
        Ok(checked) => {
            let executions = match checked.verdict.as_str() {
                "bug" => format!("{} x", checked.executions),
                "incomplete" => format!(">{}", checked.executions),
                _ => checked.executions.to_string(),
            };
            (executions, checked.seconds())
        }
        Err(error) => (
            error.lines().next().unwrap_or("?").to_owned(),
            String::new(),
        ),
    }
}

fn named(program: &str, sizes: &[(&str, u64)]) -> String {
    let name = program.trim_end_matches(".c");
    let sizes: Vec<String> = sizes
        .iter()
        .filter(|(name, _)| *name != "BUG")
        .map(|(_, size)| size.to_string())
        .collect();
    match sizes.is_empty() {
        true => name.to_owned(),
        false => format!("{name}({})", sizes.join(",")),
    }
}
