//! Tables 1 and 2 and the comparisons of Figures 1 to 8.
//!
//! The models are written for this project after the descriptions in Table 1, so states and lengths
//! are of another size; what can be compared is how the two searches relate.

use std::collections::BTreeSet;

use crate::Extent;
use crate::check::{Check, Checked};
use crate::table::Table;

/// A model of Table 1.
struct Model {
    /// Its name there.
    name: &'static str,
    program: &'static str,
    /// Macros that make it what it is.
    defines: &'static [(&'static str, u32)],
    options: &'static str,
    /// Table 2: different counterexamples, their length, their context switches, by CSDR and by
    /// reachability.
    document: Option<[&'static str; 6]>,
    /// The figure that shows its times.
    figure: Option<&'static str>,
}

const fn model(name: &'static str, program: &'static str) -> Model {
    Model {
        name,
        program,
        defines: &[],
        options: "",
        document: None,
        figure: None,
    }
}

const MODELS: [Model; 11] = [
    Model {
        defines: &[("BUG", 1)],
        options: "--spurious-wakeups",
        document: Some(["1", "3", "22", "22-27", "1", "1-4"]),
        ..model("barrier-1-bug", "csdr/barrier.c")
    },
    Model {
        options: "--spurious-wakeups",
        ..model("barrier", "csdr/barrier.c")
    },
    Model {
        defines: &[("BUG", 1)],
        document: Some(["4", "99", "90-91", "90-98", "12", "16-28"]),
        figure: Some("4"),
        ..model("barrier-1-re-bug", "csdr/barrier_re.c")
    },
    Model {
        defines: &[("BUG", 2)],
        document: Some(["1", "97", "68", "65-98", "4", "8-18"]),
        figure: Some("3: CSDR 23 times faster"),
        ..model("barrier-1-re-bug-2", "csdr/barrier_re.c")
    },
    Model {
        defines: &[("BUG", 3)],
        document: Some(["4", "100", "120", "120-123", "8", "14-31"]),
        ..model("barrier-1-re-bug-test", "csdr/barrier_re.c")
    },
    Model {
        figure: Some("1: about the same"),
        ..model("barrier-1-re", "csdr/barrier_re.c")
    },
    Model {
        defines: &[("BUG", 1)],
        document: Some(["1", "41", "38", "38-53", "1", "1-10"]),
        figure: Some("5"),
        ..model("barrier-n-bug", "csdr/barrier_n.c")
    },
    Model {
        defines: &[("BUG", 1)],
        document: Some(["8", "48", "165-171", "164-172", "4", "10-16"]),
        figure: Some("6"),
        ..model("fifo-bug", "csdr/fifo.c")
    },
    Model {
        defines: &[("ITEMS", 40)],
        figure: Some("2: about the same"),
        ..model("fifo", "csdr/fifo.c")
    },
    Model {
        document: Some(["1", "56", "29", "23-31", "8", "9-15"]),
        figure: Some("8"),
        ..model("mutex-partial-deadlock", "csdr/partial_deadlock.c")
    },
    Model {
        document: Some(["13", "90", "32-78", "22-37", "9", "10-17"]),
        figure: Some("7: CSDR 1000 times slower"),
        ..model("mutex-partial-deadlock-2", "csdr/partial_deadlock_2.c")
    },
];

/// Prints all of it. With `full`, more runs of each.
pub(crate) fn print(extent: Extent) {
    let runs = if extent.full { 20 } else { 3 };
    println!("Each search is run {runs} times with one process and {runs} times with two.\n");
    let measured: Vec<[Series; 3]> = MODELS
        .iter()
        .map(|model| ["csdr", "csdr-exact", "bfs"].map(|name| series(model, name, runs)))
        .collect();
    print_table_1(&measured);
    print_table_2(&measured);
    print_figures(&measured);
    print_costs(runs.min(5));
}

/// Several runs of one search.
struct Series {
    runs: Result<Vec<Checked>, String>,
}

fn series(model: &Model, algorithm: &str, runs: u32) -> Series {
    let all = [1, 2]
        .into_iter()
        .flat_map(|jobs| (0..runs).map(move |_| jobs));
    Series {
        runs: all
            .map(|jobs| check(model, algorithm, jobs).run())
            .collect(),
    }
}

