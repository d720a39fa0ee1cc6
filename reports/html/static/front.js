"use strict";

// The search on the front page leads to the page of cases, with the words in its fragment.
document.getElementById("search").addEventListener("submit", (event) => {
  event.preventDefault();
  const words = new FormData(event.target).get("q");
  location.href = `cases.html#${new URLSearchParams({ q: words })}`;
});
