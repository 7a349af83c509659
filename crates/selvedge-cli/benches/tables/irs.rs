//! Section 5 of "Safe Execution of Concurrent Programs by Enforcement of Scheduling Constraints"
//! (Metzler, Saissi, Bokor, Suri): Figures 3 and 4 and the table of Appendix A, and long runs of
//! programs that fail when they run freely.

mod detection;
mod killed;
mod measure;
mod plot;
mod progress;
mod runs;
mod safety;
mod steps;

use std::fs;
use std::path::{Path, PathBuf};

use crate::Extent;
use crate::table::Table;
use measure::{Sample, Timer};
use plot::{Plot, Series};
use steps::Step;

/// A program of the document: its name there, our file, and the largest and the least overhead that
/// Appendix A has for it, without and with the choice of the prefix.
struct Benchmark {
    name: &'static str,
    file: &'static str,
    printed: &'static str,
}

const TWO_THREADS: [Benchmark; 6] = [
    benchmark("Bigshot", "bigshot.c", "5..3"),
    benchmark("Dekker", "dekker.c", "4..2"),
    benchmark("Fibonacci", "fibonacci.c", "13..6"),
    benchmark("Lamport", "lamport.c", "13..3"),
    benchmark("Peterson", "peterson.c", "9..-2"),
    benchmark("Shared Pointer", "shared_pointer.c", "22..4"),
];

const MANY_THREADS: [Benchmark; 2] = [
    benchmark("Indexer (15)", "indexer.c", "2716..-13, opt 2841..14"),
    benchmark("Last Zero (16)", "last_zero.c", "4288..-5, opt 94..14"),
];

const fn benchmark(name: &'static str, file: &'static str, printed: &'static str) -> Benchmark {
    Benchmark {
        name,
        file,
        printed,
    }
}

/// Prints the tables, and draws the figures.
pub(crate) fn print(extent: Extent) {
    let runs = if extent.full { 1000 } else { 200 };
    let results = Path::new(env!("CARGO_TARGET_TMPDIR")).join("irs");
    if let Err(error) = fs::create_dir_all(&results) {
        return println!("{}: {error}", results.display());
    }
    let timer = match Timer::build(&results) {
        Ok(timer) => timer,
        Err(why) => return println!("{why}"),
    };
    let figures = [
        (
            "Figure 3",
            "two threads",
            &TWO_THREADS[..],
            false,
            "figure3.svg",
        ),
        (
            "Figure 4",
            "many threads",
            &MANY_THREADS[..],
            true,
            "figure4.svg",
        ),
    ];
    for (figure, title, benchmarks, chosen, file) in figures {
        let mut plot = Plot::new(&format!("{figure}: {title}"), chosen);
        let title = format!("{figure} and Appendix A: {title}, median of {runs} runs");
        let heading = [
            "program",
            "constraints",
            "traces",
            "µs",
            "overhead%",
            "process%",
            "detection%",
            "printed%",
        ];
        let table = Table::new(&title, &heading);
        for benchmark in benchmarks {
            // An initial trace under which many threads wait, and then the one that the verifier
            // chooses.
            let ways: &[&[&str]] = if chosen {
                &[&["--order", "turns"], &[]]
            } else {
                &[&[]]
            };
            for (number, options) in ways.iter().enumerate() {
                let optimised = chosen && number == 1;
                match measure(&timer, benchmark, options, runs, &results) {
                    Ok(rows) => show(&table, &mut plot, benchmark, optimised, &rows),
                    Err(why) => table.remark(&why),
                }
            }
        }
        let path = results.join(file);
        let drawn = match fs::write(&path, plot.draw()) {
            Ok(()) => format!("drawn in {}", path.display()),
            Err(error) => format!("{}: {error}", path.display()),
        };
        table.end(&[
            "overhead: of the time inside of the process, prefix file and all; process: with starting it",
            "detection: what comparing events with what was proven takes inside of the process, in the fastest tenth of all runs",
            &drawn,
        ]);
    }
    safety::print(extent, &results);
    killed::print(extent, &results);
    progress::print(extent, &results);
}

/// One line of the table.
struct Row {
    step: Step,
    sample: Sample,
    plain: Sample,
    /// Without comparing events with what was proven.
    silent: Sample,
}

fn measure(
    timer: &Timer,
    benchmark: &Benchmark,
    options: &[&str],
    runs: usize,
    scratch: &Path,
) -> Result<Vec<Row>, String> {
    let source = source(benchmark.file);
    let plain = steps::compile(&source, scratch)?;
    let steps = steps::find(&source, options, scratch)?;
    let mut programs: Vec<(&Path, Option<&Path>)> = vec![(&plain, None)];
    programs.extend(
        steps
            .iter()
            .map(|step| (step.program.as_path(), Some(step.prefix.as_path()))),
    );
    let silent = steps.iter().map(|step| detection::without(&step.program));
    let silent: Vec<PathBuf> = silent.collect::<Result<_, _>>()?;
    let prefixes = steps.iter().map(|step| Some(step.prefix.as_path()));
    programs.extend(silent.iter().map(PathBuf::as_path).zip(prefixes));
    let samples = timer.run(&programs, runs)?;
    let (first, rest) = samples.split_first().ok_or("nothing was measured")?;
    let (enforced, silent) = rest.split_at(steps.len());
    let samples = enforced.iter().zip(silent);
    let rows = steps
        .iter()
        .zip(samples)
        .map(|(step, (sample, silent))| Row {
            step: step.clone(),
            sample: *sample,
            plain: *first,
            silent: *silent,
        });
    Ok(rows.collect())
}

fn source(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("benches/tables/programs/irs")
        .join(file)
}

fn show(table: &Table, plot: &mut Plot, benchmark: &Benchmark, optimised: bool, rows: &[Row]) {
    let name = match optimised {
        true => format!("{}, chosen", benchmark.name),
        false => benchmark.name.to_owned(),
    };
    let most = rows
        .iter()
        .map(|row| row.step.constraints)
        .max()
        .unwrap_or(0)
        .max(1);
    let mut points = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let overhead = row.sample.overhead(&row.plain);
        table.row(&[
            if number == 0 {
                name.clone()
            } else {
                String::new()
            },
            row.step.constraints.to_string(),
            row.step.traces.to_string(),
            format!("{:.0}", row.sample.inside),
            format!("{overhead:.0}"),
            format!("{:.0}", row.sample.outside_overhead(&row.plain)),
            format!("{:.1}", row.sample.undisturbed_overhead(&row.silent)),
            if number == 0 {
                benchmark.printed.to_owned()
            } else {
                String::new()
            },
        ]);
        points.push((100.0 * row.step.constraints as f64 / most as f64, overhead));
    }
    plot.add(Series { name, points });
}
