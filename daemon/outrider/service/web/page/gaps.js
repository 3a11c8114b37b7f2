// Adapters without data: each panel of the site says so, and its last values look old.

import { known } from "./words.js";
import { at, make, setText } from "./elements.js";

const NOTHING = "nothing";
const OLD = "old";

/** What is missing in few words, such as "no data since 10:32"; empty: nothing is. */
export function missing(s) {
  const gaps = s.no_data ?? [];
  return gaps.map(({ text }) => text.split(" from adapter ")[0].replace(/^N/, "n")).join("; ");
}

const withoutCause = ({ text, why }) => text.slice(0, text.length - why.length - 2);

/** True if no adapter has given any data yet: then no figure of the site is known, not even 0. */
export const knowsNothing = ({ no_data: gaps = [], adapters }) =>
  gaps.length > 0 && gaps.length === adapters.length && !gaps.some((gap) => known(gap.since_s));

/** The same status, with null in place of unknown figures. */
export function withoutGuesses(s) {
  if (!knowsNothing(s)) return s;
  const unknown = (figures) => Object.fromEntries(Object.keys(figures).map((name) => [name, null]));
  return { ...s, jobs: unknown(s.jobs), machines: unknown(s.machines), energy_wh: unknown(s.energy_wh) };
}

/** Mark every panel of the site with the adapters that have no data. */
export function drawGaps(s) {
  const gaps = s.no_data ?? [];
  const state = gaps.length ? (knowsNothing(s) ? NOTHING : OLD) : "";
  const isPart = gaps.length < s.adapters.length;
  const later = isPart ? "What it reported is as of then." : "The figures are as of then.";
  const text = gaps
    .map((gap) => `${withoutCause(gap)}.${known(gap.since_s) ? ` ${later}` : ""}`)
    .join(" ");
  for (const panel of document.querySelectorAll("section[data-site]")) {
    let line = panel.querySelector(":scope > .gap");
    if (!line) {
      line = make("p", "gap");
      panel.querySelector(":scope > h2").after(line);
    }
    setText(line, text);
    line.hidden = !state;
    panel.dataset.site = state;
  }
  at("figures").dataset.site = state;
}
