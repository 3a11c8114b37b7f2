// The live status page: asks for the status every two seconds and draws what it says.
//
// What comes from the daemon is only ever set as text, never as markup. Null means unknown and is
// shown as such, never as 0. Elements are kept and updated, so focus, hover and motion survive.

import { clock, setZone } from "./words.js";
import { at, setText } from "./elements.js";
import {
  drawEnergy,
  drawEvictions,
  drawFairness,
  drawFigures,
  drawMachines,
  drawTop,
  drawWaits,
} from "./site.js";
import { drawAdapters, drawLearned, drawLedger, drawPolicies } from "./deciding.js";
import { PATIENCE_MS, ask } from "./asking.js";
import { showExamples } from "./explain.js";

const POLL_MS = 2000;
const EXAMPLES_EVERY = 5; // polls

/** Draw the whole page from an answer of api/v1/status. */
function draw(s) {
  setZone(s.timezone || "UTC");
  for (const section of [
    drawTop,
    drawFigures,
    drawWaits,
    drawMachines,
    drawEnergy,
    drawEvictions,
    drawFairness,
    drawPolicies,
    drawLearned,
    drawAdapters,
    drawLedger,
  ])
    section(s);
  at("content").classList.remove("empty");
}

let lastSeen = null;
let polls = 0;
let asking = null;
let timer = null;

function showConnection(state, text, when) {
  const box = at("connection");
  box.dataset.state = state;
  setText(at("connection-state"), text);
  setText(at("connection-time"), when);
  at("content").classList.toggle("lost", state === "lost");
}

async function poll() {
  clearTimeout(timer);
  asking?.abort();
  const mine = new AbortController();
  asking = mine;
  const patience = setTimeout(() => mine.abort("no answer"), PATIENCE_MS);
  try {
    draw(await ask("api/v1/status", mine.signal));
    lastSeen = clock();
    showConnection("live", "live", lastSeen);
    if (polls++ % EXAMPLES_EVERY === 0) await showExamples(mine.signal);
  } catch (error) {
    if (mine !== asking || document.hidden) return;
    const why = error.status ? `no status: ${error.message}` : "connection lost";
    showConnection("lost", lastSeen ? `${why}, last seen` : `${why}, trying again`, lastSeen ?? "");
  } finally {
    clearTimeout(patience);
    if (mine === asking && !document.hidden) timer = setTimeout(poll, POLL_MS);
  }
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) {
    poll();
    return;
  }
  clearTimeout(timer);
  asking?.abort();
  showConnection("paused", "paused while hidden", "");
});

if (document.hidden) showConnection("paused", "paused while hidden", "");
else poll();
