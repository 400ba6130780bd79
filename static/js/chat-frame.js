// The parts around the thread: the choice of sources, the link of a shared conversation, the drawer of conversations.

// Sources: the button shows the selection; the last one cannot be deselected.
const picker = document.querySelector("[data-picker]");
const boxes = [...picker.querySelectorAll("input[type=checkbox]")];
const all = picker.querySelector("[data-all]");

const sayPicked = () => {
  const picked = boxes.filter((box) => box.checked);
  const names = picked.map((box) => box.closest("label").querySelector(".picker-name").textContent);
  const words = names.length === 1 ? names[0] : `${names.length} of ${boxes.length} sources`;
  picker.querySelector("[data-picked]").textContent = names.length === boxes.length ? "All sources" : words;
  if (all) {
    all.hidden = names.length === boxes.length;
  }
};

picker.addEventListener("change", (event) => {
  if (!boxes.some((box) => box.checked)) {
    event.target.checked = true;
  }
  sayPicked();
});

all?.addEventListener("click", () => {
  for (const box of boxes) {
    box.checked = true;
  }
  sayPicked();
  picker.querySelector("summary").focus();
});

if (boxes.length) {
  sayPicked();
}

// The search among many sources.
const find = picker.querySelector("[data-find-source]");
const only = picker.querySelector("[data-only]");
const rowOf = (box) => box.closest("label");

const findSources = () => {
  const wanted = find.value.trim().toLowerCase();
  for (const box of boxes) {
    rowOf(box).hidden = !rowOf(box).textContent.toLowerCase().includes(wanted);
  }
  const found = boxes.filter((box) => !rowOf(box).hidden).length;
  picker.querySelector("[data-no-source]").hidden = found > 0;
  only.hidden = found === 0 || found === boxes.length;
};

if (find) {
  find.hidden = false;
  find.addEventListener("input", findSources);
  find.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      // It would send the question.
      event.preventDefault();
    }
  });
  only.addEventListener("click", () => {
    for (const box of boxes) {
      box.checked = !rowOf(box).hidden;
    }
    find.value = "";
    findSources();
    sayPicked();
    find.focus();
  });
  picker.addEventListener("toggle", () => {
    if (picker.open) {
      find.focus();
    } else {
      find.value = "";
      findSources();
    }
  });
}

const drawer = document.querySelector("#chat-history");

// No element has this name, so the page does not scroll.
const closeDrawer = () => {
  window.location.replace("#closed");
  document.querySelector("[data-open-history]").focus();
};

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.defaultPrevented) {
    return;
  }
  if (drawer.matches(":target")) {
    event.preventDefault();
    closeDrawer();
  }
});

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-close-history]")) {
    event.preventDefault();
    closeDrawer();
  }
});

// The link of a shared conversation. htmx replaces the panel.
const offerCopy = () => {
  for (const button of document.querySelectorAll("[data-copy-link]")) {
    button.hidden = !navigator.clipboard;
  }
};

document.addEventListener("htmx:afterSettle", offerCopy);
offerCopy();

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy-link]");
  if (!button) {
    return;
  }
  await navigator.clipboard.writeText(document.querySelector("#share-link").value);
  button.textContent = "Copied";
  document.querySelector("[data-announcement]").textContent = "Copied.";
});