fn check(model: &Model, algorithm: &str, jobs: u32) -> Check {
    let options = format!(
        "--model sc --algorithm {algorithm} --jobs {jobs} --timeout 60 {}",
        model.options
    );
    let check = Check::of(model.program).with(&options);
    let defines = model.defines.iter();
    defines.fold(check, |check, (name, value)| check.define(name, value))
}

impl Series {
    /// The first run.
    fn first(&self) -> Result<&Checked, &str> {
        match &self.runs {
            Ok(runs) => runs.first().ok_or("no run"),
            Err(error) => Err(error.lines().next().unwrap_or("failed")),
        }
    }

    fn count(&self, key: &str) -> String {
        match self.first() {
            Ok(run) => run.report[key].to_string(),
            Err(error) => error.to_owned(),
        }
    }

    fn bug(&self, key: &str) -> String {
        match self.first() {
            Ok(run) if run.verdict == "bug" => match key {
                "length" => {
                    let trace = run.report["bug"]["trace"].as_array();
                    trace.map_or(0, Vec::len).to_string()
                }
                _ => run.report["bug"][key].to_string(),
            },
            Ok(_) => "-".to_owned(),
            Err(error) => error.to_owned(),
        }
    }

    /// How many different counterexamples the runs came up with.
    fn different(&self) -> String {
        let Ok(runs) = &self.runs else {
            return "?".to_owned();
        };
        let schedules: BTreeSet<String> = runs
            .iter()
            .map(|run| run.report["bug"]["trace"].to_string())
            .collect();
        schedules.len().to_string()
    }

    /// The median of the times of the runs with one process or two, in milliseconds.
    fn median(&self, jobs: usize) -> String {
        let Ok(runs) = &self.runs else {
            return "?".to_owned();
        };
        let half = runs.len() / 2;
        let mut times: Vec<f64> = runs[(jobs - 1) * half..jobs * half]
            .iter()
            .map(|run| run.time.as_secs_f64() * 1000.0)
            .collect();
        times.sort_by(f64::total_cmp);
        format!("{:.1}", times[times.len() / 2])
    }
}

fn print_table_1(measured: &[[Series; 3]]) {
    let heading = [
        "model", "verdict", "csdr", "exact", "bfs", "csdr", "exact", "bfs",
    ];
    let table = Table::new("Table 1: states, then states per second", &heading);
    for (model, searches) in MODELS.iter().zip(measured) {
        let verdict = match searches[0].first() {
            Ok(run) => run.verdict.clone(),
            Err(error) => error.to_owned(),
        };
        let mut row = vec![model.name.to_owned(), verdict];
        row.extend(searches.iter().map(|series| series.count("states")));
        row.extend(searches.iter().map(|series| match series.first() {
            Ok(run) => {
                let states = run.report["states"].as_u64().unwrap_or(0) as f64;
                format!("{:.0}", states / run.time.as_secs_f64().max(1e-9))
            }
            Err(_) => "?".to_owned(),
        }));
        table.row(&row);
    }
    table.end(&[
        "States until the bug was found, or all of them. One process. Small searches are over before they are at speed.",
    ]);
}

fn print_table_2(measured: &[[Series; 3]]) {
    let heading = [
        "model",
        "CEs csdr",
        "exact",
        "bfs",
        "length csdr",
        "exact",
        "bfs",
        "CSs csdr",
        "exact",
        "bfs",
    ];
    let table = Table::new(
        "Table 2: counterexamples, their length and context switches",
        &heading,
    );
    for (model, searches) in MODELS.iter().zip(measured) {
        let Some(document) = model.document else {
            continue;
        };
        let mut row = vec![model.name.to_owned()];
        row.extend(searches.iter().map(Series::different));
        row.extend(searches.iter().map(|series| series.bug("length")));
        row.extend(searches.iter().map(|series| series.bug("context_switches")));
        table.row(&row);
        let [ce, ce_bfs, length, length_bfs, switches, switches_bfs] = document;
        table.row(&[
            "  document",
            ce,
            "",
            ce_bfs,
            length,
            "",
            length_bfs,
            switches,
            "",
            switches_bfs,
        ]);
    }
    table.end(&[
        "Different counterexamples of all runs, with one process and with two. document: 120 runs of DIVINE, csdr and",
        "reachability, with 1 to 6 threads.",
    ]);
}

