"use strict";

// The search on the front page opens the list of cases, with the query in its fragment.
document.getElementById("search").addEventListener("submit", (event) => {
  event.preventDefault();
  const query = new FormData(event.target).get("q");
  location.href = `cases.html#${new URLSearchParams({ q: query })}`;
});
