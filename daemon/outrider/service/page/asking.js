// Asking the daemon, with patience and with an end to it.

export const PATIENCE_MS = 5000;

/** A JSON answer, or an Error whose message is for people. `status` is set where one came. */
export async function ask(path, signal) {
  const response = await fetch(path, {
    signal,
    cache: "no-store",
    headers: { Accept: "application/json" },
  });
  const answer = await response.json().catch(() => null);
  if (response.ok && answer !== null) return answer;
  const error = new Error(
    answer?.error ?? `the answer was ${response.status} ${response.statusText}`,
  );
  error.status = response.status;
  throw error;
}
