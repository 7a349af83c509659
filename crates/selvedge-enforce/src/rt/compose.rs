//! From a prefix file to a plan.

use selvedge_irs_format::{Class, Flags, Input, NONE, View};

use super::hash::hash;
use super::image;
use super::plan::{self, ANY, Event, Part, Place, Plan, Wait, space};

/// Until main creates its first thread, its events are counted, and nothing more.
pub(super) fn any(view: View<'_>) -> Result<&'static Plan, &'static str> {
    let mains = view.inputs().filter_map(|input| input.threads().next());
    let most = mains.map(|main| main.limit).max().unwrap_or(0);
    let none = Event {
        site: ANY,
        waits: (0, 0),
        awaited: false,
    };
    let events = space(most as usize, none);
    let main = Part {
        place: (NONE, 0),
        events: (0, events.len() as u32),
    };
    let places = places(view)?;
    places.sort_unstable();
    let plan = Plan {
        parts: space(1, main),
        events,
        places,
        undecided: true,
        strict: true,
        plain_events: view.flags().contains(Flags::PLAIN_EVENTS),
        ..plan::FREE
    };
    space(1, plan).first().ok_or(NO_MEMORY)
}

/// Why there is no plan.
pub(super) const NO_MEMORY: &str = "no memory for the prefix";

/// The places that the verifier knows, in the order of the file.
fn places(view: View<'_>) -> Result<&'static mut [Place], &'static str> {
    let unknown = Place {
        site: 0,
        counted: false,
    };
    let places = space(view.sites().len(), unknown);
    if places.len() != view.sites().len() {
        return Err(NO_MEMORY);
    }
    let plain_events = view.flags().contains(Flags::PLAIN_EVENTS);
    for (place, site) in places.iter_mut().zip(view.sites()) {
        let known = address(site.function, site.occurrence, site.offset);
        let counted = site.class == Class::Counted;
        // What happens after main is nobody's call.
        if site.function.is_empty() && !counted {
            continue;
        }
        let ordered = counted || plain_events && !site.alone;
        let Some(site) = known else {
            return Err("the prefix file names a function that the program does not have");
        };
        if ordered && is_removed(site, 0) || counted && is_removed(site, image::UNCOUNTED) {
            return Err("the prefix file needs what was taken out of the program: build it again");
        }
        *place = Place { site, counted };
    }
    Ok(places)
}

/// The prefix in the form that threads follow.
pub(super) fn one(view: View<'_>, input: Input<'_>) -> Result<&'static Plan, &'static str> {
    let threads = input.threads();
    let events = threads.map(|thread| thread.limit as usize).sum();
    let empty = Part {
        place: (0, 0),
        events: (0, 0),
    };
    let parts = space(input.threads().len(), empty);
    let nothing = Event {
        site: ANY,
        waits: (0, 0),
        awaited: false,
    };
    let list = space(events, nothing);
    let none = Wait {
        thread: 0,
        count: 0,
    };
    let waits = space(input.waits(), none);
    let places = places(view)?;
    let full = parts.len() == input.threads().len() && list.len() == events;
    if !full || waits.len() != input.waits() {
        return Err(NO_MEMORY);
    }
    let (mut first, mut waiting) = (0, 0);
    for (part, thread) in parts.iter_mut().zip(input.threads()) {
        *part = Part {
            place: (thread.parent, thread.child),
            events: (first as u32, thread.limit),
        };
        let mine = &mut list[first..first + thread.limit as usize];
        for (event, site) in mine.iter_mut().zip(thread.events()) {
            event.site = site.map_or(ANY, |site| places[site as usize].site);
        }
        for wait in thread.waits() {
            let event = &mut mine[wait.event as usize];
            if event.waits.1 == 0 {
                event.waits.0 = waiting as u32;
            }
            event.waits.1 += 1;
            waits[waiting] = Wait {
                thread: wait.thread,
                count: wait.count,
            };
            waiting += 1;
        }
        first += thread.limit as usize;
    }
    for wait in waits.iter() {
        let part = parts[wait.thread as usize];
        if wait.count > 0 && wait.count <= part.events.1 {
            list[part.events.0 as usize + wait.count as usize - 1].awaited = true;
        }
    }
    places.sort_unstable();
    let plan = space(
        1,
        Plan {
            parts,
            events: list,
            waits,
            places,
            strict: true,
            undecided: false,
            plain_events: view.flags().contains(Flags::PLAIN_EVENTS),
        },
    );
    plan.first().ok_or(NO_MEMORY)
}

/// Where a place of the verifier's is in this executable.
fn address(function: &str, occurrence: u32, offset: u32) -> Option<usize> {
    let name = hash(function.as_bytes(), occurrence);
    let functions = image::functions();
    let found = functions.binary_search_by_key(&name, |function| function.name);
    let function = functions[found.ok()?];
    (offset <= function.size).then(|| image::base() + function.start as usize + offset as usize)
}

fn is_removed(site: usize, how: u32) -> bool {
    let offset = (site - image::base()) as u32 | how;
    image::removed().binary_search(&offset).is_ok()
}
