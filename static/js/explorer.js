// The Query Explorer: the page has all results of a search, and this script shows one part or another. Without it, each
// link loads the page with that part open.

import { reportUse } from "./use.js";

const FIRST_TAB = "hits";

const links = (group) => [...document.querySelectorAll(`[data-switch="${group}"]`)];
const panels = (group) => [...document.querySelectorAll(`[data-panel="${group}"]`)];
const isCurrent = (link) => link.getAttribute("aria-current") === "true" || link.ariaExpanded === "true";

const mark = (link, chosen) => {
  if (link.hasAttribute("aria-expanded")) {
    link.setAttribute("aria-expanded", String(chosen));
  } else if (chosen) {
    link.setAttribute("aria-current", "true");
  } else {
    link.removeAttribute("aria-current");
  }
};

const remember = (group, name) => {
  const address = new URL(window.location.href);
  if (name === null) {
    address.searchParams.delete(group);
  } else {
    address.searchParams.set(group, name);
  }
  address.hash = "";
  // Back leads to the tab before; everything else belongs to its tab.
  const keep = group === "tab" && address.href !== window.location.href ? "pushState" : "replaceState";
  window.history[keep](window.history.state, "", address);
};

const show = (group, name) => {
  for (const link of links(group)) {
    mark(link, link.dataset.name === name);
  }
  for (const panel of panels(group)) {
    panel.hidden = panel.dataset.name !== name;
    panel.classList.remove("is-default");
  }
  remember(group, name);
};

const isPlainClick = (event) => event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;

document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-switch]");
  if (!link || !isPlainClick(event)) {
    return;
  }
  event.preventDefault();
  const closes = "closes" in link.dataset && isCurrent(link);
  show(link.dataset.switch, closes ? null : link.dataset.name);
  if (link.dataset.switch === "part") {
    show("stage", null); // Another part has other stages.
  }
});

// Keys: j and k, or the arrows on a hit, move through the hits; / focuses the query.

const isTyping = (target) => target.closest("input, select, textarea, [contenteditable]") !== null;
const hitsAreShown = () => document.querySelector("[data-hits]")?.closest("[hidden]") === null;

const step = (by) => {
  const hits = links("hit");
  const current = hits.findIndex((link) => link.getAttribute("aria-current") === "true");
  const next = hits[Math.min(Math.max(current + by, 0), hits.length - 1)];
  if (next) {
    show("hit", next.dataset.name);
    next.focus();
    next.closest("[data-hit-card]").scrollIntoView({ block: "nearest" });
  }
};

const STEPS = { j: 1, k: -1, ArrowDown: 1, ArrowUp: -1 };

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) {
    return;
  }
  if (event.key === "/") {
    const query = document.querySelector("[data-ask] input");
    if (query) {
      event.preventDefault();
      query.select();
    }
    return;
  }
  const isArrow = event.key.startsWith("Arrow");
  const mayStep = hitsAreShown() && (!isArrow || event.target.closest("[data-switch='hit']"));
  if (event.key in STEPS && mayStep) {
    event.preventDefault();
    step(STEPS[event.key]);
  }
});

// Another preset or user runs the query again; without a query it only shows the user's scope.

document.addEventListener("change", (event) => {
  if (!("submits" in event.target.dataset)) {
    return;
  }
  const form = event.target.form;
  if (form.checkValidity()) {
    form.requestSubmit();
    return;
  }
  const asked = new URLSearchParams(new FormData(form));
  asked.delete("q");
  window.location.assign(`${form.action}?${asked}`);
});

document.addEventListener("click", (event) => {
  if (event.target.closest(".hit-score [title]:not(button), .hit-score [aria-describedby]:not(button)") && isPlainClick(event)) {
    event.target.closest("[data-hit-card]").querySelector(".hit-link").click();
  }
});

// Opening a hit is reported, by any link of the page to its passage and with any button that opens it.

const reportOpened = (event) => {
  const hits = document.querySelector("[data-use-address]");
  const address = event.target.closest("a[href]")?.href;
  const opened = [...(hits?.querySelectorAll(".hit-open") ?? [])].find((link) => link.href === address);
  if (opened && event.button !== 2) {
    reportUse(hits.dataset.useAddress, { number: opened.dataset.number });
  }
};

document.addEventListener("click", reportOpened);
document.addEventListener("auxclick", reportOpened);

document.addEventListener("click", (event) => {
  const example = event.target.closest("[data-example]");
  if (example && isPlainClick(event)) {
    document.querySelector("[data-ask] input").value = example.dataset.example;
  }
});

// A new search stays on the open tab, which the page's links do not contain.

document.addEventListener("htmx:configRequest", (event) => {
  const tab = new URLSearchParams(window.location.search).get("tab");
  const named = new URL(event.detail.path, window.location.href).searchParams.has("tab");
  if (event.detail.target.id === "results" && !named && tab && tab !== FIRST_TAB) {
    event.detail.parameters.set("tab", tab);
  }
});
