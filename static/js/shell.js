// The frame of every page: menus, the drawer on phones, the dialogs to find things and to see the keys, and tooltips.

const isTyping = (target) => target.closest("input, select, textarea, [contenteditable]") !== null;
const isPlainClick = (event) => event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;

// Menus close on a click elsewhere, or on Escape.
const openMenus = () => document.querySelectorAll("details[data-menu][open]");

document.addEventListener("click", (event) => {
  for (const menu of openMenus()) {
    if (!menu.contains(event.target)) {
      menu.open = false;
    }
  }
});

const closeMenu = (event) => {
  const menu = [...openMenus()].at(-1);
  if (menu) {
    event.preventDefault();
    menu.open = false;
    menu.querySelector("summary").focus();
  }
};

// A response that replaces an open menu opens it again, and filters its list as before.
let kept = [];

document.addEventListener("htmx:beforeSwap", () => {
  kept = [...openMenus()].filter((menu) => menu.id).map((menu) => [menu.id, menu.querySelector("[data-filters]")?.value]);
});

document.addEventListener("htmx:oobAfterSwap", () => {
  for (const [id, text] of kept) {
    const menu = document.getElementById(id);
    const field = menu?.querySelector("[data-filters]");
    if (menu) {
      menu.open = true;
    }
    if (field && text) {
      field.value = text;
      filter(field);
    }
  }
});

const filter = (field) => {
  const text = field.value.trim().toLowerCase();
  for (const row of document.getElementById(field.dataset.filters).querySelectorAll("[data-filtered]")) {
    row.hidden = !row.textContent.toLowerCase().includes(text);
  }
};

document.addEventListener("input", (event) => {
  if ("filters" in event.target.dataset) {
    filter(event.target);
  }
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && "filters" in event.target.dataset) {
    event.preventDefault(); // It is inside a form, which it is no part of.
  }
});

// On phones the navigation is a drawer. What is behind it cannot be reached while it is open.
const rail = document.querySelector("[data-rail]");
const railLink = document.querySelector("[data-open-rail]");

const setRail = (isOpen) => {
  rail.classList.toggle("is-open", isOpen);
  railLink.setAttribute("aria-expanded", String(isOpen));
  for (const element of document.querySelectorAll("[data-behind]")) {
    element.inert = isOpen;
  }
  for (const [name, value] of Object.entries({ role: "dialog", "aria-modal": "true", "aria-label": "Menu" })) {
    if (isOpen) {
      rail.setAttribute(name, value);
    } else {
      rail.removeAttribute(name);
    }
  }
  (isOpen ? rail.querySelector("[data-close-rail]") : railLink).focus();
};

document.addEventListener("click", (event) => {
  const opens = event.target.closest("[data-open-rail]");
  if (opens || event.target.closest("[data-close-rail]")) {
    event.preventDefault();
    setRail(opens !== null);
  }
});

window.matchMedia("(min-width: 60.01rem)").addEventListener("change", () => {
  if (rail.classList.contains("is-open")) {
    setRail(false);
  }
});

// The dialog that finds things: what is typed is looked up on the server.
const findDialog = document.querySelector("[data-find-dialog]");
const findInput = document.querySelector("[data-find-input]");
const keysDialog = document.querySelector("[data-keys-dialog]");

// What is shown answers an earlier text until the next results arrive; Enter waits for them.
let isStale = true;
let opensFirst = false;

const openFind = () => {
  if (!findDialog.open) {
    keysDialog.close();
    findInput.value = "";
    isStale = true;
    findDialog.showModal();
    window.htmx.trigger(findInput, "opened");
  }
};

const foundRows = () => [...findDialog.querySelectorAll("[role=option]")];

const choose = (row) => {
  for (const other of foundRows()) {
    other.setAttribute("aria-selected", String(other === row));
  }
  findInput.setAttribute("aria-activedescendant", row?.id ?? "");
  row?.scrollIntoView({ block: "nearest" });
};

findInput.addEventListener("input", () => {
  isStale = true;
  opensFirst = false;
});

