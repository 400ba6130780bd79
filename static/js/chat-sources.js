// Sources of an answer: a citation shows a card of its passage and opens the passage in the side panel; copying answers.

import { excerptIn, markIn, saidAt } from "./chat-quotes.js";
import { reportUse } from "./use.js";

const EDGE = 8;

const card = document.querySelector("[data-cite-card]");
const dock = document.querySelector("[data-composer]");
const sheet = document.querySelector("[data-passage]");
const narrow = window.matchMedia("(max-width: 60rem)");
const announcement = document.querySelector("[data-announcement]");

const chipOf = (target) => (target instanceof Element ? target.closest("[data-cite]") : null);
const sourceOf = (chip) => document.getElementById(chip.hash.slice(1));
const passageLink = (chip) => sourceOf(chip)?.querySelector("[data-passage-address]");

// The card: while it is shown, it follows its citation in the document.

const home = card.parentElement;

const place = (chip) => {
  card.classList.remove("is-above", "is-before");
  chip.after(card);
  const box = card.getBoundingClientRect();
  card.classList.toggle("is-before", box.right > window.innerWidth - EDGE);
  const floor = dock?.getBoundingClientRect().top ?? window.innerHeight;
  card.classList.toggle("is-above", box.bottom > floor - EDGE);
};

// Under a finger the card stays and has a button, because there is no hovering.
const openButton = (chip, link) => {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "button is-small";
  button.textContent = "Open the passage";
  button.addEventListener("click", () => open(link, chip));
  return button;
};

const showCard = (chip, { isTouched = false } = {}) => {
  const facts = sourceOf(chip)?.querySelector("[data-source-facts]");
  if (!facts) {
    return;
  }
  const copy = facts.cloneNode(true);
  delete copy.dataset.sourceFacts;
  for (const link of copy.querySelectorAll("a")) {
    const title = document.createElement("p");
    title.className = "source-title";
    title.append(...link.childNodes);
    link.replaceWith(title);
  }
  const excerpt = copy.querySelector("[data-excerpt]");
  if (excerpt) {
    excerpt.hidden = false;
    excerpt.replaceChildren(...excerptIn(excerpt, saidAt(chip)));
  }
  card.replaceChildren(...copy.childNodes);
  card.classList.toggle("is-touched", isTouched);
  const link = passageLink(chip);
  if (isTouched && link) {
    card.append(openButton(chip, link));
  }
  card.hidden = false;
  chip.setAttribute("aria-describedby", card.id);
  place(chip);
};

const hideCard = () => {
  card.hidden = true;
  home.append(card);
  document.querySelector(`[aria-describedby="${card.id}"]`)?.removeAttribute("aria-describedby");
};

document.addEventListener("pointerover", (event) => {
  const chip = chipOf(event.target);
  if (chip && event.pointerType === "mouse") {
    showCard(chip);
  }
});
document.addEventListener("pointerout", (event) => event.pointerType === "mouse" && chipOf(event.target) && hideCard());
document.addEventListener("focusin", (event) => {
  const chip = chipOf(event.target);
  if (chip?.matches(":focus-visible")) {
    showCard(chip);
  }
});
// A touched card takes the focus to its button, and is hidden by the next touch elsewhere.
document.addEventListener("focusout", (event) => {
  if (chipOf(event.target) && !card.classList.contains("is-touched")) {
    hideCard();
  }
});

const report = (exchange, use) => {
  const address = exchange.querySelector("[data-use-address]")?.dataset.useAddress;
  if (address) {
    reportUse(address, use);
  }
};

// The passage.

let opener = null;

const close = () => {
  sheet.close();
};

sheet?.addEventListener("close", () => {
  sheet.replaceChildren();
  opener?.removeAttribute("aria-expanded");
  if (opener?.isConnected) {
    opener.focus({ preventScroll: true });
  }
  opener = null;
});

