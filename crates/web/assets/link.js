// @ts-check
import { api, attempt, follow, must, refuse, say, shown } from "./common.js";
import { StripChart } from "./chart.js";

const lab = must("#lab").dataset.lab;
const path = `/links/${encodeURIComponent(lab)}`;
const form = must("#settings");
const alike = must("#alike");
/** @type {HTMLInputElement[]} */
const fields = [...form.querySelectorAll("input[data-key]")];
const of = (/** @type {string} */ side, /** @type {string} */ key) => must(`#f-${side}-${key}`);

/** Shows what is in force, in the fields and in the picture. @param {any} facts */
function inForce(facts) {
  for (const field of fields) {
    const value = facts[field.dataset.side ?? ""]?.[field.dataset.key ?? ""];
    if (value === undefined) continue;
    field.value = value;
    field.defaultValue = value;
    field.classList.remove("dirty");
  }
  // What differs is not made alike by the next change of something else.
  const differs = (/** @type {HTMLInputElement} */ field) =>
    field.dataset.side === "ba" && field.value !== of("ab", field.dataset.key ?? "").value;
  if (fields.some(differs)) alike.checked = false;
  for (const side of ["ab", "ba"]) {
    const now = facts[side] ?? {};
    const rate = now.trace && now.trace !== "none" ? `trace ${now.trace}` : now.rate;
    must(`#rate-${side}`).textContent = rate;
    must(`#rate-${side}-more`).textContent = `loss ${now.loss}`;
    must(`#delay-${side}`).textContent = now.delay;
    must(`#delay-${side}-more`).textContent = `± ${now.jitter}`;
    const limits = [
      now.queue_packets === "none" ? "" : `${now.queue_packets} packets`,
      now.queue_bytes === "none" ? "" : now.queue_bytes,
    ].filter(Boolean);
    must(`#queue-${side}`).textContent = limits.length ? `≤ ${limits.join(", ")}` : "≤ no limit";
  }
  roundTrip();
}

/** In milliseconds; none for what is no duration. @param {string} text */
function millis(text) {
  const units = { ns: 1e-6, us: 1e-3, "µs": 1e-3, ms: 1, s: 1e3, min: 6e4, h: 3.6e6 };
  const found = /^\s*([\d.]+)\s*(ns|us|µs|ms|s|min|h)\s*$/.exec(text);
  return found ? Number(found[1]) * units[/** @type {keyof typeof units} */ (found[2])] : undefined;
}

function roundTrip() {
  const [there, back] = ["ab", "ba"].map((side) => millis(of(side, "delay").value));
  must("#round-trip").textContent = there === undefined || back === undefined ? "" :
    `Delay is each way: a round trip takes ${Number((there + back).toFixed(3))} ms and what the ` +
    "packets take to be sent.";
}

function mirror() {
  for (const field of fields) {
    if (field.dataset.side !== "ba") continue;
    field.disabled = alike.checked;
    if (alike.checked) field.value = of("ab", field.dataset.key ?? "").value;
  }
  mark();
}

function mark() {
  for (const field of fields) field.classList.toggle("dirty", field.value !== field.defaultValue);
  roundTrip();
}

/** What a person has changed, by key; for both directions where they are alike. */
function changed() {
  /** @type {Record<string, string>} */
  const settings = {};
  for (const field of fields) {
    const [side, key] = [field.dataset.side ?? "", field.dataset.key ?? ""];
    if (field.value.trim() === field.defaultValue) continue;
    if (alike.checked) settings[key] = of("ab", key).value;
    else settings[`${side}.${key}`] = field.value;
  }
  return settings;
}

async function putBack() {
  inForce(await api("GET", path));
  mirror();
}

form.addEventListener("input", (/** @type {Event} */ event) => {
  if (event.target === alike) mirror();
  else if (alike.checked) mirror();
  else mark();
});
form.addEventListener("reset", () => setTimeout(mirror));
form.addEventListener("submit", async (/** @type {SubmitEvent} */ event) => {
  event.preventDefault();
  const settings = changed();
  if (!Object.keys(settings).length) {
    say("nothing was changed");
    return;
  }
  try {
    const facts = await api("POST", `${path}/settings`, { settings });
    inForce(facts);
    mirror();
    say(facts.messages);
  } catch (why) {
    // All or none was taken: what stands in the fields is what is in force again.
    refuse(why);
    await putBack().catch(() => {});
  }
});

// The round trip, and files as a client sees them.
must("#ping").addEventListener("click", () => attempt(async () => {
  must("#pinged").textContent = "…";
  const facts = await api("POST", `${path}/probe`, { count: 5, from: "a" }).finally(() => {
    must("#pinged").textContent = "";
  });
  const times = [facts.min_s, facts.median_s, facts.max_s].map((time) => (1e3 * time).toFixed(1));
  must("#pinged").textContent = facts.received
    ? `${facts.received} of ${facts.sent} came back: round trip ${times[0]} / ${times[1]} / ` +
      `${times[2]} ms (least, median, most)`
    : `none of ${facts.sent} came back`;
}, must("#ping")));
must("#transfer").addEventListener("click", () => attempt(async () => {
  must("#fetched").textContent = "…";
  const facts = await api("POST", `${path}/transfer`, { files: 3 }).finally(() => {
    must("#fetched").textContent = "";
  });
  const mean = facts.mean_s === null ? "none came" : `${facts.mean_s.toFixed(3)} s each on average`;
  must("#fetched").textContent = `${facts.times_s.length} files: ${mean}, ${facts.failed} failed`;
}, must("#transfer")));

