// Where a passage says what an answer cites it for. No HTML is made here.

const MIN_CHARACTERS = 12;
const MIN_SHARED = 2;
const BEFORE = 90;
const AFTER = 140;
const MAX_QUOTED = 320;
const MAX_ROWS = 3;

// A full stop inside a word, as in 0.5 or db.internal, ends no sentence.
const SENTENCE = /(?:[^.!?\n]|[.!?](?=\S))+[.!?]*/g;
const WORD = /[\p{L}\p{N}]+/gu;
const STEM_LENGTH = 6;

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&");

// Words cut to the same beginning count as one, so that "draining" is found as "drained".
const termsOf = (text) => {
  const words = text.toLowerCase().match(WORD) ?? [];
  return new Set(words.filter((word) => word.length > 2 || /\p{N}/u.test(word)).map((word) => word.slice(0, STEM_LENGTH)));
};

// A text without its citations.
const textOf = (node) => {
  const copy = node.cloneNode(true);
  copy.querySelectorAll("[data-cite]").forEach((it) => it.remove());
  return copy.textContent;
};

const rowText = (row) => [...row.cells].map((cell) => textOf(cell).trim()).join(" | ");

const wordsOf = (block) => [...block.querySelectorAll("li, tbody tr, code")].map((part) => {
  return part.cells ? rowText(part) : textOf(part);
});

// What an answer says at a citation, the most exact text last: the text since the citation before it, its last sentence; of a
// citation in a table, its row; of one on a line alone, the rows, items or code above, all of them first.
export const saidAt = (chip) => {
  const block = chip.closest("p, li, td, th, h1, h2, h3, h4, h5, h6");
  if (!block?.closest("[data-text]")) {
    return [];
  }
  if (block.matches("td, th")) {
    return [rowText(block.parentElement)];
  }
  const range = document.createRange();
  const chips = [...block.querySelectorAll("[data-cite]")];
  let first = chips.indexOf(chip);
  while (first > 0 && chips[first - 1].nextSibling === chips[first]) {
    first -= 1;
  }
  range.setStart(block, 0);
  if (first > 0) {
    range.setStartAfter(chips[first - 1]);
  }
  range.setEndBefore(chips[first] ?? chip);
  const text = range.toString().trim();
  const said = [text, ...(text.match(SENTENCE) ?? [])].map((it) => it.trim()).filter((it) => it.length >= MIN_CHARACTERS);
  const above = block.previousElementSibling;
  if (said.length || text || !above) {
    return said;
  }
  const words = wordsOf(above).map((it) => it.trim()).filter(Boolean);
  return words.length ? [words.join("\n"), ...words] : [];
};

const exact = (passage, text) => {
  const found = new RegExp(text.split(/\s+/).map(escaped).join("\\s+")).exec(passage);
  return found && { start: found.index, end: found.index + found[0].length };
};

// The sentence of the passage with the most of the statement's words; a word counts less, the more sentences have it.
const nearest = (passage, said) => {
  const sentences = [...passage.matchAll(SENTENCE)].map((found) => ({ found, terms: termsOf(found[0]) }));
  const wanted = termsOf(said);
  const shares = new Map([...wanted].map((term) => [term, 1 / sentences.filter((it) => it.terms.has(term)).length]));
  let best = null;
  for (const { found, terms } of sentences) {
    const shared = [...wanted].filter((term) => terms.has(term));
    const score = shared.reduce((sum, term) => sum + shares.get(term), 0);
    if (shared.length >= Math.min(MIN_SHARED, wanted.size) && shared.length && score > (best?.score ?? 0)) {
      const start = found.index + found[0].length - found[0].trimStart().length;
      best = { score, start, end: found.index + found[0].trimEnd().length };
    }
  }
  return best;
};

// The place of the passage's words that support one of the texts, {start, end}; null if none does.
const placeOf = (passage, texts) => {
  for (const text of texts) {
    const found = exact(passage, text);
    if (found) {
      return found;
    }
  }
  return texts.length ? nearest(passage, texts.at(-1)) : null;
};

// The paragraphs and rows of a passage, each with its text and its place in the text of all.
const partsOf = (root) => {
  let start = 0;
  return [...root.querySelectorAll("p, tr")].map((node) => {
    const text = node.cells ? rowText(node) : node.textContent;
    const part = { node, text, start, end: start + text.length };
    start = part.end + 1;
    return part;
  });
};

// The parts of a passage that support one of the texts, each with the place in it; empty if none does.
const supporting = (root, texts) => {
  const parts = partsOf(root);
  const place = placeOf(parts.map((it) => it.text).join("\n"), texts);
  const found = place ? parts.filter((it) => it.start < place.end && it.end > place.start) : [];
  return found.map((part) => ({
    ...part,
    place: { start: Math.max(0, place.start - part.start), end: Math.min(part.text.length, place.end - part.start) },
  }));
};

const marked = (...nodes) => {
  const mark = document.createElement("mark");
  mark.append(...nodes);
  return mark;
};

const markRow = (row) => {
  for (const cell of row.cells) {
    cell.append(marked(...cell.childNodes));
  }
};

// Marks what a passage says about one of the texts, and returns the first mark; null without one.
export const markIn = (root, texts) => {
  for (const { node, place } of supporting(root, texts)) {
    if (node.cells) {
      markRow(node);
    } else {
      const range = document.createRange();
      range.setStart(node.firstChild, place.start);
      range.setEnd(node.firstChild, place.end);
      range.surroundContents(document.createElement("mark"));
    }
  }
  return root.querySelector("mark");
};

// The nodes of a short part of a passage: what supports one of the texts, marked, and a little around it.
export const excerptIn = (root, texts) => {
  const found = supporting(root, texts);
  const [first = { ...partsOf(root)[0], place: null }] = found;
  const row = first.node?.cells && first.node;
  if (!row) {
    return excerptOf(first.text ?? "", first.place);
  }
  const table = row.closest(".cells");
  const rows = [...table.querySelectorAll("tbody tr")];
  const from = Math.max(0, rows.indexOf(row));
  for (const [at, other] of rows.entries()) {
    if (at < from || at >= from + MAX_ROWS) {
      other.remove();
    }
  }
  found.filter((it) => it.node.cells).forEach((it) => markRow(it.node));
  table.removeAttribute("tabindex");
  return [table];
};

// The nodes of a short part of a text: the words at the place marked, a little around them.
const excerptOf = (passage, place) => {
  const line = (text) => text.replace(/\s+/g, " ");
  const { start, end } = place ?? { start: 0, end: 0 };
  const before = line(passage.slice(0, start));
  const quoted = line(passage.slice(start, end));
  const after = line(passage.slice(end));
  const room = place ? AFTER : AFTER + BEFORE;
  const head = before.length > BEFORE ? `… ${before.slice(-BEFORE).replace(/^\S*\s/, "")}` : before;
  const tail = after.length > room ? `${after.slice(0, room).replace(/\s\S*$/, "")} …` : after;
  const mark = marked(quoted.length > MAX_QUOTED ? `${quoted.slice(0, MAX_QUOTED).replace(/\s\S*$/, "")} …` : quoted);
  return place ? [head, mark, tail] : [tail.trim()];
};
