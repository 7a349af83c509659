//! Who takes part in a run: brokers that ask for certificates and passwords, machines of another version, machines that
//! leave, and a second coordinator.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use selvedge_cluster::{Access, Cluster, Run};
use serde_json::json;

use super::{Broker, sandbox};
use crate::common::{Sandbox, wait_until, workers_of};
use crate::kills::{LONG, end};
use crate::scale::essence;

/// Makes an authority, and a certificate of it for the broker and its clients.
fn certificates(sandbox: &Sandbox) -> bool {
    sandbox.write("names", "subjectAltName=IP:127.0.0.1\n");
    let new = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2";
    let commands = [
        format!("req -x509 {new} -keyout ca.key -out ca.pem -subj /CN=authority"),
        format!("req {new} -keyout key.pem -out request.pem -subj /CN=broker"),
        "x509 -req -in request.pem -CA ca.pem -CAkey ca.key -CAcreateserial -out cert.pem -days 2 -extfile names"
            .to_owned(),
    ];
    commands.iter().all(|command| {
        let mut openssl = Command::new("openssl");
        openssl
            .args(command.split(' '))
            .current_dir(sandbox.path("."));
        let openssl = openssl.stdout(Stdio::null()).stderr(Stdio::null());
        openssl.status().is_ok_and(|status| status.success())
    })
}

#[test]
#[ignore = "needs nats-server"]
fn a_broker_may_ask_for_a_certificate_and_a_password() {
    let sandbox = sandbox();
    if !certificates(&sandbox) {
        println!("openssl is missing: TLS is not tested");
        return;
    }
    let options = "--tls --tlscert cert.pem --tlskey key.pem --tlsverify --tlscacert ca.pem --user me --pass secret";
    let broker = Broker::with(&sandbox, &options.split(' ').collect::<Vec<_>>());
    let url = |password: &str| format!("tls://me:{password}@127.0.0.1:{}", broker.port);
    let certificate = ["--tls-cert", "cert.pem", "--tls-key", "key.pem"];
    let all = [&["--tls-ca", "ca.pem"], &certificate[..]].concat();
    let right = url("secret");
    for (url, options, why) in [
        (&right, &certificate[..], "UnknownIssuer"),
        (&right, &all[..2], "BadCertificate"),
        (&url("guessed"), &all, "authorization violation"),
    ] {
        let outcome = sandbox.run(&[&["runs", url][..], options].concat());
        outcome
            .ends_with(4)
            .says("error: cannot connect to 127.0.0.1:")
            .says(why);
        assert!(!outcome.stderr.contains("secret"), "{outcome:?}");
    }
    let mut serve = sandbox.command(&[&["serve", &right, "--jobs", "1"][..], &all].concat());
    serve.env("TMPDIR", sandbox.path("served"));
    serve.stdout(Stdio::null()).stderr(Stdio::null());
    let mut machine = serve.spawn().unwrap();
    let verify = ["verify", "counters.c", "--cluster", &right];
    let outcome = sandbox.run(&[&verify[..], &all].concat());
    end(&mut machine);
    outcome.ends_with(0).prints("(34,650 executions");
}

/// A run of this name that another Selvedge would have begun.
fn foreign(broker: &Broker<'_>, name: &str, version: &str, architecture: &str) -> Run {
    let access = Access {
        url: broker.url(),
        credentials: None,
        authority: None,
        certificate: None,
        prefix: "selvedge".to_owned(),
    };
    let run = Cluster::connect(&access).unwrap().run(name);
    run.create().unwrap();
    let record = json!({
        "format": 1, "selvedge": version, "architecture": architecture, "state": "searching",
        "files": "queue.c", "program": "", "libraries": [], "coordinator": "elsewhere:1", "beat": 1,
        "executions": 0, "bugs": 0, "per_second": 0.0, "progress": 0.0, "seconds": 0.0, "machines": 0,
        "jobs": 0, "units": 1,
    });
    run.announce(record.to_string().into_bytes()).unwrap();
    run
}

