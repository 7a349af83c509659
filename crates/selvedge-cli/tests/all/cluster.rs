//! Searches on several machines, here all on one: a broker, machines that serve, and a coordinator. They
//! need `nats-server`; `.ci/run` calls them where it is installed.
//!
//! `SELVEDGE_KILLS=100` kills processes this often, instead of ten times.

mod members;

use std::net::TcpListener;
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use selvedge_cluster::{Access, Cluster};

use crate::common::{Outcome, Sandbox, wait_until, workers_of};
use crate::confinement::{attack, distance, without_support};
use crate::kills::{LONG, Moments, end, kills};
use crate::scale::{COUNTERS, CRASH, NESTED, essence};

/// A broker that keeps its files.
struct Broker<'a> {
    sandbox: &'a Sandbox,
    port: u16,
    options: Vec<String>,
    server: Child,
}

impl<'a> Broker<'a> {
    fn start(sandbox: &'a Sandbox) -> Broker<'a> {
        Broker::with(sandbox, &[])
    }

    /// One with these options, which is started in the sandbox.
    fn with(sandbox: &'a Sandbox, options: &[&str]) -> Broker<'a> {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let options: Vec<String> = options.iter().copied().map(str::to_owned).collect();
        let server = Broker::server(sandbox, port, &options);
        Broker {
            sandbox,
            port,
            options,
            server,
        }
    }

    fn server(sandbox: &Sandbox, port: u16, options: &[String]) -> Child {
        let mut command = Command::new("nats-server");
        command.args(["-js", "-a", "127.0.0.1", "-p", &port.to_string(), "-sd"]);
        command.arg(sandbox.path("broker")).args(options);
        command.current_dir(sandbox.path("."));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let server = command.spawn().expect("nats-server starts");
        wait_until("the broker listens", || {
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        server
    }

    fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Kills it, and starts it again with the same files.
    fn restart(&mut self) {
        end(&mut self.server);
        self.server = Broker::server(self.sandbox, self.port, &self.options);
    }

    fn serve(&self) -> Child {
        let url = self.url();
        let mut command = self.sandbox.command(&["serve", &url, "--jobs", "1"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        // Killed machines leave their files behind.
        command.env("TMPDIR", self.sandbox.path("served"));
        command.spawn().unwrap()
    }

    fn command(&self, arguments: &[&str], slice: &str) -> Child {
        let mut command = self.sandbox.command(arguments);
        command.env("SELVEDGE_SLICE", slice);
        command.spawn().unwrap()
    }

    fn verify(&self, arguments: &[&str], slice: &str) -> Outcome {
        let url = self.url();
        let cluster = ["--cluster", &url, "--format", "json", "--no-advice"];
        let arguments = [&["verify"], arguments, &cluster].concat();
        self.sandbox.finish(self.command(&arguments, slice))
    }

    /// The run that goes on, as users name it.
    fn run(&self) -> Option<String> {
        let url = self.url();
        // Coordinators that were killed have left files behind.
        let mut command = self.sandbox.command(&["runs", &url, "--format", "json"]);
        let listed = command.output().unwrap();
        let runs: serde_json::Value = serde_json::from_slice(&listed.stdout).ok()?;
        let mut runs = runs.as_array()?.iter();
        let run = runs.find(|run| run["state"] == "searching")?;
        Some(run["run"].as_str()?.to_owned())
    }
}

impl Drop for Broker<'_> {
    fn drop(&mut self) {
        end(&mut self.server);
    }
}

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::with("counters.c", COUNTERS);
    sandbox.write("nested.c", NESTED);
    sandbox.write("crash.c", CRASH);
    std::fs::create_dir(sandbox.path("served")).unwrap();
    sandbox
}

/// Whatever the sender says: on its own machine, where the bug is repeated, it is free to say so.
#[test]
#[ignore = "needs nats-server"]
fn programs_of_others_are_confined() {
    let sandbox = sandbox();
    let broker = Broker::start(&sandbox);
    let mut machine = broker.serve();
    let call = format!("find({}L)(\"victim\");", distance(&sandbox, "unlink"));
    sandbox.write("attack.c", &attack(&call));
    let outcome = broker.verify(&["attack.c", "--no-confinement"], "1");
    end(&mut machine);
    assert_eq!(outcome.ends_with(1).json()["bug"]["kind"], "forbidden-call");
}

#[test]
#[ignore = "needs nats-server"]
fn a_machine_that_cannot_confine_does_not_serve() {
    let (sandbox, sender) = (sandbox(), sandbox());
    let broker = Broker::start(&sandbox);
    let url = broker.url();
    let mut search = sender.command(&["verify", "counters.c", "--cluster", &url]);
    let mut search = search.spawn().unwrap();
    let outcome = without_support(&sandbox, &["serve", &url, "--jobs", "1"]);
    end(&mut search);
    outcome
        .ends_with(4)
        .says("this system cannot confine programs (");
}

#[test]
#[ignore = "needs nats-server"]
fn a_cluster_finds_what_one_process_finds() {
    let sandbox = sandbox();
    let broker = Broker::start(&sandbox);
    let mut machines = [broker.serve(), broker.serve()];
    for (arguments, slice) in [
        (&["counters.c"][..], "20ms"),
        (&["nested.c"], "1"),
        (&["nested.c", "--keep-going"], "1"),
        (&["nested.c", "--preemptions", "1", "--model", "sc"], "10"),
        (&["crash.c"], "1"),
    ] {
        let alone = ["--jobs", "1", "--format", "json", "--no-advice"];
        let alone = sandbox.run(&[&["verify"], arguments, &alone].concat());
        let together = broker.verify(arguments, slice);
        assert_eq!(essence(&together.json()), essence(&alone.json()));
        assert_eq!(together.status, alone.status);
    }
    let url = broker.url();
    sandbox
        .run(&["runs", &url])
        .prints("done: 34,650 executions");
    for machine in &mut machines {
        end(machine);
    }
    // A run that nobody explores can be stopped, listed, and continued.
    let stopped = broker.verify(&["counters.c", "--timeout", "1"], "20ms");
    let resume = stopped.ends_with(3).json()["resume"].clone();
    let run = resume.as_str().unwrap().strip_prefix("selvedge attach ");
    let run = run.expect("the command that continues it").to_owned();
    sandbox.run(&["runs", &url]).prints("stopped at 0%");
    machines[0] = broker.serve();
    let attach = sandbox.run(&["attach", &run]);
    attach.ends_with(0).prints("(34,650 executions");
    // Whoever comes later sees the same.
    let attach = sandbox.run(&["attach", &run]);
    attach.ends_with(0).prints("(34,650 executions");
    end(&mut machines[0]);
    let name = run.rsplit('/').next().unwrap();
    sandbox.run(&["runs", &url, "--remove", name]).ends_with(0);
    sandbox
        .run(&["attach", &run])
        .ends_with(2)
        .says("error: there is no run");
    sandbox
        .run(&["verify", "counters.c", "--cluster", &url, "--iterative"])
        .ends_with(2)
        .says("error: --cluster cannot be combined with --iterative");
}

#[test]
#[ignore = "needs nats-server"]
fn runs_can_be_listed_while_their_records_change() {
    let sandbox = sandbox();
    let broker = Broker::start(&sandbox);
    let access = Access {
        url: broker.url(),
        credentials: None,
        authority: None,
        certificate: None,
        prefix: "listed".to_owned(),
    };
    let cluster = Cluster::connect(&access).unwrap();
    let run = cluster.run("busy");
    let mut revision = run.announce(b"0".to_vec()).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let updated = run.update(b"1".to_vec(), revision).unwrap();
                revision = updated.expect("nobody else writes it");
            }
        });
        let names = || cluster.runs().unwrap().into_iter().map(|entry| entry.name);
        let listed: Vec<_> = (0..500).flat_map(|_| names()).collect();
        done.store(true, Ordering::Relaxed);
        assert_eq!(listed, ["busy"; 500]);
    });
}

