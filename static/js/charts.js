// Charts: each element with `data-chart` names a figure in the page, with colours as names of design tokens. plotly.js is
// large, so it is loaded when the first chart is near the viewport. Every chart also has its data in a table.
(() => {
  const SOURCE = document.currentScript.dataset.plotly;
  // Under this id plotly.js would add rules for maps, which the policy forbids and no chart needs.
  const MAP_RULES = "9f215cf04c5486422605d13261cb87401f4e7763b6296af81e98efbc0130da53";
  const CONFIG = { displayModeBar: false, displaylogo: false, responsive: true, scrollZoom: false, doubleClick: false, showTips: false };
  const NARROW = 480;
  const SHORT_NAME = 16;
  const drawn = new Set();
  let loading = null;

  const load = () => {
    loading ??= new Promise((resolve, reject) => {
      const rules = document.createElement("meta");
      rules.id = MAP_RULES;
      const script = document.createElement("script");
      script.src = SOURCE;
      script.addEventListener("load", () => resolve(window.Plotly));
      script.addEventListener("error", () => {
        loading = null;
        reject(new Error("plotly.js was not loaded"));
      });
      document.head.append(rules, script);
    });
    return loading;
  };

  // A token's colour in the current theme, as the browser resolves it; other values are unchanged.
  const palette = (figure) => {
    const probe = document.createElement("span");
    probe.hidden = true;
    figure.append(probe);
    const known = new Map();
    const read = (name) => {
      probe.className = `chart-colour is-${name}`;
      const isToken = getComputedStyle(probe).getPropertyValue("--chart-colour") !== "";
      return isToken ? getComputedStyle(probe).color : name;
    };
    const colour = (name) => {
      if (!known.has(name)) {
        known.set(name, /^[a-z-]+$/.test(name) ? read(name) : name);
      }
      return known.get(name);
    };
    return { colour, end: () => probe.remove() };
  };

  const coloured = (value, colour, isColour = false) => {
    if (Array.isArray(value)) {
      return value.map((item) => coloured(item, colour, isColour));
    }
    if (value !== null && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, coloured(item, colour, /color/i.test(key))]));
    }
    return isColour && typeof value === "string" ? colour(value) : value;
  };

  const isPlain = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

  const merged = (base, over) => {
    const result = { ...base };
    for (const [key, value] of Object.entries(over ?? {})) {
      result[key] = isPlain(value) && isPlain(base[key]) ? merged(base[key], value) : value;
    }
    return result;
  };

  const AXIS = {
    automargin: true,
    fixedrange: true,
    color: "soft",
    gridcolor: "line",
    linecolor: "line",
    zerolinecolor: "edge",
    tickfont: { size: 11, color: "soft" },
    title: { font: { size: 11, color: "soft" }, standoff: 8 },
  };

  const withDefaults = (figure, element) => {
    const font = getComputedStyle(element).fontFamily;
    const base = {
      height: figure.height,
      autosize: true,
      dragmode: false,
      hovermode: "closest",
      paper_bgcolor: "transparent",
      plot_bgcolor: "transparent",
      colorway: ["dense", "fulltext", "freshness", "rerank", "good", "warn", "bad"],
      font: { family: font, size: 12, color: "ink" },
      margin: { l: 8, r: 12, t: 8, b: 8, pad: 4 },
      hoverlabel: { bgcolor: "raised", bordercolor: "edge", font: { family: font, size: 12, color: "ink" }, align: "left" },
      legend: { orientation: "h", xref: "container", x: 0, xanchor: "left", yref: "container", y: 1, yanchor: "top", font: { size: 11, color: "soft" }, itemclick: false, itemdoubleclick: false },
      xaxis: {},
      yaxis: {},
    };
    const layout = merged(base, figure.layout);
    for (const name of Object.keys(layout).filter((key) => /^[xy]axis\d*$/.test(key))) {
      layout[name] = merged(AXIS, layout[name]);
    }
    return layout;
  };

  // On a phone, long names would leave no room for the bars.
  const fitted = (layout, width) => {
    const names = layout.yaxis.ticktext;
    if (names && width < NARROW) {
      const cut = (name) => (name.length > SHORT_NAME ? `${name.slice(0, SHORT_NAME - 1).trimEnd()}…` : name);
      return { ...layout, yaxis: { ...layout.yaxis, ticktext: names.map(cut) } };
    }
    return layout;
  };

  const draw = async (chart) => {
    const plot = chart.querySelector("[data-chart-plot]");
    try {
      const plotly = await load();
      if (!chart.isConnected) {
        return;
      }
      const figure = JSON.parse(document.getElementById(chart.dataset.chart).content.textContent);
      const { colour, end } = palette(chart);
      const layout = fitted(coloured(withDefaults(figure, plot), colour), plot.clientWidth);
      const data = coloured(figure.data, colour);
      end();
      await plotly.react(plot, data, layout, CONFIG);
      chart.classList.add("is-drawn");
      drawn.add(chart);
    } catch (error) {
      chart.querySelector("[data-chart-failed]").hidden = false;
      chart.querySelector("[data-chart-table]").open = true;
      throw error;
    }
  };

  // Charts far below or on a closed tab are drawn when they are near the viewport.
  const watcher = new IntersectionObserver(
    (entries) => {
      for (const entry of entries.filter((it) => it.isIntersecting)) {
        watcher.unobserve(entry.target);
        draw(entry.target);
      }
    },
    { rootMargin: "600px" },
  );

  const forgetRemoved = () => {
    for (const chart of drawn) {
      if (!chart.isConnected) {
        window.Plotly.purge(chart.querySelector("[data-chart-plot]"));
        drawn.delete(chart);
      }
    }
  };

  const watch = () => {
    forgetRemoved();
    for (const chart of document.querySelectorAll("[data-chart]:not(.is-watched)")) {
      chart.classList.add("is-watched");
      watcher.observe(chart);
    }
  };

  const recolour = () => {
    forgetRemoved();
    for (const chart of drawn) {
      draw(chart);
    }
  };

  watch();
  document.addEventListener("htmx:afterSettle", watch);
  new MutationObserver(recolour).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
})();
