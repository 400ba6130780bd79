"""What axe has against a page: what keeps some people from using it."""

from axe_playwright_python.base import AXE_SCRIPT

_SERIOUS = {"serious", "critical"}
#: Lets axe remember the colours that it has read, which it would read anew at every element, most of its time.
_REMEMBER_COLOURS = """() => {
  const colour = axe.commons.color.Color.prototype;
  const parse = colour.parseString;
  const known = new Map();
  colour.parseString = function (text) {
    if (!known.has(text)) {
      parse.call(this, text);
      known.set(text, { r: this.r, g: this.g, b: this.b, alpha: this.alpha });
    }
    return Object.assign(this, known.get(text));
  };
}"""
_VIOLATIONS = "() => axe.run({ resultTypes: ['violations'] }).then((results) => results.violations)"


def findings(page):
    """Return what axe has against a page, a line for each element."""
    if page.evaluate("typeof axe === 'undefined'"):
        page.evaluate(AXE_SCRIPT)
        page.evaluate(_REMEMBER_COLOURS)
    violations = page.evaluate(_VIOLATIONS)
    return [
        f"{violation['id']} ({violation['impact']}) {' '.join(map(str, node['target']))}: {node['html'][:160]}"
        for violation in violations
        if violation["impact"] in _SERIOUS
        for node in violation["nodes"]
    ]
