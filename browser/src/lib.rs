//! A Chromium that does what a person would, for the tests of the web interface: over its
//! debugging pipe, so that no port is open and nothing stays behind when the test is killed.
//!
//! Commands are those of the Chrome DevTools Protocol. Waiting is done in the page, which looks at
//! a condition once a frame.

mod fault;
mod pipe;

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::{Value, json};

pub use fault::{Fault, Result};
use pipe::Pipe;

/// Names under which distributions have it.
const PROGRAMS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// How long a condition in a page is waited for.
const PATIENCE_MS: u32 = 20_000;

/// A browser, ended when dropped.
pub struct Browser {
    pipe: Pipe,
}

/// One tab.
pub struct Tab<'a> {
    browser: &'a Browser,
    session: String,
}

/// The program, where there is one.
#[must_use]
pub fn program() -> Option<PathBuf> {
    let paths = std::env::var_os("PATH")?;
    let all = PROGRAMS.into_iter().flat_map(|name| {
        std::env::split_paths(&paths).map(move |folder| folder.join(name)).collect::<Vec<_>>()
    });
    all.into_iter().find(|path| path.is_file())
}

impl Browser {
    /// Starts one.
    ///
    /// # Errors
    /// When there is none or it does not start.
    pub fn start() -> Result<Self> {
        let program = program().ok_or_else(|| {
            Fault("no chromium is found: install the package chromium".to_string())
        })?;
        Ok(Self { pipe: Pipe::start(&program)? })
    }

    /// Opens a tab that shows nothing yet, as wide as given.
    ///
    /// # Errors
    /// When the browser does not do so.
    pub fn tab(&self, width: u32, height: u32) -> Result<Tab<'_>> {
        let target = self.pipe.ask(None, "Target.createTarget", json!({"url": "about:blank"}))?;
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let session = self.pipe.ask(None, "Target.attachToTarget", attach)?;
        let session = session["sessionId"].as_str().unwrap_or_default().to_string();
        let tab = Tab { browser: self, session };
        for domain in ["Page", "Runtime", "Network", "Log", "Accessibility"] {
            tab.ask(&format!("{domain}.enable"), json!({}))?;
        }
        tab.size(width, height)?;
        Ok(tab)
    }
}

