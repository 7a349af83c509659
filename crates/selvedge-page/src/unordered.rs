//! Why two accesses are not ordered: the locks that their threads hold, and what a read of the other thread's
//! write lacks.

use selvedge_core::FailureKind;

use crate::{Advice, Bug, ReadsFrom, Step, numbered, thread_name};

/// Says in words which locks protect the two accesses and which read of the other side's write orders nothing.
/// Empty where there is nothing to say for certain.
pub fn unordered(bug: &Bug) -> String {
    locks(bug) + &reads(bug)
}

/// The locks that the threads of a race hold at their accesses, if there is any.
fn locks(bug: &Bug) -> String {
    let races = bug.kind == FailureKind::DataRace;
    let Some(other) = bug.other.as_ref().filter(|_| races) else {
        return String::new();
    };
    let Some(after) = other.after else {
        return String::new();
    };
    let last = bug.trace.len() as u32;
    let sides = [(bug.thread, last), (other.thread, after)];
    let held = sides.map(|(thread, last)| held(&bug.trace, thread, last));
    if held.iter().all(Vec::is_empty) {
        return String::new();
    }
    let common = held[0].iter().any(|lock| held[1].contains(lock));
    let said: Vec<String> = sides
        .iter()
        .zip(&held)
        .map(|((thread, _), held)| {
            let locks = match &held[..] {
                [] => "no lock".to_owned(),
                held => held.join(", "),
            };
            format!("{} holds {locks}", thread_name(*thread))
        })
        .collect();
    let why = match common {
        true => "; readers of a lock do not exclude each other",
        false if held.iter().all(|held| !held.is_empty()) => {
            "; different locks do not exclude each other"
        }
        false => "",
    };
    format!("At these accesses {}{why}.\n", said.join(" and "))
}

/// The locks that `thread` holds behind step `last`, in the order in which it took them.
fn held(trace: &[Step], thread: u32, last: u32) -> Vec<String> {
    let mut held: Vec<String> = Vec::new();
    let own = trace
        .iter()
        .take_while(|step| step.step <= last)
        .filter(|step| step.thread == thread);
    for step in own {
        let Some(object) = &step.object else { continue };
        let taken = match step.operation.as_str() {
            "lock" | "try-lock" | "write-lock" | "try-write-lock" => object.clone(),
            "read-lock" | "try-read-lock" => format!("{object} (for reading)"),
            "unlock" => {
                let reading = format!("{object} (for reading)");
                let known = held
                    .iter()
                    .rposition(|lock| lock == object || *lock == reading);
                known.map(|known| held.remove(known));
                continue;
            }
            _ => continue,
        };
        if step.wrote.is_some() {
            held.push(taken);
        }
    }
    held
}

/// Says which read of the other side's write orders nothing, and what it lacks. Empty where orders make
/// no difference, or where no such read can be blamed for certain.
fn reads(bug: &Bug) -> String {
    let races = matches!(bug.kind, FailureKind::DataRace | FailureKind::UseAfterFree);
    let helps = bug.advice.as_ref().is_some_and(Advice::changes_orders);
    let Some(other) = bug.other.as_ref().filter(|_| races && helps) else {
        return String::new();
    };
    let trace = &bug.trace;
    let reads = trace.iter().rev().filter(|step| step.thread == bug.thread);
    let blamed = reads
        .filter_map(|read| {
            let write = writer(trace, read)?;
            (write.thread == other.thread).then_some((write, read))
        })
        .find_map(|(write, read)| Some((write, read, lacks(trace, write, read)?)));
    let Some((write, read, lacks)) = blamed else {
        return String::new();
    };
    format!(
        "At step {} ({}) {} reads what {} wrote at step {} ({}), but that does not order what came before: {lacks}.\n",
        read.step,
        read.place,
        thread_name(read.thread),
        thread_name(write.thread),
        write.step,
        write.place,
    )
}

fn writer<'a>(trace: &'a [Step], read: &Step) -> Option<&'a Step> {
    match read.reads_from {
        Some(ReadsFrom::Step(number)) => numbered(trace, number),
        _ => None,
    }
}

/// The reason why the read does not synchronise with the write; `None` if there is none, or if a
/// fence or a release sequence may stand in for it.
fn lacks(trace: &[Step], write: &Step, read: &Step) -> Option<String> {
    let has = |step: &Step, orders: [&str; 3]| {
        let order = step.order.as_deref();
        order.is_some_and(|order| orders.contains(&order))
    };
    let releases = |step: &Step| has(step, ["release", "acq_rel", "seq_cst"]);
    let acquires = |step: &Step| has(step, ["acquire", "acq_rel", "seq_cst"]);
    let fence = |of: &Step, other: fn(u32, u32) -> bool| {
        let mut steps = trace.iter().filter(|step| other(step.step, of.step));
        steps.any(|step| step.thread == of.thread && step.operation == "fence")
    };
    let heads = std::iter::successors(Some(write), |update| writer(trace, update));
    let released =
        heads.take(trace.len()).any(releases) || fence(write, |fence, write| fence < write);
    let acquired = acquires(read) || fence(read, |fence, read| fence > read);
    let is = |step: &Step| {
        let order = step.order.as_deref()?;
        Some(format!("the {} is {order}", step.operation))
    };
    match (released, acquired) {
        (true, true) => None,
        (false, true) => Some(format!("{} and does not release it", is(write)?)),
        (true, false) => Some(format!("{} and does not acquire it", is(read)?)),
        (false, false) => Some(format!(
            "{} and does not release it, {} and does not acquire it",
            is(write)?,
            is(read)?
        )),
    }
}