#[test]
#[ignore = "needs nats-server"]
fn machines_of_another_version_or_architecture_do_not_take_part() {
    let sandbox = sandbox();
    let broker = Broker::start(&sandbox);
    let version = env!("CARGO_PKG_VERSION");
    let runs = [
        (
            foreign(&broker, "older", "0.0.9", std::env::consts::ARCH),
            "of Selvedge 0.0.9",
        ),
        (foreign(&broker, "other", version, "riscv64"), "for riscv64"),
    ];
    let heard = runs
        .each_ref()
        .map(|(run, why)| (run.reports().unwrap(), *why));
    let mut machine = broker.serve();
    for (reports, why) in &heard {
        // The coordinator of that run would warn of this.
        let report = reports.recv_timeout(Duration::from_secs(60)).unwrap();
        let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
        assert_eq!(report["jobs"], 0, "{report}");
        let refuses = report["refuses"].as_str().expect("a reason");
        assert!(refuses.contains(&format!("the run is {why}")), "{refuses}");
    }
    for (run, why) in &runs {
        let name = format!("{}/{}", broker.url(), run.name());
        // Its coordinator has never been heard of.
        let attach = sandbox.run(&["attach", &name]);
        attach.ends_with(2).says(&format!("the run is {why}"));
    }
    // It serves others all the same.
    broker.verify(&["counters.c"], "20ms").ends_with(0);
    end(&mut machine);
}

#[test]
#[ignore = "needs nats-server"]
fn a_machine_that_leaves_gives_its_units_back() {
    let sandbox = sandbox();
    sandbox.write("long.c", LONG);
    let broker = Broker::start(&sandbox);
    let url = broker.url();
    // Its slices would take until the end.
    let search = ["verify", "long.c", "--cluster", &url];
    let search = broker.command(&search, "1000000ms");
    for _ in 0..3 {
        let mut command = sandbox.command(&["serve", &url, "--jobs", "1"]);
        let machine = command
            .env("TMPDIR", sandbox.path("served"))
            .spawn()
            .unwrap();
        wait_until("it explores", || !workers_of(machine.id()).is_empty());
        std::thread::sleep(Duration::from_millis(500));
        let asked = Instant::now();
        kill(Pid::from_raw(machine.id() as i32), Signal::SIGTERM).unwrap();
        let output = machine.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{told}");
        assert!(told.contains(" units explored, "), "{told}");
        // Less than what another machine would wait for a unit that is not given back.
        assert!(asked.elapsed() < Duration::from_secs(20), "{told}");
    }
    let mut machine = broker.serve();
    let outcome = sandbox.finish(search);
    end(&mut machine);
    outcome.ends_with(0).prints("(369,600 executions");
}

#[test]
#[ignore = "needs nats-server"]
fn a_run_with_a_coordinator_is_followed() {
    let sandbox = sandbox();
    sandbox.write("long.c", LONG);
    let broker = Broker::start(&sandbox);
    let mut machine = broker.serve();
    let url = broker.url();
    let search = ["verify", "long.c", "--cluster", &url, "--format", "json"];
    let coordinator = broker.command(&search, "20ms");
    let mut run = None;
    wait_until("there is a run", || {
        run = broker.run();
        run.is_some()
    });
    let attach = ["attach", &run.unwrap(), "--format", "json"];
    let follower = sandbox.command(&attach).spawn().unwrap();
    let outputs = [coordinator, follower].map(|child| child.wait_with_output().unwrap());
    end(&mut machine);
    let [coordinator, follower] = outputs.map(|output| {
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{told}");
        essence(&serde_json::from_slice(&output.stdout).unwrap())
    });
    assert_eq!(coordinator, follower);
    assert_eq!(coordinator[1], 369_600);
    assert!(fs::read_dir(sandbox.path("tmp")).unwrap().next().is_none());
}