const show = (html, from) => {
  const read = new DOMParser().parseFromString(html, "text/html").body;
  sheet.replaceChildren(...read.childNodes);
  if (!sheet.open) {
    if (narrow.matches) {
      sheet.showModal();
    } else {
      sheet.show();
    }
  }
  const passage = sheet.querySelector("[data-cited]");
  const words = passage?.querySelector("[data-words]");
  const mark = words && "cite" in from.dataset ? markIn(words, saidAt(from)) : null;
  if (mark) {
    mark.scrollIntoView({ block: "center" });
  } else {
    passage?.scrollIntoView({ block: "start" });
  }
  sheet.querySelector("#passage-title")?.focus({ preventScroll: true });
};

const open = async (link, from) => {
  hideCard();
  const response = await fetch(link.dataset.passageAddress, { headers: { "HX-Request": "true" } }).catch(() => null);
  if (!response?.ok || response.headers.has("HX-Redirect")) {
    window.location.assign(link.href);
    return;
  }
  opener?.removeAttribute("aria-expanded");
  opener = from;
  from.setAttribute("aria-expanded", "true");
  show(await response.text(), from);
  report(link.closest("[data-exchange]"), { number: link.dataset.number });
};

let isTouch = false;
document.addEventListener("pointerdown", (event) => {
  isTouch = event.pointerType === "touch";
  if (isTouch && !card.hidden && !card.contains(event.target) && !chipOf(event.target)) {
    hideCard();
  }
});

const isPlainClick = (event) => event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;

document.addEventListener("click", (event) => {
  if (!isPlainClick(event)) {
    return;
  }
  const chip = chipOf(event.target);
  const link = chip ? passageLink(chip) : event.target.closest("[data-passage-address]");
  if (chip && isTouch && chip.getAttribute("aria-describedby") !== card.id) {
    event.preventDefault();
    hideCard();
    showCard(chip, { isTouched: true });
  } else if (link) {
    event.preventDefault();
    open(link, chip ?? link);
  } else if (chip) {
    const hidden = sourceOf(chip)?.closest("details");
    if (hidden) {
      hidden.open = true;
    }
  } else if (event.target.closest("[data-close-passage]") || event.target === sheet) {
    close();
  }
});

document.addEventListener(
  "keydown",
  (event) => {
    if (event.key !== "Escape") {
      return;
    }
    if (!card.hidden) {
      event.preventDefault();
      hideCard();
    } else if (sheet?.open) {
      event.preventDefault();
      close();
    }
  },
  { capture: true },
);

// Copying: the visible text, its citations as [N], and the list of their sources.

const textOf = (exchange) => {
  const copy = exchange.querySelector("[data-text]").cloneNode(true);
  for (const sign of copy.querySelectorAll(".doubt-sign, [data-cite-card]")) {
    sign.remove();
  }
  for (const chip of copy.querySelectorAll(".cite")) {
    chip.replaceWith(`[${chip.textContent}]`);
  }
  // Only text in the page has line breaks.
  copy.classList.add("is-copied");
  exchange.append(copy);
  const text = copy.innerText.trim();
  copy.remove();
  const listed = exchange.querySelectorAll(".sources > .sources-list > [data-source]");
  const sources = [...listed].map((source) => {
    const title = source.querySelector(".source-title").textContent;
    return `[${source.querySelector(".source-number").textContent}] ${title}`;
  });
  return [text, sources.join("\n")].filter(Boolean).join("\n\n");
};

const offerCopy = (part) => {
  for (const button of part.querySelectorAll("[data-copy]")) {
    button.hidden = !navigator.clipboard;
  }
};

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) {
    return;
  }
  const exchange = button.closest("[data-exchange]");
  await navigator.clipboard.writeText(textOf(exchange));
  report(exchange, { copied: "1" });
  button.classList.add("is-done");
  announcement.textContent = "Copied.";
  setTimeout(() => button.classList.remove("is-done"), 1500);
});

offerCopy(document);
document.addEventListener("chat:exchange", (event) => offerCopy(event.detail));
