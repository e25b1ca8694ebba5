/* The page that describes the API: Swagger UI, as whoever is logged in here. */

"use strict";

const place = document.getElementById("api-docs");
const settings = JSON.parse(document.getElementById("api-docs-settings").textContent);

// Swagger UI has dark colours of its own, for whoever sets this class.
const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
function follow() {
  const theme = document.documentElement.dataset.theme ?? (prefersDark.matches ? "dark" : "light");
  document.documentElement.classList.toggle("dark-mode", theme === "dark");
}
follow();
prefersDark.addEventListener("change", follow);
new MutationObserver(follow).observe(document.documentElement, { attributeFilter: ["data-theme"] });

window.SwaggerUIBundle({
  ...settings,
  domNode: place,
  presets: [window.SwaggerUIBundle.presets.apis],
  requestInterceptor: (request) => {
    request.headers["X-CSRFToken"] = place.dataset.csrfToken;
    return request;
  },
});
