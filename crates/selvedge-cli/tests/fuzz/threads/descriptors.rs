//! Random C programs whose threads share a pipe, a socket pair or an eventfd.

use selvedge_testkit::random::Random;

/// A shared descriptor and its operations.
#[derive(Clone, Copy)]
struct Shared {
    eventfd: bool,
    /// Reads wait. Only main reads then.
    blocking: bool,
    /// Every thread closes an end of its own, and main reads up to the end.
    closed: bool,
}

/// The text of the program that `seed` stands for.
pub(super) fn program(seed: u64) -> String {
    let mut random = Random::new(seed);
    let eventfd = random.once_in(3);
    let blocking = random.once_in(2);
    let shared = Shared {
        eventfd,
        blocking,
        closed: blocking && !eventfd && random.once_in(2),
    };
    let mut text = super::generate::prelude() + include_str!("descriptors.h");
    let threads = 2;
    for thread in 1..=threads {
        text += &format!(
            "\nstatic void *thread{thread}(void *argument) {{
    struct start *start = argument; unsigned seen = 0; long count;
    begin({thread}, {threads});"
        );
        // The first one always writes, so that a read of main comes to an end.
        if thread == 1 {
            text += &format!(
                "\n    delay(); SEE(put(start->to, {}));",
                1 + random.below(2)
            );
        }
        for _ in 0..1 + random.below(2) - u64::from(thread == 1 && shared.closed) {
            text += "\n    delay(); ";
            text += &operation(&mut random, shared, "start->to");
        }
        if shared.closed {
            text += "\n    close(start->to);";
        }
        text += "\n    start->result = seen;\n    return argument;\n}";
    }
    text + &outcome(&mut random, shared, threads)
}

/// The function that starts the threads.
fn outcome(random: &mut Random, shared: Shared, threads: u64) -> String {
    let nonblocking = |flag: &str| match shared.blocking {
        true => "0".to_owned(),
        false => flag.to_owned(),
    };
    let open = match (shared.eventfd, random.once_in(2)) {
        (true, semaphore) => format!(
            "numbers = 1; from = to = eventfd(0, {} | {});",
            if semaphore { "EFD_SEMAPHORE" } else { "0" },
            nonblocking("EFD_NONBLOCK"),
        ),
        (false, true) => format!(
            "int both[2]; pipe2(both, {}); from = both[0]; to = both[1];",
            nonblocking("O_NONBLOCK")
        ),
        (false, false) => format!(
            "int both[2]; socketpair(AF_UNIX, SOCK_STREAM | {}, 0, both); from = both[0]; to = both[1];",
            nonblocking("SOCK_NONBLOCK")
        ),
    };
    let mut text = format!(
        "\nAS_WRITTEN unsigned outcome(void) {{
    unsigned seen = 0; long count; struct start starts[{threads}]; pthread_t ids[{threads}];
    {open}"
    );
    let own = if shared.closed { "dup(to)" } else { "to" };
    for thread in 0..threads {
        text += &format!("\n    starts[{thread}].to = {own};");
    }
    for thread in 0..threads {
        text += &format!(
            "\n    pthread_create(&ids[{thread}], 0, thread{}, &starts[{thread}]);",
            thread + 1
        );
    }
    if shared.closed {
        text += "\n    close(to);\n    do SEE(get(&count)); while (count > 0);";
    } else if shared.blocking {
        let wait = [
            "",
            "SEE(look(from, POLLIN, -1)); ",
            "SEE(look_by_epoll(from, EPOLLIN, -1)); ",
        ];
        text += &format!("\n    {}SEE(get(&count));", wait[random.below(3) as usize]);
    } else {
        text += "\n    delay(); ";
        text += &operation(random, shared, "to");
    }
    for thread in 0..threads {
        text += &format!("\n    pthread_join(ids[{thread}], 0); SEE(starts[{thread}].result);");
    }
    if !shared.blocking {
        text += "\n    do SEE(get(&count)); while (count > 0);";
    }
    text + "\n    return fold(seen);\n}\n"
}

fn operation(random: &mut Random, shared: Shared, to: &str) -> String {
    let place = if random.once_in(3) { to } else { "from" };
    // A poll for nothing still tells of an end that was closed.
    let events = ["POLLIN", "POLLOUT", "POLLIN | POLLOUT", "0"][random.below(4) as usize];
    match random.below(4) {
        0 if !shared.blocking => "SEE(get(&count));".to_owned(),
        0 | 1 => format!("SEE(put({to}, {}));", 1 + random.below(2)),
        2 => format!("SEE(look({place}, {events}, 0));"),
        _ => format!("SEE(look_by_epoll({place}, {events}, 0));"),
    }
}
