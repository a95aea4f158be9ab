// What a model writes as Markdown, drawn as it comes: paragraphs, headings, lists, code, emphasis
// and links. Elements are made one by one and every text goes in as text, never as HTML.

const FENCE = /^```[^\n]*\n?/;
const INLINE = /(`+)(.+?)\1|\*\*(.+?)\*\*|\*(\S(?:.*?\S)?)\*|\[([^\]]+)\]\((https?:\/\/[^\s)]+)\)/s;
const LIST = /^\s*(?:[-*+]|(\d+)[.)])\s+(.*)$/;

/**
 * A text that grows. It is drawn once a frame, however many pieces have come, and of it only the
 * last block, however long it is.
 */
export class Words {
  constructor(box) {
    this.box = box;
    this.rest = ""; // of the block that may still grow
    this.last = null;
    this.due = 0;
  }

  append(piece) {
    this.rest += piece;
    this.due ||= requestAnimationFrame(() => this.draw());
  }

  /** Draw what has come; at once, for who cannot wait for the next frame. */
  draw() {
    cancelAnimationFrame(this.due);
    this.due = 0;
    for (let end = blockEnd(this.rest); end > 0; end = blockEnd(this.rest)) {
      this.#draw(this.rest.slice(0, end));
      this.last = null;
      this.rest = this.rest.slice(end).replace(/^\n+/, "");
    }
    if (this.rest) this.#draw(this.rest);
  }

  #draw(text) {
    this.last ??= this.box.appendChild(document.createElement("div"));
    this.last.className = "block";
    this.last.replaceChildren(...elements(text));
  }
}

/** Where the first block ends, if it does: behind its closing fence, or at a blank line or fence. */
function blockEnd(text) {
  if (!FENCE.test(text)) return text.search(/\n\s*\n|\n```/);
  const close = /\n```[ \t]*(?=\n)/.exec(text);
  return close ? close.index + close[0].length : -1;
}

function* elements(block) {
  if (FENCE.test(block)) {
    const pre = document.createElement("pre");
    pre.append(make("code", block.replace(FENCE, "").replace(/\n?```[ \t]*$/, "")));
    yield pre;
    return;
  }
  let open = null; // the paragraph or list that the next line may belong to
  for (const line of block.split("\n")) {
    const heading = /^#{1,6}\s+(.*)$/.exec(line);
    const item = LIST.exec(line);
    const kind = heading ? "h3" : item ? (item[1] ? "ol" : "ul") : "p";
    if (open && open.localName === kind && kind === "p") open.append("\n");
    else if (open?.localName !== kind || kind === "h3") {
      if (open) yield open;
      open = document.createElement(kind);
      if (item?.[1]) open.start = Number(item[1]);
    }
    const into = item ? open.appendChild(document.createElement("li")) : open;
    into.append(...inline(item ? item[2] : heading ? heading[1] : line));
  }
  if (open) yield open;
}

/** A line's text with its code, emphasis and links. */
function* inline(text) {
  for (let found = INLINE.exec(text); found; found = INLINE.exec(text)) {
    if (found.index) yield text.slice(0, found.index);
    const [whole, , code, strong, weak, label, address] = found;
    if (code) yield make("code", code);
    else if (address) yield Object.assign(make("a", label), { href: address, target: "_blank", rel: "noopener noreferrer" });
    else {
      const marked = document.createElement(strong ? "strong" : "em");
      marked.append(...inline(strong ?? weak));
      yield marked;
    }
    text = text.slice(found.index + whole.length);
  }
  if (text) yield text;
}

function make(tag, text) {
  return Object.assign(document.createElement(tag), { textContent: text });
}
