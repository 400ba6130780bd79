// Long forms: links from an error to its field, and the form of a new source in steps. Without this script all steps are
// one page, and links only scroll.

const wizardOf = () => document.querySelector("form[data-wizard]");
const stepsOf = (form) => [...form.querySelectorAll("[data-wizard-step]")];
const nameOf = (step) => step.dataset.wizardStep;

const stepInAddress = (steps) => steps.find((step) => `#${nameOf(step)}` === window.location.hash) ?? steps[0];

const isLast = (steps, step) => steps.at(-1) === step;

const showStep = (form, current) => {
  const steps = stepsOf(form);
  const at = steps.indexOf(current);
  for (const step of steps) {
    step.hidden = step !== current;
  }
  for (const mark of document.querySelectorAll("[data-mark]")) {
    const number = steps.findIndex((step) => nameOf(step) === mark.dataset.mark);
    mark.classList.toggle("is-done", mark.dataset.mark === "kind" || (number >= 0 && number < at));
    if (number === at) {
      mark.setAttribute("aria-current", "step");
    } else {
      mark.removeAttribute("aria-current");
    }
  }
  form.querySelector("[data-wizard-back]").hidden = at === 0;
  form.querySelector("[data-wizard-next]").hidden = isLast(steps, current);
  form.querySelector("[data-wizard-next]").textContent = at === 0 ? "Test and continue" : "Continue";
  const save = form.querySelector("#save");
  save.hidden = at === 0;
  save.classList.toggle("is-primary", isLast(steps, current));
  form.querySelector("#do-check").hidden = true;
};

const goTo = (step) => {
  if (window.location.hash === `#${nameOf(step)}`) {
    showStep(wizardOf(), step);
  } else {
    window.location.hash = nameOf(step);
  }
};

const wrongIn = (part) => part.querySelector("[aria-invalid=true]");

const focusWrong = (field) => {
  field.closest("details")?.setAttribute("open", "");
  field.focus();
};

const focusStep = (step) => (wrongIn(step) ?? step.querySelector("input:not([type=hidden]), select, textarea"))?.focus();

const isComplete = (step) => [...step.querySelectorAll("input, select, textarea")].every((field) => field.reportValidity());

// A step is left only when it is complete; the first one, when its source can be read.
const goOn = (form) => {
  const steps = stepsOf(form);
  const current = steps.find((step) => !step.hidden);
  if (!isComplete(current)) {
    return;
  }
  if (current === steps[0] && !form.querySelector("#anyway:checked")) {
    form.querySelector("#do-check").click();
  } else {
    goTo(steps[steps.indexOf(current) + 1]);
  }
};

const openStep = (form) => {
  const steps = stepsOf(form);
  const wrong = steps.find((step) => step.querySelector(".field-error"));
  if (wrong) {
    goTo(wrong);
    showStep(form, wrong);
  } else if ("tested" in form.dataset) {
    goTo(steps[1]);
    focusStep(steps[1]);
  } else {
    const step = form.querySelector("#anyway") ? steps[0] : stepInAddress(steps);
    showStep(form, step);
    // On a touch screen the focus would open a keyboard.
    if (window.matchMedia("(pointer: fine)").matches) {
      focusStep(step);
    }
  }
};

const setUp = () => {
  const form = wizardOf();
  if (form && !("ready" in form.dataset)) {
    form.dataset.ready = "";
    // Fields in hidden steps cannot show what the browser would say of them.
    form.noValidate = true;
    form.querySelector("[data-wizard-found]")?.removeAttribute("hidden");
    openStep(form);
  }
};

document.addEventListener("click", (event) => {
  const form = wizardOf();
  if (event.target.closest("[data-wizard-next]")) {
    goOn(form);
  } else if (event.target.closest("[data-wizard-back]")) {
    const steps = stepsOf(form);
    goTo(steps[steps.findIndex((step) => !step.hidden) - 1]);
  }
  const link = event.target.closest("[data-error-link]");
  const field = link && document.getElementById(link.hash.slice(1));
  if (field) {
    event.preventDefault();
    const step = field.closest("[data-wizard-step]");
    if (step && form) {
      goTo(step);
      showStep(form, step);
    }
    focusWrong(field);
  }
});

// Enter goes on, as Continue does.
document.addEventListener("keydown", (event) => {
  const form = wizardOf();
  const inField = event.target.matches("input:not([type=checkbox])") && event.target.form === form;
  if (event.key === "Enter" && form && inField && !form.querySelector("[data-wizard-next]").hidden) {
    event.preventDefault();
    goOn(form);
  }
});

window.addEventListener("hashchange", () => {
  const form = wizardOf();
  if (form) {
    const step = stepInAddress(stepsOf(form));
    showStep(form, step);
    focusStep(step);
  }
});

// htmx sets back the classes of a response's buttons, and the focus.
document.addEventListener("htmx:afterSettle", (event) => {
  if (event.target.id !== "connection-form") {
    return;
  }
  if (wizardOf()) {
    showStep(
      event.target,
      stepsOf(event.target).find((step) => !step.hidden),
    );
  }
  const wrong = wrongIn(event.target);
  if (wrong) {
    focusWrong(wrong);
  }
});

// A response that replaces the form is set up before it is painted.
new MutationObserver(setUp).observe(document.getElementById("main"), { childList: true, subtree: true });
setUp();
