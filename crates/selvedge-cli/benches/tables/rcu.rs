//! Read-copy-update with injected faults: Tables 6.3 to 6.10 and 7.2 to 7.4 of the thesis.
//!
//! The document checks the kernel's own code; `examples/c/rcu_tree.c` is a reduction of the same
//! idea written for this project, with a fault for each of the document's. So the numbers are of
//! another size, and what can be compared is how an unbounded search and a bounded one relate.

use crate::Extent;
use crate::check::{Check, Checked};
use crate::table::Table;

/// A fault with the document's numbers for Linux 4.9.6: traces of DPOR with the running thread
/// first (Table 7.3), then bound and traces of Nidhugg-BPOR and of Lazy-BPOR (Table 7.4).
struct Fault {
    name: &'static str,
    dpor: &'static str,
    bpor: &'static str,
    lazy: &'static str,
}

const fn fault(
    name: &'static str,
    dpor: &'static str,
    bpor: &'static str,
    lazy: &'static str,
) -> Fault {
    Fault {
        name,
        dpor,
        bpor,
        lazy,
    }
}

const FAULTS: [Fault; 7] = [
    fault("ASSERT_0", "858", "3: 128", "2: 85"),
    fault("FORCE_FAILURE_1", "861", "4: 300", "3: 163"),
    fault("FORCE_FAILURE_2", "3", "1: 5", "0: 3"),
    fault("FORCE_FAILURE_3", "15349", "2: 258", "1: 233"),
    fault("FORCE_FAILURE_4", "27", "2: 24", "1: 17"),
    fault("FORCE_FAILURE_5", "112", "4: 60", "3: 52"),
    fault("FORCE_FAILURE_6", "2", "0: 2", "0: 2"),
];

const BOUNDS: std::ops::RangeInclusive<u32> = 0..=4;
const BOUNDED: &str = "naive-bpor,bpor,lazy-bpor,trust";

/// Prints the tables for one reader, and with `full` for two.
pub(crate) fn print(extent: Extent) {
    let sizes: &[u32] = if extent.full { &[1, 2] } else { &[1] };
    for &readers in sizes {
        let limit = if extent.full { 20 } else { 5 };
        print_for(readers, limit);
    }
}

fn check(readers: u32, limit: u32, fault: Option<&str>) -> Check {
    let check = Check::of("rcu_tree.c").with(&format!("--model sc --timeout {limit}"));
    let check = check.define("READERS", readers);
    match fault {
        Some(fault) => check.define(fault, 1),
        None => check,
    }
}

fn print_for(readers: u32, limit: u32) {
    let unbounded = unbounded(readers, limit);
    let least = bounded(readers, limit);
    compare(readers, &unbounded, &least);
}

/// `F` or `NF`, as the document writes whether the error was found.
fn found(run: &Checked) -> &'static str {
    match run.verdict.as_str() {
        "bug" => "F",
        _ => "NF",
    }
}

fn traces(run: &Checked) -> String {
    let more = if run.stopped() { ">" } else { "" };
    format!("{more}{} {}", run.traces(), found(run))
}

/// Like Table 6.3. Returns the traces of source-dpor and trust for each fault.
fn unbounded(readers: u32, limit: u32) -> Vec<[u64; 2]> {
    let title = format!("Table 6.3: RCU without a bound, {readers} reader(s)");
    let heading = [
        "fault",
        "source-dpor",
        "seconds",
        "trust",
        "seconds",
        "document",
    ];
    let table = Table::new(&title, &heading);
    let mut all = Vec::new();
    let names = FAULTS.map(|fault| (Some(fault.name), fault.dpor));
    for (name, document) in [(None, "57490")].into_iter().chain(names) {
        match check(readers, limit, name).compare("source-dpor,trust") {
            Ok(runs) => {
                table.row(&[
                    name.unwrap_or("-"),
                    &traces(&runs[0]),
                    &runs[0].seconds(),
                    &traces(&runs[1]),
                    &runs[1].seconds(),
                    document,
                ]);
                all.push([runs[0].traces(), runs[1].traces()]);
            }
            Err(error) => {
                table.row(&[name.unwrap_or("-"), &error]);
                all.push([0, 0]);
            }
        }
    }
    table.end(&["Traces until the error was found (F) or all were seen (NF). document: Linux 4.9.6, running thread first (Tables 6.10, 7.3)."]);
    all.split_off(1)
}

/// The least bound that shows a fault, and the traces until then.
type Least = Option<(u32, u64)>;

/// Like Tables 6.4 to 6.8. Returns for each fault the least bound and the traces of each algorithm.
fn bounded(readers: u32, limit: u32) -> Vec<[Least; 4]> {
    let title = format!("Tables 6.4 to 6.8: RCU within 0 to 4 preemptions, {readers} reader(s)");
    let heading = ["fault, bound", "naive-bpor", "bpor", "lazy-bpor", "trust"];
    let table = Table::new(&title, &heading);
    let mut all = Vec::new();
    let names = FAULTS.map(|fault| Some(fault.name));
    for name in [None].into_iter().chain(names) {
        let mut least: [Least; 4] = [None; 4];
        for bound in BOUNDS {
            let label = format!("{}, {bound}", name.unwrap_or("-"));
            let check = check(readers, limit, name).with(&format!("--preemptions {bound}"));
            match check.compare(BOUNDED) {
                Ok(runs) => {
                    let mut row = vec![label];
                    row.extend(runs.iter().map(traces));
                    table.row(&row);
                    for (least, run) in least.iter_mut().zip(&runs) {
                        if least.is_none() && found(run) == "F" {
                            *least = Some((bound, run.traces()));
                        }
                    }
                }
                Err(error) => table.row(&[label, error]),
            }
        }
        all.push(least);
    }
    table.end(&["Traces as above, those passed through beyond the bound included: lazy-bpor and trust have to, and tell of an error there too."]);
    all.split_off(1)
}

/// Like Tables 6.9, 6.10 and 7.2 to 7.4.
fn compare(readers: u32, unbounded: &[[u64; 2]], least: &[[Least; 4]]) {
    let title =
        format!("Tables 6.9, 6.10, 7.3 and 7.4: least bound and traces, {readers} reader(s)");
    let heading = [
        "fault",
        "source-dpor",
        "bpor",
        "lazy-bpor",
        "fewer",
        "trust",
        "trust within",
        "fewer",
        "DPOR",
        "Nidhugg-BPOR",
        "Lazy-BPOR",
    ];
    let table = Table::new(&title, &heading);
    let shown = |least: Least| {
        least.map_or("NF".to_owned(), |(bound, traces)| {
            format!("{bound}: {traces}")
        })
    };
    let fewer = |least: Least, all: u64| match least {
        None => "not found",
        Some((_, traces)) if traces < all => "yes",
        // The first execution shows the fault: nothing can be fewer.
        Some((_, traces)) if traces == all => "as many",
        Some(_) => "NO",
    };
    for ((fault, [source, trust]), least) in FAULTS.iter().zip(unbounded).zip(least) {
        table.row(&[
            fault.name,
            &source.to_string(),
            &shown(least[1]),
            &shown(least[2]),
            fewer(least[2], *source),
            &trust.to_string(),
            &shown(least[3]),
            fewer(least[3], *trust),
            fault.dpor,
            fault.bpor,
            fault.lazy,
        ]);
    }
    table.end(&[
        "K: N stands for the least bound K that shows the fault, and the traces until then; the last three columns are the document's.",
        "bpor keeps no sleep sets and visits executions many times over, so that it needs more traces than an unbounded search for small programs, \
         as the document found as well (Table 6.9).",
    ]);
}
