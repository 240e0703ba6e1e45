"use strict";
const byId = (id) => document.getElementById(id);
const percent = (share) => (100 * share).toFixed(1) + " %";
const number = (value) => Math.round(value).toLocaleString("en");
const kilo = (tokens) => (tokens >= 1000 ? (tokens / 1000).toFixed(tokens < 10000 ? 1 : 0) + "k" : String(tokens));

/** An element with attributes and children; text is always text, never markup. */
function element(name, attributes, ...children) {
  const made = name.startsWith("svg:")
    ? document.createElementNS("http://www.w3.org/2000/svg", name.slice(4))
    : document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** A chart that is drawn for the width it has, so that its text stays as large as all other text. */
function chart(into, height, draw) {
  const width = Math.max(200, into.clientWidth || 300);
  const svg = element("svg:svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img" });
  draw(svg, width, height);
  into.replaceChildren(svg);
  return svg;
}
