// An answer while it is being written, as nodes made from its text, never from HTML. The server's rendering replaces
// them at the end, so only common Markdown is supported here.

const FENCE = /^\s*```/;
const HEADING = /^#{1,6}\s+/;
const QUOTE = /^\s*>\s?/;
const BULLET = /^\s*[-*+]\s+/;
const STEP = /^\s*\d{1,9}[.)]\s+/;
const ROW = /^\s*\|/;
const RULE = /^\s*\|?[\s:|-]*-[\s:|-]*$/;
const CELL_END = /(?<!\\)\|/;
const INLINE = /\[(\d+)\]|\*\*([^*]+)\*\*|`([^`]+)`/g;
const ESCAPED = /\\([\\`*_{}[\]()#+.!|<>-])/g;

const element = (tag, ...children) => {
  const made = document.createElement(tag);
  made.append(...children);
  return made;
};

const plain = (text) => text.replace(ESCAPED, "$1");

const chip = (number) => {
  const made = element("span", number);
  made.className = "citation cite";
  return made;
};

const inline = (text) => {
  const nodes = [];
  let place = 0;
  for (const found of text.matchAll(INLINE)) {
    const [all, number, strong, code] = found;
    if (text[found.index - 1] === "\\") {
      continue;
    }
    nodes.push(plain(text.slice(place, found.index)));
    nodes.push(number ? chip(number) : strong ? element("strong", plain(strong)) : element("code", code));
    place = found.index + all.length;
  }
  return [...nodes, plain(text.slice(place))];
};

const list = (tag, lines, opening) => {
  const items = [];
  for (const line of lines) {
    if (opening.test(line)) {
      items.push(line.replace(opening, ""));
    } else {
      items.push(`${items.pop() ?? ""} ${line.trim()}`);
    }
  }
  return element(tag, ...items.map((item) => element("li", ...inline(item))));
};

const row = (line, tag) => {
  const cells = line.trim().replace(/^\||\|$/g, "").split(CELL_END);
  return element("tr", ...cells.map((cell) => element(tag, ...inline(cell.trim()))));
};

const table = ([head, , ...body]) => {
  const scroll = element("div", element("table", element("thead", row(head, "th")), element("tbody", ...body.map((it) => row(it, "td")))));
  scroll.className = "table-scroll";
  return scroll;
};

const rendered = (block) => {
  const lines = block.split("\n");
  if (FENCE.test(lines[0])) {
    return element("pre", element("code", lines.slice(1).filter((line) => !FENCE.test(line)).join("\n")));
  }
  if (HEADING.test(lines[0])) {
    return element("h3", ...inline(block.replace(HEADING, "")));
  }
  if (QUOTE.test(lines[0])) {
    const inner = lines.map((line) => line.replace(QUOTE, "")).join("\n");
    return element("blockquote", ...blocks(inner).map(rendered));
  }
  if (ROW.test(lines[0]) && RULE.test(lines[1] ?? "")) {
    return table(lines);
  }
  if (BULLET.test(lines[0])) {
    return list("ul", lines, BULLET);
  }
  return STEP.test(lines[0]) ? list("ol", lines, STEP) : element("p", ...inline(lines.join(" ")));
};

// Blank lines end a block, but not inside a fence.
const blocks = (text) => {
  const found = [];
  let lines = [];
  let isFenced = false;
  const close = () => {
    if (lines.length) {
      found.push(lines.join("\n"));
    }
    lines = [];
  };
  for (const line of text.split("\n")) {
    isFenced = FENCE.test(line) ? !isFenced : isFenced;
    if (line.trim() === "" && !isFenced) {
      close();
    } else {
      lines.push(line);
    }
  }
  close();
  return found;
};

// Renders a growing text: only changed blocks are rendered again, once per frame.
export class Draft {
  #place;
  #text = "";
  #shown = [];
  #frame = 0;
  #after;

  constructor(place, after) {
    this.#place = place;
    this.#after = after;
  }

  add(text) {
    this.#text += text;
    this.#frame ||= requestAnimationFrame(() => this.#show());
  }

  close() {
    cancelAnimationFrame(this.#frame);
  }

  #show() {
    this.#frame = 0;
    if (!this.#shown.length) {
      this.#place.replaceChildren();
    }
    blocks(this.#text).forEach((block, number) => {
      if (this.#shown[number] === block) {
        return;
      }
      const node = rendered(block);
      const before = this.#place.children[number];
      if (before) {
        before.replaceWith(node);
      } else {
        this.#place.append(node);
      }
      this.#shown[number] = block;
    });
    this.#after();
  }
}
