// Charts: each element with `data-chart` names a figure in the page, with colours as names of design tokens. plotly.js is
// large, so it is loaded when the first chart is near the viewport. Every chart also has its data in a table. Dragging
// zooms, a double click or a button resets, and clicks on the legend hide a trace or all others.
(() => {
  const SOURCE = document.currentScript.dataset.plotly;
  // Under this id plotly.js would add rules for maps, which the policy forbids and no chart needs.
  const MAP_RULES = "9f215cf04c5486422605d13261cb87401f4e7763b6296af81e98efbc0130da53";
  // On a touch screen, dragging scrolls the page until a mode is chosen.
  const DRAG_MODE = window.matchMedia("(pointer: coarse)").matches ? false : "zoom";
  const NARROW = window.matchMedia("(max-width: 34rem)");
  const SHORT_NAME = 16;
  const TITLE_HEIGHT = 36;
  const IMAGE_SCALE = 2;
  const IMAGE_FONT = "system-ui, sans-serif";
  const drawn = new Set();
  let loading = null;
  let config = null;

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
    color: "soft",
    gridcolor: "line",
    linecolor: "line",
    zerolinecolor: "edge",
    tickfont: { size: 11, color: "soft" },
    title: { font: { size: 11, color: "soft" }, standoff: 8 },
  };

  // Nobody zooms out of a range that is given: there is nothing beyond it.
  const bounded = (axis) => (axis.range ? { ...axis, minallowed: Math.min(...axis.range), maxallowed: Math.max(...axis.range) } : axis);

  const withDefaults = (figure, element) => {
    const font = getComputedStyle(element).fontFamily;
    const base = {
      height: figure.height,
      autosize: true,
      dragmode: DRAG_MODE,
      hovermode: "closest",
      // Another theme keeps the zoom and the hidden traces.
      uirevision: "kept",
      modebar: { bgcolor: "transparent", color: "faint", activecolor: "accent" },
      paper_bgcolor: "transparent",
      plot_bgcolor: "transparent",
      colorway: ["dense", "fulltext", "freshness", "rerank", "good", "warn", "bad"],
      font: { family: font, size: 12, color: "ink" },
      margin: { l: 8, r: 12, t: 8, b: 8, pad: 4 },
      hoverlabel: { bgcolor: "raised", bordercolor: "edge", font: { family: font, size: 12, color: "ink" }, align: "left" },
      legend: { orientation: "h", xref: "container", x: 0, xanchor: "left", yref: "container", y: 1, yanchor: "top", font: { size: 11, color: "soft" } },
      xaxis: {},
      yaxis: {},
    };
    const layout = merged(base, figure.layout);
    for (const name of ["xaxis", "yaxis"]) {
      layout[name] = merged(AXIS, bounded(layout[name]));
    }
    return layout;
  };

  // On a phone, long names would leave no room for the bars.
  const fitted = (layout) => {
    const names = layout.yaxis.ticktext;
    if (names && NARROW.matches) {
      const cut = (name) => (name.length > SHORT_NAME ? `${name.slice(0, SHORT_NAME - 1).trimEnd()}…` : name);
      return { ...layout, yaxis: { ...layout.yaxis, ticktext: names.map(cut) } };
    }
    return layout;
  };

  const mode = (name, title, icon) => ({
    name,
    title,
    icon,
    attr: "dragmode",
    val: name,
    click: (plot) => window.Plotly.relayout(plot, { dragmode: plot.layout.dragmode === name ? false : name }),
  });

  // plotly.js itself would draw a PNG from a blob, whose address the policy forbids as an image; it permits data. An image
  // has no fonts of the page, so the chart is drawn with one that both have.
  const save = async (plot) => {
    const chart = plot.closest("[data-chart]");
    const title = chart.querySelector("[data-chart-title]").textContent;
    const { clientWidth: width, clientHeight: height } = plot;
    const picture = new Image();
    const layout = merged(plot.layout, { font: { family: IMAGE_FONT } });
    picture.src = await window.Plotly.toImage({ data: plot.data, layout }, { format: "svg", width, height });
    await picture.decode();
    const canvas = document.createElement("canvas");
    canvas.width = width * IMAGE_SCALE;
    canvas.height = (height + TITLE_HEIGHT) * IMAGE_SCALE;
    const { colour, end } = palette(chart);
    const context = canvas.getContext("2d");
    context.scale(IMAGE_SCALE, IMAGE_SCALE);
    context.fillStyle = colour("panel");
    context.fillRect(0, 0, width, height + TITLE_HEIGHT);
    context.fillStyle = colour("ink");
    context.font = `bold 13px ${IMAGE_FONT}`;
    context.fillText(title, TITLE_HEIGHT / 3, (2 * TITLE_HEIGHT) / 3);
    context.drawImage(picture, 0, TITLE_HEIGHT, width, height);
    end();
    const link = document.createElement("a");
    link.href = URL.createObjectURL(await new Promise((resolve) => canvas.toBlob(resolve)));
    link.download = `${title}.png`;
    link.click();
    URL.revokeObjectURL(link.href);
  };

  const configured = ({ Icons }) => ({
    displayModeBar: "hover",
    displaylogo: false,
    responsive: true,
    scrollZoom: false,
    doubleClick: "reset",
    showTips: false,
    modeBarButtons: [
      [mode("zoom", "Drag to zoom", Icons.zoombox), mode("pan", "Drag to move", Icons.pan)],
      ["zoomIn2d", "zoomOut2d", "resetScale2d"],
      [{ name: "image", title: "Download image", icon: Icons.camera, click: save }],
    ],
  });

  const draw = async (chart) => {
    const plot = chart.querySelector("[data-chart-plot]");
    try {
      const plotly = await load();
      if (!chart.isConnected) {
        return;
      }
      const figure = JSON.parse(document.getElementById(chart.dataset.chart).content.textContent);
      const { colour, end } = palette(chart);
      const layout = fitted(coloured(withDefaults(figure, plot), colour));
      const data = coloured(figure.data, colour).map((trace, index) => ({ ...trace, uid: `${index}` }));
      end();
      // The same buttons each time: others would make it a new chart, without the zoom.
      config ??= configured(plotly);
      await plotly.react(plot, data, layout, config);
      // The caption and the table say what the drawing shows; the buttons beside it are named.
      for (const svg of plot.querySelectorAll(".main-svg")) {
        svg.setAttribute("aria-hidden", "true");
      }
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

  const redraw = () => {
    forgetRemoved();
    for (const chart of drawn) {
      draw(chart);
    }
  };

  watch();
  document.addEventListener("htmx:afterSettle", watch);
  new MutationObserver(redraw).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  for (const query of [window.matchMedia("(prefers-color-scheme: dark)"), NARROW]) {
    query.addEventListener("change", redraw);
  }
})();
