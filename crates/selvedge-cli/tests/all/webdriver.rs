//! A browser without a window, driven through ChromeDriver's protocol.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

/// Keys that are no characters.
pub(crate) const DOWN: &str = "\u{e015}";
pub(crate) const UP: &str = "\u{e013}";
pub(crate) const HOME: &str = "\u{e011}";
pub(crate) const END: &str = "\u{e010}";
pub(crate) const LEFT: &str = "\u{e012}";
pub(crate) const RIGHT: &str = "\u{e014}";
pub(crate) const PAGE_UP: &str = "\u{e00e}";
pub(crate) const PAGE_DOWN: &str = "\u{e00f}";
pub(crate) const ESCAPE: &str = "\u{e00c}";

pub(crate) struct Browser {
    driver: Child,
    port: u16,
    session: String,
    _profile: TempDir,
}

impl Browser {
    pub(crate) fn start() -> Browser {
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver is installed");
        let mut lines = BufReader::new(driver.stdout.take().expect("a pipe")).lines();
        let port = loop {
            let line = lines
                .next()
                .expect("chromedriver tells its port")
                .expect("a line");
            if let Some((_, port)) = line.rsplit_once("started successfully on port ") {
                break port.trim_end_matches('.').parse().expect("a port");
            }
        };
        // Its later output is not needed, but must not block it.
        std::thread::spawn(move || lines.for_each(drop));
        let profile = tempfile::tempdir().expect("a directory");
        let mut browser = Browser {
            driver,
            port,
            session: String::new(),
            _profile: profile,
        };
        let arguments = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            "--window-size=1280,900",
        ];
        let profile = format!("--user-data-dir={}", browser._profile.path().display());
        let arguments: Vec<&str> = arguments.into_iter().chain([profile.as_str()]).collect();
        let created = browser.call(
            "POST",
            "/session",
            &json!({ "capabilities": { "alwaysMatch": {
                "goog:chromeOptions": { "args": arguments },
                "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" },
            } } }),
        );
        browser.session = created["sessionId"].as_str().expect("a session").to_owned();
        browser
    }

    fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        let mut stream =
            TcpStream::connect(("127.0.0.1", self.port)).expect("chromedriver listens");
        let body = body.to_string();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.port,
            body.len()
        );
        stream
            .write_all(request.as_bytes())
            .expect("the request is sent");
        let mut reader = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).expect("a header");
            if line == "\r\n" {
                break;
            }
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length");
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).expect("an answer");
        let answer: Value = serde_json::from_slice(&body).expect("JSON");
        let value = answer["value"].clone();
        assert!(value["error"].is_null(), "{method} {path}: {value:#}");
        value
    }

    fn session(&self, path: &str, body: &Value) -> Value {
        self.call("POST", &format!("/session/{}{path}", self.session), body)
    }

    /// Opens a file.
    pub(crate) fn open(&self, file: &Path) {
        self.open_at(file, "");
    }

    /// Opens a file at a fragment.
    pub(crate) fn open_at(&self, file: &Path, fragment: &str) {
        // Opening the same file again would only change the fragment.
        self.session("/url", &json!({ "url": "about:blank" }));
        self.session(
            "/url",
            &json!({ "url": format!("file://{}{fragment}", file.display()) }),
        );
    }

    /// Sets the size of the page, also to that of a telephone.
    pub(crate) fn resize(&self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500 });
        let command = json!({ "cmd": "Emulation.setDeviceMetricsOverride", "params": size });
        self.session("/goog/cdp/execute", &command);
    }

    /// Runs the body of a function, and returns its result.
    pub(crate) fn run(&self, script: &str) -> Value {
        self.session("/execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// The text of the first element that `selector` matches.
    pub(crate) fn text(&self, selector: &str) -> String {
        let selector = Value::from(selector);
        let text = self.run(&format!(
            "return document.querySelector({selector})?.innerText ?? ''"
        ));
        text.as_str().unwrap_or_default().to_owned()
    }

    /// How many elements `selector` matches.
    pub(crate) fn count(&self, selector: &str) -> u64 {
        let selector = Value::from(selector);
        let count = self.run(&format!(
            "return document.querySelectorAll({selector}).length"
        ));
        count.as_u64().expect("a number")
    }

    /// Clicks with the mouse in the middle of an element.
    pub(crate) fn click(&self, selector: &str) {
        let found = self.session(
            "/element",
            &json!({ "using": "css selector", "value": selector }),
        );
        let element = found.as_object().expect("an element");
        let id = element
            .values()
            .next()
            .and_then(Value::as_str)
            .expect("its name");
        self.session(&format!("/element/{id}/click"), &json!({}));
    }

    /// Presses keys one after the other.
    pub(crate) fn press(&self, keys: &[&str]) {
        let actions: Vec<Value> = keys
            .iter()
            .flat_map(|key| {
                [
                    json!({ "type": "keyDown", "value": key }),
                    json!({ "type": "keyUp", "value": key }),
                ]
            })
            .collect();
        let keyboard = json!({ "type": "key", "id": "keyboard", "actions": actions });
        self.session("/actions", &json!({ "actions": [keyboard] }));
    }

    /// Turns the wheel over an element.
    pub(crate) fn scroll(&self, selector: &str, by: i64) {
        let selector = Value::from(selector);
        self.run(&format!(
            "document.querySelector({selector}).scrollTop += {by}"
        ));
        // Drawing happens in the next frame.
        self.session(
            "/execute/async",
            &json!({ "script": "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done))", "args": [] }),
        );
    }

    /// Turns the wheel over the middle of an element, downwards if `by` is positive.
    pub(crate) fn wheel(&self, selector: &str, by: i64) {
        let (x, y) = self.middle(selector);
        let action = json!({ "type": "scroll", "x": x, "y": y, "deltaX": 0, "deltaY": by });
        let wheel = json!({ "type": "wheel", "id": "wheel", "actions": [action] });
        self.session("/actions", &json!({ "actions": [wheel] }));
    }

    /// Presses the mouse in the middle of an element, moves it by so much and lets it go.
    pub(crate) fn drag(&self, selector: &str, (right, down): (i64, i64)) {
        let (x, y) = self.middle(selector);
        let actions = json!([
            { "type": "pointerMove", "x": x, "y": y },
            { "type": "pointerDown", "button": 0 },
            { "type": "pointerMove", "x": x + right, "y": y + down, "duration": 50 },
            { "type": "pointerUp", "button": 0 },
        ]);
        let mouse = json!({ "type": "pointer", "id": "mouse", "parameters": { "pointerType": "mouse" }, "actions": actions });
        self.session("/actions", &json!({ "actions": [mouse] }));
    }

    /// The middle of an element, in pixels of the window.
    fn middle(&self, selector: &str) -> (i64, i64) {
        let selector = Value::from(selector);
        let middle = self.run(&format!(
            "const box = document.querySelector({selector}).getBoundingClientRect();
             return [Math.round(box.left + box.width / 2), Math.round(box.top + box.height / 2)]"
        ));
        let part = |n: usize| middle[n].as_i64().expect("a number");
        (part(0), part(1))
    }

    /// Checks that the page said nothing on the console and asked for no file but itself.
    #[track_caller]
    pub(crate) fn is_clean(&self, file: &Path) {
        let console = self.session("/se/log", &json!({ "type": "browser" }));
        assert_eq!(console, json!([]), "{}", file.display());
        let events = self.session("/se/log", &json!({ "type": "performance" }));
        let own = format!("file://{}", file.display());
        for event in events.as_array().expect("events") {
            let message: Value =
                serde_json::from_str(event["message"].as_str().expect("a message")).expect("JSON");
            let message = &message["message"];
            if message["method"] == "Network.requestWillBeSent" {
                let url = message["params"]["request"]["url"]
                    .as_str()
                    .unwrap_or_default();
                // The browser's own start page is not ours.
                let by = message["params"]["documentURL"]
                    .as_str()
                    .unwrap_or_default();
                let expected = !by.starts_with(&own) || url.split('#').next() == Some(&own);
                assert!(expected, "the page asks for {url}");
            }
        }
    }

    /// Opens each view of a page on a telephone, where nothing may be wider than the screen, and checks that the page
    /// [is clean](Browser::is_clean).
    #[track_caller]
    pub(crate) fn fits_a_telephone(&self, file: &Path, name: &str) {
        self.resize(390, 844);
        self.open(file);
        for view in 1..=self.count("[role=tab]").max(1) {
            self.press(&[&view.to_string()]);
            self.picture(&format!("{name}-390-{view}"));
            let wide = self.run("return document.documentElement.scrollWidth");
            assert!(wide.as_u64() <= Some(390), "{name}, view {view}: {wide}");
        }
        self.is_clean(file);
        self.resize(1280, 900);
    }

    /// Keeps a picture of the page, if somebody wants to look: in the directory that
    /// `SELVEDGE_SCREENSHOTS` names.
    pub(crate) fn picture(&self, name: &str) {
        let Some(directory) = std::env::var_os("SELVEDGE_SCREENSHOTS") else {
            return;
        };
        let path = format!("/session/{}/screenshot", self.session);
        let picture = self.call("GET", &path, &json!({}));
        let bytes = from_base64(picture.as_str().expect("a picture"));
        let file = Path::new(&directory).join(format!("{name}.png"));
        std::fs::write(file, bytes).expect("the picture is written");
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The test may be failing already, so nothing here may panic.
        if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) {
            let session = &self.session;
            let _ = write!(
                stream,
                "DELETE /session/{session} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
            );
            // The driver answers when the browser has ended, and keeps the connection.
            let _ = stream.set_read_timeout(Some(Duration::from_secs(10)));
            let _ = stream.read(&mut [0; 512]);
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

fn from_base64(text: &str) -> Vec<u8> {
    let digit = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let digits: Vec<u8> = text.bytes().filter(|&c| c != b'=').map(digit).collect();
    let group = |four: &[u8]| {
        let bits = four.iter().fold(0_u32, |bits, &d| bits << 6 | u32::from(d));
        let bits = bits << (6 * (4 - four.len()));
        bits.to_be_bytes()[1..four.len()].to_vec()
    };
    digits.chunks(4).flat_map(group).collect()
}
