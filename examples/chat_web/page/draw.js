// What the page shows. Every text from the model or a tool goes in as text, never as HTML.

import { Words } from "./words.js";

/** How golem's own result begins, for a call that never got one. */
const CLOSING = "Tool call was interrupted before execution";

function make(tag, className, text = "") {
  return Object.assign(document.createElement(tag), { className, textContent: text });
}

/** One side's part in the talk; a screen reader says whose it is. */
function part(className, whose, text = "") {
  const box = make("article", className, text);
  box.ariaLabel = whose;
  return box;
}

/** The user's own words. */
export const said = (text) => part("said", "You", text);

/** A remark of the page itself, at the end of the talk; `again` is what its button does, if any. */
export function note(talk, text, { bad = false, again = null } = {}) {
  const box = make("p", bad ? "note bad" : "note", text);
  if (again) {
    const button = make("button", "", "Try again");
    button.addEventListener("click", again, { once: true });
    box.append(" ", button);
  }
  talk.append(box);
}

/** One call of a tool: asked for, running, waiting, done, failed. */
class ToolCard {
  constructor(name) {
    this.box = make("details", "tool");
    this.args = "";
    const line = make("summary", "");
    this.parts = { name: make("span", "name", name), args: make("span", "args"), how: make("span", "how") };
    line.append(...Object.values(this.parts));
    this.result = make("pre", "");
    this.box.append(line, this.result);
    this.become("asked", "asking…");
  }

  become(state, how, result = "") {
    this.box.dataset.state = state;
    this.parts.how.textContent = how;
    if (result) this.result.textContent = result;
  }

  more(args) {
    this.args += args;
    this.parts.args.textContent = this.args;
  }
}

/** One run's answer, drawn as its events come. */
export class Answer {
  constructor(talk) {
    this.talk = talk;
    this.box = part("answer live", "golem");
    this.box.ariaBusy = "true"; // read out when it is whole, not letter by letter
    talk.append(this.box);
    this.cards = new Map();
    this.asked = new Map(); // of the turn that is being read: index to card
    this.attempt = []; // what that turn has drawn
    this.text = null;
    this.thinking = null;
    this.doing = "thinking";
  }

  /** The answer to what the user says here: this one, if it has not begun, or the next. */
  after(words) {
    if (!this.box.childElementCount) {
      this.box.before(words);
      return this;
    }
    this.close();
    this.box.after(words);
    return new Answer(this.talk);
  }

  feed(event) {
    const draw = this[`on_${event.kind}`];
    draw?.call(this, event);
  }

  close() {
    this.text?.draw();
    this.box.classList.remove("live");
    this.box.ariaBusy = "false";
    if (!this.box.childElementCount) this.box.remove();
  }

  on_model_started(event) {
    if (event.attempt > 1) {
      for (const void_ of this.attempt) void_.remove(); // the model begins anew
      this.#add(make("p", "note", "Trying again…"));
    }
    this.asked.clear();
    this.attempt = [];
    this.text = this.thinking = null;
    this.doing = "thinking";
  }

  on_text_delta({ text }) {
    if (!this.text) {
      const box = make("div", "text");
      this.#add(box);
      this.text = new Words(box);
    }
    this.thinking = null;
    this.text.append(text);
    this.doing = "answering";
  }

  on_thinking_delta({ text }) {
    if (!this.thinking) {
      const box = make("details", "thinking");
      this.thinking = make("div", "");
      box.append(make("summary", "", "Thought"), this.thinking);
      this.#add(box);
    }
    this.text = null;
    this.thinking.append(text);
  }

  on_tool_call_delta({ index, id = "", name = "", args = "" }) {
    if (!this.asked.has(index)) {
      this.asked.set(index, new ToolCard(name));
      this.#add(this.asked.get(index).box);
    }
    const card = this.asked.get(index);
    if (name) card.parts.name.textContent = name;
    if (id) this.cards.set(id, card);
    card.more(args);
    this.doing = `asking for ${card.parts.name.textContent}`;
  }

