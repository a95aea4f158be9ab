// A run's events off the wire: fetch, read frames, come back after a broken connection.
// EventSource would do for GET only; a POSTed run is read with fetch, and so is its resumption.

/** Server-sent events of a response body, as {id, event, data}. */
export async function* frames(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      rest += value;
      const blocks = rest.split("\n\n");
      rest = blocks.pop();
      for (const block of blocks) {
        const frame = { id: "", event: "", data: [] };
        for (const line of block.split("\n")) {
          const [, field, text] = /^([^:]*):? ?(.*)$/.exec(line);
          if (field === "data") frame.data.push(text);
          else if (field === "id" || field === "event") frame[field] = text;
        }
        if (frame.data.length) yield { ...frame, data: frame.data.join("\n") };
      }
    }
  } finally {
    reader.cancel().catch(() => {}); // the connection may be gone already
  }
}

/** A refusal by the server: its status and its machine-readable report. */
export class Refused extends Error {
  constructor(status, report) {
    super(report?.error?.message ?? `the server answered ${status}`);
    this.status = status;
    this.report = report;
  }
}

/** fetch that throws Refused for everything but 2xx. */
export async function ask(path, options = {}) {
  const response = await fetch(path, options);
  if (response.ok) return response;
  throw new Refused(response.status, await response.json().catch(() => null));
}

/** POST a JSON body. */
export function post(path, body, signal) {
  return ask(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    signal,
  });
}

export const TERMINAL = new Set(["run_finished", "run_paused", "run_failed", "run_stopped"]);

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Every event of a run exactly once and in order, whatever the connection does in between.
 *
 * `first` is the response that began it (or null: read it from its first event), `again(id)` asks
 * for what follows the event with that id.
 */
export async function* events(first, again) {
  let response = first ?? (await again(""));
  let last = "";
  for (let failures = 0; ; ) {
    try {
      response ??= await again(last);
      if (response.status === 204) return; // the server has nothing more of this run
      for await (const frame of frames(response.body)) {
        if (frame.id) last = frame.id;
        failures = 0;
        const event = JSON.parse(frame.data);
        yield { name: frame.event, event };
        if (TERMINAL.has(event.kind)) return;
      }
    } catch (error) {
      if (error instanceof Refused || error.name === "AbortError" || failures > 5) throw error;
    }
    response = null;
    await pause(Math.min(4000, 150 * 2 ** failures++));
  }
}