impl Tab<'_> {
    /// Sends a command of the protocol.
    ///
    /// # Errors
    /// What the browser says.
    pub fn ask(&self, method: &str, parameters: Value) -> Result<Value> {
        self.browser.pipe.ask(Some(&self.session), method, parameters)
    }

    /// The size of the window in pixels.
    ///
    /// # Errors
    /// What the browser says.
    pub fn size(&self, width: u32, height: u32) -> Result<()> {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1,
            "mobile": false});
        self.ask("Emulation.setDeviceMetricsOverride", size).map(drop)
    }

    /// Light or dark, screen or print.
    ///
    /// # Errors
    /// What the browser says.
    pub fn media(&self, scheme: &str, kind: &str) -> Result<()> {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.ask("Emulation.setEmulatedMedia", json!({"media": kind, "features": features}))
            .map(drop)
    }

    /// Opens an address and waits until its modules have run.
    ///
    /// # Errors
    /// When it cannot be reached.
    pub fn open(&self, url: &str) -> Result<()> {
        let answer = self.ask("Page.navigate", json!({"url": url}))?;
        if let Some(error) = answer["errorText"].as_str() {
            return Err(Fault(format!("{url}: {error}")));
        }
        self.until("document.readyState === 'complete'")
    }

    /// What an expression in the page is, awaited where it is a promise.
    ///
    /// # Errors
    /// What it throws.
    pub fn value(&self, expression: &str) -> Result<Value> {
        let parameters = json!({"expression": expression, "awaitPromise": true,
            "returnByValue": true, "userGesture": true});
        let answer = self.ask("Runtime.evaluate", parameters)?;
        if let Some(thrown) = answer.get("exceptionDetails") {
            let why = thrown["exception"]["description"].as_str();
            return Err(Fault(why.unwrap_or("something was thrown").to_string()));
        }
        Ok(answer["result"]["value"].clone())
    }

    /// The text of an element.
    ///
    /// # Errors
    /// When there is none.
    pub fn text(&self, selector: &str) -> Result<String> {
        let found = self.value(&format!("{}.textContent", element(selector)))?;
        Ok(found.as_str().unwrap_or_default().to_string())
    }

    /// Waits until an expression in the page is true.
    ///
    /// # Errors
    /// When it does not become so in time: with what the page says then.
    pub fn until(&self, expression: &str) -> Result<()> {
        let watch = format!(
            "new Promise((done) => {{ const begun = Date.now(); const look = () => {{ \
             let is = false; try {{ is = Boolean({expression}); }} catch {{}} \
             if (is) done(true); else if (Date.now() - begun > {PATIENCE_MS}) done(false); \
             else setTimeout(look, 16); }}; look(); }})"
        );
        // A page that is being left takes the promise with it: then the new one is asked.
        let found = self.value(&watch).or_else(|_| self.value(&watch))?;
        if found == true {
            return Ok(());
        }
        let page = self.value(
            "location.pathname + ': ' + (document.querySelector('#said')?.textContent ?? '') + \
             ' / ' + (document.querySelector('#refused')?.textContent ?? '') + ' / ' + \
             document.body.innerText.slice(0, 300)",
        )?;
        Err(Fault(format!("not so after {PATIENCE_MS} ms: {expression}; the page says {page}")))
    }

    /// Presses the left button of the mouse in the middle of an element.
    ///
    /// # Errors
    /// When there is none.
    pub fn click(&self, selector: &str) -> Result<()> {
        let (x, y) = self.middle(selector)?;
        self.mouse("mouseMoved", x, y)?;
        self.mouse("mousePressed", x, y)?;
        self.mouse("mouseReleased", x, y)
    }

    /// Drags from the middle of an element by so many pixels.
    ///
    /// # Errors
    /// When there is none.
    pub fn drag(&self, selector: &str, by: (f64, f64)) -> Result<()> {
        let (x, y) = self.middle(selector)?;
        self.mouse("mouseMoved", x, y)?;
        self.mouse("mousePressed", x, y)?;
        for step in 1..=4 {
            let share = f64::from(step) / 4.0;
            self.mouse("mouseMoved", x + share * by.0, y + share * by.1)?;
        }
        self.mouse("mouseReleased", x + by.0, y + by.1)
    }

    /// Moves the mouse.
    ///
    /// # Errors
    /// What the browser says.
    pub fn mouse(&self, kind: &str, x: f64, y: f64) -> Result<()> {
        let (button, buttons) = if kind == "mouseMoved" { ("none", 1) } else { ("left", 1) };
        let parameters = json!({"type": kind, "x": x, "y": y, "button": button,
            "buttons": buttons, "clickCount": 1});
        self.ask("Input.dispatchMouseEvent", parameters).map(drop)
    }

    /// Where the middle of an element is, in the window.
    ///
    /// # Errors
    /// When there is none.
    pub fn middle(&self, selector: &str) -> Result<(f64, f64)> {
        let found = self.value(&format!(
            "(() => {{ const it = {}; it.scrollIntoView({{block: 'center', behavior: 'instant'}}); \
             const box = it.getBoundingClientRect(); \
             return [box.x + box.width / 2, box.y + box.height / 2]; }})()",
            element(selector)
        ))?;
        Ok((found[0].as_f64().unwrap_or_default(), found[1].as_f64().unwrap_or_default()))
    }

    /// Clicks into a field and types in place of what stands there.
    ///
    /// # Errors
    /// When there is no such field.
    pub fn fill(&self, selector: &str, text: &str) -> Result<()> {
        self.click(selector)?;
        self.value(&format!("{}.select()", element(selector)))?;
        self.ask("Input.insertText", json!({"text": text})).map(drop)
    }

    /// Chooses an option of a list by its value.
    ///
    /// # Errors
    /// When there is no such list.
    pub fn choose(&self, selector: &str, value: &str) -> Result<()> {
        let value = Value::from(value);
        self.value(&format!(
            "(() => {{ const it = {}; it.value = {value}; \
             if (it.value !== {value}) throw new Error('no option ' + {value}); \
             it.dispatchEvent(new Event('input', {{bubbles: true}})); \
             it.dispatchEvent(new Event('change', {{bubbles: true}})); }})()",
            element(selector)
        ))
        .map(drop)
    }

    /// Presses a key, by the name that events have for it, such as `Tab` or `Enter`.
    ///
    /// # Errors
    /// What the browser says.
    pub fn key(&self, key: &str) -> Result<()> {
        let (code, text) = match key {
            "Enter" => (13, "\r"),
            "Tab" => (9, ""),
            "ArrowLeft" => (37, ""),
            "ArrowUp" => (38, ""),
            "ArrowRight" => (39, ""),
            "ArrowDown" => (40, ""),
            " " => (32, " "),
            _ => (0, key),
        };
        for kind in ["keyDown", "keyUp"] {
            let text = if kind == "keyDown" { text } else { "" };
            let parameters = json!({"type": kind, "key": key, "text": text,
                "windowsVirtualKeyCode": code});
            self.ask("Input.dispatchKeyEvent", parameters)?;
        }
        Ok(())
    }

    /// A picture of the window, as JPEG.
    ///
    /// # Errors
    /// What the browser says.
    pub fn screenshot(&self) -> Result<Vec<u8>> {
        let parameters = json!({"format": "jpeg", "quality": 45});
        let answer = self.ask("Page.captureScreenshot", parameters)?;
        Ok(base64(answer["data"].as_str().unwrap_or_default()))
    }

    /// Controls and pictures that a screen reader has no name for.
    ///
    /// # Errors
    /// What the browser says.
    pub fn unnamed(&self) -> Result<Vec<String>> {
        const ROLES: [&str; 12] = [
            "textbox",
            "searchbox",
            "button",
            "combobox",
            "checkbox",
            "radio",
            "link",
            "image",
            "img",
            "slider",
            "listbox",
            "spinbutton",
        ];
        let tree = self.ask("Accessibility.getFullAXTree", json!({}))?;
        let nodes = tree["nodes"].as_array().cloned().unwrap_or_default();
        let bare = nodes.iter().filter(|node| {
            let role = node["role"]["value"].as_str().unwrap_or_default();
            let name = node["name"]["value"].as_str().unwrap_or_default();
            node["ignored"] != true && ROLES.contains(&role) && name.trim().is_empty()
        });
        Ok(bare
            .map(|node| format!("{} {}", node["role"]["value"], node["backendDOMNodeId"]))
            .collect())
    }

    /// What went wrong in this tab since it was opened: exceptions, violations of the policy of
    /// contents, and requests to other hosts. Answers that are refusals are no faults.
    #[must_use]
    pub fn faults(&self, host: &str) -> Vec<String> {
        let mut found = BTreeSet::new();
        for event in self.browser.pipe.events(&self.session) {
            let of = &event["params"];
            match event["method"].as_str() {
                Some("Runtime.exceptionThrown") => {
                    found.insert(format!("exception: {}", of["exceptionDetails"]));
                }
                Some("Log.entryAdded") if of["entry"]["source"] == "security" => {
                    found.insert(format!("policy: {}", of["entry"]["text"]));
                }
                Some("Network.requestWillBeSent") => {
                    let url = of["request"]["url"].as_str().unwrap_or_default();
                    let ours = url.starts_with(&format!("http://{host}/"));
                    if !ours && !url.starts_with("data:") && !url.starts_with("blob:") {
                        found.insert(format!("request to {url}"));
                    }
                }
                _ => {}
            }
        }
        found.into_iter().collect()
    }
}

/// An expression for an element that has to be there.
fn element(selector: &str) -> String {
    let selector = Value::from(selector);
    format!(
        "(document.querySelector({selector}) ?? \
         (() => {{ throw new Error('no ' + {selector} + ' on ' + location.pathname); }})())"
    )
}

/// The bytes of a text in base64 (RFC 4648 §4); what is none of its letters is left out.
fn base64(text: &str) -> Vec<u8> {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut bits, mut held) = (Vec::new(), 0, 0_u32);
    let values = text.bytes().filter_map(|byte| LETTERS.iter().position(|known| *known == byte));
    for value in values {
        held = (held << 6) | u32::try_from(value).unwrap_or_default();
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from((held >> bits) & 0xff).unwrap_or_default());
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn base64_is_read() {
        // RFC 4648 §10.
        for (text, bytes) in [("", ""), ("Zg==", "f"), ("Zm9v", "foo"), ("Zm9vYmFy", "foobar")] {
            assert_eq!(base64(text), bytes.as_bytes());
        }
    }
}
