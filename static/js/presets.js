// A preset's settings: sliders beside the numbers, search, only what was changed, and the shipped values again.

const form = document.querySelector("[data-settings]");
const search = form.querySelector("[data-settings-search]");
const changedOnly = form.querySelector("[data-settings-changed]");
const groups = [...form.querySelectorAll("[data-settings-group]")];
const settings = [...form.querySelectorAll("[data-setting]")];
const NOTCHES = 200;

const numberOf = (setting) => setting.querySelector("input[type=number]");
const sliderOf = (setting) => setting.querySelector("[data-slider]");
const isChanged = (setting) => Number(numberOf(setting).value) !== Number(setting.dataset.default);

// A range of many orders of magnitude is walked through in ratios: the same way doubles 10 and 10,000.
const inRatios = (low, high) => {
  const length = Math.log10(high - low + 1);
  return {
    steps: NOTCHES,
    toValue: (place) => {
      const exact = low + 10 ** ((place / NOTCHES) * length) - 1;
      return place >= NOTCHES ? high : Math.round(Number(exact.toPrecision(2)));
    },
    toPlace: (value) => (Math.log10(Math.max(value - low, 0) + 1) / length) * NOTCHES,
  };
};

const inSteps = (low, high, steps) => ({
  steps,
  toValue: (place) => {
    const step = (high - low) / steps;
    const value = Number.isInteger(step) ? low + place * step : Math.round((low + place * step) / step) * step;
    return Math.min(high, Math.max(low, Number(value.toPrecision(6))));
  },
  toPlace: (value) => ((value - low) / (high - low)) * steps,
});

const scales = new Map(
  settings.map((setting) => {
    const { min, max } = numberOf(setting);
    const steps = Number(sliderOf(setting).dataset.steps);
    return [setting, steps ? inSteps(Number(min), Number(max), steps) : inRatios(Number(min), Number(max))];
  }),
);

const follow = (setting) => {
  sliderOf(setting).value = scales.get(setting).toPlace(Number(numberOf(setting).value));
};

const markChanges = () => {
  for (const setting of settings) {
    setting.querySelector("[data-reset]").hidden = !isChanged(setting);
  }
  for (const group of groups) {
    const count = settings.filter((setting) => group.contains(setting) && isChanged(setting)).length;
    const badge = group.querySelector("[data-settings-group-changed]");
    badge.textContent = `${count} changed`;
    badge.hidden = count === 0;
    group.querySelector("[data-reset-group]").hidden = count === 0;
  }
};

const filter = () => {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const isFiltered = words.length > 0 || changedOnly.checked;
  let shown = 0;
  for (const setting of settings) {
    const matches = words.every((word) => setting.dataset.words.includes(word));
    setting.hidden = !matches || (changedOnly.checked && !isChanged(setting));
    shown += setting.hidden ? 0 : 1;
  }
  for (const group of groups) {
    group.hidden = settings.every((setting) => setting.hidden || !group.contains(setting));
    group.open = group.open || (isFiltered && !group.hidden);
  }
  form.querySelector("[data-settings-none]").hidden = shown > 0;
  form.querySelector("[data-settings-count]").textContent =
    shown === settings.length ? `${shown} settings` : `${shown} of ${settings.length} settings`;
};

const reset = (setting) => {
  numberOf(setting).value = setting.dataset.default;
  follow(setting);
};

form.addEventListener("input", (event) => {
  const setting = event.target.closest("[data-setting]");
  if (setting && event.target === sliderOf(setting)) {
    numberOf(setting).value = scales.get(setting).toValue(Number(event.target.value));
  } else if (setting) {
    follow(setting);
  } else if (event.target === search || event.target === changedOnly) {
    filter();
    return;
  }
  markChanges();
});

form.addEventListener("click", (event) => {
  const button = event.target.closest("[data-reset], [data-reset-group]");
  if (!button) {
    return;
  }
  const within = button.closest("[data-reset-group]") ? button.closest("[data-settings-group]") : button.closest("[data-setting]");
  settings.filter((setting) => within.contains(setting)).forEach(reset);
  markChanges();
  numberOf(within).focus();
});

// Enter in the search does not save the draft.
search.addEventListener("keydown", (event) => {
  if (event.key === "Enter") {
    event.preventDefault();
  }
});

for (const setting of settings) {
  const slider = sliderOf(setting);
  slider.min = 0;
  slider.max = scales.get(setting).steps;
  slider.step = 1;
  follow(setting);
}
markChanges();
