// Code that is wider than the page can be scrolled by keyboard, too.
function adapt() {
  for (const block of document.querySelectorAll("article pre")) {
    if (block.scrollWidth > block.clientWidth || block.scrollHeight > block.clientHeight) block.tabIndex = 0;
    else block.removeAttribute("tabindex");
  }
}

document.addEventListener("DOMContentLoaded", adapt);
addEventListener("resize", adapt);
