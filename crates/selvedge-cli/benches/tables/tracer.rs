//! Release-acquire with one execution per reads-from class.

use crate::Extent;
use crate::check::Check;
use crate::table::Table;

/// Prints the paper's tables.
pub(crate) fn print(extent: Extent) {
    let table = Table::new(
        "N writers and a reader, RA, reads-from",
        &["program", "executions", "N+1", "seconds"],
    );
    let sizes: &[u64] = if extent.full {
        &[10, 50, 100, 500]
    } else {
        &[10, 50, 100]
    };
    for &writers in sizes {
        let checked = Check::of("writers_a_reader.c")
            .with("--model ra --equivalence reads-from")
            .define("WRITERS", writers)
            .run();
        match checked {
            Ok(checked) => table.row(&[
                format!("writers_a_reader({writers})"),
                checked.executions(),
                (writers + 1).to_string(),
                checked.seconds(),
            ]),
            Err(error) => table.row(&[format!("writers_a_reader({writers}): {error}")]),
        }
    }
    table.end(&[]);
}
