//! A picture of a prefix: a column for each thread, its counted events from top to bottom, and an
//! arrow from each event that is waited for to the one that waits.

use std::fmt::Write as _;

use selvedge_irs_format::{Input, View, Wait};

const COLUMN: u32 = 150;
const ROW: u32 = 34;
const TOP: u32 = 60;
const LEFT: u32 = 80;

/// For each thread and event how many events come before it on the longest way along program order
/// and waits.
pub(super) fn depths(input: Input<'_>) -> Vec<Vec<u32>> {
    let limits: Vec<u32> = input.threads().map(|thread| thread.limit).collect();
    let waits: Vec<Vec<Wait>> = input
        .threads()
        .map(|thread| thread.waits().collect())
        .collect();
    let mut depths: Vec<Vec<u32>> = vec![Vec::new(); limits.len()];
    loop {
        let mut progress = false;
        for thread in 0..limits.len() {
            while (depths[thread].len() as u32) < limits[thread] {
                let event = depths[thread].len() as u32;
                let mut depth = depths[thread].last().map_or(0, |before| before + 1);
                let here = waits[thread].iter().filter(|wait| wait.event == event);
                let mut ready = true;
                for wait in here {
                    match depths[wait.thread as usize].get(wait.count as usize - 1) {
                        Some(&source) => depth = depth.max(source + 1),
                        None => ready = false,
                    }
                }
                if !ready {
                    break;
                }
                depths[thread].push(depth);
                progress = true;
            }
        }
        // Waits of one trace have no cycle; a foreign file might.
        if !progress {
            return depths;
        }
    }
}

/// Draws what `input` asks for.
pub(super) fn draw(view: View<'_>, input: Input<'_>) -> String {
    let depths = depths(input);
    let shown: Vec<usize> = (0..depths.len())
        .filter(|&t| !depths[t].is_empty())
        .collect();
    let column = |thread: usize| {
        let index = shown.iter().position(|&other| other == thread);
        LEFT + COLUMN * index.unwrap_or(0) as u32
    };
    let row = |depth: u32| TOP + ROW * depth;
    let deepest = depths.iter().flatten().max().copied().unwrap_or(0);
    let width = LEFT + COLUMN * shown.len().max(1) as u32;
    let height = row(deepest) + ROW + 10;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <defs><marker id=\"end\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" \
         markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\"/></marker></defs>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    if shown.is_empty() {
        let _ = writeln!(svg, "<text x=\"10\" y=\"30\">nothing is enforced</text>");
    }
    for &thread in &shown {
        let (x, last) = (column(thread), depths[thread].len() - 1);
        let (from, to) = (row(depths[thread][0]), row(depths[thread][last]));
        let _ = writeln!(
            svg,
            "<text x=\"{x}\" y=\"24\" text-anchor=\"middle\" font-weight=\"bold\">T{thread}</text>\n\
             <line x1=\"{x}\" y1=\"{from}\" x2=\"{x}\" y2=\"{to}\" stroke=\"#bbb\"/>"
        );
    }
    for (thread, part) in input.threads().enumerate() {
        for wait in part.waits() {
            let source = wait.thread as usize;
            let ends = (
                depths[source].get(wait.count as usize - 1),
                depths[thread].get(wait.event as usize),
            );
            let (Some(&from), Some(&to)) = ends else {
                continue;
            };
            let right = column(thread) > column(source);
            let gap = |x: u32, towards: bool| if towards { x + 6 } else { x - 6 };
            let colour = if wait.bug > 0 { "#c00" } else { "black" };
            let _ = writeln!(
                svg,
                "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"{colour}\" \
                 marker-end=\"url(#end)\"/>",
                gap(column(source), right),
                row(from),
                gap(column(thread), !right),
                row(to),
            );
        }
        for (event, (&depth, site)) in depths[thread].iter().zip(part.events()).enumerate() {
            let (x, y) = (column(thread), row(depth));
            let waits = part.waits().any(|wait| wait.event as usize == event);
            let fill = if waits { "#f2b134" } else { "#8fb8de" };
            let label = match site.map(|site| view.site(site)) {
                Some(site) if site.line > 0 => format!("{}:{}", short(site.file), site.line),
                Some(site) => site.function.to_owned(),
                None => "varies".to_owned(),
            };
            let _ = writeln!(
                svg,
                "<circle cx=\"{x}\" cy=\"{y}\" r=\"5\" fill=\"{fill}\" stroke=\"black\"/>\n\
                 <text x=\"{}\" y=\"{}\">{event}: {}</text>",
                x + 9,
                y + 4,
                escaped(&label),
            );
        }
    }
    svg.push_str("</svg>\n");
    svg
}

fn short(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
