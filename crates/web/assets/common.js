// @ts-check
// What all pages do: ask the API, say what came of it, keep parts of a page fresh.

/** The element, or an error that names what is not there.
 * @param {string} selector @param {ParentNode} [root] @returns {any} */
export function must(selector, root = document) {
  const found = root.querySelector(selector);
  if (!found) throw new Error(`no ${selector} on this page`);
  return found;
}

/** Asks the API; throws an Error whose message is the line of the refusal.
 * @param {string} method @param {string} path @param {any} [body] @returns {Promise<any>} */
export async function api(method, path, body) {
  /** @type {RequestInit} */
  const request = { method, headers: {} };
  if (method !== "GET") {
    request.headers = { "Content-Type": "application/json" };
    request.body = JSON.stringify(body ?? {});
  }
  let answer;
  try {
    answer = await fetch(`/api/v1${path}`, request);
  } catch {
    throw new Error("longwire ui does not answer: is it still running?");
  }
  const facts = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(facts.detail ?? `the answer was ${answer.status}`);
  return facts;
}

/** @param {string | string[]} messages */
export function say(messages) {
  must("#refused").textContent = "";
  must("#said").textContent = [messages].flat().join("\n");
}

/** @param {unknown} why */
export function refuse(why) {
  must("#said").textContent = "";
  must("#refused").textContent = why instanceof Error ? why.message : String(why);
}

/** Runs a job of a button or form; says its messages, or why it was refused.
 * @param {() => Promise<any>} job @param {HTMLButtonElement} [button] */
export async function attempt(job, button) {
  if (button) button.disabled = true;
  try {
    const facts = await job();
    if (facts?.messages) say(facts.messages);
    return facts;
  } catch (why) {
    refuse(why);
    return undefined;
  } finally {
    if (button) button.disabled = false;
  }
}

/** Fetches this page again and puts its part `id` in place of ours, unless that has the focus.
 * @param {string} id */
export async function refresh(id) {
  const address = new URL(location.href);
  address.searchParams.set("part", id);
  const answer = await fetch(address, { headers: { Accept: "text/html" } });
  if (!answer.ok) throw new Error(answer.status === 401 ? "the token is of an earlier start: open \
the address that longwire ui printed" : `the answer was ${answer.status}`);
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const [ours, theirs] = [document.getElementById(id), page.getElementById(id)];
  if (!ours || !theirs || ours.innerHTML === theirs.innerHTML) return;
  const focused = document.activeElement;
  const key = focused && ours.contains(focused) ? focused.outerHTML : "";
  ours.innerHTML = theirs.innerHTML;
  if (key) {
    const same = [...ours.querySelectorAll("a, button, input")].find((one) => one.outerHTML === key);
    if (same instanceof HTMLElement) same.focus();
  }
}

for (const part of document.querySelectorAll("[data-refresh]")) {
  let busy = false;
  const again = () => {
    if (document.hidden || busy) return;
    busy = true;
    refresh(part.id).then(() => part.classList.remove("fault"), (why) => {
      part.classList.add("fault");
      refuse(why instanceof TypeError ? "longwire ui does not answer: is it still running?" : why);
    }).finally(() => { busy = false; });
  };
  setInterval(again, Number(part.getAttribute("data-refresh")));
}

document.addEventListener("click", (event) => {
  const button = event.target instanceof Element && event.target.closest("[data-copy]");
  if (!button) return;
  const text = must(`#${button.getAttribute("data-copy")}`).textContent;
  navigator.clipboard.writeText(text).then(() => say("copied"), refuse);
});

/** The one stream of this page: closed while nobody looks at it.
 * @param {string} topics @param {Record<string, (facts: any) => void>} on @param {number} [hz] */
export function follow(topics, on, hz = 5) {
  /** @type {EventSource | undefined} */
  let stream;
  const open = () => {
    stream?.close();
    stream = undefined;
    if (document.hidden) return;
    stream = new EventSource(`/api/v1/events?topics=${encodeURIComponent(topics)}&hz=${hz}`);
    let lost = false;
    stream.addEventListener("error", () => {
      lost = true;
      // A refusal is final; a connection that broke is made again by the browser.
      refuse(stream?.readyState === EventSource.CLOSED
        ? "what is shown is no longer live: open the address that longwire ui printed, or close " +
          "other tabs of it, and load this page again"
        : "what is shown is not live: longwire ui does not answer; is it still running?");
    });
    stream.addEventListener("open", () => {
      if (lost) say("what is shown is live again");
      lost = false;
    });
    for (const [kind, act] of Object.entries(on)) {
      stream.addEventListener(kind, (event) => act(JSON.parse(event.data)));
    }
  };
  document.addEventListener("visibilitychange", open);
  addEventListener("pagehide", () => stream?.close());
  open();
}

/** A number with a unit of a thousandth or thousand that fits.
 * @param {number | null | undefined} value @param {string} unit */
export function shown(value, unit) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const steps = [[1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];
  const [scale, prefix] = steps.find(([scale]) => Math.abs(value) >= Number(scale)) ?? [1, ""];
  const number = value / Number(scale);
  const digits = Number.isInteger(number) || Math.abs(number) >= 100 ? 0 : Math.abs(number) >= 10 ? 1 : 2;
  return `${number.toFixed(digits)} ${prefix}${unit}`;
}
