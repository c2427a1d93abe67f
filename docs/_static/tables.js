// Wide tables with texts become lists of rows on phones: each cell tells its column. Tables of numbers scroll.
const MOST_COLUMNS = 3;
const NARROW = 110; // pixels, for cells of more than LONG characters
const LONG = 40;
const TEXT = 45; // characters; labels of rows have fewer
const SENTENCES = 120; // characters; most requests beside numbers have fewer

// As blocks, the parts of a table lose their meaning for screen readers unless their roles say it.
const ROLES = { TABLE: "table", THEAD: "rowgroup", TBODY: "rowgroup", TR: "row", TH: "columnheader", TD: "cell" };

function label(table) {
  const titles = [...table.tHead.rows[0].cells].map((cell) => cell.innerText);
  for (const row of table.tBodies[0].rows) {
    [...row.cells].forEach((cell, index) => {
      cell.dataset.title = titles[index];
      cell.classList.toggle("nothing", cell.textContent.trim() === "–");
    });
  }
  for (const part of [table, ...table.querySelectorAll("thead, tbody, tr, th, td")]) {
    part.setAttribute("role", ROLES[part.tagName]);
  }
}

function arrange(table) {
  table.classList.remove("stacked", "numbers");
  const place = table.parentElement;
  const columns = table.tHead.rows[0].cells.length;
  const cells = [...table.querySelectorAll("td")];
  const cramped = cells.some((cell) => cell.clientWidth < NARROW && cell.innerText.length > LONG);
  const numbers = [...table.tBodies[0].rows[0].cells].filter((cell) => getComputedStyle(cell).textAlign === "right");
  const hasTexts =
    2 * numbers.length < columns
      ? cells.some((cell) => cell.innerText.length > TEXT)
      : cells.filter((cell) => cell.innerText.length > SENTENCES).length > table.tBodies[0].rows.length / 2;
  const isWide = columns > MOST_COLUMNS || cramped || place.scrollWidth > place.clientWidth;
  table.classList.toggle("stacked", hasTexts && isWide);
  table.classList.toggle("numbers", !hasTexts && isWide);
}

document.addEventListener("DOMContentLoaded", () => {
  const tables = [...document.querySelectorAll("article table.docutils")].filter(
    (table) => table.tHead && !table.closest(".figures"),
  );
  const phone = matchMedia("(max-width: 46em)");
  const adapt = () => tables.forEach((table) => (phone.matches ? arrange(table) : table.classList.remove("stacked", "numbers")));
  tables.forEach(label);
  adapt();
  addEventListener("resize", adapt);
  document.addEventListener("toggle", adapt, true); // what is folded has no width
});
