//! A table printed row by row, so that something is seen while the next row is measured.

use std::io::{self, Write as _};

/// A table whose columns have their widths from the heading.
pub(crate) struct Table {
    widths: Vec<usize>,
}

impl Table {
    /// Prints `title` and the heading. The first column is wide and left-aligned, a column is
    /// otherwise as wide as its heading, and ten at least.
    pub(crate) fn new(title: &str, heading: &[&str]) -> Table {
        println!("## {title}\n");
        let widths = heading
            .iter()
            .enumerate()
            .map(|(at, column)| column.chars().count().max(if at == 0 { 32 } else { 10 }))
            .collect();
        let table = Table { widths };
        table.row(heading);
        let rule: Vec<String> = table
            .widths
            .iter()
            .map(|width| "-".repeat(*width))
            .collect();
        table.row(&rule);
        table
    }

    /// Prints one row.
    pub(crate) fn row<Cell: AsRef<str>>(&self, cells: &[Cell]) {
        let mut line = String::new();
        for (at, (cell, width)) in cells.iter().zip(&self.widths).enumerate() {
            let cell = cell.as_ref();
            match at {
                0 => line.push_str(&format!("{cell:<width$}")),
                _ => line.push_str(&format!("  {cell:>width$}")),
            }
        }
        println!("{}", line.trim_end());
        // A closed pipe is noticed at the next line at the latest.
        let _ = io::stdout().flush();
    }

    /// Prints a line that says something about the row above it.
    pub(crate) fn remark(&self, text: &str) {
        println!("    ^ {text}");
    }

    /// Ends the table with remarks, each on a line of its own.
    pub(crate) fn end(self, remarks: &[&str]) {
        for remark in remarks {
            println!("  {remark}");
        }
        println!();
    }
}