// Links with names.
must("#load").addEventListener("submit", (/** @type {SubmitEvent} */ event) => {
  event.preventDefault();
  attempt(async () => {
    const set = must("#load select").value;
    const facts = await api("POST", `${path}/settings`, { set });
    inForce(facts);
    mirror();
    return facts;
  });
});
must("#save").addEventListener("submit", (/** @type {SubmitEvent} */ event) => {
  event.preventDefault();
  const given = new FormData(must("#save"));
  const name = String(given.get("name")).trim();
  attempt(async () => {
    const facts = await api("PUT", `/sets/${encodeURIComponent(name)}`,
      { from: lab, replace: given.has("replace") });
    await names(name);
    return facts;
  });
});
must("#forget").addEventListener("click", () => attempt(async () => {
  const facts = await api("DELETE", `/sets/${encodeURIComponent(must("#load select").value)}`);
  await names();
  return facts;
}));

/** @param {string} [chosen] */
async function names(chosen) {
  const saved = await api("GET", "/sets");
  const group = must("#load optgroup");
  group.replaceChildren(...saved.map((/** @type {any} */ one) => new Option(one.name)));
  if (chosen) must("#load select").value = chosen;
}

// Live.
const percent = (/** @type {any} */ of) => (of.packets ? (100 * of.lost) / of.packets : null);
const both = (/** @type {(of: any) => number | null} */ get) => [
  { of: (/** @type {any} */ point) => get(point.ab), color: "--s0", dash: [] },
  { of: (/** @type {any} */ point) => get(point.ba), color: "--s3", dash: [6, 4] },
];
const panels = [
  { name: "delivered", unit: "bit/s", show: (/** @type {number} */ v) => shown(v, "bit/s"),
    lines: both((of) => of.out_bps) },
  { name: "delay with the queue", unit: "ms", show: (/** @type {number} */ v) => `${v} ms`,
    lines: both((of) => of.delay_ms) },
  { name: "lost or dropped", unit: "%", show: (/** @type {number} */ v) => `${v} %`, lines: both(percent) },
  { name: "queue", unit: "B", show: (/** @type {number} */ v) => shown(v, "B"),
    lines: both((of) => of.queue_bytes) },
  { name: "lateness p99", unit: "µs", show: (/** @type {number} */ v) => `${v} µs`,
    lines: both((of) => of.late_us) },
];
const chart = new StripChart(must("#chart"), panels, (point) => {
  must("#cursor").textContent = point ? `at ${new Date(1e3 * point.t).toLocaleTimeString()}: ` +
    ["ab", "ba"].map((side) => {
      const now = /** @type {any} */ (point)[side];
      return `${side === "ab" ? "a → b" : "b → a"} ${shown(now.out_bps, "bit/s")}, ` +
        `${now.delay_ms ?? "–"} ms, ${now.lost} lost, ${shown(now.queue_bytes, "B")}, ` +
        `${now.late_us ?? "–"} µs late`;
    }).join("; ") : "a → b is the full line, b → a the dashed one. Point at the chart for the " +
    "values of a moment.";
});

/** @param {any} point */
function numbers(point) {
  for (const side of ["ab", "ba"]) {
    const now = point[side];
    const put = (/** @type {string} */ key, /** @type {string} */ text) => {
      must(`#n-${side}-${key}`).textContent = text;
    };
    put("in_bps", shown(now.in_bps, "bit/s"));
    put("out_bps", shown(now.out_bps, "bit/s"));
    put("delay_ms", now.delay_ms === null ? "–" : `${now.delay_ms} ms`);
    put("loss", percent(now) === null ? "–" : `${Number(percent(now)?.toFixed(1))} %`);
    put("queue_bytes", shown(now.queue_bytes, "B"));
    put("late_us", now.late_us === null ? "–" : `${now.late_us} µs`);
    must(`#queue-${side}-more`).textContent = `${shown(now.queue_bytes, "B")} waiting`;
    // Full where what waits takes as long as two seconds to be sent.
    const level = must(`#level-${side}`);
    const waiting = Math.min(1, (now.delay_ms ?? 0) && now.out_bps
      ? (8 * now.queue_bytes) / now.out_bps / 2 : 0);
    level.setAttribute("width", String(waiting * Number(level.dataset.full)));
  }
}

/** @param {any} change */
function logged(change) {
  const line = document.createElement("li");
  line.textContent = `${new Date(1e3 * change.t).toLocaleTimeString()} ${change.messages.join("; ")}`;
  must("#log").prepend(line);
  while (must("#log").childElementCount > 100) must("#log").lastElementChild.remove();
}

follow(`link:${lab}`, {
  snapshot: (facts) => {
    chart.replace(facts.link ?? []);
    must("#log").replaceChildren();
    for (const change of facts.changed ?? []) logged(change);
    if (facts.link?.length) numbers(facts.link.at(-1));
    const gone = facts.gone?.at(-1);
    if (gone && gone.t > (facts.link?.at(-1)?.t ?? 0)) refuse(gone.detail);
  },
  link: (point) => {
    chart.push(point);
    numbers(point);
  },
  changed: (change) => {
    logged(change);
    // Somebody else may have changed it: what nobody is editing here follows.
    if (!form.querySelector(".dirty")) putBack().catch(() => {});
  },
  gone: (facts) => refuse(facts.detail),
});
mirror();