  on_tool_started({ callId, name, args }) {
    this.#card(callId, name, args).become("running", "running…");
    this.doing = `running ${name}`;
  }

  on_tool_finished({ callId, name, args, result = "", failed, error }) {
    const bad = failed || error;
    this.#card(callId, name, args).become(bad ? "failed" : "done", bad ? "failed" : "done", result || error);
    this.doing = "thinking";
  }

  on_tool_deferred({ callId, name, args, reason }) {
    this.#card(callId, name, args).become("waiting", "waits for you", reason);
  }

  on_message_added({ message }) {
    if (message.role === "tool") this.recall(message);
  }

  on_output_rejected({ reason }) {
    this.#add(make("p", "note", `The answer is being corrected: ${reason}`));
  }

  on_run_failed({ error }) {
    this.#add(make("p", "note bad", `The run failed: ${error}. What it had said is kept; just go on.`));
  }

  on_run_stopped() {
    for (const card of this.cards.values()) {
      if (!["done", "failed"].includes(card.box.dataset.state)) card.become("failed", "stopped");
    }
    this.#add(make("p", "note", "Stopped."));
  }

  /** A message of a stored conversation, or a result that no tool of this run gave. */
  recall(message) {
    if (message.role === "tool") {
      const card = this.#card(message.toolCallId, message.toolName, "");
      if (card.box.dataset.state === "asked" || card.box.dataset.state === "waiting") {
        const how = message.content.startsWith(CLOSING) ? "interrupted" : message.failed ? "failed" : "done";
        card.become(how === "done" ? "done" : "failed", how, message.content);
      }
      return;
    }
    for (const block of message.thinking ?? []) if (block.text) this.on_thinking_delta(block);
    this.thinking = null;
    if (message.content) this.on_text_delta({ text: message.content });
    this.text?.draw();
    this.text = null;
    for (const call of message.toolCalls ?? []) {
      const args = typeof call.args === "string" ? call.args : JSON.stringify(call.args);
      this.#card(call.id, call.name, args);
    }
  }

  #card(id, name, args) {
    if (!this.cards.has(id)) {
      const card = new ToolCard(name);
      card.more(args);
      this.cards.set(id, card);
      this.#add(card.box);
    }
    return this.cards.get(id);
  }

  #add(element) {
    this.box.append(element);
    this.attempt.push(element);
    this.text = null;
  }
}

/** What the server did to the conversation that was posted, in words. */
export function showBanner(banner, place, report) {
  const lines = inWords(report);
  banner.hidden = lines.length === 0;
  const list = make("ul", "");
  list.append(...lines.map((line) => make("li", "", line)));
  place.replaceChildren("The server changed what this page sent before it used it:", list);
}

const many = (count, what) => `${count} ${what}${count === 1 ? "" : "s"}`;

function inWords(report) {
  const { sanitized = {}, repaired = {} } = report;
  const both = (name) => [...(sanitized.repair?.[name] ?? []), ...(repaired[name] ?? [])];
  const lines = [];
  if (sanitized.systemPrompts) lines.push(`${many(sanitized.systemPrompts, "system prompt")} dropped`);
  for (const part of sanitized.unsafeParts ?? []) {
    lines.push(`${part.kind} at a "${part.scheme}:" address dropped (message ${part.messageIndex})`);
  }
  if (sanitized.emptied?.length) lines.push(`${many(sanitized.emptied.length, "empty message")} removed`);
  if (both("synthesized").length) lines.push(`calls without a result closed: ${both("synthesized").join(", ")}`);
  if (both("dropped").length) lines.push(`results without a call dropped: ${both("dropped").join(", ")}`);
  if (both("moved").length) lines.push(`late results moved to their calls: ${both("moved").join(", ")}`);
  return lines;
}
