// Judging by keys: 0 to 3 grade the focused hit, else the one whose score breakdown is open; x clears the grade.

const KEYS = new Set(["0", "1", "2", "3", "x"]);

const isTyping = (target) => target.closest("input, select, textarea, [contenteditable]") !== null;

const currentCard = (target) => {
  const focused = target.closest("[data-hit-card]");
  if (focused) {
    return focused;
  }
  const link = document.querySelector("[data-switch='hit'][aria-current='true']");
  const card = link?.closest("[data-hit-card]");
  return card && card.closest("[hidden]") === null ? card : null;
};

document.addEventListener("keydown", (event) => {
  if (!KEYS.has(event.key) || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) {
    return;
  }
  const button = currentCard(event.target)?.querySelector(`[data-grade="${event.key}"]`);
  if (button) {
    event.preventDefault();
    button.click();
  }
});

// In the queue of a question set, the first passage without a grade has the focus: after loading and after each grade.
// While loading, the question above it stays in sight.

const focusUngraded = (options) => document.querySelector("[data-pooled]:not([data-graded])")?.focus(options);

document.addEventListener("htmx:afterSettle", (event) => {
  if (event.target.matches?.("[data-pooled]")) {
    focusUngraded();
  } else if (event.target.id === "passages") {
    focusUngraded({ preventScroll: true });
  }
});
focusUngraded({ preventScroll: true });

// The key n leads to the next question.

document.addEventListener("keydown", (event) => {
  const next = document.querySelector("[data-next-question]");
  if (event.key === "n" && next && !event.ctrlKey && !event.metaKey && !event.altKey && !isTyping(event.target)) {
    next.click();
  }
});
