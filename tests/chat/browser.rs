//! How does a test use Chromium? By the DevTools protocol, which is JSON over a WebSocket.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use cloudgate_suite::LIMIT;
use serde_json::{Value, json};
use tungstenite::stream::MaybeTlsStream;
use tungstenite::{Message, WebSocket};

/// A browser without a window, and a folder of its own; dropping it ends it.
pub struct Browser {
    child: Child,
    port: u16,
    _profile: tempfile::TempDir,
}

impl Browser {
    pub fn start() -> Browser {
        let program = std::env::var("CHROMIUM").unwrap_or_else(|_| "chromium".to_owned());
        let profile = tempfile::tempdir().expect("a folder");
        let mut child = Command::new(&program)
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--remote-debugging-port=0",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| {
                panic!("{program} does not start: {error}; CHROMIUM says where it is")
            });
        let lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let line = lines
            .map_while(Result::ok)
            .find(|line| line.starts_with("DevTools listening on"))
            .expect("the address of the DevTools");
        let port = line
            .split(':')
            .nth(2)
            .and_then(|rest| rest.split('/').next()?.parse().ok())
            .expect("a port");
        Browser {
            child,
            port,
            _profile: profile,
        }
    }

    /// Opens a page.
    pub fn open(&self, url: &str) -> Page {
        let (mut root, _) = tungstenite::connect(self.address("/json/version"))
            .unwrap_or_else(|error| panic!("no DevTools: {error}"));
        let target = call(
            &mut root,
            &mut 0,
            "Target.createTarget",
            &json!({"url": url}),
        );
        let id = target["targetId"].as_str().expect("a page").to_owned();
        let url = format!("ws://127.0.0.1:{}/devtools/page/{id}", self.port);
        let (socket, _) = tungstenite::connect(url).expect("the page's DevTools");
        Page { socket, last: 0 }
    }

    /// Where the browser itself is reached.
    fn address(&self, about: &str) -> String {
        let mut reply = Vec::new();
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("the DevTools");
        let port = self.port;
        let request =
            format!("GET {about} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n");
        std::io::Write::write_all(&mut stream, request.as_bytes()).expect("the DevTools");
        // It keeps the connection open behind its answer.
        stream
            .set_read_timeout(Some(Duration::from_millis(500)))
            .expect("a time");
        let _ = std::io::Read::read_to_end(&mut stream, &mut reply);
        let reply = String::from_utf8_lossy(&reply).into_owned();
        let body = reply.split("\r\n\r\n").nth(1).expect("a body");
        let about: Value = serde_json::from_str(body).expect("JSON");
        about["webSocketDebuggerUrl"]
            .as_str()
            .expect("an address")
            .to_owned()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub struct Page {
    socket: WebSocket<MaybeTlsStream<TcpStream>>,
    last: u64,
}

impl Page {
    fn call(&mut self, method: &str, params: &Value) -> Value {
        call(&mut self.socket, &mut self.last, method, params)
    }

    /// What an expression of JavaScript is.
    pub fn run(&mut self, script: &str) -> Value {
        let params = json!({"expression": script, "returnByValue": true, "userGesture": true});
        let outcome = self.call("Runtime.evaluate", &params);
        assert!(
            outcome.get("exceptionDetails").is_none(),
            "{script}: {outcome}"
        );
        outcome["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    pub fn wait_for(&mut self, condition: &str) {
        let began = Instant::now();
        while self.run(&format!("Boolean({condition})")) != true {
            let text = "document.body?.innerText";
            assert!(
                began.elapsed() < LIMIT,
                "never: {condition}\n{}",
                self.run(text)
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Presses Enter in a field.
    pub fn press_enter(&mut self, selector: &str) {
        self.run(&format!("document.querySelector({selector:?}).focus()"));
        for kind in ["keyDown", "keyUp"] {
            let key = json!({"type": kind, "key": "Enter", "code": "Enter", "text": "\r", "windowsVirtualKeyCode": 13});
            self.call("Input.dispatchKeyEvent", &key);
        }
    }

    /// Takes the shape of a device, and a picture if there is a folder for it.
    pub fn look(&mut self, name: &str, width: u32, height: u32, dark: bool) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500});
        self.call("Emulation.setDeviceMetricsOverride", &size);
        let scheme = if dark { "dark" } else { "light" };
        let feature = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.call("Emulation.setEmulatedMedia", &feature);
        let Ok(folder) = std::env::var("CHAT_PICTURES") else {
            return;
        };
        std::thread::sleep(Duration::from_millis(300));
        let picture = self.call("Page.captureScreenshot", &json!({"format": "png"}));
        let data = picture["data"].as_str().expect("a picture");
        let path = format!("{folder}/{name}.png.base64");
        std::fs::write(path, data).expect("room for a picture");
    }

    /// Closes the page.
    pub fn close(mut self) {
        self.call("Page.close", &json!({}));
    }
}

/// Calls a method and waits for its result.
fn call(
    socket: &mut WebSocket<MaybeTlsStream<TcpStream>>,
    last: &mut u64,
    method: &str,
    params: &Value,
) -> Value {
    *last += 1;
    let question = json!({"id": *last, "method": method, "params": params});
    socket
        .send(Message::text(question.to_string()))
        .expect("the DevTools");
    loop {
        let answer = socket.read().expect("the DevTools");
        let Ok(answer) = serde_json::from_str::<Value>(answer.to_text().unwrap_or("")) else {
            continue;
        };
        if answer["id"] == *last {
            assert!(answer.get("error").is_none(), "{method}: {answer}");
            return answer["result"].clone();
        }
    }
}
