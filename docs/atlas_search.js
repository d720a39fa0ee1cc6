// The search box of the atlas: shows the lines of its pages that have all words which are typed.
// atlasLines, of atlas_lines.js, has of each line its page, the anchor of its heading, the heading, and the text.
const MOST = 100;

function found(typed) {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  return atlasLines.filter(([page, , heading, text]) => {
    const whole = `${page} ${heading} ${text}`.toLowerCase();
    return words.every((word) => whole.includes(word));
  });
}

function item([page, anchor, heading, text]) {
  const link = document.createElement("a");
  link.href = anchor ? `${page}#${anchor}` : page;
  link.textContent = `${page.replace(".html", "")}: ${heading}`;
  const line = document.createElement("div");
  line.textContent = text;
  const entry = document.createElement("li");
  entry.append(link, line);
  return entry;
}

const box = document.createElement("input");
box.type = "search";
box.className = "md-input md-input--stretch";
box.placeholder = "Words, such as: ort float8e4m3fn NaN";
box.setAttribute("aria-label", "Search the atlas");
const count = document.createElement("p");
count.setAttribute("role", "status");
const list = document.createElement("ul");
box.addEventListener("input", () => {
  const lines = found(box.value);
  const shown = lines.length > MOST ? `, of which the first ${MOST} are shown` : "";
  count.textContent = box.value.trim() ? `${lines.length} ${lines.length === 1 ? "line" : "lines"}${shown}` : "";
  list.replaceChildren(...lines.slice(0, MOST).map(item));
});
document.getElementById("atlas-search").append(box, count, list);
