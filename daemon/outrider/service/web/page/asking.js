// Asking the daemon, with patience and with an end to it.

const PATIENCE_MS = 5000;

/** Why there is no answer; the message is for people. `candidates`: what may have been meant. */
export class NoAnswer extends Error {
  candidates = [];
}

/** A question that can be given up. */
export class Question {
  #controller = new AbortController();

  abort() {
    this.#controller.abort();
  }

  /** The JSON answer of a path. Throws NoAnswer: refused, gone, too slow or given up. */
  async ask(path) {
    const signal = AbortSignal.any([this.#controller.signal, AbortSignal.timeout(PATIENCE_MS)]);
    // without a name and password that stand in the page's own address: fetch refuses those
    const url = new URL(path, location.origin + location.pathname);
    const response = await fetch(url, { signal, cache: "no-store" }).catch((error) => {
      throw new NoAnswer("connection lost", { cause: error });
    });
    const answer = await response.json().catch(() => null);
    if (response.ok && answer !== null) return answer;
    const refusal = new NoAnswer(`the daemon says: ${answer?.error ?? `status ${response.status}`}`);
    refusal.candidates = answer?.candidates ?? [];
    throw refusal;
  }
}
