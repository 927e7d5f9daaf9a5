// @ts-check
import { api, attempt, must } from "./common.js";

const form = document.querySelector("#new-run");
form?.addEventListener("submit", (event) => {
  event.preventDefault();
  const fields = new FormData(/** @type {HTMLFormElement} */ (form));
  const text = (/** @type {string} */ key) => String(fields.get(key) ?? "").trim();
  /** @type {Record<string, any>} */
  const asked = { plan: text("plan"), quick: fields.has("quick") };
  if (text("name")) asked.name = text("name");
  const cells = text("cells").split(",").map((one) => one.trim()).filter(Boolean);
  if (cells.length) asked.cells = cells;
  for (const key of ["seed", "repetitions", "parallel"]) {
    // What is no number is sent as it is, and refused with the name of its field.
    if (text(key)) asked[key] = /^\d+$/.test(text(key)) ? Number(text(key)) : text(key);
  }
  attempt(async () => {
    const facts = await api("POST", "/runs", asked);
    location.assign(`/runs/${encodeURIComponent(facts.name)}`);
    return facts;
  }, must("#new-run button"));
});
