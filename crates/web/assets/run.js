// @ts-check
import { api, attempt, follow, must } from "./common.js";

const name = must("#run").dataset.run;
const path = `/runs/${encodeURIComponent(name)}`;
const going = ["running", "starting", "finishing"];

/** @param {number} seconds */
function time(seconds) {
  const [minutes, rest] = [Math.floor(seconds / 60), Math.round(seconds % 60)];
  return minutes ? `${minutes} min ${rest} s` : `${rest} s`;
}

/** @param {any} run */
function show(run) {
  const progress = run.progress ?? {};
  must("#state").textContent = run.state;
  must("#bar").value = progress.runs ? progress.done / progress.runs : 0;
  const counts = ["repeated", "flagged", "failed"].filter((key) => progress[key])
    .map((key) => `${progress[key]} ${key}`);
  must("#standing").textContent = progress.runs === undefined ? "" : [
    `${progress.done} of ${progress.runs} runs`,
    ...(run.state === "running"
      ? [`${progress.active} under way`, `about ${time(progress.left_s)} left`] : []),
    ...counts,
  ].join(", ");
  must("#late").textContent = progress.lateness_p99_us ? `${progress.lateness_p99_us} µs` : "–";
  must("#latest").replaceChildren(...(progress.latest ?? []).map((/** @type {any} */ one) => {
    const row = document.createElement("tr");
    for (const text of [one.cell, one.repetition, one.mean_s?.toFixed(3) ?? "–", one.remark ?? ""]) {
      row.append(Object.assign(document.createElement("td"), { textContent: String(text) }));
    }
    return row;
  }));
  must("#log").textContent = run.log ?? "";
  must("#stop").disabled = !going.includes(run.state);
  must("#resume").disabled = going.includes(run.state) || run.state === "complete";
}

must("#stop").addEventListener("click", () => attempt(() => api("POST", `${path}/stop`)));
must("#resume").addEventListener("click", () => attempt(() => api("POST", `${path}/resume`)));
follow(`run:${name}`, {
  snapshot: (facts) => {
    const last = facts.run?.at(-1);
    if (last) show(last);
  },
  run: show,
});
api("GET", path).then(show, () => {});