fn print_figures(measured: &[[Series; 3]]) {
    let heading = [
        "model", "csdr, 1", "csdr, 2", "exact, 1", "exact, 2", "bfs, 1", "bfs, 2", "figure",
    ];
    let title = "Figures 1 to 8: milliseconds with one process and with two, median";
    let table = Table::new(title, &heading);
    for (model, searches) in MODELS.iter().zip(measured) {
        let mut row = vec![model.name.to_owned()];
        for series in searches {
            row.extend([series.median(1), series.median(2)]);
        }
        row.push(model.figure.unwrap_or("-").to_owned());
        table.row(&row);
    }
    table.end(&["The document's times are in plots; figure: the number of the plot, and the ratio where the text gives one."]);
}

/// Larger ones of the models that are verified.
const LARGE: [Model; 3] = [
    Model {
        defines: &[("ITEMS", 40)],
        ..model("fifo, 40 items", "csdr/fifo.c")
    },
    Model {
        defines: &[("ITEMS", 120)],
        ..model("fifo, 120 items", "csdr/fifo.c")
    },
    Model {
        defines: &[("N", 3)],
        ..model("barrier-1-re, 3 threads", "csdr/barrier_re.c")
    },
];

/// The cost of a state, and the gain of a second process: by the clock, and by the processor time
/// of the busier one, which other programs on the machine disturb less.
fn print_costs(runs: u32) {
    let heading = [
        "model",
        "states",
        "bytes/state",
        "states/s",
        "s, 1",
        "s, 2",
        "gain",
        "cpu s, 1",
        "cpu s, 2",
        "gain",
    ];
    let title = "What a state costs (csdr), with one process and with two";
    let table = Table::new(title, &heading);
    for model in &LARGE {
        match costs(model, runs) {
            Ok(row) => table.row(&row),
            Err(error) => table.row(&[model.name, error.lines().next().unwrap_or("failed")]),
        }
    }
    table.end(&[
        "The best of several runs, by turns. cpu s, 2: of the process that took more. bytes/state: with one process, all",
        "that is kept to tell states apart, to go back to them and to show how they were reached.",
    ]);
}

fn costs(model: &Model, runs: u32) -> Result<Vec<String>, String> {
    let (mut wall, mut busiest) = ([f64::MAX; 2], [f64::MAX; 2]);
    let mut last = None;
    for _ in 0..runs {
        for jobs in [2, 1] {
            let run = check(model, "csdr", jobs).run()?;
            if run.report["verdict"] == "incomplete" {
                // The time of a search that was stopped is that of the limit.
                let reason = run.report["reason"].as_str().unwrap_or("incomplete");
                return Err(format!("{jobs} processes: {reason}"));
            }
            let place = jobs as usize - 1;
            wall[place] = wall[place].min(run.time.as_secs_f64());
            let times = run.report["processor_seconds"].as_array();
            let times = times.into_iter().flatten().filter_map(|time| time.as_f64());
            busiest[place] = busiest[place].min(times.fold(0.0, f64::max));
            last = Some(run.report);
        }
    }
    let report = last.ok_or("no run")?;
    let count = |key: &str| report[key].as_f64().unwrap_or(0.0);
    let states = count("states");
    let [one, two] = wall;
    let [alone, together] = busiest;
    Ok(vec![
        model.name.to_owned(),
        format!("{states}"),
        format!("{:.1}", count("bytes") / states.max(1.0)),
        format!("{:.0}", states / alone.max(1e-9)),
        format!("{one:.2}"),
        format!("{two:.2}"),
        format!("{:.2}", one / two.max(1e-9)),
        format!("{alone:.2}"),
        format!("{together:.2}"),
        format!("{:.2}", alone / together.max(1e-9)),
    ])
}
