// The live status page: asks for the status every two seconds and draws the answer.
//
// What comes from the daemon is only ever set as text, never as markup. Null means unknown and is
// shown as such, never as 0. Elements are kept and updated, so focus, hover and motion survive.

import { clock, setLabels, setZone } from "./words.js";
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
import { drawMode } from "./mode.js";
import { drawCalibration } from "./calibration.js";
import { drawTwin } from "./twin.js";
import { drawTrial } from "./trial.js";
import { NoAnswer, Question } from "./asking.js";
import { showJobs } from "./jobs.js";
import { askForWeek, drawHeadline } from "./headline.js";
import { showMachine } from "./machine.js";
import { showMachines } from "./machines.js";
import { showUsers } from "./people.js";
import { showQueue } from "./queue.js";
import { showUse } from "./use.js";
import { drawUsers } from "./users.js";
import { drawGaps, missing, withoutGuesses } from "./gaps.js";

const POLL_MS = 2000;
const LISTS_EVERY = 5; // polls

/** Draw the whole page from an answer of api/v1/status. */
function draw(s) {
  setZone(s.timezone || "UTC");
  setLabels(s.code_labels ?? {});
  for (const section of [
    drawTop,
    drawHeadline,
    drawFigures,
    drawWaits,
    drawMachines,
    drawEnergy,
    drawEvictions,
    drawFairness,
    drawPolicies,
    drawTwin,
    drawTrial,
    drawLearned,
    drawCalibration,
    drawAdapters,
    drawLedger,
    drawMode,
    drawUsers,
    drawGaps,
  ])
    section(s);
  at("content").classList.remove("empty");
}

let lastSeen = null;
let polls = 0;
let question = null;
let timer = null;

function showConnection(state, text, when) {
  const box = at("connection");
  box.dataset.state = state;
  setText(at("connection-state"), text);
  setText(at("connection-time"), when);
  at("content").classList.toggle("lost", state === "lost");
}

/** Show a part that the journal answers; if it fails, say why there and go on. */
async function orWhy(show, place, mine) {
  try {
    await show(mine);
  } catch (error) {
    if (mine !== question || !(error instanceof NoAnswer)) throw error;
    setText(at(place), error.message);
  }
}

async function poll() {
  clearTimeout(timer);
  question?.abort();
  const mine = new Question();
  question = mine;
  try {
    const status = withoutGuesses(await mine.ask("api/v1/status"));
    draw(status);
    lastSeen = clock();
    const gap = missing(status);
    showConnection(gap ? "gap" : "live", gap || "live", gap ? "" : lastSeen);
    if (polls++ % LISTS_EVERY === 0) {
      await askForWeek(mine);
      await showJobs(mine);
      await showMachines(mine);
      await showMachine(mine);
      await showUsers(mine);
      await orWhy(showUse, "use-summary", mine);
      await orWhy(showQueue, "queue-summary", mine);
    }
  } catch (error) {
    if (mine !== question || document.hidden) return;
    const isExpected = error instanceof NoAnswer;
    if (!isExpected) console.error(error);
    const why = isExpected ? error.message : "this page cannot show the answer";
    showConnection("lost", lastSeen ? `${why}, last seen` : `${why}, trying again`, lastSeen ?? "");
  } finally {
    if (mine === question && !document.hidden) timer = setTimeout(poll, POLL_MS);
  }
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) {
    poll();
    return;
  }
  clearTimeout(timer);
  question?.abort();
  showConnection("paused", "paused while hidden", "");
});

if (document.hidden) showConnection("paused", "paused while hidden", "");
else poll();
