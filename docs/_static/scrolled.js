// Browsers do not let a page in a file load others, from which the search would quote.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;

// Code and tables that are wider than the page can be scrolled by keyboard, too.
function adapt() {
  for (const block of document.querySelectorAll("article :is(pre, .table-wrapper)")) {
    if (block.scrollWidth > block.clientWidth || block.scrollHeight > block.clientHeight) block.tabIndex = 0;
    else block.removeAttribute("tabindex");
  }
}

document.addEventListener("DOMContentLoaded", () => {
  adapt();
  // Furo gives its two side bars no names, by which screen readers tell them apart.
  document.querySelector(".sidebar-drawer")?.setAttribute("aria-label", "Pages");
  document.querySelector(".toc-drawer")?.setAttribute("aria-label", "On this page");
});
addEventListener("resize", adapt);
document.addEventListener("toggle", adapt, true);