findDialog.addEventListener("htmx:afterSwap", () => {
  if (findDialog.querySelector("[data-found]").dataset.found !== findInput.value.trim()) {
    return; // More was typed meanwhile.
  }
  const [first] = foundRows();
  isStale = false;
  choose(first);
  if (opensFirst) {
    opensFirst = false;
    first?.click();
  }
});

findDialog.addEventListener("keydown", (event) => {
  const rows = foundRows();
  const at = rows.findIndex((row) => row.ariaSelected === "true");
  const steps = { ArrowDown: 1, ArrowUp: -1 };
  if (event.key in steps && rows.length) {
    event.preventDefault();
    choose(rows[(at + steps[event.key] + rows.length) % rows.length]);
  } else if (event.key === "Enter" && event.target === findInput) {
    event.preventDefault();
    opensFirst = isStale;
    if (!isStale) {
      rows[at]?.click();
    }
  }
});

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-open-find]") && isPlainClick(event)) {
    event.preventDefault();
    openFind();
  } else if (event.target.closest("[data-open-keys]")) {
    keysDialog.showModal();
  } else if (event.target.closest("[data-close-dialog]") || event.target.matches("dialog[data-find-dialog], dialog[data-keys-dialog]")) {
    event.target.closest("dialog").close();
  } else if (event.target.closest("[role=option]")) {
    findDialog.close(); // The page may be this one, at another place.
  }
});

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.isComposing) {
    return;
  }
  if (event.key === "Escape" && rail.classList.contains("is-open") && openMenus().length === 0) {
    event.preventDefault();
    setRail(false);
  } else if (event.key === "Escape") {
    closeMenu(event);
  } else if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey) {
    event.preventDefault();
    openFind();
  } else if (event.key === "?" && !isTyping(event.target) && !document.querySelector("dialog[open]")) {
    event.preventDefault();
    keysDialog.showModal();
  }
});

// Tooltips: titles are shown at once, also to who uses the keyboard. Without this script the browser shows them.
const tip = document.createElement("div");
tip.className = "tip";
tip.id = "tip";
tip.setAttribute("role", "tooltip");
tip.hidden = true;
document.body.append(tip);
// A style sheet of the script: the policy allows no style attribute.
const tipPlace = new CSSStyleSheet();
document.adoptedStyleSheets.push(tipPlace);
let tipped = null;

const hideTip = () => {
  tip.hidden = true;
  tipped?.setAttribute("title", tip.textContent);
  tipped?.removeAttribute("aria-describedby");
  tipped = null;
};

const showTip = (element) => {
  hideTip();
  tip.textContent = element.title;
  tip.hidden = false;
  const box = element.getBoundingClientRect();
  const own = tip.getBoundingClientRect();
  const left = Math.min(Math.max(box.left + box.width / 2 - own.width / 2, 8), document.documentElement.clientWidth - own.width - 8);
  const below = box.bottom + own.height + 8 < window.innerHeight;
  const top = below ? box.bottom + 6 : box.top - own.height - 6;
  tipPlace.replaceSync(`.tip { translate: ${Math.round(left)}px ${Math.round(top)}px; }`);
  element.removeAttribute("title");
  element.setAttribute("aria-describedby", "tip");
  tipped = element;
};

const tipOf = (event) => event.target.closest?.("main [title]:not([title='']):not(iframe, svg *, option)") ?? null;

document.addEventListener("pointerover", (event) => {
  if (tipped?.contains(event.target)) {
    return;
  }
  const element = event.pointerType === "touch" ? null : tipOf(event);
  if (element) {
    showTip(element);
  } else if (tipped && !tipped.matches(":focus-visible")) {
    hideTip();
  }
});

document.addEventListener("focusin", (event) => {
  const element = event.target.matches(":focus-visible[title]:not([title=''])") ? event.target : null;
  if (element?.closest("main")) {
    showTip(element);
  } else if (tipped !== event.target) {
    hideTip();
  }
});

document.addEventListener("focusout", hideTip);
document.addEventListener("scroll", hideTip, { capture: true, passive: true });
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    hideTip();
  }
});
document.addEventListener("htmx:beforeSwap", hideTip);
