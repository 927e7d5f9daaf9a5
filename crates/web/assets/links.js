// @ts-check
import { api, attempt, must, refresh } from "./common.js";

const form = must("#new-lab");
form.addEventListener("submit", (/** @type {SubmitEvent} */ event) => {
  event.preventDefault();
  const fields = new FormData(form);
  const [name, link] = [fields.get("name"), fields.get("link")];
  const seed = Number(fields.get("seed"));
  attempt(async () => {
    const facts = await api("POST", "/links", { name, link, seed });
    await refresh("labs");
    form.reset();
    return facts;
  }, must("button", form));
});

must("#labs").addEventListener("click", (/** @type {Event} */ event) => {
  const button = event.target instanceof Element && event.target.closest("button[data-down]");
  if (!(button instanceof HTMLButtonElement)) return;
  attempt(async () => {
    const facts = await api("DELETE", `/links/${encodeURIComponent(button.dataset.down ?? "")}`);
    await refresh("labs");
    return facts;
  }, button);
});

// What is missing is said first, with what would mend it.
api("GET", "/doctor").then((/** @type {any[]} */ findings) => {
  const bad = findings.filter((one) => one.verdict !== "good");
  if (!bad.length) return;
  const place = must("#doctor");
  place.textContent = bad.map((one) => `${one.name}: ${one.found} → ${one.remedy}`).join("\n");
  place.hidden = false;
}, () => {});