/// Kills somebody at random moments of searches, until that has happened often enough, five times in each: searches to
/// the end, up to a bug, for all bugs, and with a bound, in turns. `somebody` tells whether anybody was killed.
fn killing(mut somebody: impl FnMut(&mut Broker<'_>, &mut [Child; 2], &mut Child) -> bool) {
    let sandbox = sandbox();
    sandbox.write("long.c", LONG);
    // Coordinators that are killed leave files behind.
    let quiet = Sandbox::with("long.c", LONG);
    let searches = [
        &["long.c"][..],
        &["long.c", "--", "-DBUG=2"],
        &["long.c", "--preemptions", "3", "--model", "sc"],
        &["long.c", "--keep-going", "--", "-DBUG=0"],
    ];
    let mut broker = Broker::start(&sandbox);
    let mut machines = [broker.serve(), broker.serve()];
    let (mut moments, mut done) = (Moments::new(), 0);
    let first = moments.next(0..4).as_millis() as usize;
    for search in searches.iter().cycle().skip(first) {
        if done >= kills() {
            break;
        }
        let command = ["verify", "--format", "json", "--no-advice"];
        let alone = quiet.run(&[&command[..], search].concat());
        let url = broker.url();
        let mut child = broker.command(
            &[&command[..], &["--cluster", &url], search].concat(),
            "20ms",
        );
        wait_until("a worker explores", || {
            let busy = |machine: &Child| !workers_of(machine.id()).is_empty();
            machines.iter().any(busy) || child.try_wait().unwrap().is_some()
        });
        let most = kills().min(done + 5);
        while done < most {
            std::thread::sleep(moments.next(50..500));
            if child.try_wait().unwrap().is_some() {
                break;
            }
            done += u32::from(somebody(&mut broker, &mut machines, &mut child));
        }
        let start = Instant::now();
        let outcome = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&outcome.stdout);
        let says = String::from_utf8_lossy(&outcome.stderr);
        let json = serde_json::from_str(&text).unwrap_or_else(|why| panic!("{why}: {text}{says}"));
        assert_eq!(essence(&json), essence(&alone.json()), "{search:?}{says}");
        assert!(
            start.elapsed() < Duration::from_secs(120),
            "it takes too long"
        );
    }
    machines.iter_mut().for_each(end);
}

#[test]
#[ignore = "needs nats-server"]
fn machines_that_are_killed_lose_nothing() {
    let mut turn = 0;
    killing(|broker, machines, _| {
        turn += 1;
        end(&mut machines[turn % 2]);
        machines[turn % 2] = broker.serve();
        true
    });
}

#[test]
#[ignore = "needs nats-server"]
fn workers_of_machines_that_are_killed_lose_nothing() {
    killing(|_, machines, _| {
        let mut workers = machines.iter().flat_map(|machine| workers_of(machine.id()));
        workers
            .next()
            .is_some_and(|worker| kill(Pid::from_raw(worker as i32), Signal::SIGKILL).is_ok())
    });
}

#[test]
#[ignore = "needs nats-server"]
fn a_coordinator_that_is_killed_is_replaced() {
    killing(|broker, _, coordinator| {
        let Some(run) = broker.run() else {
            return false;
        };
        end(coordinator);
        *coordinator = broker.command(&["attach", &run, "--format", "json"], "20ms");
        true
    });
}

#[test]
#[ignore = "needs nats-server"]
fn a_broker_that_is_killed_comes_back() {
    killing(|broker, _, _| {
        broker.restart();
        true
    });
}
